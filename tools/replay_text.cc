#include "tools/replay_text.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/text_pieces.h"
#include "tools/text_table.h"
#include "tools/trace_text.h"

namespace optimus::tools {
namespace {

using Get = std::function<Picoseconds(const ReplayColumn&)>;

class Table {
 public:
  Table(const ReplayReport& report, const std::string& title)
      : report_(report), unit_(report.replayed.run.step), table_(Columns(title)) {}

  void Row(const std::string& name, const Get& get) {
    std::vector<std::string> cells = {name};
    const Picoseconds replayed = get(report_.replayed);
    if (report_.recorded) cells.push_back(unit_.Format(get(*report_.recorded)));
    cells.push_back(unit_.Format(replayed));
    if (report_.what_if) {
      const Picoseconds changed = get(*report_.what_if);
      cells.push_back(unit_.Format(changed));
      cells.push_back(Change(replayed, changed));
    }
    table_.AddRow(std::move(cells));
  }
  // Leaves out what is nothing in every column.
  void RowUnlessNothing(const std::string& name, const Get& get) {
    const Picoseconds none;
    const bool nothing = get(report_.replayed) == none &&
                         (!report_.recorded || get(*report_.recorded) == none) &&
                         (!report_.what_if || get(*report_.what_if) == none);
    if (!nothing) Row(name, get);
  }
  std::string Render() const { return table_.Render(); }

 private:
  std::vector<Column> Columns(const std::string& title) const {
    std::vector<Column> columns = {{{title, ""}, true}};
    if (report_.recorded) columns.push_back({{"recorded", unit_.name}, false});
    columns.push_back({{"replayed", unit_.name}, false});
    if (report_.what_if) {
      columns.push_back({{"what if", unit_.name}, false});
      columns.push_back({{"change", "%"}, false});
    }
    return columns;
  }
  static std::string Change(Picoseconds before, Picoseconds after) {
    if (before <= Picoseconds(0)) return after == before ? "" : "new";
    return absl::StrFormat("%+.1f", 100 * (ToSeconds(after) / ToSeconds(before) - 1));
  }

  const ReplayReport& report_;
  TimeUnit unit_;
  TextTable table_;
};

void AppendSteps(const ReplayReport& report, std::string& out) {
  const TimeUnit unit(report.replayed.run.step);
  const double replayed = ToSeconds(report.replayed.run.step);
  std::string text;
  if (report.recorded) {
    const double recorded = ToSeconds(report.recorded->run.step);
    absl::StrAppend(&text, "recorded ", unit.WithName(report.recorded->run.step), ", ");
    absl::StrAppend(&text, "replayed ", unit.WithName(report.replayed.run.step));
    if (recorded > 0) absl::StrAppendFormat(&text, " (%+.3f %%)", 100 * (replayed / recorded - 1));
  } else {
    absl::StrAppend(&text, unit.WithName(report.replayed.run.step),
                    ", priced by the profile: the trace has no times");
  }
  AppendFact("step", text, out);
  if (!report.what_if) return;
  const double changed = ToSeconds(report.what_if->run.step);
  AppendFact("what if", absl::StrJoin(report.changes, "; "), out);
  AppendFact("",
             absl::StrFormat("step %s, %+.2f %% of the replayed one",
                             unit.WithName(report.what_if->run.step),
                             replayed > 0 ? 100 * (changed / replayed - 1) : 0.0),
             out);
  for (const std::string& caution : report.cautions) AppendFact("", caution, out);
}

void AppendAccount(const ReplayReport& report, std::string& out) {
  const std::string whose =
      report.traced.rank < 0 ? "mean over GPUs" : absl::StrCat("rank ", report.traced.rank);
  Table table(report, absl::StrCat("where the step goes, ", whose));
  table.Row("compute", [](const ReplayColumn& c) { return c.times.compute; });
  for (std::size_t i = 0; i < report.traced.classes.names.size(); ++i) {
    if (report.traced.classes.kinds[i] != traces::OpKind::kCommunication) continue;
    table.RowUnlessNothing(absl::StrCat("exposed ", report.traced.classes.names[i]),
                           [i](const ReplayColumn& c) { return c.times.exposed[i]; });
  }
  table.RowUnlessNothing("waiting for other ranks",
                         [](const ReplayColumn& c) { return c.times.waiting; });
  table.RowUnlessNothing("exposed copies", [](const ReplayColumn& c) { return c.times.copy; });
  table.Row("idle", [](const ReplayColumn& c) { return c.times.idle; });
  table.Row("step", [](const ReplayColumn& c) { return c.run.step; });
  absl::StrAppend(&out, "\n", table.Render());
}

void AppendTotals(const ReplayReport& report, std::string& out) {
  Table table(report, "in all, overlapped or not");
  bool any = false;
  for (std::size_t i = 1; i < report.traced.classes.names.size(); ++i) {
    const Get get = [i](const ReplayColumn& c) { return c.times.total[i]; };
    if (get(report.replayed) == Picoseconds(0)) continue;
    table.Row(report.traced.classes.names[i], get);
    any = true;
  }
  if (any) absl::StrAppend(&out, "\n", table.Render());
}

void AppendKept(const ReplayReport& report, std::string& out) {
  const TimeUnit unit(report.replayed.run.step);
  std::vector<std::string> lines;
  for (const traces::KeptTime& kept : report.kept) {
    lines.push_back(absl::StrCat(kept.count, " x ", kept.what, ": ", unit.WithName(kept.time),
                                 " in all over the recorded ranks"));
  }
  AppendBullets("not changed with the links, its recorded time is kept:", lines, out);
}

}  // namespace

std::string ReplayText(const ReplayReport& report) {
  std::string out = absl::StrCat("optimus ", report.traced.version, " replay\n");
  AppendTraceFacts(report.traced, out);
  AppendSteps(report, out);
  AppendAccount(report, out);
  AppendTotals(report, out);
  AppendKept(report, out);
  AppendUnpaired(report.traced.graph, out);
  return out;
}

}  // namespace optimus::tools
