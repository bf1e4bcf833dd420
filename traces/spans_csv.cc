#include "traces/spans_csv.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace optimus::traces {
namespace {

constexpr char kHeader[] =
    "rank,stands_for,lane,op,name,kind,communication,group,group_size,peer,bytes,flops,start_us,"
    "end_us,duration_us,dependencies\n";
constexpr std::int64_t kPicosecondsPerMicrosecond = 1'000'000;

bool IsControl(char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }

void AppendText(const std::string& text, std::string& out) {
  const bool quoted = text.find_first_of(",\"#") != std::string::npos || text.empty() ||
                      text.front() == ' ' || text.back() == ' ' || IsControl(text.front()) ||
                      IsControl(text.back());
  if (text.empty()) return;
  if (quoted) out.push_back('"');
  for (const char c : text) {
    if (c == '"') out.push_back('"');
    out.push_back(IsControl(c) ? ' ' : c);
  }
  if (quoted) out.push_back('"');
}

// Not negative.
void AppendMicroseconds(Picoseconds time, std::string& out) {
  absl::StrAppendFormat(&out, "%d.%06d", time.value() / kPicosecondsPerMicrosecond,
                        time.value() % kPicosecondsPerMicrosecond);
}

void AppendCommunication(const Recording& recording, const Communication* communication,
                         std::string& out) {
  if (communication == nullptr) {
    absl::StrAppend(&out, ",,,,");
    return;
  }
  absl::StrAppend(&out, ToString(communication->kind), ",");
  const CommunicatorGroup* group =
      communication->group < 0 ? nullptr : &recording.groups[communication->group];
  if (group != nullptr) AppendText(group->name, out);
  out.push_back(',');
  if (group != nullptr && group->size > 0) absl::StrAppend(&out, group->size);
  out.push_back(',');
  if (communication->peer >= 0) absl::StrAppend(&out, communication->peer);
  out.push_back(',');
}

void AppendAmounts(const RecordedRank& rank, const RecordedOp& op, std::string& out) {
  const Communication* communication = rank.CommunicationOf(op);
  const Work* work = op.work < 0 ? nullptr : &rank.works[op.work];
  if (communication != nullptr) {
    if (communication->bytes >= Bytes(0)) absl::StrAppend(&out, communication->bytes.value());
  } else if (work != nullptr && work->bytes > Bytes(0)) {
    absl::StrAppend(&out, work->bytes.value());
  }
  out.push_back(',');
  if (work != nullptr && work->flops > 0) absl::StrAppendFormat(&out, "%.17g", work->flops);
  out.push_back(',');
}

void AppendTimes(const RecordedOp& op, std::string& out) {
  if (!op.timed()) {
    absl::StrAppend(&out, ",,,");
    return;
  }
  for (const Picoseconds time : {op.start, op.end, op.duration()}) {
    AppendMicroseconds(time, out);
    out.push_back(',');
  }
}

void AppendOperation(const Recording& recording, const RecordedRank& rank, std::size_t id,
                     std::string& out) {
  const RecordedOp& op = rank.ops[id];
  absl::StrAppend(&out, rank.rank, ",", rank.stands_for, ",");
  AppendText(rank.lanes[op.lane].name, out);
  absl::StrAppend(&out, ",", id, ",");
  AppendText(recording.names[op.name], out);
  absl::StrAppend(&out, ",", ToString(op.kind), ",");
  AppendCommunication(recording, rank.CommunicationOf(op), out);
  AppendAmounts(rank, op, out);
  AppendTimes(op, out);
  absl::StrAppend(&out, op.dependency_count, "\n");
}

}  // namespace

std::string WriteCsv(const Recording& recording) {
  std::string out = kHeader;
  for (const RecordedRank& rank : recording.ranks) {
    for (std::size_t id = 0; id < rank.ops.size(); ++id) AppendOperation(recording, rank, id, out);
  }
  return out;
}

}  // namespace optimus::traces
