#include "tools/profile_json.h"

namespace optimus::tools {
namespace {

constexpr JsonField kFields[] = {
    {"version", "of optimus"},
    {"profile", "name of the profile that was written"},
    {"backend", "cpu or cuda"},
    {"device", "what computes, by which library, in which arithmetic"},
    {"host", "of rank 0"},
    {"date", "YYYY-MM-DD"},
    {"ranks", "that measured together"},
    {"ranks_per_node", "while it was measured"},
    {"kernels",
     "every kernel: kind, name, shape, flops, bytes, median_s, spread_s (between the "
     "quartiles), repetitions"},
    {"transfers",
     "every kind of transfer: transfer, between_nodes, ranks (of the group), points (bytes as "
     "nccl-tests count them, median_s, spread_s, repetitions); empty for one rank"},
    {"launch", "of a kernel without work: median_s, spread_s, repetitions"},
    {"interference",
     "factors, under the names of `optimus simulate`; those that were not measured are left out, "
     "and all of it where none was"},
    {"base", "name of the profile from which the rest was kept"},
    {"not_measured",
     "fields of the profile that were kept: a number (gpu.optimizer_step_ms), a whole link (nic), "
     "or a kind of transfer (nvlink.broadcast)"},
};

}  // namespace

absl::Span<const JsonField> ProfileJsonFields() { return kFields; }

}  // namespace optimus::tools
