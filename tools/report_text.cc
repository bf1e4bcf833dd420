#include "tools/report_text.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/optimus_text.h"
#include "tools/printable.h"
#include "tools/spread.h"
#include "tools/text_pieces.h"
#include "tools/text_table.h"

namespace optimus::tools {
namespace {

void AppendSpread(const MeasuredReport& measured, const TimeUnit& unit, std::string& out) {
  const Spread spread = SpreadOfSteps(InSeconds(measured.steps));
  AppendFact(
      "spread",
      absl::StrCat("quartiles ", unit.Format(spread.first_quartile / measured.time_scale), " and ",
                   unit.Format(spread.third_quartile / measured.time_scale), ", shortest ",
                   unit.Format(spread.least / measured.time_scale), ", longest ",
                   unit.Format(spread.greatest / measured.time_scale), " ", unit.name, " of ",
                   Count(static_cast<std::int64_t>(measured.steps.size()), "step", "steps")),
      out);
}

void AppendEfficiency(const Report& report, std::string& out) {
  if (!report.no_efficiency.empty()) {
    AppendFact("MFU", absl::StrCat("not printed: ", report.no_efficiency), out);
  }
  if (!report.efficiency) return;
  const Efficiency& e = *report.efficiency;
  AppendFact("MFU",
             absl::StrFormat("%.1f %% = model FLOPs / (step x GPUs x peak) = %.4e / (%.4f s x %d x "
                             "%.4g TFLOP/s); model FLOPs = 6 N tokens + 12 L h s tokens, attention "
                             "counted in full, no recomputation",
                             100 * e.mfu, e.model_flops, ToSeconds(report.step), report.gpus,
                             e.peak_flops_per_s / 1e12),
             out);
  AppendFact("HFU",
             absl::StrFormat("%.1f %% = FLOPs of the kernels run / the same, %.4e: with "
                             "recomputation, causal attention counted by half",
                             100 * e.hfu, e.hardware_flops),
             out);
  AppendFact(
      "throughput",
      absl::StrFormat("%.1f PFLOP/s = model FLOPs / step, all GPUs", e.aggregate_pflops_per_s),
      out);
}

bool IsLate(const Report& report) {
  return report.measured && report.measured->emulation && !report.measured->emulation->kept_time();
}

void AppendResult(const Report& report, std::string& out) {
  const TimeUnit unit(report.step);
  AppendFact("step", absl::StrCat(unit.Format(ToSeconds(report.step)), " ", unit.name), out);
  if (report.measured) AppendSpread(*report.measured, unit, out);
  if (IsLate(report)) AppendFact("late", LateText(*report.measured->emulation), out);
  const double idle_s = report.average.idle_s();
  AppendFact(
      "bubbles",
      absl::StrCat(Percent(idle_s / ToSeconds(report.step)), " % = ", unit.Format(idle_s), " ",
                   unit.name, " in which a GPU's compute stream is idle, mean over GPUs"),
      out);
  AppendEfficiency(report, out);
}

std::vector<Column> TimeColumns(const char* unit) {
  std::vector<Column> columns = {
      {{"", "stage", ""}, true},           {{"", "compute", unit}, false},
      {{"DP", "all-gather", unit}, false}, {{"DP", "reduce-scatter", unit}, false},
      {{"PP", "warm-up", unit}, false},    {{"PP", "cool-down", unit}, false},
      {{"PP", "other", unit}, false},      {{"", "TP", unit}, false},
      {{"", "optimizer", unit}, false},    {{"", "step", unit}, false}};
  return columns;
}

// The classes in the order of the columns above.
std::vector<double> ShareCells(const TimeShares& time, double step_s) {
  std::vector<double> cells = {time.compute_s};
  for (const double bubble : time.bubbles_s) cells.push_back(bubble);
  cells.push_back(time.optimizer_s);
  cells.push_back(step_s);
  return cells;
}

template <class Format>
std::string TimeTable(const Report& report, const char* unit, Format format) {
  TextTable table(TimeColumns(unit));
  const double step_s = ToSeconds(report.step);
  auto add = [&](const std::string& name, const TimeShares& time) {
    std::vector<std::string> cells = {name};
    for (const double s : ShareCells(time, step_s)) cells.push_back(format(s));
    table.AddRow(std::move(cells));
  };
  for (const StageReport& stage : report.stages) add(absl::StrCat(stage.stage), stage.time);
  add("average", report.average);
  return table.Render();
}

void AppendTimes(const Report& report, std::string& out) {
  const TimeUnit unit(report.step);
  const double step_s = ToSeconds(report.step);
  absl::StrAppend(&out, "\nTime of a GPU by stage: compute, bubbles by cause, optimizer\n\n",
                  TimeTable(report, unit.name, [&](double s) { return unit.Format(s); }), "\n",
                  TimeTable(report, "%", [&](double s) { return Percent(s / step_s); }));
}

void AppendMemory(const Report& report, std::string& out) {
  if (!report.memory) return;
  const MemoryReport& memory = *report.memory;
  TextTable table({{{"stage", ""}, true},
                   {{"parameters", "GiB"}, false},
                   {{"gradients", "GiB"}, false},
                   {{"optimizer state", "GiB"}, false},
                   {{"activations", "GiB"}, false},
                   {{"workspace", "GiB"}, false},
                   {{"total", "GiB"}, false},
                   {{"capacity", "GiB"}, false},
                   {{"", ""}, true}});
  for (std::size_t s = 0; s < memory.stages.size(); ++s) {
    const step::StageMemory& m = memory.stages[s];
    table.AddRow({absl::StrCat(s), Gib(m.parameters), Gib(m.gradients), Gib(m.optimizer_state),
                  Gib(m.activations), Gib(m.workspace), Gib(m.total()), Gib(memory.capacity),
                  m.total() > memory.capacity ? "OUT OF MEMORY" : ""});
  }
  absl::StrAppend(&out, "\nMemory of a GPU by stage",
                  report.measured ? " (by the model of the plan, not measured)" : "", "\n\n",
                  table.Render());
  if (!memory.fits()) {
    absl::StrAppend(&out, "\nOUT OF MEMORY: stage ", memory.fullest, " needs ",
                    Gib(memory.stages[memory.fullest].total()), " GiB of ", Gib(memory.capacity),
                    " GiB; the times above are those of a GPU with enough memory\n");
  }
}

// The chunks of a stage; of many, the first two and the last.
std::string AbbreviatedLayers(const std::vector<std::string>& chunks) {
  if (chunks.size() <= 4) return absl::StrJoin(chunks, " | ");
  return absl::StrCat(chunks[0], " | ", chunks[1], " | ... | ", chunks.back());
}

void AppendLayers(const Report& report, std::string& out) {
  const bool known = std::any_of(report.stages.begin(), report.stages.end(),
                                 [](const StageReport& s) { return !s.layers.empty(); });
  if (!known) return;
  TextTable table({{{"stage"}, true}, {{"chunks"}, false}, {{"layers (| between chunks)"}, true}});
  for (const StageReport& stage : report.stages) {
    table.AddRow({absl::StrCat(stage.stage), absl::StrCat(stage.layers.size()),
                  AbbreviatedLayers(stage.layers)});
  }
  absl::StrAppend(&out, "\nLayers by stage\n\n", table.Render());
}

std::string FitText(const Report& report) {
  if (!report.memory) return "-";
  return report.memory->fits() ? "yes" : "OUT OF MEMORY";
}

std::string FileNameOf(const Report& report) {
  return std::filesystem::path(report.file).filename().string();
}

// What names a row: the experiment, its scheduler where that is not the usual one, and where
// several have the same name the file, with its folder if need be.
std::string RowName(const std::vector<Report>& reports, const Report& report) {
  const auto same_name = [&](const Report& r) { return r.experiment == report.experiment; };
  const auto same_file = [&](const Report& r) {
    return same_name(r) && FileNameOf(r) == FileNameOf(report);
  };
  std::string name = report.experiment;
  if (report.optimus && report.optimus->scheduler == SchedulerName(step::Optimus::LIST)) {
    name += ", list";
  }
  if (std::count_if(reports.begin(), reports.end(), same_name) == 1) return name;
  const bool is_unique = std::count_if(reports.begin(), reports.end(), same_file) == 1;
  return absl::StrCat(name, " (", is_unique ? FileNameOf(report) : report.file, ")");
}

// As far as both are known.
bool SameJob(const Report& a, const Report& b) {
  const bool knows_batch = a.global_batch > 0 && b.global_batch > 0;
  return a.gpus == b.gpus && (!knows_batch || a.global_batch == b.global_batch);
}

std::vector<std::string> ComparisonRow(const std::vector<Report>& reports, const Report& report,
                                       const TimeUnit& unit) {
  const Report& reference = reports.front();
  const bool known = report.efficiency.has_value();
  std::vector<std::string> cells = {
      RowName(reports, report),
      absl::StrCat(report.gpus),
      unit.Format(ToSeconds(report.step)),
      absl::StrFormat("%.2f", SpeedUp(reference, report)),
      absl::StrFormat("%.1f", ReductionPercent(reference, report)),
      known ? Percent(report.efficiency->mfu) : "-",
      known ? Percent(report.efficiency->hfu) : "-",
      known ? absl::StrFormat("%.1f", report.efficiency->aggregate_pflops_per_s) : "-"};
  for (const double s : ShareCells(report.average, 0)) cells.push_back(unit.Format(s));
  cells.pop_back();  // the step is already there
  cells.push_back(report.memory ? Gib(report.memory->stages[report.memory->fullest].total()) : "-");
  cells.push_back(FitText(report));
  return cells;
}

}  // namespace

double SpeedUp(const Report& reference, const Report& report) {
  return ToSeconds(reference.step) / ToSeconds(report.step);
}

double ReductionPercent(const Report& reference, const Report& report) {
  return 100 * (1 - ToSeconds(report.step) / ToSeconds(reference.step));
}

std::string InterferenceText(const InterferenceReport& interference) {
  const Interference& f = interference.factors;
  if (!interference.reason.empty()) {
    return absl::StrCat("kernels and collectives do not slow each other (", interference.reason,
                        ")");
  }
  return absl::StrFormat(
      "what runs at the same time takes longer: a kernel under an NVLink collective x%g, a kernel "
      "under a network collective x%g, an NVLink collective that starts under a kernel x%g",
      f.kernel_under_nvlink, f.kernel_under_nic, f.collective_under_kernel);
}

// What a measured step was run on, and how.
void AppendMeasured(const MeasuredReport& measured, std::string& out) {
  AppendFact("backend", absl::StrCat(measured.backend, ": ", measured.device), out);
  AppendFact("hosts", measured.hosts, out);
  AppendFact("measured",
             absl::StrCat(Count(static_cast<std::int64_t>(measured.steps.size()), "step", "steps"),
                          " after ", measured.warm_up,
                          " of warm-up; the figures are those of the step of median length"),
             out);
  if (measured.time_scale == 1) return;
  AppendFact("time scale",
             absl::StrFormat("%g: every operation took so much longer than the figures say",
                             measured.time_scale),
             out);
}

void AppendHeader(const Report& report, std::string& out) {
  AppendFact("experiment", report.experiment, out);
  for (const Fact& fact : report.facts) AppendFact(fact.label, fact.text, out);
  if (!report.profile.empty()) {
    const std::string profile = absl::StrCat(report.profile, " (hash ", report.profile_hash, ")");
    const bool only_planned = report.measured && report.measured->only_planned;
    AppendFact(only_planned ? "planned" : "profile",
               only_planned ? absl::StrCat("with profile ", profile) : profile, out);
  }
  if (report.measured) return AppendMeasured(*report.measured, out);
  AppendFact("overlap", InterferenceText(report.interference), out);
  AppendFact("fidelity", absl::StrCat(report.fidelity, ": ", report.fidelity_reason), out);
}

std::string FullText(const Report& report) {
  std::string out;
  AppendHeader(report, out);
  absl::StrAppend(&out, "\n");
  AppendResult(report, out);
  AppendOptimus(report, out);
  AppendTimes(report, out);
  AppendMemory(report, out);
  AppendLayers(report, out);
  if (report.numerics) AppendNumerics(*report.numerics, out);
  AppendBullets("Assumptions", report.assumptions, out);
  AppendBullets("Notes", report.notes, out);
  absl::StrAppend(&out, "\noperations  ", report.operations, "\n",
                  WallLine(report.wall_s, report.peak_memory_mib));
  return out;
}

std::string ComparisonText(const std::vector<Report>& reports) {
  const Report& reference = reports.front();
  const auto longest = std::max_element(
      reports.begin(), reports.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  const TimeUnit unit(longest->step);
  const char* u = unit.name;
  TextTable table({{{"", "experiment", ""}, true},
                   {{"", "GPUs", ""}, false},
                   {{"", "step", u}, false},
                   {{"speed-", "up", ""}, false},
                   {{"reduc-", "tion", "%"}, false},
                   {{"", "MFU", "%"}, false},
                   {{"", "HFU", "%"}, false},
                   {{"through-", "put", "PFLOP/s"}, false},
                   {{"", "compute", u}, false},
                   {{"DP all-", "gather", u}, false},
                   {{"DP reduce-", "scatter", u}, false},
                   {{"PP", "warm-up", u}, false},
                   {{"PP", "cool-down", u}, false},
                   {{"PP", "other", u}, false},
                   {{"", "TP", u}, false},
                   {{"opti-", "mizer", u}, false},
                   {{"memory", "", "GiB"}, false},
                   {{"", "fits", ""}, true}});
  double wall_s = 0, peak_memory_mib = 0;
  bool same_job = true;
  for (const Report& report : reports) {
    table.AddRow(ComparisonRow(reports, report, unit));
    wall_s += report.wall_s;
    peak_memory_mib = std::max(peak_memory_mib, report.peak_memory_mib);
    same_job &= SameJob(reference, report);
  }
  std::string out = table.Render();
  absl::StrAppend(&out, "\nspeed-up = step of ", Printable(RowName(reports, reference)),
                  " / step; compute, bubbles and optimizer are means over GPUs; memory is that of "
                  "the fullest stage\n");
  if (!same_job) {
    absl::StrAppend(&out,
                    "note: the experiments differ in GPUs or global batch; the speed-up compares "
                    "step times only\n");
  }
  absl::StrAppend(&out, "fidelity:");
  for (const Report& report : reports) {
    absl::StrAppend(&out, &report == &reports.front() ? " " : ", ",
                    Printable(RowName(reports, report)), " ", report.fidelity);
  }
  absl::StrAppend(&out, "\n", WallLine(wall_s, peak_memory_mib));
  return out;
}

}  // namespace optimus::tools
