#include "schedule/llm_search/candidate.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/step/check_schedule.h"

namespace optimus::llm_search {
namespace {

// Ascending.
std::vector<std::int32_t> Divisors(std::int32_t n) {
  // In pairs up to the root: the number of GPUs may be any that an int32 holds.
  std::set<std::int32_t> divisors;
  for (std::int32_t d = 1; d <= n / d; ++d) {
    if (n % d == 0) divisors.insert({d, n / d});
  }
  return {divisors.begin(), divisors.end()};
}

// Ascending; always with 1.
std::vector<std::int32_t> Chunks(const Domain& domain, step::Plan::Strategy strategy,
                                 std::int32_t stages) {
  std::set<std::int32_t> chunks = {1};
  const auto add = [&](std::int32_t layers) {
    if (layers % stages != 0) return;
    for (const std::int32_t v : Divisors(layers / stages)) chunks.insert(v);
  };
  add(domain.llm_layers);
  if (strategy == step::Plan::PIPELINE) add(domain.llm_layers + domain.encoder_layers);
  return {chunks.begin(), chunks.end()};
}

std::vector<std::int32_t> MicroBatches(const Domain& domain, std::int32_t data_parallel) {
  if (domain.global_batch % data_parallel != 0) return {1};
  const std::int32_t samples = domain.global_batch / data_parallel;
  std::vector<std::int32_t> sizes;
  for (const std::int32_t size : Divisors(samples)) {
    const bool power_of_two = (size & (size - 1)) == 0;
    if (power_of_two || size == domain.own_micro_batch) sizes.push_back(size);
  }
  return sizes;
}

class Enumeration {
 public:
  explicit Enumeration(const Domain& domain) : domain_(domain) {}

  std::vector<Candidate> Run() && {
    if (domain_.with_encoders) AddStrategy(step::Plan::OPTIMUS);
    AddStrategy(step::Plan::PIPELINE);
    return std::move(candidates_);
  }

 private:
  void AddStrategy(step::Plan::Strategy strategy) {
    Candidate candidate;
    candidate.strategy = strategy;
    std::vector<std::int32_t> tensor = Divisors(domain_.gpus);
    std::reverse(tensor.begin(), tensor.end());
    for (const std::int32_t tp : tensor) {
      if (domain_.gpus_per_node > 0 && domain_.gpus_per_node % tp != 0) continue;
      candidate.tensor_parallel = tp;
      AddStages(candidate);
    }
  }

  void AddStages(Candidate candidate) {
    const std::int32_t rest = domain_.gpus / candidate.tensor_parallel;
    std::vector<std::int32_t> stages = Divisors(rest);
    std::reverse(stages.begin(), stages.end());
    for (const std::int32_t pp : stages) {
      if (pp > domain_.llm_layers) continue;
      candidate.pipeline_parallel = pp;
      candidate.data_parallel = rest / pp;
      for (const std::int32_t chunks : Chunks(domain_, candidate.strategy, pp)) {
        candidate.model_chunks = chunks;
        AddBatches(candidate);
      }
    }
  }

  void AddBatches(Candidate candidate) {
    for (const std::int32_t size : MicroBatches(domain_, candidate.data_parallel)) {
      candidate.micro_batch = size;
      for (const step::Plan::Recompute recompute :
           {step::Plan::RECOMPUTE_NONE, step::Plan::RECOMPUTE_SELECTIVE,
            step::Plan::RECOMPUTE_FULL}) {
        candidate.recompute = recompute;
        candidates_.push_back(candidate);
      }
    }
  }

  const Domain& domain_;
  std::vector<Candidate> candidates_;
};

bool AnyStagesWillDo(step::Plan::Layout layout) {
  return layout == step::Plan::EQUAL_LAYERS || layout == step::Plan::BALANCED;
}

void SetLayout(const Candidate& candidate, bool with_encoders, step::Plan& plan) {
  plan.clear_layout_string();
  plan.clear_layer_counts();
  if (candidate.strategy == step::Plan::PIPELINE && with_encoders) {
    plan.set_layout(step::Plan::BALANCED);
  } else if (!AnyStagesWillDo(plan.layout())) {
    plan.set_layout(step::Plan::EQUAL_LAYERS);
  }
}

void SetSlices(step::Experiment& experiment) {
  for (step::Encoder& encoder : *experiment.mutable_encoders()) {
    const std::int64_t sequences =
        std::int64_t{encoder.sequences_per_sample()} * experiment.batch().micro_batch();
    // 0 stands for the whole micro-batch, whatever its size; what is wrong is refused later.
    if (encoder.sequences_per_slice() <= 0 || sequences <= 0) continue;
    const std::int64_t slice = NearestDivisor(encoder.sequences_per_slice(), sequences);
    encoder.set_sequences_per_slice(static_cast<std::int32_t>(slice));
  }
}

}  // namespace

Candidate CandidateOf(const step::Experiment& experiment) {
  const step::Plan& plan = experiment.plan();
  Candidate candidate;
  candidate.strategy = plan.strategy();
  candidate.data_parallel = plan.data_parallel();
  candidate.pipeline_parallel = plan.pipeline_parallel();
  candidate.tensor_parallel = plan.tensor_parallel();
  candidate.model_chunks = plan.model_chunks();
  candidate.micro_batch = experiment.batch().micro_batch();
  candidate.recompute = plan.recompute();
  return candidate;
}

std::string ToString(const Candidate& candidate) {
  return absl::StrCat(step::Plan::Strategy_Name(candidate.strategy), ", DP ",
                      candidate.data_parallel, " x PP ", candidate.pipeline_parallel, " x TP ",
                      candidate.tensor_parallel, ", V ", candidate.model_chunks, ", micro-batch ",
                      candidate.micro_batch, ", recompute ", RecomputeName(candidate.recompute));
}

const char* RecomputeName(step::Plan::Recompute recompute) {
  switch (recompute) {
    case step::Plan::RECOMPUTE_SELECTIVE:
      return "selective";
    case step::Plan::RECOMPUTE_FULL:
      return "full";
    default:
      return "none";
  }
}

std::vector<Candidate> Enumerate(const Domain& domain) { return Enumeration(domain).Run(); }

step::Experiment Apply(const step::Experiment& base, const Candidate& candidate) {
  step::Experiment experiment = base;
  step::UseSchedule(candidate.model_chunks > 1 ? step::Plan::INTERLEAVED : step::Plan::ONE_F_ONE_B,
                    experiment);
  experiment.mutable_batch()->set_micro_batch(candidate.micro_batch);
  step::Plan& plan = *experiment.mutable_plan();
  plan.set_strategy(candidate.strategy);
  plan.set_data_parallel(candidate.data_parallel);
  plan.set_pipeline_parallel(candidate.pipeline_parallel);
  plan.set_tensor_parallel(candidate.tensor_parallel);
  plan.set_model_chunks(candidate.model_chunks);
  plan.set_recompute(candidate.recompute);
  plan.clear_micro_batch_group();
  plan.clear_fsdp();
  if (candidate.strategy == step::Plan::OPTIMUS) {
    if (plan.has_optimus()) plan.mutable_optimus()->clear_encoder_plans();
  } else {
    plan.clear_optimus();
  }
  SetLayout(candidate, experiment.encoders_size() > 0, plan);
  SetSlices(experiment);
  return experiment;
}

std::int64_t NearestDivisor(std::int64_t wanted, std::int64_t whole) {
  std::int64_t nearest = 1;
  for (std::int64_t d = 1; d <= whole && d <= 2 * wanted; ++d) {
    if (whole % d != 0) continue;
    if (std::llabs(d - wanted) < std::llabs(nearest - wanted)) nearest = d;
  }
  return nearest;
}

}  // namespace optimus::llm_search
