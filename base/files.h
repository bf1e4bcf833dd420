#pragma once
// Reading and writing whole files, and textprotos with errors that name file, line and field.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"

namespace optimus {

// The content of a regular file, or of /dev/stdin. Errors name the file: NOT_FOUND (no such file),
// INVALID_ARGUMENT (a folder, device or pipe: reading it could last for ever; or an empty file: no
// format of ours allows that), DATA_LOSS (a read failed).
absl::StatusOr<std::string> ReadFile(const std::string& path);

// One file of StagedFiles (base/staged_files.h): never leaves half a file.
absl::Status WriteFileAtomically(const std::string& path, const std::string& content);

// Parses a textproto. Errors: those of ReadFile, or INVALID_ARGUMENT "path:line:column: ...";
// "path: field: ..." where a string is not valid UTF-8 (it could be written, but never read again).
absl::Status ReadTextProto(const std::string& path, google::protobuf::Message& message);

// Directory that holds models/zoo, hw_profiles/zoo: $OPTIMUS_DATA_DIR, else the source tree the
// binary was built from.
std::string DataDir();

// For the error about an unknown name: "known: a, b (from FOLDER)". Where there are none, FOLDER is
// not the one that was meant, and the text says which variable leads there.
std::string KnownNames(const std::vector<std::string>& names, const std::string& folder);

}  // namespace optimus
