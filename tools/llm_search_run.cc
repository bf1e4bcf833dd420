#include "tools/llm_search_run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "schedule/llm_search/best_first.h"
#include "schedule/llm_search/searched_values.h"
#include "schedule/step/check.h"
#include "schedule/step/stack.h"
#include "tools/input_files.h"
#include "tools/outputs.h"
#include "tools/report.h"
#include "tools/resources.h"
#include "tools/sweep/pool/pool.h"

namespace optimus::tools {
namespace {

using Clock = std::chrono::steady_clock;
using llm_search::Examined;

// The number of the experiment's own plan, which is simulated first and wins ties.
constexpr std::int64_t kOwn = -1;

absl::Status CheckSearchable(const step::Experiment& experiment) {
  if (experiment.has_profiled()) {
    return absl::InvalidArgumentError(
        "profiled: measured stages belong to the plan that they were measured under, so "
        "--search-llm has nothing to search; give llm and encoders");
  }
  for (int e = 0; e < experiment.encoders_size(); ++e) {
    if (experiment.encoders(e).micro_batches_without_input().empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("encoders[", e, "].micro_batches_without_input: names micro-batches of this ",
                     "plan, and --search-llm changes how many there are; leave it out"));
  }
  return absl::OkStatus();
}

// Fields that the search sets itself: where only they are wrong there is something to search.
bool IsOfThePlan(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status) && !absl::IsUnimplemented(status)) return false;
  const std::string message(status.message());
  const std::string field = message.substr(0, message.find(':'));
  return field.rfind("plan.", 0) == 0 || field == "hardware.gpus" || field == "batch.micro_batch" ||
         field == "batch.global_batch";
}

hw::HardwareProfile WithLimit(hw::HardwareProfile profile, std::optional<Bytes> limit) {
  if (!limit || *limit >= hw::ProfileCostModel(profile).memory_capacity()) return profile;
  profile.mutable_gpu()->mutable_memory_capacity_gib()->set_value(ToGib(*limit));
  return profile;
}

class LlmSearch {
 public:
  explicit LlmSearch(const LlmSearchOptions& options) : options_(options), begin_(Clock::now()) {}
  absl::StatusOr<LlmSearchResult> Run();

 private:
  absl::Status Load();
  absl::Status LoadOwn();
  void Describe(const hw::HardwareProfile& profile);
  absl::StatusOr<llm_search::Domain> DomainOf() const;
  absl::Status ExamineAll();
  void Count(const llm_search::Candidate& candidate, const Examined& examined);
  absl::Status Evaluate();
  absl::StatusOr<std::string> Work(std::int64_t number) const;
  absl::Status Done(sweep::JobOutcome outcome);
  absl::Status Failed(std::int64_t number, const absl::Status& status);
  absl::Status Rank();
  absl::Status NothingFits() const;
  void RankOwn();
  step::Experiment Best(std::int64_t number) const;
  void Note();
  void Show(const std::string& text) const {
    if (options_.progress) options_.progress(text);
  }
  double Elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  bool TimeIsUp() const { return Elapsed() >= options_.search_time_s; }

  const LlmSearchOptions& options_;
  const Clock::time_point begin_;
  step::Experiment base_, own_;
  absl::Status own_problem_;  // why the experiment's own plan has no step
  std::shared_ptr<const hw::ProfileCostModel> costs_;
  std::map<std::int64_t, Examined> bounded_;  // by number of the candidate
  std::optional<llm_search::BestFirst> order_;
  std::map<std::int64_t, SearchedPlan> simulated_;
  std::map<std::int64_t, bool> no_memory_;  // without a step: for want of memory, or impossible
  Bytes least_need_;
  LlmSearchResult result_;
};

// What is not of the plan is wrong with every other plan too.
absl::Status LlmSearch::LoadOwn() {
  own_ = base_;
  if (own_.plan().strategy() != step::Plan::OPTIMUS) own_.mutable_plan()->clear_optimus();
  own_problem_ = step::CompleteExperiment(own_);
  if (!own_problem_.ok() && !IsOfThePlan(own_problem_)) return own_problem_;
  return CheckSearchable(own_);
}

absl::Status LlmSearch::Load() {
  OPTIMUS_ASSIGN_OR_RETURN(base_, step::ReadExperiment(options_.file));
  if (!options_.profile.empty()) base_.mutable_hardware()->set_profile(options_.profile);
  if (options_.scheduler)
    base_.mutable_plan()->mutable_optimus()->set_scheduler(*options_.scheduler);
  if (base_.name().empty()) {
    base_.set_name(FileName(std::filesystem::path(options_.file).stem().string()));
  }
  OPTIMUS_RETURN_IF_ERROR(NameFile(options_.file, LoadOwn()));
  absl::StatusOr<hw::HardwareProfile> profile = step::LoadExperimentProfile(own_);
  if (!profile.ok()) return NameFile(options_.file, profile.status());
  Describe(*profile);
  costs_ =
      std::make_shared<hw::ProfileCostModel>(WithLimit(*std::move(profile), options_.memory_limit));
  result_.report.capacity_gib = ToGib(costs_->memory_capacity());
  return absl::OkStatus();
}

void LlmSearch::Describe(const hw::HardwareProfile& profile) {
  LlmSearchReport& report = result_.report;
  report.version = OPTIMUS_VERSION;
  report.file = options_.file;
  report.experiment = own_.name();
  report.profile = profile.name();
  report.profile_hash = ProfileHash(profile);
  report.gpus = own_.hardware().gpus();
  report.global_batch = own_.batch().global_batch();
  report.search_time_s = options_.search_time_s;
  if (base_.encoders_size() > 0) {
    report.scheduler = SchedulerName(base_.plan().optimus().scheduler());
  }
  report.profile_capacity_gib = ToGib(hw::ProfileCostModel(profile).memory_capacity());
}

absl::StatusOr<llm_search::Domain> LlmSearch::DomainOf() const {
  // Only layers are counted: any plan will do, and the experiment's own may be impossible.
  step::Experiment whole =
      llm_search::Apply(base_, {step::Plan::PIPELINE, 1, 1, 1, 1, 1, step::Plan::RECOMPUTE_NONE});
  step::FillDefaults(whole);
  OPTIMUS_ASSIGN_OR_RETURN(const models::ModelConfig llm, step::LoadLlm(whole));
  OPTIMUS_ASSIGN_OR_RETURN(const step::Stack stack, step::BuildStack(whole));
  llm_search::Domain domain;
  domain.gpus = own_.hardware().gpus();
  domain.gpus_per_node = costs_->gpus_per_node();
  domain.llm_layers = llm.num_layers();
  domain.encoder_layers = stack.layers() - llm.num_layers();
  domain.global_batch = own_.batch().global_batch();
  domain.own_micro_batch = own_.batch().micro_batch();
  domain.with_encoders = own_.encoders_size() > 0;
  return domain;
}

absl::Status LlmSearch::ExamineAll() {
  const absl::StatusOr<llm_search::Domain> domain = DomainOf();
  if (!domain.ok()) return NameFile(options_.file, domain.status());
  const std::vector<llm_search::Candidate> candidates = llm_search::Enumerate(*domain);
  result_.report.values = llm_search::ValuesOf(candidates, base_);
  result_.report.combinations = static_cast<std::int64_t>(candidates.size());
  llm_search::Examiner examiner(base_, *costs_);
  const std::string own = SerializeDeterministically(own_);
  std::vector<llm_search::Bounded> bounded;
  if (own_problem_.ok()) bounded.push_back({kOwn, Picoseconds(0)});
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Examined examined = examiner.Examine(candidates[i]);
    Count(candidates[i], examined);
    if (examined.verdict != Examined::Verdict::kBounded) continue;
    auto number = static_cast<std::int64_t>(i);
    if (SerializeDeterministically(examined.experiment) == own) {
      number = kOwn;  // simulated in any case
    } else {
      bounded.push_back({number, examined.bounds.step()});
    }
    bounded_.emplace(number, std::move(examined));
  }
  order_.emplace(std::move(bounded), std::nullopt);
  return absl::OkStatus();
}

void LlmSearch::Count(const llm_search::Candidate& candidate, const Examined& examined) {
  LlmSearchReport& report = result_.report;
  if (examined.verdict == Examined::Verdict::kTooLarge) {
    if (report.too_large++ > 0 && least_need_ <= examined.memory) return;
    least_need_ = examined.memory;
    report.least_memory_gib = ToGib(examined.memory);
    report.least_memory_plan = llm_search::ToString(candidate);
  }
  if (examined.verdict != Examined::Verdict::kImpossible) return;
  const std::string field = examined.reason.substr(0, examined.reason.find(':'));
  auto group = std::find_if(report.impossible.begin(), report.impossible.end(),
                            [&field](const ImpossibleGroup& g) { return g.field == field; });
  if (group == report.impossible.end()) {
    report.impossible.push_back({field, 0, examined.reason});
    group = report.impossible.end() - 1;
  }
  ++group->count;
}

absl::StatusOr<std::string> LlmSearch::Work(std::int64_t number) const {
  const step::Experiment& experiment =
      number == kOwn ? own_ : bounded_.find(number)->second.experiment;
  OPTIMUS_ASSIGN_OR_RETURN(const Simulation simulation,
                           SimulatePlan(experiment, options_, /*in_this_process=*/true));
  OPTIMUS_ASSIGN_OR_RETURN(const SearchedPlan plan, DescribePlan(simulation));
  return EncodePlan(plan);
}

// A plan for which no encoder fits, or which turned out to be impossible, has no step. Everything
// else that fails is not the plan's fault.
absl::Status LlmSearch::Failed(std::int64_t number, const absl::Status& status) {
  const bool no_memory = absl::IsFailedPrecondition(status);
  if (!no_memory && !absl::IsInvalidArgument(status) && !absl::IsUnimplemented(status)) {
    return status;
  }
  if (number == kOwn) own_problem_ = status;
  no_memory_[number] = no_memory;
  order_->Done(number, std::nullopt);
  return absl::OkStatus();
}

absl::Status LlmSearch::Done(sweep::JobOutcome outcome) {
  if (!outcome.result.ok()) return Failed(outcome.job, outcome.result.status());
  OPTIMUS_ASSIGN_OR_RETURN(SearchedPlan plan, DecodePlan(*outcome.result));
  plan.own = outcome.job == kOwn;
  const auto known = bounded_.find(outcome.job);
  if (known != bounded_.end()) plan.bound = known->second.bounds.step();
  const bool fits = plan.fits;
  const Picoseconds step = plan.step;
  simulated_[outcome.job] = std::move(plan);
  if (!fits) no_memory_[outcome.job] = true;
  order_->Done(outcome.job, fits ? std::optional<Picoseconds>(step) : std::nullopt);
  Show(absl::StrFormat("%d plans simulated", simulated_.size()));
  return absl::OkStatus();
}

absl::Status LlmSearch::Evaluate() {
  bool own_begun = !own_problem_.ok(), own_through = own_begun;
  sweep::Pool pool;
  pool.workers = options_.jobs;
  // The experiment's own plan comes first and in any case: what is there to compare with.
  pool.next = [&]() -> std::optional<std::int64_t> {
    if (own_begun && TimeIsUp()) return std::nullopt;
    own_begun = true;
    return order_->Next();
  };
  pool.work = [this](std::int64_t number) { return Work(number); };
  pool.done = [&](sweep::JobOutcome outcome) {
    own_through = own_through || outcome.job == kOwn;
    return Done(std::move(outcome));
  };
  pool.stop = [&] { return own_through && TimeIsUp(); };
  const absl::Status status = sweep::RunPool(pool);
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

absl::Status LlmSearch::NothingFits() const {
  const LlmSearchReport& report = result_.report;
  if (report.open) {
    return absl::DeadlineExceededError(absl::StrFormat(
        "%s: --search-time: after %g s no plan that fits had been simulated; give it more",
        options_.file, options_.search_time_s));
  }
  if (report.too_large == 0 && !own_problem_.ok()) return NameFile(options_.file, own_problem_);
  if (report.too_large == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.file, ": --search-llm: none of ", report.combinations,
                     " combinations is possible; ",
                     report.impossible.empty() ? "hint: change hardware.gpus"
                                               : report.impossible.front().example));
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: --search-llm: none of %d combinations fits in a GPU's memory; the one that needs least, "
      "%s, needs %.1f GiB, %.1f GiB are there; use more GPUs",
      options_.file, report.combinations, report.least_memory_plan, report.least_memory_gib,
      report.capacity_gib));
}

void LlmSearch::Note() {
  std::vector<std::string>& notes = result_.report.notes;
  if (base_.plan().optimus().encoder_plans_size() > 0) {
    notes.emplace_back(
        "plan.optimus.encoder_plans are the experiment's own plan only; encoder "
        "plans are planned anew for every other plan of the LLM");
  }
  const step::Plan::Layout layout = base_.plan().layout();
  if (layout == step::Plan::EXPLICIT || layout == step::Plan::LAYER_COUNTS) {
    notes.emplace_back(
        "plan.layout is the experiment's own plan only; every other plan has "
        "EQUAL_LAYERS, or BALANCED with encoders in the LLM's pipeline");
  }
  for (const step::Encoder& encoder : base_.encoders()) {
    if (encoder.sequences_per_slice() == 0) continue;
    notes.push_back(absl::StrCat(
        "slices of ", encoder.sequences_per_slice(), " sequences of ", encoder.model(),
        " are kept where that divides a micro-batch, else the nearest size that does is taken"));
  }
}

absl::Status LlmSearch::Rank() {
  LlmSearchReport& report = result_.report;
  const llm_search::BestFirst::Outcome outcome = order_->Finish();
  report.pruned = outcome.pruned;
  report.own_is_combination = bounded_.count(kOwn) > 0;
  for (const std::int64_t number : outcome.evaluated) {
    if (number != kOwn || report.own_is_combination) ++report.simulated;
  }
  if (!outcome.open.empty()) {
    const llm_search::Bounded& first = outcome.open.front();
    report.open = OpenSearch{static_cast<std::int64_t>(outcome.open.size()), "", first.bound};
    const auto known = bounded_.find(first.candidate);
    if (known != bounded_.end()) {
      report.open->least = llm_search::ToString(llm_search::CandidateOf(known->second.experiment));
    }
  }
  for (const std::int64_t number : outcome.without_step) {
    if (number == kOwn && !report.own_is_combination) continue;
    ++(no_memory_.at(number) ? report.too_large_with_encoders : report.impossible_in_planning);
  }
  if (outcome.evaluated.empty()) return NothingFits();
  for (const std::int64_t number : outcome.evaluated) {
    report.plans.push_back(simulated_.at(number));
  }
  RankOwn();
  result_.best = Best(outcome.evaluated.front());
  return absl::OkStatus();
}

void LlmSearch::RankOwn() {
  const auto own = simulated_.find(kOwn);
  result_.report.own = own != simulated_.end()
                           ? own->second
                           : ImpossiblePlan(own_, std::string(own_problem_.message()));
  result_.report.own.own = true;
}

step::Experiment LlmSearch::Best(std::int64_t number) const {
  step::Experiment best = number == kOwn ? own_ : bounded_.at(number).experiment;
  const LlmSearchReport& report = result_.report;
  if (report.capacity_gib < report.profile_capacity_gib) {
    best.add_assumptions(
        absl::StrFormat("Searched by optimus plan --search-llm --memory-limit for %g GiB of a "
                        "GPU's %g GiB; without "
                        "that limit encoders may be planned differently.",
                        report.capacity_gib, report.profile_capacity_gib));
  }
  return best;
}

absl::StatusOr<LlmSearchResult> LlmSearch::Run() {
  Show(absl::StrCat("examining plans for ", options_.file));
  OPTIMUS_RETURN_IF_ERROR(Load());
  OPTIMUS_RETURN_IF_ERROR(ExamineAll());
  OPTIMUS_RETURN_IF_ERROR(Evaluate());
  OPTIMUS_RETURN_IF_ERROR(Rank());
  Note();
  result_.report.wall_s = Elapsed();
  result_.report.peak_memory_mib = PeakMemoryMib();
  return std::move(result_);
}

}  // namespace

absl::StatusOr<LlmSearchResult> SearchLlm(const LlmSearchOptions& options) {
  return LlmSearch(options).Run();
}

absl::StatusOr<Simulation> SimulatePlan(const step::Experiment& experiment,
                                        const LlmSearchOptions& options, bool in_this_process) {
  OPTIMUS_ASSIGN_OR_RETURN(hw::HardwareProfile profile, step::LoadExperimentProfile(experiment));
  OPTIMUS_ASSIGN_OR_RETURN(
      const Input input,
      MakeInput(experiment, WithLimit(std::move(profile), options.memory_limit)));
  SimulationOptions simulating;
  simulating.no_interference = options.no_interference;
  simulating.compare = false;
  simulating.in_this_process = in_this_process;
  OPTIMUS_ASSIGN_OR_RETURN(Simulation simulation, Simulation::Prepare(input, simulating));
  OPTIMUS_RETURN_IF_ERROR(simulation.Run());
  return simulation;
}

}  // namespace optimus::tools
