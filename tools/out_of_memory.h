#pragma once
// std::bad_alloc as an error that says what needed the memory.

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace optimus::tools {

// What `work` returns (a Status or StatusOr), or RESOURCE_EXHAUSTED "FILE: out of memory while
// DOING; hint: ...". Unwinding has freed what `work` held, so there is memory for the message.
template <class Work>
auto CatchOutOfMemory(const std::string& file, const std::string& doing, Work work)
    -> decltype(work()) {
  const auto error = [&] {
    return absl::ResourceExhaustedError(absl::StrCat(
        file, ": out of memory while ", doing,
        "; hint: fewer micro-batches or slices need less, as does a run without --trace and --out, "
        "or with --fidelity=folded"));
  };
  try {
    return std::move(work)();
  } catch (const std::bad_alloc&) {
    return error();
  } catch (const std::length_error&) {  // a container larger than any memory
    return error();
  }
}

}  // namespace optimus::tools
