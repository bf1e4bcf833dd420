#pragma once
// The proof that a Schedule changes nothing that is learnt: a small real multimodal LLM (encoders,
// projectors, GPT; f32) is trained by the Schedule, operation by operation, with its real data in
// the Schedule's own collectives and messages, and beside it by a plain single-process program that
// knows nothing of schedules.
//
// The model: encoder k's patches (random, fixed by a seed) pass its layers and a projector into the
// LLM's width and are added to the embeddings of the first tokens of the sample (where there are
// more of them than tokens, neighbours are averaged); the LLM's loss is the mean cross-entropy of
// the next token over the global batch. No dropout, and no rotary embedding where a model has no
// learned positions: both sides would only have to do the same.
//
// A tensor is made by one operation and used by others; a use before it is made stops the run with
// both operations' names. Nothing waits for anything by itself: what the Schedule does not order is
// found, not hidden. Payload sizes are those of f32 tensors, and a message carries all that later
// stages need of its micro-batch, so both differ from the Schedule's bytes.
//
// Where weight gradients run apart from the data gradients of their layer (zero bubble), what they
// need is kept until they have run, and counted.
//
// What the Schedule leaves out and real data needs (said again where it is done; of tied embeddings
// it has a sum between two stages, which takes place without data):
//   - sums over tensor-parallel ranks of gradients that each has a part of (norms under sequence
//     parallelism, shared key/value heads) and of tied embeddings over the pipeline: they travel
//     with the gradient norm, where Megatron-LM has them too;
//   - the two sums of a vocabulary-parallel loss: every rank works them out from the whole head;
//   - collectives of the projector: it works on the rank's own tokens instead of a part of the
//     width.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/runtime/workload.h"
#include "executor/runtime/world.h"
#include "models/model.pb.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor {

struct NumericsEncoder {
  models::ModelConfig model;
  std::int64_t sequences_per_sample = 1, sequence_length = 0, sequences_per_slice = 0;
  bool frozen = false;
  std::vector<std::int32_t> micro_batches_without_input;
};

struct NumericsModel {
  models::ModelConfig llm;
  std::vector<NumericsEncoder> encoders;
  std::int64_t micro_batch = 1, sequence_length = 0;  // samples; LLM tokens a sample
  std::int64_t global_batch = 1;
  std::uint64_t seed = 1;
  double learning_rate = 0.01;  // plain SGD between steps
};

// UNIMPLEMENTED names what cannot be done with real data (a kernel, a group), INVALID_ARGUMENT a
// model that the Schedule was not made of.
absl::StatusOr<std::unique_ptr<Workload>> MakeNumericsWorkload(const ir::Schedule& schedule,
                                                               int rank,
                                                               const NumericsModel& model);

struct NumericsReport {
  struct Tensor {
    std::string name;  // "llm layer 3 fc1"
    std::int64_t elements = 0;
    double relative_error = 0;  // |gradient - reference| / |reference|, Euclidean norms
  };
  // Activations and their gradients on a rank, in bytes of f32: the most at one time.
  struct Memory {
    std::int64_t tensor_bytes = 0;
    std::int64_t weight_gradient_bytes = 0;  // kept behind a layer's data gradients, for these only
  };
  std::vector<double> losses, reference_losses;  // by step
  std::vector<Tensor> gradients;                 // of the last step, worst first
  std::vector<Memory> memory;                    // by rank
  double worst_loss_error = 0, worst_gradient_error = 0;
};

// After the steps: gathers every gradient at rank 0 (elsewhere the report is empty), trains the
// reference as many steps, and compares. `workload` is what MakeNumericsWorkload made.
absl::StatusOr<NumericsReport> CompareWithReference(const ir::Schedule& schedule, World& world,
                                                    Workload& workload, const NumericsModel& model);

}  // namespace optimus::executor
