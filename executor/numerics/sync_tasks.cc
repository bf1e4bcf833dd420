// Keeping replicas in step: parameter all-gathers, gradient reductions, gradient norm, optimizer.
//
// The gradient norm's all-reduce carries, beside its number, the gradients of parameters that
// several ranks of a replica hold and of which each has a part only: norms (and projectors) under
// sequence parallelism, shared key/value heads, tied embeddings, the parts of the head's weight.
// Frameworks sum those with all-reduces of their own at this very point (Megatron-LM:
// finalize_model_grads). The Schedule has that of tied embeddings, between the two stages that hold
// them; here every rank of the head has a part of the whole table, so that those two ranks are not
// all: its operation takes place without data.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "executor/numerics/task.h"
#include "schedule/ir/group_members.h"

namespace optimus::executor::numerics {
namespace {

std::size_t SumOfShards(const std::vector<Parameter*>& parameters) {
  std::size_t sum = 0;
  for (const Parameter* parameter : parameters) sum += parameter->holding.shard_elements();
  return sum;
}

class SyncCompiler {
 public:
  explicit SyncCompiler(Compiled& compiled)
      : compiled_(compiled), context_(compiled.context), tag_(compiled.op.tag) {}

  absl::Status Compile() {
    if (compiled_.op.kind == ir::OperationKind::kKernel) {
      return tag_.phase == Phase::kOptimizer ? Optimizer() : compiled_.Unknown();
    }
    const CollectiveWork& work = context_.schedule().collectives[compiled_.op.work].work;
    if (work.name == "grad_norm" && work.kind == CollectiveKind::kAllReduce) return Norm();
    if (IsTiedSum(work)) return TiedSum();
    for (Parameter& parameter : context_.parameters.all()) {
      if (Covers(context_.anatomy, tag_, parameter.holding)) covered_.push_back(&parameter);
    }
    if (covered_.empty()) return compiled_.Unknown();
    members_ = covered_.front()->holding.members;
    if (tag_.phase == Phase::kParameterSync && work.kind == CollectiveKind::kAllGather) {
      return Gather();
    }
    if (tag_.phase != Phase::kGradientSync) return compiled_.Unknown();
    if (work.kind == CollectiveKind::kReduceScatter) return ReduceScatter();
    if (work.kind == CollectiveKind::kAllReduce) return AllReduce();
    return compiled_.Unknown();
  }

 private:
  Task& task() { return compiled_.task; }

  // Every rank gives its shards of all tensors, one behind the other.
  absl::Status Gather() {
    task().brings = covered_;
    task().input_size = SumOfShards(covered_);
    task().output_size = task().input_size * members_;
    task().pack = [covered = covered_](Floats& input) {
      input.clear();
      for (const Parameter* parameter : covered) {
        input.insert(input.end(), parameter->shard_value.begin(), parameter->shard_value.end());
      }
    };
    task().unpack = [covered = covered_, members = members_](Floats& output) {
      auto from = output.begin();
      for (int i = 0; i < members; ++i) {
        for (Parameter* parameter : covered) {
          const Holding& holding = parameter->holding;
          const std::int64_t begin = std::min(i * holding.shard_elements(), holding.elements());
          const std::int64_t end = std::min((i + 1) * holding.shard_elements(), holding.elements());
          std::copy_n(from, end - begin, parameter->value.begin() + begin);
          from += holding.shard_elements();
        }
      }
    };
    return absl::OkStatus();
  }

  // The mirror image: all shards in, the sum of one's own out. Added: FSDP reduces every
  // micro-batch.
  absl::Status ReduceScatter() {
    for (Parameter* parameter : covered_) task().contributions.emplace_back(parameter, 0);
    task().output_size = SumOfShards(covered_);
    task().input_size = task().output_size * members_;
    task().pack = [covered = covered_, members = members_](Floats& input) {
      auto to = input.begin();
      for (int i = 0; i < members; ++i) {
        for (const Parameter* parameter : covered) {
          const Holding& holding = parameter->holding;
          const std::int64_t begin = std::min(i * holding.shard_elements(), holding.elements());
          const std::int64_t end = std::min((i + 1) * holding.shard_elements(), holding.elements());
          std::copy(parameter->gradient.begin() + begin, parameter->gradient.begin() + end, to);
          std::fill(to + (end - begin), to + holding.shard_elements(), 0.0F);
          to += holding.shard_elements();
        }
      }
    };
    task().unpack = [covered = covered_](Floats& output) {
      auto from = output.begin();
      for (Parameter* parameter : covered) {
        for (float& g : parameter->shard_gradient) g += *from++;
        std::fill(parameter->gradient.begin(), parameter->gradient.end(), 0.0F);
        parameter->contributions = 0;
        ++parameter->reductions;
      }
    };
    return absl::OkStatus();
  }

  absl::Status AllReduce() {
    for (Parameter* parameter : covered_) {
      task().contributions.emplace_back(parameter, 0);
      task().input_size += parameter->gradient.size();
    }
    task().output_size = task().input_size;
    task().pack = [covered = covered_](Floats& input) {
      input.clear();
      for (const Parameter* parameter : covered) {
        input.insert(input.end(), parameter->gradient.begin(), parameter->gradient.end());
      }
    };
    task().unpack = [covered = covered_](Floats& output) {
      auto from = output.begin();
      for (Parameter* parameter : covered) {
        std::copy_n(from, parameter->gradient.size(), parameter->gradient.begin());
        from += static_cast<std::ptrdiff_t>(parameter->gradient.size());
        parameter->contributions = 0;
        ++parameter->reductions;
      }
    };
    return absl::OkStatus();
  }

  // The norm's all-reduce moves what it stands for.
  absl::Status TiedSum() {
    task().input_size = task().output_size = 1;
    task().pack = [](Floats& input) { input.front() = 0; };
    task().unpack = [](Floats& /*output*/) {};
    return absl::OkStatus();
  }

  // A gradient that the members of the norm's group have in parts: which tensor, where in it, and
  // which shard of it (or which replica).
  using Segment = std::tuple<std::string, std::int64_t, std::int64_t, int>;
  static Segment SegmentOf(const Holding& holding) {
    return {holding.tensor, holding.row, holding.column, holding.position};
  }

  // Segments of all members' holdings in order, with their places in the buffer, which begins with
  // the norm.
  absl::StatusOr<std::map<Segment, std::size_t>> Segments(std::size_t& size) const {
    const ir::Schedule& schedule = context_.schedule();
    const ir::Group& group = schedule.groups[schedule.collectives[compiled_.op.work].group];
    const Place& place = context_.place;
    std::map<Segment, std::size_t> sizes;
    std::map<Segment, int> holders;
    for (const std::int32_t rank :
         ir::RanksOf(schedule, ir::MembersOf(schedule, group, place.stage, place.d, place.t))) {
      OPTIMUS_ASSIGN_OR_RETURN(const std::vector<Holding> holdings,
                               HoldingsOf(context_.anatomy, rank));
      for (const Holding& holding : holdings) {
        if (!holding.partial || !holding.trained) continue;
        sizes[SegmentOf(holding)] = holding.shard_elements();
        ++holders[SegmentOf(holding)];
      }
    }
    size = 1;
    std::map<Segment, std::size_t> places;
    for (const auto& [segment, elements] : sizes) {
      if (holders[segment] < 2) continue;
      places[segment] = size;
      size += elements;
    }
    return places;
  }

  absl::Status Norm() {
    std::size_t size = 0;
    OPTIMUS_ASSIGN_OR_RETURN(const auto places, Segments(size));
    std::vector<std::pair<Parameter*, std::size_t>> shared;
    std::vector<Parameter*> whole;
    for (Parameter& parameter : context_.parameters.all()) {
      if (!parameter.holding.trained) continue;
      task().contributions.emplace_back(&parameter, 0);
      const auto found = places.find(SegmentOf(parameter.holding));
      if (parameter.holding.partial && found != places.end()) {
        shared.emplace_back(&parameter, found->second);
      } else {
        whole.push_back(&parameter);
      }
    }
    Slot* norm = context_.slots.At({What::kGradientNorm});
    task().makes = {norm};
    task().final_gradients = true;
    task().input_size = task().output_size = size;
    // The sum of squares of what this rank has whole; replicas (biases of row-parallel layers)
    // count on each.
    task().pack = [shared, whole](Floats& input) {
      std::fill(input.begin(), input.end(), 0.0F);
      for (Parameter* parameter : whole) {
        for (const float g : parameter->final_gradient()) input[0] += g * g;
      }
      for (const auto& [parameter, first] : shared) {
        const Floats& gradient = parameter->final_gradient();
        std::copy(gradient.begin(), gradient.end(),
                  input.begin() + static_cast<std::ptrdiff_t>(first));
      }
    };
    task().unpack = [shared, norm](Floats& output) {
      norm->Put({output[0]});
      for (const auto& [parameter, first] : shared) {
        Floats& gradient = parameter->final_gradient();
        std::copy_n(output.begin() + static_cast<std::ptrdiff_t>(first), gradient.size(),
                    gradient.begin());
      }
    };
    return absl::OkStatus();
  }

  // Plain SGD on what this rank keeps; values that an all-gather brings are out of date from here.
  absl::Status Optimizer() {
    if (HasNorm()) {
      Slot* norm = context_.slots.At({What::kGradientNorm});
      task().needs = task().drops = {norm};
    }
    task().final_gradients = true;
    std::vector<Parameter*> trained;
    for (Parameter& parameter : context_.parameters.all()) {
      if (!parameter.holding.trained) continue;
      trained.push_back(&parameter);
      task().contributions.emplace_back(&parameter, 0);
      if (parameter.holding.gathered) task().frees.push_back(&parameter);
    }
    task().body = [trained, rate = static_cast<float>(context_.model().learning_rate)] {
      for (Parameter* parameter : trained) {
        Floats& value = parameter->holding.sharded ? parameter->shard_value : parameter->value;
        const Floats& gradient = parameter->final_gradient();
        for (std::size_t i = 0; i < value.size(); ++i) value[i] -= rate * gradient[i];
      }
    };
    return absl::OkStatus();
  }

  bool HasNorm() const {
    const ir::Schedule& schedule = context_.schedule();
    return std::any_of(schedule.collectives.begin(), schedule.collectives.end(),
                       [](const ir::Collective& c) { return c.work.name == "grad_norm"; });
  }

  Compiled& compiled_;
  const Context& context_;
  const ir::Tag tag_;
  std::vector<Parameter*> covered_;
  int members_ = 1;
};

}  // namespace

absl::Status CompileSync(Compiled& compiled) { return SyncCompiler(compiled).Compile(); }

}  // namespace optimus::executor::numerics
