#pragma once
// A textproto that has been read already.

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace optimus {

// What ReadTextProto (base/files.h) does with the text of the file `path`.
absl::Status ParseTextProto(const std::string& path, const std::string& text,
                            google::protobuf::Message& message);

}  // namespace optimus
