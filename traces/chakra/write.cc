#include "traces/chakra/write.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "traces/chakra/message_reader.h"
#include "traces/chakra/node_writer.h"
#include "traces/chakra/own_format.h"

namespace optimus::traces {
namespace {

using chakra::GlobalMetadata;
using chakra::Node;

constexpr std::size_t kPiece = std::size_t{1} << 20;

// Messages behind their lengths, handed on in pieces.
class MessageSink {
 public:
  MessageSink(const ChakraSink& sink, std::string file) : sink_(sink), file_(std::move(file)) {}

  template <class Message>
  absl::Status Add(const Message& message) {
    const std::size_t size = message.ByteSizeLong();
    if (size > chakra::kLongestMessage) {
      return absl::InvalidArgumentError(
          absl::StrCat(file_, ": names, groups or dependencies of one operation of ", size,
                       " bytes; the longest message that is read has ", chakra::kLongestMessage));
    }
    for (std::size_t rest = size; true; rest >>= 7) {
      bytes_.push_back(static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0)));
      if (rest <= 0x7f) break;
    }
    message.AppendToString(&bytes_);
    return bytes_.size() < kPiece ? absl::OkStatus() : Flush();
  }

  absl::Status Flush() {
    OPTIMUS_RETURN_IF_ERROR(sink_(file_, bytes_));
    bytes_.clear();
    return absl::OkStatus();
  }

 private:
  const ChakraSink& sink_;
  const std::string file_;
  std::string bytes_;
};

absl::Status WriteRank(const Recording& recording, std::size_t index,
                       const std::vector<std::int32_t>& tags, MessageSink& sink) {
  GlobalMetadata metadata;
  metadata.set_version("0.0.4");
  chakra::WriteOwnMetadata(recording, index, metadata);
  OPTIMUS_RETURN_IF_ERROR(sink.Add(metadata));
  chakra::NodeWriter writer(recording, recording.ranks[index], tags);
  Node node;
  for (std::size_t op = 0; op < recording.ranks[index].ops.size(); ++op) {
    writer.Write(op, node);
    OPTIMUS_RETURN_IF_ERROR(sink.Add(node));
  }
  return sink.Flush();
}

std::string GroupsJson(const Recording& recording) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < recording.groups.size(); ++i) {
    const CommunicatorGroup& group = recording.groups[i];
    if (group.ranks.empty() || chakra::IsWorldGroup(recording, group)) continue;
    lines.push_back(absl::StrCat("  \"", i + 1, "\": [", absl::StrJoin(group.ranks, ", "), "]"));
  }
  if (lines.empty()) return "{}\n";
  return absl::StrCat("{\n", absl::StrJoin(lines, ",\n"), "\n}\n");
}

}  // namespace

absl::Status WriteChakra(const Recording& recording, const std::string& prefix,
                         const ChakraSink& sink) {
  OPTIMUS_RETURN_IF_ERROR(CheckRecording(recording));
  if (recording.ranks.empty()) return absl::InvalidArgumentError("a recording without a rank");
  const std::vector<std::vector<std::int32_t>> tags = chakra::MessageTags(recording);
  for (std::size_t i = 0; i < recording.ranks.size(); ++i) {
    MessageSink file(sink, absl::StrCat(prefix, ".", recording.ranks[i].rank, ".et"));
    OPTIMUS_RETURN_IF_ERROR(WriteRank(recording, i, tags[i], file));
  }
  return sink(absl::StrCat(prefix, ".groups.json"), GroupsJson(recording));
}

}  // namespace optimus::traces
