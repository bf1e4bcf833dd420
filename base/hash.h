#pragma once
// A name for content.

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace optimus {

// FNV-1a, 64 bits, as 16 hex digits: says which content something was made from. Not for secrets.
std::string ContentHash(absl::string_view bytes);

// The same bytes for equal messages.
std::string SerializeDeterministically(const google::protobuf::Message& message);

}  // namespace optimus
