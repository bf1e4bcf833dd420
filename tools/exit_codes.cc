#include "tools/exit_codes.h"

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "tools/printable.h"

namespace optimus::tools {
namespace {

constexpr const char* kOwn = "optimus.tools/own_error";

}  // namespace

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

absl::Status OwnError(absl::Status error) {
  error.SetPayload(kOwn, absl::Cord());
  return error;
}

bool IsOwnError(const absl::Status& error) { return error.GetPayload(kOwn).has_value(); }

std::string ErrorLine(const absl::Status& status) {
  constexpr std::size_t kLongest = 1000;
  const absl::string_view message = absl::StripAsciiWhitespace(status.message());
  return absl::StrCat("optimus: error: ", CutMiddle(Printable(message), kLongest), "\n");
}

}  // namespace optimus::tools
