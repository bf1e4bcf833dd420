#include "tools/run_json.h"

namespace optimus::tools {
namespace {

constexpr JsonField kFields[] = {
    {"measured.backend", "cpu, cuda or emulated"},
    {"measured.device", "what computes, by which library, in which arithmetic"},
    {"measured.hosts", "host names and ranks on each"},
    {"measured.warm_up_steps", "steps before those that were measured"},
    {"measured.time_scale",
     "emulated: real time for each time of the result (all times here are divided by it)"},
    {"measured.median_s", "of the measured steps"},
    {"measured.first_quartile_s", "the same"},
    {"measured.third_quartile_s", "the same"},
    {"measured.least_s", "the shortest step"},
    {"measured.greatest_s", "the longest step"},
    {"measured.steps_s", "every measured step, in order"},
    {"numerics.tolerance", "--numerics only: relative error that is allowed"},
    {"numerics.within_tolerance", "whether loss and all gradients are within it"},
    {"numerics.worst_loss_error", "relative, over all steps"},
    {"numerics.worst_gradient_error", "relative (Euclidean norms), over all tensors, last step"},
    {"numerics.losses", "by step"},
    {"numerics.reference_losses", "of the plain single-process program, by step"},
    {"numerics.gradients", "name, elements and relative_error of every tensor, worst first"},
};

}  // namespace

std::string RunJsonIntroduction() {
  return "`optimus run`: the names of `optimus simulate` without `fidelity`, `fidelity_reason`, "
         "`interference` and `optimus`, of the measured step of median length "
         "(`iteration_time_s`), and these. `profile` is left out where none was needed, MFU and "
         "HFU unless the profile was measured or given by --profile.";
}

absl::Span<const JsonField> RunJsonFields() { return kFields; }

}  // namespace optimus::tools
