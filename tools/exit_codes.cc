#include "tools/exit_codes.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace optimus::tools {

int ExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitSuccess;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kDataLoss:  // a file that cannot be read to its end
    case absl::StatusCode::kUnavailable:
      return kExitBadInput;  // a file that cannot be written
    default:
      return kExitInternal;
  }
}

std::string ErrorLine(const absl::Status& status) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(status.message(), absl::ByAnyChar("\r\n"))) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty()) lines.emplace_back(line);
  }
  return absl::StrCat("optimus: error: ", absl::StrJoin(lines, "; "), "\n");
}

}  // namespace optimus::tools
