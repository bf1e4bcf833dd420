#pragma once
// The parameters that a rank holds: which part of which tensor, with whom it is kept in step.

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/numerics/anatomy.h"
#include "executor/numerics/math.h"

namespace optimus::executor::numerics {

// A rectangle of a tensor on one rank.
//
// Column-parallel layers (qkv, fc1) hold rows of their tensor, row-parallel ones (proj, fc2)
// columns; norms, biases of row-parallel layers, position embeddings and the projector are held
// whole by every rank, the head's weight too (see end_tasks.h).
struct Holding {
  std::string tensor;
  std::int64_t row = 0, rows = 0, column = 0, columns = 0;
  Item item;
  bool trained = true;
  // Several ranks of a replica hold it and each computes a part of its gradient (norms under
  // sequence parallelism, key/value heads that are fewer than the ranks, tied embeddings): those
  // parts are summed with the gradient norm.
  bool partial = false;
  // Data-parallel group: how many ranks, which of them this one is; sharded: each keeps and updates
  // one part (distributed optimizer, FSDP).
  int members = 1, position = 0;
  bool sharded = false;
  bool gathered = false;  // its values are brought by an all-gather before they are used
  std::int64_t elements() const { return rows * columns; }
  std::int64_t shard_elements() const {
    return sharded ? (elements() + members - 1) / members : elements();
  }
  // First element of this rank's shard, and how many of its elements exist (the last shards may be
  // short).
  std::int64_t shard_begin() const { return sharded ? position * shard_elements() : 0; }
  std::int64_t shard_size() const;
};

// Does this data-parallel collective (its tag) bring or reduce the holding?
bool Covers(const Anatomy& anatomy, const ir::Tag& tag, const Holding& holding);

// The sum of a tied table's gradients over the stages that hold it.
bool IsTiedSum(const CollectiveWork& work);

// Everything on a rank, in a fixed order. UNIMPLEMENTED where the Schedule leaves out the
// communication that keeps replicas in step.
absl::StatusOr<std::vector<Holding>> HoldingsOf(const Anatomy& anatomy, int rank);

// A Holding with its data.
struct Parameter {
  Holding holding;
  Floats value, gradient;              // whole
  Floats shard_value, shard_gradient;  // this rank's shard, where sharded
  std::atomic<bool> present{true};     // `value` may be used
  int contributions = 0;               // to `gradient`, since it was last reduced
  int reductions = 0;
  // What is compared and applied: the reduced gradient.
  Floats& final_gradient() { return holding.sharded ? shard_gradient : gradient; }
};

class Parameters {
 public:
  absl::Status Init(const Anatomy& anatomy, int rank);
  // The parts of a tensor on this rank, by row; empty: none.
  std::vector<Parameter*> PartsOf(const std::string& tensor);
  std::deque<Parameter>& all() { return all_; }

 private:
  std::deque<Parameter> all_;
};

}  // namespace optimus::executor::numerics
