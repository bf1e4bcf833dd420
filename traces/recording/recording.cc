#include "traces/recording/recording.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace optimus::traces {

const char* ToString(OpKind kind) {
  switch (kind) {
    case OpKind::kHost:
      return "host";
    case OpKind::kCompute:
      return "compute";
    case OpKind::kCopy:
      return "copy";
    case OpKind::kCommunication:
      return "communication";
  }
  return "?";
}

const char* ToString(CommunicationKind kind) {
  static constexpr std::array<const char*, kCommunicationKindCount> kNames = {
      "unknown", "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",      "gather",
      "scatter", "all_to_all", "barrier",    "send",           "receive",   "send_receive"};
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : "?";
}

bool IsPointToPoint(CommunicationKind kind) {
  return kind == CommunicationKind::kSend || kind == CommunicationKind::kReceive ||
         kind == CommunicationKind::kSendReceive;
}

const char* ToString(DependencyKind kind) {
  switch (kind) {
    case DependencyKind::kAfter:
      return "after";
    case DependencyKind::kLaunch:
      return "launch";
    case DependencyKind::kEvent:
      return "event";
    case DependencyKind::kEndAfter:
      return "end_after";
  }
  return "?";
}

namespace {

struct RoleWords {
  const char* role = nullptr;
  absl::Span<const char* const> words;
};

// Whole words that one of Megatron, DeepSpeed, FSDP or DeviceMesh uses in a group's name.
std::string RoleOfText(absl::string_view text) {
  static constexpr std::array<const char*, 6> kData = {"dp", "data", "fsdp", "ddp", "zero", "hsdp"};
  static constexpr std::array<const char*, 4> kTensor = {"tp", "tensor", "mp", "sequence"};
  static constexpr std::array<const char*, 2> kPipeline = {"pp", "pipeline"};
  static constexpr std::array<const char*, 3> kExpert = {"ep", "expert", "moe"};
  static constexpr std::array<const char*, 2> kContext = {"cp", "context"};
  static constexpr std::array<const char*, 3> kWorld = {"world", "default", "global"};
  // The first that fits: "expert data parallel" is data parallel, "tensor and data" too.
  const std::array<RoleWords, 6> roles = {{{"dp", kData},
                                           {"pp", kPipeline},
                                           {"tp", kTensor},
                                           {"ep", kExpert},
                                           {"cp", kContext},
                                           {"world", kWorld}}};
  const std::string lower = absl::AsciiStrToLower(text);
  const std::vector<absl::string_view> words =
      absl::StrSplit(lower, absl::ByAnyChar(" _-./:[]()0123456789"), absl::SkipEmpty());
  for (const RoleWords& role : roles) {
    for (const char* word : role.words) {
      if (std::find(words.begin(), words.end(), word) != words.end()) return role.role;
    }
  }
  return "";
}

}  // namespace

std::string RoleOf(absl::string_view name, absl::string_view description) {
  std::string role = RoleOfText(description);
  return role.empty() ? RoleOfText(name) : role;
}

}  // namespace optimus::traces
