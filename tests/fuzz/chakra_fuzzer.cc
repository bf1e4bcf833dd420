// Any bytes as a Chakra file, as its groups file, and as the process groups of a node. What can be
// read is written and read again: it has to be the same.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "traces/chakra/chakra.h"
#include "traces/chakra/groups.h"
#include "traces/chakra/write.h"

namespace {

using optimus::traces::Recording;

void CheckRoundTrip(const Recording& recording) {
  std::string file_name, bytes;
  const absl::Status written = optimus::traces::WriteChakra(
      recording, "run", [&](const std::string& file, absl::string_view piece) {
        if (!absl::EndsWith(file, ".et")) return absl::OkStatus();
        file_name = file;
        bytes.append(piece.data(), piece.size());
        return absl::OkStatus();
      });
  if (!written.ok()) abort();
  auto again = optimus::traces::ReadChakraBytes(bytes, file_name);
  if (!again.ok()) abort();
  again->ranks.front().source = recording.ranks.front().source;
  if (*again != recording) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (size > 0 && data[0] == '{') {
    (void)optimus::traces::chakra::ParseGroups(bytes, "groups.json");
  }
  if (size > 0 && data[0] == '[') {
    optimus::traces::chakra::GroupTable groups;
    (void)optimus::traces::chakra::AddProcessGroups(bytes, groups);
  }
  const auto recording = optimus::traces::ReadChakraBytes(
      bytes, "run.0.et", R"({"1": [0, 1], "2": [0, 2]})", {.world = 4});
  if (recording.ok()) CheckRoundTrip(*recording);
  return 0;
}
