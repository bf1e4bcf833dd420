#pragma once
// What is known of a candidate before anything of it is planned or simulated: whether it can be at
// all, whether it fits in memory, and how long its step is at least.

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "hw_profiles/profile.h"
#include "schedule/llm_search/candidate.h"
#include "schedule/llm_search/encoder_floor.h"
#include "schedule/llm_search/memory_need.h"
#include "schedule/llm_search/pipeline_bound.h"
#include "schedule/step/stack.h"
#include "schedule/step/work_tables.h"

namespace optimus::llm_search {

// Lower bounds on the simulated step.
struct Bounds {
  Picoseconds
      pipeline;      // BoundPipeline; of OPTIMUS with one micro-batch of every encoder around it
  Picoseconds work;  // OPTIMUS: kernels of LLM and encoders spread over all GPUs, and the tail
  Picoseconds step() const { return pipeline < work ? work : pipeline; }
};

struct Examined {
  enum class Verdict { kImpossible, kTooLarge, kBounded };
  Verdict verdict = Verdict::kImpossible;
  step::Experiment experiment;  // complete, unless impossible
  std::string reason;           // impossible: "field: what is wrong; hint"
  Bytes memory;                 // too large: what it needs at least
  Bounds bounds;                // where it is bounded
};

class Examiner {
 public:
  // `base`: as Apply. `costs` must outlive it.
  Examiner(step::Experiment base, const hw::ProfileCostModel& costs);
  ~Examiner();
  Examiner(const Examiner&) = delete;
  Examiner& operator=(const Examiner&) = delete;

  Examined Examine(const Candidate& candidate);

 private:
  struct Tables;  // of a stack: blocks, prices
  struct PlannedEncoders;
  // Strategy, TP, micro-batch, recomputation.
  using StackKey = std::tuple<int, int, int, int>;
  // TP_enc, PP_enc, TP, micro-batch, recomputation, encoder.
  using FloorKey = std::tuple<int, int, int, int, int, int>;

  absl::Status Check(step::Experiment& experiment) const;
  absl::Status Weigh(Examined& examined);
  absl::StatusOr<Tables*> TablesOf(const step::Experiment& experiment);
  absl::StatusOr<const step::Stack*> EncoderStackOf(const step::Experiment& experiment);
  absl::StatusOr<PlannedEncoders> PlanEncoders(const step::Experiment& experiment);
  absl::StatusOr<EncoderFloor> FloorFor(const colocate::EncoderContext& context, int encoder,
                                        const planner::EncoderPlan& plan,
                                        const ir::Schedule& tables);
  absl::Status Bound(const step::Experiment& whole, const step::Experiment& alone,
                     const Tables& tables, const step::ItemRanges& ranges, const MemoryNeed& need,
                     Bounds& bounds);

  step::Experiment base_;
  const hw::ProfileCostModel& costs_;
  double kernel_factor_ = 1;
  std::map<StackKey, std::unique_ptr<Tables>> tables_;
  std::map<StackKey, step::Stack> encoder_stacks_;
  std::map<FloorKey, EncoderFloor> floors_;
};

}  // namespace optimus::llm_search
