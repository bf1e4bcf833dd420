#include "tools/reproduction.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tools/file_kinds.h"
#include "tools/fitted.h"
#include "tools/shared_flags.h"
#include "tools/simulation.h"

namespace optimus::tools {
namespace {

class Reproducer {
 public:
  Reproducer(const PaperData& data, const ReproductionOptions& options)
      : data_(data), options_(options) {}
  absl::StatusOr<Reproduction> Run();

 private:
  using Key = std::pair<std::string, std::string>;  // file, scheduler
  static Key KeyOf(const PaperCase& entry) { return {entry.file, entry.method->scheduler}; }

  absl::StatusOr<std::vector<const PaperTable*>> Chosen() const;
  // Quantities and figures of a case in `table`, in order.
  struct Wanted {
    std::string quantity;
    const PaperFigure* figure = nullptr;
  };
  std::vector<Wanted> WantedOf(const PaperTable& table, const PaperCase& entry) const;
  // The table that shows `figure`: one that lists its quantity for its case, else the first that
  // has the case.
  const PaperTable* Home(const PaperFigure& figure) const;
  bool Lists(const PaperTable& table, const PaperFigure& figure) const;
  // A line of progress about the table that is being filled.
  void Show(const std::string& text) const;
  absl::StatusOr<const PaperRun*> RunOf(const PaperCase& entry);
  absl::Status AddRow(const PaperCase& entry, const Wanted& wanted, ReproducedTable& table);
  absl::Status CheckMethod(const PaperCase& entry) const;
  absl::Status CheckConstants(const PaperFigure& figure, const PaperRun& run) const;
  absl::StatusOr<ReproducedTable> Fill(const PaperTable& table);
  void AddRemarks(const PaperCase& entry, ReproducedTable& table) const;
  void AddConditions(Reproduction& result) const;

  const PaperData& data_;
  const ReproductionOptions& options_;
  const PaperTable* current_ = nullptr;  // the table that is being filled
  std::map<Key, PaperRun> runs_;
  std::vector<const PaperRun*> order_;  // of the runs
};

absl::StatusOr<std::vector<const PaperTable*>> Reproducer::Chosen() const {
  std::vector<const PaperTable*> chosen;
  std::vector<int> known;
  for (const PaperTable& table : data_.tables) {
    known.push_back(table.number);
    if (!options_.table || *options_.table == table.number) chosen.push_back(&table);
  }
  if (!chosen.empty()) return chosen;
  return absl::NotFoundError(absl::StrCat("--table=", options_.table.value_or(0),
                                          ": no such table; known: ", absl::StrJoin(known, ", ")));
}

bool IsOf(const PaperFigure& figure, const PaperCase& entry) {
  return figure.experiment == entry.experiment && figure.method == entry.method;
}

bool Reproducer::Lists(const PaperTable& table, const PaperFigure& figure) const {
  const bool quantity = std::find(table.quantities.begin(), table.quantities.end(),
                                  figure.quantity) != table.quantities.end();
  return quantity && std::any_of(table.cases.begin(), table.cases.end(),
                                 [&](const PaperCase& entry) { return IsOf(figure, entry); });
}

const PaperTable* Reproducer::Home(const PaperFigure& figure) const {
  const PaperTable* first = nullptr;
  for (const PaperTable& table : data_.tables) {
    if (Lists(table, figure)) return &table;
    if (first == nullptr && std::any_of(table.cases.begin(), table.cases.end(),
                                        [&](const PaperCase& c) { return IsOf(figure, c); })) {
      first = &table;
    }
  }
  return first;
}

std::vector<Reproducer::Wanted> Reproducer::WantedOf(const PaperTable& table,
                                                     const PaperCase& entry) const {
  std::vector<Wanted> wanted;
  for (const std::string& quantity : table.quantities) {
    const std::size_t before = wanted.size();
    for (const PaperFigure& figure : data_.figures) {
      if (IsOf(figure, entry) && figure.quantity == quantity) wanted.push_back({quantity, &figure});
    }
    if (wanted.size() == before) wanted.push_back({quantity, nullptr});
  }
  for (const PaperFigure& figure : data_.figures) {
    if (IsOf(figure, entry) && !Lists(table, figure) && Home(figure) == &table) {
      wanted.push_back({figure.quantity, &figure});
    }
  }
  return wanted;
}

void Reproducer::Show(const std::string& text) const {
  if (!options_.progress) return;
  options_.progress(absl::StrCat("table ", current_->number, ": ", text));
}

absl::Status Reproducer::CheckMethod(const PaperCase& entry) const {
  if (IsScheduleFile(entry.file)) return absl::OkStatus();  // names no strategy
  OPTIMUS_ASSIGN_OR_RETURN(const step::Experiment experiment, step::LoadExperiment(entry.file));
  const step::Plan::Strategy strategy = experiment.plan().strategy();
  if (strategy == entry.method->strategy) return absl::OkStatus();
  return data_.experiments_file.Error(
      entry.row, absl::StrCat("method ", entry.method->name, " needs plan.strategy ",
                              step::Plan::Strategy_Name(entry.method->strategy), ", but ",
                              entry.file, " has ", step::Plan::Strategy_Name(strategy)));
}

absl::StatusOr<const PaperRun*> Reproducer::RunOf(const PaperCase& entry) {
  const auto found = runs_.find(KeyOf(entry));
  if (found != runs_.end()) return &found->second;
  OPTIMUS_RETURN_IF_ERROR(CheckMethod(entry));
  Show(absl::StrCat("simulating ", entry.experiment, ", ", entry.method->title));
  SimulationOptions options;
  options.no_interference = options_.no_interference;
  OPTIMUS_ASSIGN_OR_RETURN(options.scheduler, ParseScheduler(entry.method->scheduler));
  options.must_be_optimus = options.scheduler.has_value();
  OPTIMUS_ASSIGN_OR_RETURN(Simulation simulation, Simulation::Prepare(entry.file, options));
  OPTIMUS_RETURN_IF_ERROR(simulation.Run());
  PaperRun run;
  OPTIMUS_ASSIGN_OR_RETURN(run.report, simulation.MakeReport());
  run.profile = simulation.costs().profile();
  const step::Experiment& experiment = simulation.step().experiment;
  if (experiment.encoders_size() > 0) {
    OPTIMUS_ASSIGN_OR_RETURN(run.layers, MakeLayerTimes(experiment, simulation.costs()));
  }
  const PaperRun& kept = runs_.emplace(KeyOf(entry), std::move(run)).first->second;
  order_.push_back(&kept);
  return &kept;
}

absl::Status Reproducer::CheckConstants(const PaperFigure& figure, const PaperRun& run) const {
  for (const std::string& constant : figure.fitted) {
    const absl::Status status = CheckFitted(run.profile, constant);
    if (!status.ok()) {
      return data_.figures_file.Error(figure.row, std::string(status.message()));
    }
  }
  return absl::OkStatus();
}

// Whether the table lists the experiment of `entry` by the method of `other` before `entry`.
bool ComesBefore(const PaperTable& table, const PaperCase* other, const PaperCase& entry) {
  if (other == nullptr) return false;
  for (const PaperCase& listed : table.cases) {
    if (&listed == &entry) return false;
    if (listed.experiment == entry.experiment && listed.method == other->method) return true;
  }
  return false;
}

absl::Status Reproducer::AddRow(const PaperCase& entry, const Wanted& wanted,
                                ReproducedTable& table) {
  const PaperRun* reference = nullptr;
  const std::string method = ReferenceMethod(wanted.quantity);
  if (!method.empty()) {
    const PaperCase* other = data_.Find(entry.experiment, FindMethod(method));
    // Of two methods, the later one is compared with the earlier; a published figure always is.
    if (wanted.figure == nullptr && !ComesBefore(*table.table, other, entry)) {
      return absl::OkStatus();
    }
    if (other != nullptr) {
      OPTIMUS_ASSIGN_OR_RETURN(reference, RunOf(*other));
    }
  }
  OPTIMUS_ASSIGN_OR_RETURN(const PaperRun* run, RunOf(entry));
  const std::optional<double> simulated = Evaluate(wanted.quantity, *run, reference);
  if (!simulated && wanted.figure == nullptr) return absl::OkStatus();
  if (!simulated) {
    return data_.figures_file.Error(
        wanted.figure->row,
        absl::StrCat(entry.experiment, " by ", entry.method->name, " has no ", wanted.quantity));
  }
  ReproducedRow row{entry.experiment,
                    entry.method,
                    wanted.quantity,
                    UnitOf(wanted.quantity),
                    *simulated,
                    wanted.figure,
                    {},
                    false};
  if (wanted.figure != nullptr) {
    OPTIMUS_RETURN_IF_ERROR(CheckConstants(*wanted.figure, *run));
    row.fitted = wanted.figure->fitted;
    row.plan_chosen_on_it = data_.PlanWasChosenOn(*wanted.figure);
  }
  table.rows.push_back(std::move(row));
  return absl::OkStatus();
}

void Reproducer::AddConditions(Reproduction& result) const {
  result.version = OPTIMUS_VERSION;
  result.runs = static_cast<int>(order_.size());
  std::set<std::string> hashes;
  for (const PaperRun* run : order_) {
    const Report& report = run->report;
    if (hashes.insert(report.profile_hash).second) {
      result.profiles.push_back({report.profile, report.profile_hash, report.interference});
    }
    result.wall_s += run->report.wall_s;
    result.peak_memory_mib = std::max(result.peak_memory_mib, run->report.peak_memory_mib);
  }
}

void Reproducer::AddRemarks(const PaperCase& entry, ReproducedTable& table) const {
  const auto found = runs_.find(KeyOf(entry));
  if (found == runs_.end()) return;  // it has no rows
  const Report& report = found->second.report;
  table.assumptions.push_back({entry.experiment, entry.method, report.assumptions});
  if (entry.method->scheduler == std::string("list") && report.optimus &&
      report.optimus->plan.ranked.front().scheduler == step::Optimus::PAPER) {
    table.notes.push_back(absl::StrCat(entry.experiment, ", ", entry.method->name,
                                       ": the list scheduler found nothing better; this plan was "
                                       "placed by the paper's scheduler"));
  }
}

absl::StatusOr<ReproducedTable> Reproducer::Fill(const PaperTable& table) {
  current_ = &table;
  Show(table.title);
  ReproducedTable filled;
  filled.table = &table;
  for (const PaperCase& entry : table.cases) {
    for (const Wanted& wanted : WantedOf(table, entry)) {
      OPTIMUS_RETURN_IF_ERROR(AddRow(entry, wanted, filled));
    }
    AddRemarks(entry, filled);
  }
  return filled;
}

absl::StatusOr<Reproduction> Reproducer::Run() {
  Reproduction result;
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<const PaperTable*> tables, Chosen());
  // Before minutes of simulation.
  for (const PaperTable* table : tables) {
    for (const PaperCase& entry : table->cases) OPTIMUS_RETURN_IF_ERROR(CheckMethod(entry));
  }
  for (const PaperTable* table : tables) {
    OPTIMUS_ASSIGN_OR_RETURN(ReproducedTable filled, Fill(*table));
    result.tables.push_back(std::move(filled));
  }
  AddConditions(result);
  return result;
}

}  // namespace

std::optional<double> ReproducedRow::error_percent() const {
  if (paper->value == 0 || !HasError(quantity)) return std::nullopt;
  return 100 * (simulated / paper->value - 1);
}

absl::StatusOr<Reproduction> Reproduce(const PaperData& data, const ReproductionOptions& options) {
  return Reproducer(data, options).Run();
}

}  // namespace optimus::tools
