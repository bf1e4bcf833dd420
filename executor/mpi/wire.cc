#include "executor/mpi/wire.h"

#include "absl/strings/str_cat.h"
#include "base/kernel.h"

namespace optimus::executor {

std::string StampLine(const Stamp& stamp, const StampText* text) {
  if (text != nullptr && *text) {
    return (*text)(stamp);
  }
  return absl::StrCat("rank ", stamp.rank, ": operation ", stamp.operation, " of step ",
                      stamp.step);
}

std::string HeaderLine(const WireHeader& header, const StampText* text) {
  const std::string what =
      header.kind == kMessage
          ? absl::StrCat("message ", header.number)
          : absl::StrCat(ToString(static_cast<CollectiveKind>(header.kind)), " ", header.number);
  const std::string size =
      header.floats == kUnknownFloats ? "" : absl::StrCat(" of ", header.floats * 4, " bytes");
  return absl::StrCat(StampLine(header.stamp, text), " (", what, size, ")");
}

}  // namespace optimus::executor
