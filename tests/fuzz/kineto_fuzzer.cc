// Any bytes as a Kineto or Chrome trace. What is read has to pass CheckRecording, whatever the size
// of the window it was read through.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "traces/kineto/chrome_json.h"
#include "traces/kineto/kineto.h"

namespace {

using optimus::traces::KinetoOptions;
using optimus::traces::ReadKinetoText;
using optimus::traces::Recording;

// What was read is written as our own JSON, read again, and is the same.
void CheckRoundTrip(const Recording& recording, const KinetoOptions& options) {
  const auto text = optimus::traces::ChromeJsonText(recording);
  if (!text.ok()) return;
  auto again = ReadKinetoText(*text, "fuzz", options);
  if (!again.ok()) std::abort();
  const auto second = optimus::traces::ChromeJsonText(*again);
  if (!second.ok() || *second != *text) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  KinetoOptions wide, narrow;
  wide.limits.window = 16384;
  narrow.limits.window = 256;
  const auto one = ReadKinetoText(text, "fuzz", wide);
  const auto two = ReadKinetoText(text, "fuzz", narrow);
  if (one.ok() != two.ok()) std::abort();
  if (!one.ok()) return 0;
  if (!(*one == *two)) std::abort();
  CheckRoundTrip(*one, wide);
  return 0;
}
