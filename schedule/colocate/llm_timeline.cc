// Where the LLM alone leaves its GPUs and links idle, from the spans of one run.

#include <algorithm>

#include "absl/types/span.h"
#include "schedule/colocate/llm_step.h"
#include "schedule/ir/bubbles.h"

namespace optimus::colocate {
namespace {

using bubble::Interval;

// Operations of one program with their spans.
struct ProgramRun {
  const ir::Schedule& schedule;
  const ir::Program& program;
  absl::Span<const ir::Span> spans;  // by operation id
};

// Collects what is free of busy intervals that come in order and do not overlap.
class IdleCollector {
 public:
  explicit IdleCollector(Picoseconds begin) : free_from_(begin) {}
  void Busy(Picoseconds start, Picoseconds end) {
    if (start > free_from_) idle_.push_back({free_from_, start});
    free_from_ = std::max(free_from_, end);
  }
  std::vector<Interval> Finish(Picoseconds end) && {
    while (!idle_.empty() && idle_.back().start >= end) idle_.pop_back();
    if (!idle_.empty()) idle_.back().end = std::min(idle_.back().end, end);
    if (end > free_from_) idle_.push_back({free_from_, end});
    return std::move(idle_);
  }

 private:
  Picoseconds free_from_;
  std::vector<Interval> idle_;
};

// The operations of one stream do not overlap and are in order of time.
bubble::LlmStage StageOf(const ProgramRun& run) {
  bubble::LlmStage stage;
  bool started = false;
  const std::vector<ir::Operation>& operations = run.program.operations;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (!ir::IsForwardOrBackwardCompute(operations[i])) continue;
    if (!started) stage.first_start = run.spans[i].start;
    started = true;
    stage.last_end = run.spans[i].end;
    stage.compute += run.spans[i].end - run.spans[i].start;
  }
  IdleCollector compute(stage.first_start), link(stage.first_start);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (ir::IsForwardOrBackwardCompute(operations[i])) {
      compute.Busy(run.spans[i].start, run.spans[i].end);
    } else if (operations[i].stream == ir::Stream::kTensorParallel) {
      link.Busy(run.spans[i].start, run.spans[i].end);
    }
  }
  stage.compute_idle = std::move(compute).Finish(stage.last_end);
  stage.link_idle = std::move(link).Finish(stage.last_end);
  return stage;
}

// The sum of a tied table's gradients and the gradient norm, which go over the pipeline alone, come
// after the reductions.
bool IsGradientReduction(const ir::Schedule& schedule, const ir::Operation& op) {
  return op.stream == ir::Stream::kDataParallel && op.tag.phase == Phase::kGradientSync &&
         schedule.groups[schedule.collectives[op.work].group].over_dp;
}

Picoseconds GradientsReduced(const ProgramRun& run, Picoseconds last_end) {
  Picoseconds end = last_end;
  for (std::size_t i = 0; i < run.program.operations.size(); ++i) {
    if (!IsGradientReduction(run.schedule, run.program.operations[i])) continue;
    end = std::max(end, run.spans[i].end);
  }
  return end;
}

// Stage 0, chunk 0, where the LLM begins in every placement: when each micro-batch's forward starts
// and its backward has ended. Weight gradients that run apart come later, and make nothing that an
// encoder waits for.
void FindDependencyPoints(const ProgramRun& run, bubble::LlmTimeline& llm) {
  const auto count = static_cast<std::size_t>(run.schedule.micro_batches);
  llm.forward_needed.resize(count);
  llm.backward_made.resize(count);
  std::vector<bool> seen(count, false);
  for (std::size_t i = 0; i < run.program.operations.size(); ++i) {
    const ir::Operation& op = run.program.operations[i];
    if (!ir::IsForwardOrBackwardCompute(op) || op.tag.chunk != 0) continue;
    if (op.tag.phase == Phase::kWeightGradient) continue;
    const std::int32_t micro_batch = op.tag.micro_batch;
    if (op.tag.phase != Phase::kForward) {
      llm.backward_made[micro_batch] = std::max(llm.backward_made[micro_batch], run.spans[i].end);
    } else if (!seen[micro_batch]) {
      llm.forward_needed[micro_batch] = run.spans[i].start;
      seen[micro_batch] = true;
    }
  }
}

}  // namespace

bubble::LlmTimeline MakeLlmTimeline(const ir::Schedule& schedule, const ir::Timeline& timeline) {
  bubble::LlmTimeline llm;
  absl::Span<const ir::Span> spans = timeline.spans;
  Picoseconds reduced;
  for (const ir::Program& program : schedule.programs) {
    const ProgramRun run{schedule, program, spans.subspan(0, program.operations.size())};
    spans.remove_prefix(program.operations.size());
    bubble::LlmStage stage = StageOf(run);
    stage.gradients_reduced = GradientsReduced(run, stage.last_end);
    reduced = std::max(reduced, stage.gradients_reduced);
    if (llm.stages.empty()) FindDependencyPoints(run, llm);
    llm.stages.push_back(std::move(stage));
  }
  llm.step = timeline.step;
  llm.after_reduction = timeline.step - reduced;
  return llm;
}

}  // namespace optimus::colocate
