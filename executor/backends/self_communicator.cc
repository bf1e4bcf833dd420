#include "executor/backends/self_communicator.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace optimus::executor {
namespace {

class SelfCollective : public HostTask {
 public:
  explicit SelfCollective(CollectiveCall call) : call_(std::move(call)) {}

  absl::Status Start(std::int64_t ready_ns) override {
    ready_ns_ = ready_ns;
    if (call_.payload.input) {
      const absl::Span<const float> input = call_.payload.input();
      data_.assign(input.begin(), input.end());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<std::int64_t>> Poll() override {
    if (call_.payload.output) {
      const absl::Span<float> output = call_.payload.output();
      if (output.size() != data_.size()) {
        return absl::InvalidArgumentError(absl::StrCat(
            ToString(call_.work->kind), " '", call_.work->name, "' of one rank: ", data_.size(),
            " floats go in, but there is place for ", output.size()));
      }
      std::copy(data_.begin(), data_.end(), output.begin());
    }
    if (call_.payload.done) call_.payload.done();
    return ready_ns_;
  }

 private:
  CollectiveCall call_;
  std::vector<float> data_;
  std::int64_t ready_ns_ = 0;
};

class SelfCommunicator : public Communicator {
 public:
  explicit SelfCommunicator(HostDevice& device) : device_(device) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }

  absl::StatusOr<std::unique_ptr<Communicator>> Split(absl::Span<const std::int32_t> ranks,
                                                      const std::string& name) override {
    if (ranks.size() != 1 || ranks[0] != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "group '", name, "' of ranks ", absl::StrJoin(ranks, ", "), ": there is rank 0 alone"));
    }
    return std::make_unique<SelfCommunicator>(device_);
  }
  absl::Status Connect(const ir::Schedule& /*schedule*/) override { return absl::OkStatus(); }
  absl::Status Expect(absl::Span<const MessageCall> calls) override {
    return calls.empty() ? absl::OkStatus() : NoMessages(calls[0]);
  }
  absl::Status Collective(ir::Stream stream, const CollectiveCall& call) override {
    return device_.Enqueue(stream, std::make_unique<SelfCollective>(call));
  }
  absl::Status Send(ir::Stream /*stream*/, const MessageCall& call) override {
    return NoMessages(call);
  }
  absl::Status Receive(ir::Stream /*stream*/, const MessageCall& call) override {
    return NoMessages(call);
  }

 private:
  static absl::Status NoMessages(const MessageCall& call) {
    return absl::InvalidArgumentError(absl::StrCat("message ", call.message, ": peer ", call.peer,
                                                   " does not exist, rank 0 is alone"));
  }
  HostDevice& device_;
};

}  // namespace

std::unique_ptr<Communicator> MakeSelfCommunicator(HostDevice& device) {
  return std::make_unique<SelfCommunicator>(device);
}

}  // namespace optimus::executor
