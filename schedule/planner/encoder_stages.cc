#include "schedule/planner/encoder_stages.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/partition/partition.h"

namespace optimus::planner {

step::Module UnderPlan(const step::Module& encoder, const EncoderPlan& plan) {
  step::Module module = encoder;
  module.slice.tensor_parallel = plan.tensor_parallel;
  module.whole.tensor_parallel = plan.tensor_parallel;
  return module;
}

absl::StatusOr<step::ItemRanges> EncoderStages(const step::Stack& stack, int module,
                                               const EncoderPlan& plan) {
  int first = -1;
  int layers = 0;
  for (int i = 0; i < static_cast<int>(stack.items.size()); ++i) {
    const step::Item& item = stack.items[i];
    if (item.module != module || item.kind != step::ItemKind::kLayer) continue;
    if (first < 0) first = i;
    ++layers;
  }
  if (first < 0) return absl::NotFoundError(absl::StrCat("no module ", module, " in this step"));
  OPTIMUS_ASSIGN_OR_RETURN(
      step::ItemRanges ranges,
      partition::EqualLayers(layers, plan.pipeline_parallel, /*allow_uneven=*/true));
  for (int& boundary : ranges) boundary += first;
  ++ranges.back();  // the projector stands behind the layers
  return ranges;
}

}  // namespace optimus::planner
