#pragma once
// Reading and writing whole files, and textprotos with errors that name file, line and field.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"

namespace optimus {

absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes to a temporary file beside `path` and renames it: never leaves half a file.
absl::Status WriteFileAtomically(const std::string& path, const std::string& content);

// Parses a textproto. Errors: NOT_FOUND (no such file) or INVALID_ARGUMENT "path:line:column: ...".
absl::Status ReadTextProto(const std::string& path, google::protobuf::Message& message);

// Directory that holds models/zoo, hw_profiles/zoo: $OPTIMUS_DATA_DIR, else the source tree the
// binary was built from.
std::string DataDir();

}  // namespace optimus
