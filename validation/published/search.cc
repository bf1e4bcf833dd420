#include "validation/published/search.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::validation {
namespace {

// Whether the schedule takes this many micro-batches.
bool Runs(const step::Plan& plan, int micro_batches, int chunks) {
  return chunks == 1 || micro_batches % plan.pipeline_parallel() == 0;
}

step::Experiment WithCut(step::Experiment experiment, int micro_batch, int chunks) {
  experiment.mutable_batch()->set_micro_batch(micro_batch);
  step::Plan& plan = *experiment.mutable_plan();
  plan.set_model_chunks(chunks);
  plan.set_schedule(chunks == 1 ? step::Plan::ONE_F_ONE_B : step::Plan::INTERLEAVED);
  return experiment;
}

absl::Status Try(const step::Experiment& experiment, Simulator& simulator, Cut& best) {
  OPTIMUS_ASSIGN_OR_RETURN(const step::Step step, simulator.Build(experiment));
  OPTIMUS_ASSIGN_OR_RETURN(const bool fits, simulator.Fits(step));
  if (!fits) {
    ++best.too_large;
    return absl::OkStatus();
  }
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline timeline, simulator.Run(step));
  if (best.simulated++ > 0 && timeline.step >= best.step) return absl::OkStatus();
  best.step = timeline.step;
  best.micro_batch = experiment.batch().micro_batch();
  best.chunks = experiment.plan().model_chunks();
  return absl::OkStatus();
}

}  // namespace

std::string Cut::Text() const {
  return absl::StrCat("micro-batch ", micro_batch, ", ", chunks,
                      chunks == 1 ? " model chunk" : " model chunks", ": fastest of ", simulated,
                      too_large > 0 ? absl::StrCat(" (", too_large, " do not fit)") : "");
}

RowResult StepOf(const Cut& cut, double measured_s) {
  RowResult result;
  result.figures.push_back({"step", "s", "", measured_s, ToSeconds(cut.step)});
  result.note = cut.Text();
  return result;
}

// Up to the root, each with its partner: a count of a file may be as large as an int is.
std::vector<int> Divisors(int n) {
  std::vector<int> divisors, partners;
  for (int d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    divisors.push_back(d);
    if (d != n / d) partners.push_back(n / d);
  }
  divisors.insert(divisors.end(), partners.rbegin(), partners.rend());
  return divisors;
}

absl::StatusOr<std::vector<int>> ChunksOf(const Row& row) {
  const int layers = row.count("layers");
  const int stages = row.count("pp");
  if (layers % stages != 0) {
    return row.Error("pp", absl::StrCat(stages, " does not divide ", layers, " layers"));
  }
  return stages == 1 ? std::vector<int>{1} : Divisors(layers / stages);
}

absl::StatusOr<Cut> FastestCut(const step::Experiment& experiment, const std::vector<int>& chunks,
                               Simulator& simulator) {
  const step::Plan& plan = experiment.plan();
  if (plan.data_parallel() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        experiment.hardware().gpus(), " GPUs are fewer than tensor_parallel * pipeline_parallel = ",
        plan.tensor_parallel(), " * ", plan.pipeline_parallel()));
  }
  if (experiment.batch().global_batch() % plan.data_parallel() != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "global batch ", experiment.batch().global_batch(), " is not a multiple of ",
        plan.data_parallel(), " data-parallel ranks; every pipeline must get the same"));
  }
  const int samples = experiment.batch().global_batch() / plan.data_parallel();
  Cut best;
  for (const int micro_batch : Divisors(samples)) {
    const int too_large = best.too_large;
    int tried = 0;
    for (const int count : chunks) {
      if (!Runs(plan, samples / micro_batch, count)) continue;
      ++tried;
      OPTIMUS_RETURN_IF_ERROR(Try(WithCut(experiment, micro_batch, count), simulator, best));
    }
    // Larger micro-batches need more memory still.
    if (tried > 0 && best.too_large - too_large == tried) break;
  }
  if (best.simulated > 0) return best;
  return absl::FailedPreconditionError(
      absl::StrCat("no micro-batch size that divides the ", samples,
                   " samples of a pipeline fits into the memory of ",
                   experiment.hardware().profile(), "; use more pipeline or tensor parallelism"));
}

}  // namespace optimus::validation
