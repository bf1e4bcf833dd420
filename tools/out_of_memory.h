#pragma once
// Errors of memory that say what needed it: ours (std::bad_alloc), and a device's.

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"

namespace optimus::tools {

inline constexpr char kPlanningHint[] =
    "fewer micro-batches or slices need less, as does a run without --trace and --out, or with "
    "--fidelity=folded";

// What `work` returns (a Status or StatusOr), or RESOURCE_EXHAUSTED "FILE: out of memory while
// DOING; hint: ...".
template <class Work>
auto CatchOutOfMemory(const std::string& file, const std::string& doing, Work work,
                      const char* hint = kPlanningHint) -> decltype(work()) {
  return optimus::CatchOutOfMemory(
      [&] { return absl::StrCat(file, ": out of memory while ", doing, "; hint: ", hint); },
      std::move(work));
}

// `status` of making a device ready for the schedule of `file` (empty: of no one file), with its
// name. Where it does not fit into the device's memory, that is the input's fault and not ours:
// FAILED_PRECONDITION.
inline absl::Status NameNotReady(const std::string& file, const absl::Status& status) {
  if (status.ok()) return status;
  const std::string text = absl::StrCat(file, file.empty() ? "" : ": ", status.message());
  return absl::IsResourceExhausted(status) ? absl::FailedPreconditionError(text)
                                           : absl::Status(status.code(), text);
}

}  // namespace optimus::tools
