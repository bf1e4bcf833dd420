#include "schedule/colocate/search.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/accounting.h"
#include "schedule/bubble/scheduler.h"

namespace optimus::colocate {
namespace {

using planner::EncoderPlan;

// Splits that --exhaustive tries at most under one plan: about a minute of either scheduler (some
// 10 us and 10 ms a split at the size of the paper's jobs).
constexpr std::int64_t kMostSplitsOfPaper = 5'000'000;
constexpr std::int64_t kMostSplitsOfList = 5'000;

// Encoders with plans, on one warm-up of the LLM.
struct Candidate {
  std::size_t llm = 0;
  std::vector<PlannedEncoder> encoders;
  RankedPlan ranked;
};

bool Faster(const Candidate& a, const Candidate& b) {
  return a.ranked.predicted < b.ranked.predicted;
}

std::vector<int> LargestFirst(const step::Stack& stack) {
  std::vector<int> order(stack.modules.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return models::CountParameters(stack.modules[a + 1].config) >
           models::CountParameters(stack.modules[b + 1].config);
  });
  return order;
}

// Without its encoders' data-parallel communication.
void ClearSync(bubble::Problem& problem) {
  for (bubble::EncoderWork& encoder : problem.encoders) {
    for (auto& buckets : encoder.sync.gathers) buckets.clear();
    for (auto& buckets : encoder.sync.reductions) buckets.clear();
  }
}

class Drops {
 public:
  void Add(std::size_t llm, const std::vector<EncoderPlan>& plans, const std::string& reason) {
    drops_.push_back({llm, {plans, reason}});
  }
  // The plan that would need least, if none fits.
  void NoteNeed(Bytes need, const std::vector<EncoderPlan>& plans, const std::string& reason) {
    if (least_.has_value() && least_->first <= need) return;
    least_ = {need, {plans, reason}};
  }
  const std::optional<std::pair<Bytes, DroppedPlan>>& least() const { return least_; }
  bool empty() const { return drops_.empty(); }
  const DroppedPlan& first() const { return drops_.front().second; }

  // One entry for a plan that was dropped for the same reason with every warm-up.
  std::vector<DroppedPlan> Finish(const std::vector<LlmStep>& llms) && {
    std::vector<DroppedPlan> result;
    for (auto& [llm, drop] : drops_) {
      const auto same = [&drop = drop](const auto& other) {
        return other.second.encoders == drop.encoders;
      };
      const auto times = std::count_if(drops_.begin(), drops_.end(), same);
      const bool listed = std::any_of(result.begin(), result.end(), [&drop = drop](const auto& d) {
        return d.encoders == drop.encoders;
      });
      const bool always = times == static_cast<std::ptrdiff_t>(llms.size());
      if (always && listed) continue;
      result.push_back(drop);
      if (always) continue;
      absl::StrAppend(&result.back().reason, " (warm-up ",
                      step::Plan::WarmUp_Name(llms[llm].warm_up), ")");
    }
    return result;
  }

 private:
  std::vector<std::pair<std::size_t, DroppedPlan>> drops_;
  std::optional<std::pair<Bytes, DroppedPlan>> least_;
};

class PlanSearch {
 public:
  PlanSearch(const EncoderContext& context, const std::vector<LlmStep>& llms,
             const SearchPlansOptions& options)
      : context_(context), llms_(llms), options_(options), order_(LargestFirst(context.stack)) {
    tables_.world = llms[0].step.schedule.world;
    tables_.gpus_per_node = llms[0].step.schedule.gpus_per_node;
  }

  absl::StatusOr<SearchResult> Run();

 private:
  const step::Optimus& optimus() const { return context_.experiment.plan().optimus(); }
  std::vector<EncoderPlan> PlansOf(int encoder) const;
  absl::Status PlanWith(std::size_t llm);
  absl::StatusOr<std::vector<Candidate>> Extend(const Candidate& prefix);
  absl::StatusOr<std::optional<Candidate>> Evaluate(const Candidate& prefix,
                                                    const EncoderPlan& plan);
  // Empty: it fits, and `options` says how. Otherwise why it does not.
  std::string Fit(const Candidate& candidate, bubble::SearchOptions& options);
  absl::StatusOr<bubble::Result> Schedule(const bubble::SearchOptions& options) const;
  absl::Status ScheduleCandidate(const bubble::SearchOptions& options, Candidate& candidate);
  void Describe(const bubble::Result& result, Candidate& candidate) const;
  void Keep(BestPlan plan);
  absl::StatusOr<Picoseconds> WithoutSync(const BestPlan& best);
  std::vector<EncoderPlan> PlansIn(const Candidate& candidate) const;
  bool IsComplete(const Candidate& c) const { return c.encoders.size() == order_.size(); }
  absl::Status NothingFits() const;
  Picoseconds Hopeless(const BestPlan& best) const;
  std::string TooManySplits(const PlannedEncoder& encoder,
                            const bubble::SearchOptions& options) const;

  const EncoderContext& context_;
  const std::vector<LlmStep>& llms_;
  const SearchPlansOptions options_;
  std::vector<int> order_;
  ir::Schedule tables_;      // only priced; the best plan's work is interned again where it is used
  bubble::Problem problem_;  // LLM of the warm-up at hand, encoders of the candidate at hand
  std::vector<Candidate> complete_;
  std::vector<BestPlan> best_;  // best first
  Drops drops_;
  std::int64_t splits_evaluated_ = 0;
};

std::vector<EncoderPlan> PlanSearch::PlansOf(int encoder) const {
  if (optimus().encoder_plans_size() == 0) return planner::EnumeratePlans(tables_.world);
  const auto& fixed = optimus().encoder_plans(encoder);
  return {{fixed.pipeline_parallel(), fixed.tensor_parallel()}};
}

// In the order of the experiment's encoders; those that have no plan yet are left out.
std::vector<EncoderPlan> PlanSearch::PlansIn(const Candidate& candidate) const {
  std::vector<EncoderPlan> plans;
  for (int k = 0; k < static_cast<int>(order_.size()); ++k) {
    for (const PlannedEncoder& encoder : candidate.encoders) {
      if (encoder.encoder == k) plans.push_back(encoder.plan());
    }
  }
  return plans;
}

std::string PlanSearch::Fit(const Candidate& candidate, bubble::SearchOptions& options) {
  const std::vector<step::StageMemory>& llm = llms_[candidate.llm].step.memory;
  const std::vector<planner::EncoderOnGpus> on_gpus = OnGpus(candidate.encoders);
  const Bytes capacity = context_.costs.memory_capacity();
  std::vector<planner::Split> splits;
  for (const PlannedEncoder& encoder : candidate.encoders) {
    splits.push_back(planner::BalancedSplit(encoder.on_gpus.micro_batches,
                                            planner::PipelinesOf(encoder.plan(), tables_.world)));
    if (optimus().encoder_plans_size() == 0) continue;
    const auto& fixed = optimus().encoder_plans(encoder.encoder).split();
    if (fixed.empty()) continue;
    splits.back().assign(fixed.begin(), fixed.end());
    options.splits = splits;
  }
  const std::vector<step::StageMemory> need =
      planner::MemoryWithEncoders(llm, tables_.world.tp, on_gpus, splits);
  std::string reason = planner::WhyItDoesNotFit(need, capacity);
  if (!reason.empty()) {
    drops_.NoteNeed(planner::Fullest(need).total(), PlansIn(candidate), reason);
    return reason;
  }
  if (!options.splits.empty()) return "";
  auto most = planner::MostMicroBatches(llm, tables_.world.tp, on_gpus, capacity);
  if (!most.ok()) return std::string(most.status().message());
  options.most_micro_batches = std::move(*most);
  return "";
}

absl::StatusOr<bubble::Result> PlanSearch::Schedule(const bubble::SearchOptions& options) const {
  return context_.scheduler == step::Optimus::LIST ? bubble::ScheduleList(problem_, options)
                                                   : bubble::SchedulePaper(problem_, options);
}

void PlanSearch::Describe(const bubble::Result& result, Candidate& candidate) const {
  RankedPlan& ranked = candidate.ranked;
  ranked = RankedPlan();
  ranked.encoders = PlansIn(candidate);
  for (const EncoderPlan& plan : ranked.encoders) {
    ranked.pipelines.push_back(planner::PipelinesOf(plan, tables_.world));
  }
  std::vector<planner::Split> splits;  // in the order of scheduling
  for (const bubble::PlacedEncoder& encoder : result.encoders) splits.push_back(encoder.split);
  for (int k = 0; k < static_cast<int>(order_.size()); ++k) {
    for (std::size_t e = 0; e < candidate.encoders.size(); ++e) {
      if (candidate.encoders[e].encoder == k) ranked.splits.push_back(splits[e]);
    }
  }
  const LlmStep& llm = llms_[candidate.llm];
  ranked.warm_up = llm.warm_up;
  ranked.scheduler = context_.scheduler;
  ranked.llm_step = llm.llm.step;
  ranked.predicted = result.latency;
  ranked.coarse = result.coarse_latency;
  ranked.delta_f = result.delta_f;
  // With the optimizer's work on encoder parameters, which T_llm knows nothing of.
  ranked.delta_b = ranked.predicted - ranked.llm_step - ranked.delta_f;
  ranked.coarse_efficiency = result.coarse;
  ranked.fine_efficiency = result.fine;
  const std::vector<step::StageMemory> memory = planner::MemoryWithEncoders(
      llm.step.memory, tables_.world.tp, OnGpus(candidate.encoders), splits);
  ranked.memory = planner::Fullest(memory);
}

// Among the best ones, if it is one; after those that are as good.
void PlanSearch::Keep(BestPlan plan) {
  const auto later = [](const BestPlan& a, const BestPlan& b) {
    return a.result.latency < b.result.latency;
  };
  best_.insert(std::upper_bound(best_.begin(), best_.end(), plan, later), std::move(plan));
  if (best_.size() > options_.keep) best_.pop_back();
}

// `problem_` is the candidate's.
absl::Status PlanSearch::ScheduleCandidate(const bubble::SearchOptions& options,
                                           Candidate& candidate) {
  OPTIMUS_ASSIGN_OR_RETURN(bubble::Result result, Schedule(options));
  splits_evaluated_ += result.splits_evaluated;
  const bubble::Bounds bounds = candidate.ranked.bounds;
  Describe(result, candidate);
  candidate.ranked.bounds = bounds;
  if (IsComplete(candidate)) {
    Keep({context_.scheduler, candidate.llm, candidate.encoders, std::move(result)});
  }
  return absl::OkStatus();
}

// What the plan's step would be without the encoders' data-parallel communication.
absl::StatusOr<Picoseconds> PlanSearch::WithoutSync(const BestPlan& best) {
  bubble::SearchOptions same;
  for (const bubble::PlacedEncoder& encoder : best.result.encoders) {
    same.splits.push_back(encoder.split);
  }
  problem_.llm = llms_[best.llm].llm;
  OPTIMUS_RETURN_IF_ERROR(SetEncoders(context_, llms_[best.llm], best.encoders, tables_, problem_));
  ClearSync(problem_);
  OPTIMUS_ASSIGN_OR_RETURN(const bubble::Result without, Schedule(same));
  // The schedule with communication would do without it as well: where the greedy one without is
  // longer, the communication costs nothing.
  return std::min(without.latency, best.result.latency);
}

absl::StatusOr<std::optional<Candidate>> PlanSearch::Evaluate(const Candidate& prefix,
                                                              const EncoderPlan& plan) {
  Candidate candidate = prefix;
  const auto drop = [&](const std::string& reason) {
    drops_.Add(candidate.llm, PlansIn(candidate), reason);
    return std::optional<Candidate>();
  };
  const int encoder = order_[prefix.encoders.size()];
  absl::StatusOr<PlannedEncoder> planned = PlanEncoder(context_, encoder, plan);
  if (!planned.ok()) {
    candidate.encoders.push_back({encoder, {plan, {}, 0}});
    return drop(std::string(planned.status().message()));
  }
  candidate.encoders.push_back(std::move(*planned));
  bubble::SearchOptions options;
  options.exhaustive = options_.exhaustive;
  if (std::string reason = Fit(candidate, options); !reason.empty()) return drop(reason);
  if (std::string reason = TooManySplits(candidate.encoders.back(), options); !reason.empty()) {
    return drop(reason);
  }
  OPTIMUS_RETURN_IF_ERROR(
      SetEncoders(context_, llms_[candidate.llm], candidate.encoders, tables_, problem_));
  const bubble::Bounds bounds = bubble::LowerBounds(problem_);
  candidate.ranked.bounds = bounds;
  const Picoseconds bound = std::max(bounds.work, bounds.fluid);
  if (IsComplete(candidate) && !best_.empty() && bound > Hopeless(best_.front())) {
    return drop(absl::StrFormat("it takes at least %.6f s, a better plan takes %.6f s",
                                ToSeconds(bound), ToSeconds(best_.front().result.latency)));
  }
  OPTIMUS_RETURN_IF_ERROR(ScheduleCandidate(options, candidate));
  return candidate;
}

// A search that would take hours is not begun. Empty: it may be.
std::string PlanSearch::TooManySplits(const PlannedEncoder& encoder,
                                      const bubble::SearchOptions& options) const {
  if (!options.exhaustive || !options.splits.empty()) return "";
  const bool list = context_.scheduler == step::Optimus::LIST;
  const std::int64_t most = list ? kMostSplitsOfList : kMostSplitsOfPaper;
  const std::int64_t splits = planner::CountSplits(
      encoder.on_gpus.micro_batches, planner::PipelinesOf(encoder.plan(), tables_.world));
  if (splits <= most) return "";
  return absl::StrCat("--exhaustive would try ", splits, " splits of ",
                      encoder.on_gpus.micro_batches, " micro-batches, at most ", most,
                      " are tried by this scheduler; leave the flag out");
}

// A plan that takes longer than this in any case is not scheduled. By list, plans are run in the
// end, and interference may turn the order of those that are predicted nearly alike.
Picoseconds PlanSearch::Hopeless(const BestPlan& best) const {
  const Picoseconds latency = best.result.latency;
  return options_.keep == 1 ? latency : latency + Picoseconds(latency.value() / 100);
}

// Every plan of the next encoder, best first.
absl::StatusOr<std::vector<Candidate>> PlanSearch::Extend(const Candidate& prefix) {
  std::vector<Candidate> found;
  for (const EncoderPlan& plan : PlansOf(order_[prefix.encoders.size()])) {
    OPTIMUS_ASSIGN_OR_RETURN(std::optional<Candidate> candidate, Evaluate(prefix, plan));
    if (candidate.has_value()) found.push_back(*std::move(candidate));
  }
  std::stable_sort(found.begin(), found.end(), Faster);
  return found;
}

// Encoder after encoder, from the best plans so far. Where the next encoder fits beside none of
// its plans, the next best of them is tried.
absl::Status PlanSearch::PlanWith(std::size_t llm) {
  problem_.llm = llms_[llm].llm;
  std::vector<std::vector<Candidate>> levels = {{Candidate{llm, {}, {}}}};
  while (!levels.empty()) {
    if (levels.back().empty()) {
      levels.pop_back();
      continue;
    }
    const Candidate prefix = std::move(levels.back().front());
    levels.back().erase(levels.back().begin());
    OPTIMUS_ASSIGN_OR_RETURN(std::vector<Candidate> found, Extend(prefix));
    if (!found.empty() && IsComplete(found.front())) {
      std::move(found.begin(), found.end(), std::back_inserter(complete_));
      return absl::OkStatus();
    }
    levels.push_back(std::move(found));
  }
  return absl::OkStatus();
}

absl::Status PlanSearch::NothingFits() const {
  if (!drops_.least().has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("plan.optimus: no encoder plan suits the model: ", drops_.first().reason,
                     "; change plan.tensor_parallel or plan.pipeline_parallel"));
  }
  const DroppedPlan& least = drops_.least()->second;
  std::string text;
  for (const EncoderPlan& plan : least.encoders) {
    absl::StrAppend(&text, text.empty() ? "" : " + ", planner::ToString(plan));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("plan.optimus: no encoder plan fits in memory; the one that needs least, ", text,
                   ": ", least.reason, "; use more GPUs, more pipeline stages or recomputation"));
}

absl::StatusOr<SearchResult> PlanSearch::Run() {
  for (std::size_t llm = 0; llm < llms_.size(); ++llm) OPTIMUS_RETURN_IF_ERROR(PlanWith(llm));
  if (complete_.empty()) return NothingFits();
  std::stable_sort(complete_.begin(), complete_.end(), Faster);
  SearchResult result;
  for (Candidate& candidate : complete_) result.plan.ranked.push_back(std::move(candidate.ranked));
  for (const BestPlan& best : best_) {
    OPTIMUS_ASSIGN_OR_RETURN(const Picoseconds without, WithoutSync(best));
    for (RankedPlan& ranked : result.plan.ranked) {
      if (IsOf(ranked, best, llms_)) ranked.encoder_data_parallel = best.result.latency - without;
    }
  }
  result.plan.dropped = std::move(drops_).Finish(llms_);
  result.plan.splits_evaluated = splits_evaluated_;
  result.best = std::move(best_);
  return result;
}

}  // namespace

bool IsOf(const RankedPlan& ranked, const BestPlan& best, const std::vector<LlmStep>& llms) {
  if (ranked.scheduler != best.scheduler || ranked.warm_up != llms[best.llm].warm_up) return false;
  return std::all_of(best.encoders.begin(), best.encoders.end(), [&](const PlannedEncoder& e) {
    return ranked.encoders[e.encoder] == e.plan();
  });
}

absl::StatusOr<SearchResult> SearchPlans(const EncoderContext& context,
                                         const std::vector<LlmStep>& llms,
                                         const SearchPlansOptions& options) {
  return PlanSearch(context, llms, options).Run();
}

}  // namespace optimus::colocate
