#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "tools/text_pieces.h"
#include "tools/text_table.h"
#include "tools/trace_info.h"

namespace optimus::tools {
namespace {

constexpr std::size_t kRowsShown = 40;

// "0 to 7, 16" of ascending numbers.
std::string RangesText(absl::Span<const std::int32_t> numbers) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    parts.push_back(first == last ? absl::StrCat(numbers[first])
                                  : absl::StrCat(numbers[first], " to ", numbers[last]));
    first = last + 1;
    if (parts.size() == kRowsShown && first < numbers.size()) {
      parts.emplace_back("...");
      break;
    }
  }
  return absl::StrJoin(parts, ", ");
}

std::string MissingText(const TraceInfo& info) {
  if (info.missing_count == 0) return "";
  return absl::StrCat(
      "; ", info.missing_count, info.missing_count == 1 ? " is missing" : " are missing",
      info.missing.empty()
          ? ""
          : absl::StrCat(" (", RangesText(info.missing),
                         info.missing_count > std::ssize(info.missing) ? ", ..." : "", ")"));
}

std::string RanksText(const TraceInfo& info) {
  const std::string of =
      info.world > 0 ? absl::StrCat(" of ", info.world) : ", of how many is not said";
  const auto recorded = static_cast<std::int64_t>(info.ranks.size());
  std::string text = absl::StrCat(recorded, " recorded", of, ": ", RangesText(info.ranks));
  if (info.stood_for > recorded) {
    absl::StrAppend(&text, "; they stand for ", Count(info.stood_for, "rank", "ranks"));
  }
  return absl::StrCat(text, MissingText(info));
}

std::string RulesText(const TraceInfo& info) {
  return absl::StrCat(
      info.one_clock ? "one for all ranks" : "one a host, not aligned", "; a collective ",
      info.waits_inside ? "waits inside for its members" : "starts when all its members are there",
      "; a message ", info.rendezvous ? "needs both sides" : "needs no posted receive");
}

void AppendHeader(const TraceInfo& info, const TimeUnit& unit, std::string& out) {
  AppendFact("trace",
             info.files.size() == 1 ? info.files.front()
             : info.files.empty()
                 ? "-"
                 : absl::StrCat(
                       info.files.front(), " and ",
                       Count(static_cast<std::int64_t>(info.files.size()) - 1, "other", "others")),
             out);
  AppendFact("format", info.format, out);
  AppendFact("ranks", RanksText(info), out);
  AppendFact("clock", RulesText(info), out);
  AppendFact("step",
             info.operations == 0 ? "no operations"
             : info.untimed == info.operations
                 ? "no operation has a time"
                 : absl::StrCat(unit.WithName(info.step), ", the longest of a rank"),
             out);
  AppendFact(
      "operations",
      absl::StrCat(info.operations, ", with ", Count(info.dependencies, "wait", "waits"),
                   " that the trace says",
                   info.untimed > 0 ? absl::StrCat("; ", info.untimed, " have no time") : ""),
      out);
}

std::string MoreText(std::size_t rows) {
  return rows <= kRowsShown
             ? ""
             : absl::StrCat("... and ", rows - kRowsShown, " more: --json has all\n");
}

template <class Row>
absl::Span<const Row> Shown(const std::vector<Row>& rows) {
  return absl::MakeConstSpan(rows).first(std::min(rows.size(), kRowsShown));
}

void AppendTable(const char* title, const TextTable& table, std::size_t rows, std::string& out) {
  if (rows == 0) return;
  absl::StrAppend(&out, "\n", title, "\n\n", table.Render(), MoreText(rows));
}

void AppendSteps(const TraceInfo& info, const TimeUnit& unit, std::string& out) {
  TextTable table({{{"step", ""}, false},
                   {{"ranks", ""}, false},
                   {{"shortest", unit.name}, false},
                   {{"longest", unit.name}, false}});
  for (const StepInfo& step : Shown(info.steps)) {
    table.AddRow({absl::StrCat(step.number), absl::StrCat(step.ranks), unit.Format(step.shortest),
                  unit.Format(step.longest)});
  }
  AppendTable("Steps in the files", table, info.steps.size(), out);
}

std::string LaneKind(const LaneInfo& lane) {
  return absl::StrCat(lane.host ? "host thread" : "stream", lane.in_order ? "" : ", no order");
}

void AppendLanes(const TraceInfo& info, const TimeUnit& unit, std::string& out) {
  TextTable table({{{"rank", ""}, false},
                   {{"lane", ""}, true},
                   {{"kind", ""}, true},
                   {{"operations", ""}, false},
                   {{"busy", unit.name}, false},
                   {{"of the step", "%"}, false}});
  for (const LaneInfo& lane : Shown(info.lanes)) {
    const bool timed = lane.untimed < lane.operations && info.step > Picoseconds(0);
    table.AddRow({absl::StrCat(lane.rank), lane.name, LaneKind(lane), absl::StrCat(lane.operations),
                  timed ? unit.Format(lane.busy) : "-",
                  timed ? Percent(ToSeconds(lane.busy) / ToSeconds(info.step)) : "-"});
  }
  AppendTable("Lanes", table, info.lanes.size(), out);
}

void AppendGroups(const TraceInfo& info, std::string& out) {
  TextTable table({{{"group", ""}, true},
                   {{"role", ""}, true},
                   {{"ranks", ""}, false},
                   {{"recorded", ""}, false},
                   {{"collectives", "of a rank"}, false},
                   {{"size of all", "GiB"}, false}});
  for (const GroupInfo& group : Shown(info.groups)) {
    const std::string name = group.description.empty() || group.description == group.name
                                 ? group.name
                                 : absl::StrCat(group.name, " (", group.description, ")");
    const bool sized = group.collectives > group.without_bytes;
    table.AddRow({name, group.role.empty() ? "-" : group.role,
                  group.size > 0 ? absl::StrCat(group.size) : "-",
                  group.members_known ? absl::StrCat(group.recorded) : "-",
                  absl::StrCat(group.collectives), sized ? Gib(group.bytes) : "-"});
  }
  AppendTable("Groups", table, info.groups.size(), out);
}

void AppendKinds(const TraceInfo& info, const TimeUnit& unit, std::string& out) {
  TextTable table({{{"communication", ""}, true},
                   {{"operations", ""}, false},
                   {{"time", unit.name}, false},
                   {{"group or peer", "not said"}, false},
                   {{"size", "not said"}, false}});
  for (const KindInfo& kind : info.kinds) {
    table.AddRow({ToString(kind.kind), absl::StrCat(kind.operations), unit.Format(kind.time),
                  absl::StrCat(kind.without_group + kind.without_peer),
                  absl::StrCat(kind.without_bytes)});
  }
  AppendTable("Communication, sum over recorded ranks", table, info.kinds.size(), out);
}

std::string RemarkText(const traces::Remark& remark) {
  std::string text = absl::StrCat(remark.count, " x ", remark.what);
  if (!remark.effect.empty()) absl::StrAppend(&text, ": ", remark.effect);
  if (remark.rank >= 0) absl::StrAppend(&text, "; rank ", remark.rank);
  if (!remark.name.empty()) {
    absl::StrAppend(&text, remark.rank >= 0 ? ", " : "; ", "first ", remark.name);
  }
  return text;
}

void AppendRemarks(const TraceInfo& info, std::string& out) {
  std::vector<std::string> lines;
  lines.reserve(Shown(info.remarks).size());
  for (const traces::Remark& remark : Shown(info.remarks)) lines.push_back(RemarkText(remark));
  AppendBullets("What the trace does not say", lines, out);
  absl::StrAppend(&out, MoreText(info.remarks.size()));
}

}  // namespace

std::string TraceInfoText(const TraceInfo& info) {
  std::string out;
  const TimeUnit unit(info.step);
  AppendHeader(info, unit, out);
  AppendSteps(info, unit, out);
  AppendLanes(info, unit, out);
  AppendKinds(info, unit, out);
  AppendGroups(info, out);
  AppendRemarks(info, out);
  return out;
}

}  // namespace optimus::tools
