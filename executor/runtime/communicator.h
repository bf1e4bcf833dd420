#pragma once
// The seam to what moves data between the ranks of a group. Calls enqueue on a stream of the
// Device that the communicator was made with, and return at once.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/kernel.h"
#include "executor/runtime/stamp.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor {

// Real data of one operation (numerics). Called when the operation starts (`input`) and when it
// ends (`output`, `done`), on a thread of the device. Null: the communicator moves bytes of its
// own, as many as the work says.
struct Payload {
  // What this rank puts in. All-gather: its part; reduce-scatter: the whole; send: the message.
  std::function<absl::Span<const float>()> input;
  // Where the result goes. All-gather: the whole; reduce-scatter: its part; receive: the message.
  std::function<absl::Span<float>()> output;
  std::function<void()> done;
};

struct CollectiveCall {
  const CollectiveWork* work = nullptr;  // outlives the step
  Stamp stamp;                           // this rank's; the members' must agree (SameCollective)
  Payload payload;
  const std::function<std::string(const Stamp&)>* text = nullptr;  // as Device::CheckStamp
};

struct MessageCall {
  std::int32_t peer = -1;     // rank in this communicator
  std::int32_t message = -1;  // Operation::message: the tag that pairs send and receive
  Bytes bytes;
  Stamp stamp;  // send: what is sent. Receive: what must arrive.
  Payload payload;
  const std::function<std::string(const Stamp&)>* text = nullptr;
};

// One direction between two ranks: every message that `source` sends on `send_stream` and
// `destination` receives on `receive_stream`, in order of issue.
struct Route {
  std::int32_t source = 0, destination = 0;  // global ranks
  ir::Stream send_stream = ir::Stream::kForwardSend, receive_stream = ir::Stream::kForwardReceive;
  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
  friend auto operator<=>(const Route&, const Route&) = default;
};
// All routes of a Schedule, sorted, over all ranks. UNIMPLEMENTED, naming two messages, where one
// route's messages are received in another order than they are sent.
absl::StatusOr<std::vector<Route>> RoutesOf(const ir::Schedule& schedule);

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Called by every rank of this communicator, with the ranks (ascending, in this communicator's
  // numbers, the caller among them) of the group that the caller is in; groups are disjoint.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> Split(absl::Span<const std::int32_t> ranks,
                                                              const std::string& name) = 0;
  // Of the world, before the first step of a schedule: what its messages need.
  virtual absl::Status Connect(const ir::Schedule& schedule) = 0;
  // Of the world, before the first step: makes room for calls without a Payload, each of up to
  // `largest`. Without it they make it when they are enqueued, one rank here and another there.
  // RESOURCE_EXHAUSTED.
  virtual absl::Status Reserve(Bytes /*largest*/) { return absl::OkStatus(); }
  // Of the world, within a step, before Device::Start: this rank will receive `calls` in the step,
  // so that no send waits for a receive that the program has not come to. Each is received later by
  // Receive with the same peer and message.
  virtual absl::Status Expect(absl::Span<const MessageCall> calls) = 0;

  // Starts when every member is there; members match collectives of one communicator by order of
  // issue. A group of one rank: nothing moves.
  virtual absl::Status Collective(ir::Stream stream, const CollectiveCall& call) = 0;
  virtual absl::Status Send(ir::Stream stream, const MessageCall& call) = 0;
  virtual absl::Status Receive(ir::Stream stream, const MessageCall& call) = 0;
};

}  // namespace optimus::executor
