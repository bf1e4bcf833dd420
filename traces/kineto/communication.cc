#include "traces/kineto/communication.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace optimus::traces {
namespace {

constexpr std::int64_t kLargestRank = std::numeric_limits<std::int32_t>::max();

bool IsRank(std::int64_t value) { return value >= 0 && value <= kLargestRank; }

// "allreduce" of "nccl:_all_reduce": lower case, without underscores.
std::string Plain(absl::string_view text) {
  absl::ConsumePrefix(&text, "nccl:");
  absl::ConsumePrefix(&text, "rccl:");
  std::string plain = absl::AsciiStrToLower(text);
  plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
  return plain;
}

// By the first letters: "allgatherbase", "allgatherintotensorcoalesced", "reducescattertensor".
CommunicationKind KindOfWords(absl::string_view plain) {
  using Kind = CommunicationKind;
  // What is whole in another one stands behind it.
  static constexpr std::array<std::pair<absl::string_view, Kind>, 16> kKinds = {{
      {"allreduce", Kind::kAllReduce},
      {"allgather", Kind::kAllGather},
      {"reducescatter", Kind::kReduceScatter},
      {"broadcast", Kind::kBroadcast},
      {"bcast", Kind::kBroadcast},
      {"reduce", Kind::kReduce},
      {"alltoall", Kind::kAllToAll},
      {"barrier", Kind::kBarrier},
      {"sendrecv", Kind::kSendReceive},
      {"batchisendirecv", Kind::kSendReceive},
      {"isend", Kind::kSend},
      {"send", Kind::kSend},
      {"irecv", Kind::kReceive},
      {"recv", Kind::kReceive},
      {"gather", Kind::kGather},
      {"scatter", Kind::kScatter},
  }};
  for (const auto& [word, kind] : kKinds) {
    if (absl::StartsWith(plain, word)) return kind;
  }
  return Kind::kUnknown;
}

// "AllReduce_Sum_bf16_RING_LL(...)" of "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(...)".
absl::string_view BehindKernel(absl::string_view name) {
  constexpr absl::string_view kMark = "Kernel_";
  const std::size_t at = name.find(kMark);
  return at == absl::string_view::npos ? name : name.substr(at + kMark.size());
}

}  // namespace

bool IsCommunicationKernel(absl::string_view name) {
  absl::ConsumePrefix(&name, "void ");
  if (!absl::StartsWith(name, "nccl") && !absl::StartsWith(name, "rccl")) return false;
  return name.substr(4, 1) == ":" || absl::StrContains(name, "Kernel");
}

CommunicationKind KindOfCommunication(absl::string_view collective, absl::string_view kernel) {
  const CommunicationKind said = KindOfWords(Plain(collective));
  return said == CommunicationKind::kUnknown ? KindOfWords(Plain(BehindKernel(kernel))) : said;
}

std::int64_t ElementSize(absl::string_view dtype) {
  static constexpr std::array<std::pair<absl::string_view, std::int64_t>, 24> kSizes = {{
      {"byte", 1},         {"char", 1},    {"bool", 1},        {"int8", 1},
      {"uint8", 1},        {"half", 2},    {"bfloat16", 2},    {"float16", 2},
      {"short", 2},        {"int16", 2},   {"uint16", 2},      {"int", 4},
      {"int32", 4},        {"uint32", 4},  {"float", 4},       {"float32", 4},
      {"long", 8},         {"int64", 8},   {"uint64", 8},      {"double", 8},
      {"complexfloat", 8}, {"float64", 8}, {"complexhalf", 4}, {"complexdouble", 16},
  }};
  const std::string lower = absl::AsciiStrToLower(dtype);
  if (absl::StartsWith(lower, "float8")) return 1;
  for (const auto& [name, size] : kSizes) {
    if (lower == name) return size;
  }
  return 0;
}

Bytes BytesOfCommunication(CommunicationKind kind, const EventArgs& args) {
  std::int64_t elements = std::max(args.elements_in, args.elements_out);
  if (kind == CommunicationKind::kAllGather) elements = args.elements_out;
  if (kind == CommunicationKind::kReduceScatter || kind == CommunicationKind::kAllToAll) {
    elements = args.elements_in;
  }
  const std::int64_t size = ElementSize(args.dtype);
  if (elements < 0 || size == 0 || elements > kLargestRounded / size) return Bytes(-1);
  return Bytes(elements * size);
}

std::vector<std::int32_t> ParseRanks(absl::string_view text) {
  std::vector<std::int32_t> ranks;
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) return ranks;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    std::int64_t rank = -1;
    if (!absl::SimpleAtoi(part, &rank) || !IsRank(rank)) return {};
    ranks.push_back(static_cast<std::int32_t>(rank));
  }
  return ranks;
}

CommunicatorGroup CommunicationReader::MakeGroup(const EventArgs& args) const {
  CommunicatorGroup group;
  group.name = std::string(args.group);
  group.description = std::string(args.group_description);
  group.ranks = ParseRanks(args.group_ranks);
  group.size = IsRank(args.group_size) ? static_cast<std::int32_t>(args.group_size) : 0;
  if (group.size > 0 && !group.ranks.empty() &&
      group.ranks.size() != static_cast<std::size_t>(group.size)) {
    group.ranks.clear();
  }
  for (const CommunicatorGroup& known : header_.groups) {
    if (known.name != group.name) continue;
    if (group.description.empty()) group.description = known.description;
    const bool fits = group.size == 0 || known.ranks.size() == static_cast<std::size_t>(group.size);
    if (group.ranks.empty() && fits) group.ranks = known.ranks;
    if (group.size == 0) group.size = known.size;
  }
  return group;
}

std::int32_t CommunicationReader::Group(const EventArgs& args) {
  const bool listed = !ParseRanks(args.group_ranks).empty();
  if (args.group.empty() && !listed) return -1;
  const std::string key =
      absl::StrCat(args.group.size(), ":", args.group, args.group_ranks, ":", args.group_size);
  const auto found = groups_.find(key);
  if (found != groups_.end()) return found->second;
  const std::int32_t group = tables_.Group(MakeGroup(args));
  groups_.emplace(key, group);
  return group;
}

// A send says where to, a receive where from. Of a SendRecv kernel that has both ends, the other
// one.
std::int32_t CommunicationReader::Peer(CommunicationKind kind, const EventArgs& args) const {
  std::int64_t peer = -1;
  if (kind == CommunicationKind::kSend) peer = args.destination;
  if (kind == CommunicationKind::kReceive) peer = args.source;
  if (kind == CommunicationKind::kSendReceive) {
    peer = args.destination == rank_ || args.destination < 0 ? args.source : args.destination;
    if (peer == rank_) peer = -1;
  }
  return IsRank(peer) ? static_cast<std::int32_t>(peer) : -1;
}

Communication CommunicationReader::Read(absl::string_view kernel, const EventArgs& args) {
  Communication communication;
  communication.kind = KindOfCommunication(args.collective, kernel);
  communication.group = Group(args);
  communication.bytes = BytesOfCommunication(communication.kind, args);
  if (IsPointToPoint(communication.kind)) {
    communication.peer = Peer(communication.kind, args);
  } else {
    communication.sequence = std::max<std::int64_t>(args.sequence, -1);
  }
  return communication;
}

void KeepUniqueSequences(std::vector<Communication>& communications) {
  absl::flat_hash_set<std::pair<std::int32_t, std::int64_t>> seen;
  absl::flat_hash_set<std::int32_t> doubtful;
  for (const Communication& communication : communications) {
    if (IsPointToPoint(communication.kind)) continue;
    const bool first = seen.insert({communication.group, communication.sequence}).second;
    if (communication.sequence < 0 || !first || communication.group < 0) {
      doubtful.insert(communication.group);
    }
  }
  for (Communication& communication : communications) {
    if (doubtful.contains(communication.group)) communication.sequence = -1;
  }
}

}  // namespace optimus::traces
