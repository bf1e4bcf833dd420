#include "schedule/pipeline/zb_auto.h"

#include <utility>

#include "schedule/pipeline/zb_h1.h"
#include "schedule/pipeline/zb_h2.h"
#include "schedule/pipeline/zb_search.h"

namespace optimus::pipeline {

absl::StatusOr<Order> ZbAuto(const ZbAutoOptions& options) {
  ZbProblem problem;
  problem.stages = options.stages;
  problem.micro_batches = options.micro_batches;
  problem.times = options.times;
  problem.memory_limit = options.memory_limit;
  problem.shares = options.shares;
  problem.objective = options.objective;
  std::vector<Order> known;
  for (auto* make : {&ZbH1, &ZbH2}) {
    // Too few micro-batches for it: then it is none of the choices.
    if (auto order = make(options.stages, options.micro_batches); order.ok()) {
      known.push_back(*std::move(order));
    }
  }
  return SearchZbOrder(problem, known);
}

}  // namespace optimus::pipeline
