#pragma once
// When the slots of an order of forwards, data and weight gradients run: EvaluateOrder without its
// checks and tables of its own, for searches that try many orders.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedule/pipeline/message_queues.h"
#include "schedule/pipeline/order.h"
#include "schedule/pipeline/zb_path.h"
#include "schedule/pipeline/zb_problem.h"

namespace optimus::pipeline {

class ZbReplay {
 public:
  ZbReplay(const ZbProblem& problem, const MicroBatchPath& path);

  // False if the order deadlocks; what Start and End say is then of no use.
  bool Run(const Order& order);

  ZbScore score() const { return ScoreOf(first_start_, last_end_, problem_.objective); }
  // Less is better among orders of one score: the sum of all stages' spans.
  Picoseconds sum_of_spans() const;

  Picoseconds start(int stage, std::size_t slot) const { return starts_[stage][slot]; }
  Picoseconds end(int stage, std::size_t slot) const { return ends_[stage][slot]; }
  Picoseconds first_start(int stage) const { return first_start_[stage]; }
  Picoseconds last_end(int stage) const { return last_end_[stage]; }
  // When a step of a micro-batch's path can start, its stage being free. A step that has run.
  Picoseconds arrival(int step, int micro_batch) const {
    return arrivals_[Cell(step, micro_batch)];
  }
  // Which slot of its stage runs a step of a micro-batch's path.
  std::size_t SlotOf(int step, int micro_batch) const { return slots_[Cell(step, micro_batch)]; }

 private:
  std::size_t Cell(int step, int micro_batch) const {
    return static_cast<std::size_t>(step) * static_cast<std::size_t>(problem_.micro_batches) +
           static_cast<std::size_t>(micro_batch);
  }
  // As far as the stage can go.
  void Advance(const Order& order, int stage);
  void Record(int stage, const Slot& slot, int step, Picoseconds arrival);

  const ZbProblem& problem_;
  const MicroBatchPath& path_;
  std::vector<Picoseconds> arrivals_;  // by cell; below 0: not yet known
  std::vector<std::uint32_t> slots_;   // by cell
  std::vector<std::vector<Picoseconds>> starts_, ends_;
  std::vector<Picoseconds> first_start_, last_end_;
  MessageQueues messages_;
  std::vector<int> to_do_;  // stages that may be able to go on
};

}  // namespace optimus::pipeline
