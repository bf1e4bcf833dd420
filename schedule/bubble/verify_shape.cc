// Sizes of a result, and which micro-batch is where.

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/bubble/verify_parts.h"

namespace optimus::bubble::verify {
namespace {

absl::Status SameSize(absl::string_view what, std::size_t have, std::size_t want) {
  if (have == want) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": there are ", have, ", not ", want));
}

absl::Status CheckStages(const std::string& name, const std::vector<StageWork>& work,
                         const std::vector<PlacedStage>& placed) {
  OPTIMUS_RETURN_IF_ERROR(SameSize(name + " stages", placed.size(), work.size()));
  for (std::size_t p = 0; p < work.size(); ++p) {
    OPTIMUS_RETURN_IF_ERROR(SameSize(absl::StrCat(name, " stage ", p, " starts of ops"),
                                     placed[p].starts.size(), work[p].ops.size()));
  }
  return absl::OkStatus();
}

absl::Status CheckPipelines(const std::string& name, const EncoderWork& work,
                            const PlacedEncoder& placed) {
  for (std::size_t j = 0; j < placed.pipelines.size(); ++j) {
    const PlacedPipeline& pipeline = placed.pipelines[j];
    const std::string here = absl::StrCat(name, " pipeline ", j);
    if (placed.split[j] < 0) {
      return absl::InvalidArgumentError(absl::StrCat(here, ": its split is ", placed.split[j]));
    }
    OPTIMUS_RETURN_IF_ERROR(SameSize(here + " micro-batches", pipeline.micro_batches.size(),
                                     static_cast<std::size_t>(placed.split[j])));
    for (const PlacedMicroBatch& micro_batch : pipeline.micro_batches) {
      const std::string one = absl::StrCat(here, " micro-batch ", micro_batch.micro_batch);
      OPTIMUS_RETURN_IF_ERROR(CheckStages(one + " forward", work.forward, micro_batch.forward));
      OPTIMUS_RETURN_IF_ERROR(CheckStages(one + " backward", work.backward, micro_batch.backward));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBuckets(const std::string& name,
                          const std::vector<std::vector<EncoderSync::Bucket>>& work,
                          const std::vector<std::vector<Interval>>& placed, std::int32_t stages) {
  for (std::int32_t p = 0; p < stages; ++p) {
    const absl::Span<const EncoderSync::Bucket> buckets = BucketsOf(work, p);
    const std::size_t have = placed.empty() ? 0 : placed[p].size();
    OPTIMUS_RETURN_IF_ERROR(SameSize(absl::StrCat(name, " of stage ", p), have, buckets.size()));
    for (std::size_t b = 0; b < have; ++b) {
      if (placed[p][b].length() == buckets[b].duration) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          name, " of stage ", p, " bucket ", b, ": lasts ", placed[p][b].length().value(),
          " ps, not ", buckets[b].duration.value(), " ps"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSyncShape(const std::string& name, const EncoderWork& work,
                            const PlacedEncoder& placed) {
  const std::int32_t stages = work.plan.pipeline_parallel;
  for (const auto* by_stage : {&placed.gathers, &placed.reductions}) {
    if (by_stage->empty()) continue;
    OPTIMUS_RETURN_IF_ERROR(SameSize(name + " stages with data-parallel communication",
                                     by_stage->size(), static_cast<std::size_t>(stages)));
  }
  OPTIMUS_RETURN_IF_ERROR(
      CheckBuckets(name + " gathers", work.sync.gathers, placed.gathers, stages));
  return CheckBuckets(name + " reductions", work.sync.reductions, placed.reductions, stages);
}

}  // namespace

absl::Status CheckShape(const Problem& problem, const Result& result) {
  OPTIMUS_RETURN_IF_ERROR(SameSize("encoders", result.encoders.size(), problem.encoders.size()));
  for (std::size_t k = 0; k < problem.encoders.size(); ++k) {
    const EncoderWork& work = problem.encoders[k];
    const PlacedEncoder& placed = result.encoders[k];
    const std::string name = absl::StrCat("encoder ", k);
    const auto pipelines = static_cast<std::size_t>(PipelineCount(problem, work));
    OPTIMUS_RETURN_IF_ERROR(SameSize(name + " pipelines", placed.pipelines.size(), pipelines));
    OPTIMUS_RETURN_IF_ERROR(SameSize(name + " parts of the split", placed.split.size(), pipelines));
    OPTIMUS_RETURN_IF_ERROR(CheckPipelines(name, work, placed));
    OPTIMUS_RETURN_IF_ERROR(CheckSyncShape(name, work, placed));
  }
  return absl::OkStatus();
}

absl::Status CheckMap(const Problem& problem, const Result& result) {
  for (std::size_t k = 0; k < problem.encoders.size(); ++k) {
    std::vector<int> seen(problem.llm.forward_needed.size());
    std::vector<int> wanted(seen.size());
    for (const std::int32_t micro_batch : problem.encoders[k].micro_batches) ++wanted[micro_batch];
    for (const PlacedPipeline& pipeline : result.encoders[k].pipelines) {
      for (const PlacedMicroBatch& placed : pipeline.micro_batches) {
        const std::int32_t id = placed.micro_batch;
        if (id < 0 || id >= static_cast<std::int32_t>(seen.size())) {
          return absl::InvalidArgumentError(
              absl::StrCat("encoder ", k, ": there is no micro-batch ", id));
        }
        ++seen[id];
      }
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i] == wanted[i]) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "encoder ", k, " micro-batch ", i, ": is placed ", seen[i], " times, not ", wanted[i]));
    }
  }
  return absl::OkStatus();
}

}  // namespace optimus::bubble::verify
