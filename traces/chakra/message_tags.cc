#include "traces/chakra/message_tags.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace optimus::traces::chakra {
namespace {

struct Message {
  std::int32_t source = 0, destination = 0, group = 0;
  std::int64_t tag = 0;
  bool receives = false;
  Picoseconds start;
  std::size_t rank = 0, place = 0;  // where its number goes
  std::int64_t ordinal = 0;         // among those of one side and tag

  auto Pair() const { return std::tie(source, destination); }
  auto Key() const { return std::tie(source, destination, group, tag); }
  auto Order() const {
    return std::tie(source, destination, group, tag, receives, start, rank, place);
  }
};

void Gather(const RecordedRank& rank, std::size_t index, std::vector<Message>& messages,
            std::size_t& count) {
  count = 0;
  for (const RecordedOp& op : rank.ops) {
    const Communication* communication = rank.CommunicationOf(op);
    if (communication == nullptr || !HasMessageTag(*communication)) continue;
    const bool receives = communication->kind == CommunicationKind::kReceive;
    messages.push_back({.source = receives ? communication->peer : rank.rank,
                        .destination = receives ? rank.rank : communication->peer,
                        .group = communication->group,
                        .tag = communication->tag,
                        .receives = receives,
                        .start = communication->tag < 0 ? op.start : Picoseconds(0),
                        .rank = index,
                        .place = count++});
  }
}

void SetOrdinals(std::vector<Message>& messages) {
  for (std::size_t i = 1; i < messages.size(); ++i) {
    const Message& before = messages[i - 1];
    const bool same = before.Key() == messages[i].Key() && before.receives == messages[i].receives;
    messages[i].ordinal = same ? before.ordinal + 1 : 0;
  }
}

std::int32_t AsTag(std::int64_t number) {
  return static_cast<std::int32_t>(number % std::numeric_limits<std::int32_t>::max());
}

}  // namespace

bool HasMessageTag(const Communication& communication) {
  return (communication.kind == CommunicationKind::kSend ||
          communication.kind == CommunicationKind::kReceive) &&
         communication.peer >= 0;
}

std::vector<std::vector<std::int32_t>> MessageTags(const Recording& recording) {
  std::vector<Message> messages;
  std::vector<std::vector<std::int32_t>> tags(recording.ranks.size());
  for (std::size_t i = 0; i < recording.ranks.size(); ++i) {
    std::size_t count = 0;
    Gather(recording.ranks[i], i, messages, count);
    tags[i].resize(count);
  }
  std::sort(messages.begin(), messages.end(),
            [](const Message& a, const Message& b) { return a.Order() < b.Order(); });
  SetOrdinals(messages);
  // Both sides of a tag count from the same number on, which leaves room for the longer side.
  std::int64_t base = 0, most = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (i > 0 && messages[i - 1].Pair() != message.Pair()) {
      base = 0;
      most = 0;
    } else if (i > 0 && messages[i - 1].Key() != message.Key()) {
      base += most;
      most = 0;
    }
    most = std::max(most, message.ordinal + 1);
    tags[message.rank][message.place] = AsTag(base + message.ordinal);
  }
  return tags;
}

}  // namespace optimus::traces::chakra
