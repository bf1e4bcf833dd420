#pragma once
// For tests: what WriteChakra writes, in memory.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "traces/chakra/write.h"

namespace optimus::traces {

// Content by file name; the prefix is "run".
inline std::map<std::string, std::string> Written(const Recording& recording) {
  std::map<std::string, std::string> files;
  const absl::Status status =
      WriteChakra(recording, "run", [&](const std::string& file, absl::string_view piece) {
        files[file].append(piece.data(), piece.size());
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return files;
}

}  // namespace optimus::traces
