#pragma once
// Textproto files that one process reads many times, as a sweep does the profile of its points.

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files.h"
#include "base/parse_text_proto.h"
#include "base/status_macros.h"

namespace optimus {

// Reads the file every time, and parses and checks it again only where its text has changed. Errors
// are those of ReadTextProto, or of `check` with the file's name before them.
template <class Message>
absl::StatusOr<Message> ReadRemembered(const std::string& path,
                                       absl::Status (*check)(const Message&)) {
  struct Known {
    std::string text;
    Message message;
  };
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, Known>;  // lives as long as the process
  OPTIMUS_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = known->find(path);
  if (found != known->end() && found->second.text == text) return found->second.message;
  Message message;
  OPTIMUS_RETURN_IF_ERROR(ParseTextProto(path, text, message));
  if (const absl::Status status = check(message); !status.ok()) {
    return absl::Status(status.code(), path + ": " + std::string(status.message()));
  }
  (*known)[path] = {std::move(text), message};
  return message;
}

}  // namespace optimus
