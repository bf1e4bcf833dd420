#pragma once
// What is enqueued on one stream: a flat list of small commands. Whatever is larger than an index
// lies in a list beside it. Nothing is allocated once the lists have grown to a step's size.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/kernel.h"
#include "executor/host/host_device.h"
#include "executor/runtime/stamp.h"

namespace optimus::executor {

enum class CommandKind : std::uint8_t {
  kWait,        // index: event
  kRecord,      // index: event
  kKernel,      // index into kernels
  kHostWork,    // index into host_work
  kWriteStamp,  // index: slot; the next of `stamps`
  kCheckStamp,  // index: slot; the next of `stamps` and of `texts`
  kTask,        // index into tasks
};

struct Command {
  CommandKind kind = CommandKind::kWait;
  std::uint32_t index = 0;
};

struct StreamQueue {
  using StampText = std::function<std::string(const Stamp&)>;
  std::vector<Command> commands;
  std::vector<const Kernel*> kernels;
  std::vector<std::function<absl::Status()>> host_work;
  std::vector<std::unique_ptr<HostTask>> tasks;
  std::vector<Stamp> stamps;
  std::vector<const StampText*> texts;

  // Destroys tasks and host work that are left.
  void Clear() {
    commands.clear();
    kernels.clear();
    host_work.clear();
    tasks.clear();
    stamps.clear();
    texts.clear();
  }
};

// Where a thread is in a stream.
struct StreamCursor {
  StreamQueue* queue = nullptr;
  std::size_t next = 0;  // command
  std::size_t next_stamp = 0, next_text = 0;
  std::int64_t ready_ns = 0;  // nominal end of all that came before; 0: nothing did
  bool done() const { return next == queue->commands.size(); }
  const Command& command() const { return queue->commands[next]; }
};

}  // namespace optimus::executor
