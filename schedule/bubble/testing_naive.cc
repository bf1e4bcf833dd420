#include "schedule/bubble/testing_naive.h"

#include <algorithm>
#include <vector>

namespace optimus::bubble::testing {
namespace {

class Naive {
 public:
  explicit Naive(const Problem& problem)
      : problem_(problem),
        lane_(problem.llm.stages.size() * static_cast<std::size_t>(problem.lanes)) {}

  Result Run() {
    result_.encoders.resize(problem_.encoders.size());
    for (std::size_t k = 0; k < problem_.encoders.size(); ++k) Deal(k);
    for (std::size_t k = 0; k < problem_.encoders.size(); ++k) Gather(k);
    for (std::size_t k = 0; k < problem_.encoders.size(); ++k) {
      EachMicroBatch(k, [&](std::int32_t j, PlacedMicroBatch& placed) { Forward(k, j, placed); });
    }
    Shift();
    for (std::size_t k = 0; k < problem_.encoders.size(); ++k) {
      EachMicroBatch(k, [&](std::int32_t j, PlacedMicroBatch& placed) { Backward(k, j, placed); });
    }
    Finish();
    return result_;
  }

 private:
  template <class Body>
  void EachMicroBatch(std::size_t k, Body body) {
    for (std::size_t j = 0; j < result_.encoders[k].pipelines.size(); ++j) {
      for (PlacedMicroBatch& placed : result_.encoders[k].pipelines[j].micro_batches) {
        body(static_cast<std::int32_t>(j), placed);
      }
    }
  }

  // In order: the first pipeline takes the first ones.
  void Deal(std::size_t k) {
    const EncoderWork& work = problem_.encoders[k];
    PlacedEncoder& placed = result_.encoders[k];
    const std::int32_t pipelines = PipelineCount(problem_, work);
    placed.split =
        planner::BalancedSplit(static_cast<std::int32_t>(work.micro_batches.size()), pipelines);
    placed.pipelines.resize(pipelines);
    std::size_t next = 0;
    for (std::int32_t j = 0; j < pipelines; ++j) {
      for (std::int32_t i = 0; i < placed.split[j]; ++i) {
        PlacedMicroBatch one;
        one.micro_batch = work.micro_batches[next++];
        one.forward.resize(work.forward.size());
        one.backward.resize(work.backward.size());
        placed.pipelines[j].micro_batches.push_back(one);
      }
    }
  }

  // One after the other, whatever the card.
  void Gather(std::size_t k) {
    for (const auto& buckets : problem_.encoders[k].sync.gathers) {
      result_.encoders[k].gathers.emplace_back();
      for (const EncoderSync::Bucket& bucket : buckets) {
        result_.encoders[k].gathers.back().push_back({card_, card_ + bucket.duration});
        card_ += bucket.duration;
      }
    }
    // No forward before all gathers.
    std::fill(lane_.begin(), lane_.end(), card_);
  }

  // All ops of the stage, one at a time, from `ready` on. Returns the end.
  Picoseconds RunStage(const StageWork& work, const PipelinePlace& place, Picoseconds ready,
                       PlacedStage& placed) {
    if (work.ops.empty()) return ready;
    const auto first =
        lane_.begin() + std::int64_t{place.stage} * problem_.lanes + place.first_lane;
    const auto last = first + place.lane_count;
    Picoseconds time = std::max(ready, *std::max_element(first, last));
    for (const WorkOp& op : work.ops) {
      placed.starts.push_back(time);
      time += op.duration;
    }
    std::fill(first, last, time);
    return time;
  }

  void Forward(std::size_t k, std::int32_t j, PlacedMicroBatch& placed) {
    const EncoderWork& work = problem_.encoders[k];
    const std::int32_t stages = work.plan.pipeline_parallel;
    Picoseconds time;
    for (std::int32_t p = 0; p < stages; ++p) {
      const PipelinePlace place = PlaceOf(problem_, work, j, p);
      if (p > 0) time += work.forward_hop[place.stage / stages * (stages - 1) + p - 1];
      time = RunStage(work.forward[p], place, time, placed.forward[p]);
      outside_ = std::max(outside_, time - problem_.llm.stages[place.stage].first_start);
    }
    for (const std::uint32_t op : work.forward.back().outputs) {
      placed.forward_end = std::max(placed.forward_end, placed.forward.back().starts[op] +
                                                            work.forward.back().ops[op].duration);
    }
    outside_ = std::max(outside_, placed.forward_end + work.to_llm[j] -
                                      problem_.llm.forward_needed[placed.micro_batch]);
  }

  // The least shift with which all that ran is before the LLM.
  void Shift() {
    result_.delta_f = std::max({Picoseconds(0), outside_, card_});
    for (std::size_t i = 0; i < lane_.size(); ++i) {
      lane_[i] = problem_.llm.stages[i / problem_.lanes].last_end + result_.delta_f;
    }
  }

  void Backward(std::size_t k, std::int32_t j, PlacedMicroBatch& placed) {
    const EncoderWork& work = problem_.encoders[k];
    const std::int32_t stages = work.plan.pipeline_parallel;
    Picoseconds time =
        problem_.llm.backward_made[placed.micro_batch] + result_.delta_f + work.from_llm[j];
    for (std::int32_t p = stages; p-- > 0;) {
      const PipelinePlace place = PlaceOf(problem_, work, j, p);
      if (p + 1 < stages) time += work.backward_hop[place.stage / stages * (stages - 1) + p];
      time = RunStage(work.backward[p], place, time, placed.backward[p]);
      end_ = std::max(end_, work.backward[p].ops.empty() ? Picoseconds(0) : time);
    }
    if (!work.backward.back().ops.empty()) {
      placed.backward_start = placed.backward.back().starts.front();
    }
  }

  void Finish() {
    for (const LlmStage& stage : problem_.llm.stages) {
      end_ = std::max(end_, stage.gradients_reduced + result_.delta_f);
    }
    for (std::size_t k = 0; k < problem_.encoders.size(); ++k) {
      for (const auto& buckets : problem_.encoders[k].sync.reductions) {
        result_.encoders[k].reductions.emplace_back();
        for (const EncoderSync::Bucket& bucket : buckets) {
          result_.encoders[k].reductions.back().push_back({end_, end_ + bucket.duration});
          end_ += bucket.duration;
        }
      }
    }
    result_.latency = end_ + problem_.llm.after_reduction;
    result_.coarse_latency = result_.latency;
    result_.delta_b = result_.latency - problem_.llm.step - result_.delta_f;
  }

  const Problem& problem_;
  Result result_;
  std::vector<Picoseconds> lane_;  // free from here on
  Picoseconds card_, outside_, end_;
};

}  // namespace

Result NaiveResult(const Problem& problem) { return Naive(problem).Run(); }

}  // namespace optimus::bubble::testing
