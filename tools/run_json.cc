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
    {"measured.due_s", "emulated: what the step should have taken"},
    {"measured.late_s", "emulated: most that an operation of the step ended after its time"},
    {"measured.compute_short_s",
     "emulated: by how much computing reads short, mean over GPUs, because what begins late still "
     "ends in time"},
    {"measured.kept_time", "emulated: whether neither is above 2 % of the step"},
    {"measured.better_time_scale", "where it is not: a --time-scale to try"},
    {"measured.median_s",
     "of the measured steps: `iteration_time_s`; of an even number the lower of the two in the "
     "middle"},
    {"measured.first_quartile_s", "the same"},
    {"measured.third_quartile_s", "the same"},
    {"measured.least_s", "the shortest step"},
    {"measured.greatest_s", "the longest step"},
    {"measured.steps_s", "every measured step, in order"},
    {"no_efficiency", "why MFU and HFU are left out although the work is known"},
    {"numerics.tolerance", "--numerics only: relative error that is allowed"},
    {"numerics.within_tolerance", "whether loss and all gradients are within it"},
    {"numerics.worst_loss_error", "relative, over all steps"},
    {"numerics.worst_gradient_error", "relative (Euclidean norms), over all tensors, last step"},
    {"numerics.losses", "by step"},
    {"numerics.reference_losses", "of the plain single-process program, by step"},
    {"numerics.gradients", "name, elements and relative_error of every tensor, worst first"},
    {"numerics.memory",
     "by rank, the most at one time: tensor_bytes of activations and their gradients (f32), and "
     "weight_gradient_bytes of them that only weight gradients still needed"},
};

}  // namespace

std::string RunJsonIntroduction() {
  return "`optimus run`: the names of `optimus simulate` without `fidelity`, `fidelity_reason`, "
         "`interference` and `optimus`, of the measured step of median length "
         "(`iteration_time_s`), and these. `profile` is left out where none was needed "
         "(on cpu and cuda it only made the plan), MFU and HFU unless the profile was measured or "
         "given by --profile.";
}

absl::Span<const JsonField> RunJsonFields() { return kFields; }

}  // namespace optimus::tools
