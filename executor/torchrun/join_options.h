#pragma once
// How ranks wait for each other before they have joined.

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace optimus::executor {

struct JoinOptions {
  // As long as torchrun itself waits for nodes that come late.
  absl::Duration patience = absl::Minutes(5);
  // Called about every 50 ms; its error ends the wait. May be null.
  std::function<absl::Status()> tick = nullptr;
  // Once, after a wait of `silence`: "rank 0 waits for ranks 1-3 of 4 at port 29501 ...". For the
  // user of a terminal that shows nothing. May be null.
  std::function<void(const std::string& text)> say = nullptr;
  absl::Duration silence = absl::Seconds(5);
};

}  // namespace optimus::executor
