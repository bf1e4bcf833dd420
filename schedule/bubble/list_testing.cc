#include "schedule/bubble/list_testing.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "schedule/ir/schedule.h"

namespace optimus::bubble {
namespace {

constexpr std::int64_t kUs = 1'000'000;  // picoseconds
Picoseconds Us(std::int64_t us) { return Picoseconds(us * kUs); }

// Part of a chunk: a kernel, an exposed collective, or a collective under a kernel.
struct Part {
  std::int64_t compute_us = 0, link_us = 0;
  std::int64_t length() const { return std::max(compute_us, link_us); }
};
using Parts = std::vector<Part>;

Parts ForwardLayer() {
  return {{0, 295}, {820, 0}, {240, 0}, {0, 295}, {0, 295}, {1000, 0}, {1020, 0}, {0, 295}};
}
Parts BackwardLayer() {
  Parts parts = ForwardLayer();  // recompute
  const Parts more = {{0, 295}, {1020, 0}, {960, 0}, {1920, 295},
                      {0, 295}, {390, 0},  {720, 0}, {960, 295}};
  parts.insert(parts.end(), more.begin(), more.end());
  return parts;
}

struct Chunk {
  bool forward = true;
  std::int32_t chunk = 0, micro_batch = 0;
};

// Megatron's order: groups of as many micro-batches as stages go through one chunk, then the next.
std::vector<Chunk> StageOrder(const PipelineShape& shape, std::int32_t stage) {
  std::vector<Chunk> forward, backward, order;
  for (std::int32_t group = 0; group < shape.micro_batches; group += shape.stages) {
    for (std::int32_t c = 0; c < shape.chunks; ++c) {
      for (std::int32_t i = group; i < std::min(group + shape.stages, shape.micro_batches); ++i) {
        forward.push_back({true, c, i});
        backward.push_back({false, shape.chunks - 1 - c, i});
      }
    }
  }
  const auto warm = static_cast<std::size_t>(
      std::min<std::int64_t>((shape.stages - stage - 1) * 2 + (shape.chunks - 1) * shape.stages,
                             static_cast<std::int64_t>(forward.size())));
  for (std::size_t i = 0; i < forward.size() + warm; ++i) {
    if (i < forward.size()) order.push_back(forward[i]);
    if (i >= warm) order.push_back(backward[i - warm]);
  }
  return order;
}

class LlmBuilder {
 public:
  explicit LlmBuilder(const PipelineShape& shape)
      : shape_(shape),
        ends_(std::size_t{2} * shape.stages * shape.chunks * shape.micro_batches, -1) {
    llm_.stages.resize(static_cast<std::size_t>(shape.stages));
    llm_.forward_needed.resize(static_cast<std::size_t>(shape.micro_batches));
    llm_.backward_made = llm_.forward_needed;
  }

  LlmTimeline Build() {
    std::vector<std::vector<Chunk>> orders;
    orders.reserve(static_cast<std::size_t>(shape_.stages));
    for (std::int32_t d = 0; d < shape_.stages; ++d) orders.push_back(StageOrder(shape_, d));
    std::vector<std::size_t> next(orders.size(), 0);
    std::vector<std::int64_t> free(orders.size(), 167'000);  // us: the gather
    for (bool moved = true; std::exchange(moved, false);) {
      for (std::size_t d = 0; d < orders.size(); ++d) {
        while (next[d] < orders[d].size() && Run(d, orders[d][next[d]], free[d])) {
          ++next[d];
          moved = true;
        }
      }
    }
    Finish();
    return std::move(llm_);
  }

 private:
  std::int64_t& End(const Chunk& c, std::int32_t stage) {
    const std::int32_t chunk = stage * shape_.chunks + c.chunk;
    const std::int32_t micro_batch = chunk * shape_.micro_batches + c.micro_batch;
    return ends_[2 * static_cast<std::size_t>(micro_batch) + (c.forward ? 1 : 0)];
  }

  // When what it needs is there; -1: not known yet.
  std::int64_t Ready(const Chunk& c, std::int32_t stage) {
    constexpr std::int64_t kHop = 60;
    Chunk before = c;
    std::int32_t from = c.forward ? stage - 1 : stage + 1;
    if (from < 0 || from >= shape_.stages) {
      before.chunk += c.forward ? -1 : 1;
      from = c.forward ? shape_.stages - 1 : 0;
      if (before.chunk < 0) return 0;
      if (before.chunk == shape_.chunks) {  // the last forward of this micro-batch
        before = {true, shape_.chunks - 1, c.micro_batch};
        from = stage;
      }
    }
    const std::int64_t end = End(before, from);
    return end < 0 ? end : end + kHop;
  }

  bool Run(std::size_t d, const Chunk& c, std::int64_t& free) {
    const auto stage = static_cast<std::int32_t>(d);
    const std::int64_t ready = Ready(c, stage);
    if (ready < 0) return false;
    std::int64_t at = std::max(free, ready);
    if (stage == 0 && c.chunk == 0 && c.forward) {
      llm_.forward_needed[static_cast<std::size_t>(c.micro_batch)] = Us(at);
    }
    for (const Part& part : c.forward ? ForwardLayer() : BackwardLayer()) {
      if (part.compute_us > 0) compute_[d].push_back({Us(at), Us(at + part.compute_us)});
      if (part.link_us > 0) link_[d].push_back({Us(at), Us(at + part.link_us)});
      llm_.stages[d].compute += Us(part.compute_us);
      at += part.length();
    }
    End(c, stage) = free = at;
    if (stage == 0 && c.chunk == 0 && !c.forward) {
      llm_.backward_made[static_cast<std::size_t>(c.micro_batch)] = Us(at);
    }
    return true;
  }

  static std::vector<Interval> Gaps(const std::vector<Interval>& busy, Picoseconds from,
                                    Picoseconds to) {
    std::vector<Interval> gaps;
    for (const Interval& b : busy) {
      if (b.start > from) gaps.push_back({from, b.start});
      from = std::max(from, b.end);
    }
    if (from < to) gaps.push_back({from, to});
    return gaps;
  }

  void Finish() {
    for (std::size_t d = 0; d < llm_.stages.size(); ++d) {
      LlmStage& stage = llm_.stages[d];
      stage.first_start = std::min(compute_[d].front().start, link_[d].front().start);
      stage.last_end = std::max(compute_[d].back().end, link_[d].back().end);
      stage.compute_idle = Gaps(compute_[d], stage.first_start, stage.last_end);
      stage.link_idle = Gaps(link_[d], stage.first_start, stage.last_end);
      stage.gradients_reduced = stage.last_end + Us(458'000);
      llm_.step = std::max(llm_.step, stage.gradients_reduced);
    }
    llm_.after_reduction = Us(30'000);
    llm_.step += llm_.after_reduction;
  }

  const PipelineShape& shape_;
  LlmTimeline llm_;
  std::vector<std::int64_t> ends_;  // us
  std::vector<Interval> compute_[64], link_[64];
};

class EncoderBuilder {
 public:
  explicit EncoderBuilder(const PipelineShape& shape) : shape_(shape) {
    const std::int32_t tp = shape.encoder_tensor;
    scale_ = 8 / tp;
    collective_us_ = tp == 1 ? 0 : 160 * (tp - 1) / tp + 15;
  }

  EncoderWork Build(const Problem& problem) {
    EncoderWork work;
    work.encoder = 1;
    work.plan = {shape_.encoder_pipeline, shape_.encoder_tensor};
    for (std::int32_t i = 0; i < shape_.micro_batches; ++i) work.micro_batches.push_back(i);
    for (std::int32_t p = 0; p < shape_.encoder_pipeline; ++p) {
      work.forward.push_back(Forward(p));
      work.backward.push_back(Backward(p));
    }
    const auto pipelines = static_cast<std::size_t>(PipelineCount(problem, work));
    const std::int32_t blocks = shape_.stages / shape_.encoder_pipeline;
    const auto hops = static_cast<std::size_t>(blocks) * (shape_.encoder_pipeline - 1);
    work.forward_hop.assign(hops, Us(150));
    work.backward_hop = work.forward_hop;
    work.to_llm.assign(pipelines, Us(150));
    work.from_llm = work.to_llm;
    if (shape_.data_parallel) AddSync(work);
    return work;
  }

 private:
  void Op(Resource resource, std::int64_t us, std::int32_t slice, std::int32_t layer, Phase phase) {
    if (us == 0) return;
    WorkOp op;
    op.resource = resource;
    op.duration = Us(us);
    op.phase = phase;
    op.layer = static_cast<std::int16_t>(layer);
    op.slice = static_cast<std::int16_t>(slice);
    op.first_dependency = static_cast<std::uint32_t>(work_.dependencies.size());
    if (last_ >= 0) {
      work_.dependencies.push_back(static_cast<std::uint32_t>(last_));
      op.dependency_count = 1;
    } else {
      op.input_part = static_cast<std::int16_t>(slice);
    }
    (resource == Resource::kLink ? work_.link : work_.compute) += op.duration;
    last_ = static_cast<std::int64_t>(work_.ops.size());
    work_.ops.push_back(op);
    work_.chain.push_back(slice);
  }
  void Kernel(std::int64_t us, std::int32_t slice, std::int32_t layer, Phase phase) {
    Op(Resource::kCompute, us * scale_, slice, layer, phase);
  }
  void Collective(std::int32_t slice, std::int32_t layer, Phase phase) {
    Op(Resource::kLink, collective_us_, slice, layer, phase);
  }
  // A collective beside a kernel: the next op waits for both.
  void Hidden(std::int64_t us, std::int32_t slice, std::int32_t layer) {
    const std::int64_t before = last_;
    Collective(slice, layer, Phase::kBackward);
    const std::int64_t collective = last_;
    last_ = before;
    Kernel(us, slice, layer, Phase::kWeightGradient);
    // The chain goes on after the collective; the weight gradient only has to end.
    if (collective != before) last_ = collective;
  }

  void ForwardLayer(std::int32_t slice, std::int32_t layer, Phase phase) {
    Collective(slice, layer, phase);
    for (const std::int64_t us : {20, 180, 58, 60}) Kernel(us, slice, layer, phase);
    Collective(slice, layer, phase);
    Collective(slice, layer, phase);
    for (const std::int64_t us : {20, 240, 30, 240}) Kernel(us, slice, layer, phase);
    Collective(slice, layer, phase);
  }
  void BackwardLayer(std::int32_t slice, std::int32_t layer) {
    ForwardLayer(slice, layer, Phase::kRecompute);
    Collective(slice, layer, Phase::kBackward);
    for (const std::int64_t us : {240, 40, 240}) Kernel(us, slice, layer, Phase::kBackward);
    Hidden(240, slice, layer);
    Kernel(240, slice, layer, Phase::kWeightGradient);
    Collective(slice, layer, Phase::kBackward);
    for (const std::int64_t us : {60, 145, 180}) Kernel(us, slice, layer, Phase::kBackward);
    Hidden(180, slice, layer);
    Kernel(60, slice, layer, Phase::kWeightGradient);
    Kernel(40, slice, layer, Phase::kBackward);
  }

  std::pair<std::int32_t, std::int32_t> LayersOf(std::int32_t p) const {
    const std::int32_t each = shape_.encoder_layers / shape_.encoder_pipeline;
    return {p * each, (p + 1) * each};
  }

  StageWork Forward(std::int32_t p) {
    work_ = {};
    work_.input_parts = shape_.slices;
    const auto [first, end] = LayersOf(p);
    for (std::int32_t slice = 0; slice < shape_.slices; ++slice) {
      last_ = -1;
      for (std::int32_t layer = first; layer < end; ++layer) {
        ForwardLayer(slice, layer, Phase::kForward);
      }
      work_.outputs.push_back(static_cast<std::uint32_t>(last_));
    }
    return std::exchange(work_, {});
  }

  StageWork Backward(std::int32_t p) {
    work_ = {};
    work_.input_parts = shape_.slices;
    const auto [first, end] = LayersOf(p);
    for (std::int32_t slice = 0; slice < shape_.slices; ++slice) {
      last_ = -1;
      for (std::int32_t layer = end; layer-- > first;) BackwardLayer(slice, layer);
      work_.outputs.push_back(static_cast<std::uint32_t>(last_));
    }
    return std::exchange(work_, {});
  }

  void AddSync(EncoderWork& work) const {
    const std::int64_t gather_us = 167'000 / shape_.encoder_tensor / shape_.encoder_layers;
    const std::int64_t reduce_us = 458'000 / shape_.encoder_tensor / shape_.encoder_layers;
    for (std::int32_t p = 0; p < shape_.encoder_pipeline; ++p) {
      auto& gathers = work.sync.gathers.emplace_back();
      auto& reductions = work.sync.reductions.emplace_back();
      const auto [first, end] = LayersOf(p);
      for (auto layer = static_cast<std::int16_t>(first); layer < end; ++layer) {
        gathers.push_back({layer, layer, Us(gather_us * 8), -1});
        reductions.insert(reductions.begin(), {layer, layer, Us(reduce_us * 8), -1});
      }
    }
  }

  const PipelineShape& shape_;
  std::int64_t scale_ = 1, collective_us_ = 0;
  StageWork work_;
  std::int64_t last_ = -1;
};

}  // namespace

Problem RealisticProblem(const PipelineShape& shape) {
  Problem problem;
  problem.lanes = shape.lanes;
  problem.tensor_parallel = shape.tensor_parallel;
  problem.llm = LlmBuilder(shape).Build();
  problem.encoders.push_back(EncoderBuilder(shape).Build(problem));
  return problem;
}

}  // namespace optimus::bubble
