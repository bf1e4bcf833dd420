#pragma once
// Experiments whose stage times are given: the shapes of the literature.

#include "schedule/step/experiment.pb.h"

namespace optimus::testing {

struct Profiled {
  int stages = 1, chunks = 1, micro_batches = 1, group = 0;
  double forward_ms = 1, backward_ms = 2, communication_ms = 0;
  step::Plan::WarmUp warm_up = step::Plan::MEGATRON;
};

inline step::Experiment ProfiledExperiment(const Profiled& p) {
  step::Experiment e;
  e.set_name("profiled");
  e.mutable_hardware()->set_profile("h100-80gb");
  e.mutable_hardware()->set_gpus(p.stages);
  e.mutable_batch()->set_global_batch(p.micro_batches);
  e.mutable_batch()->set_micro_batch(1);
  e.mutable_batch()->set_sequence_length(1);
  step::Plan& plan = *e.mutable_plan();
  plan.set_data_parallel(1);
  plan.set_tensor_parallel(1);
  plan.set_pipeline_parallel(p.stages);
  plan.set_model_chunks(p.chunks);
  plan.set_schedule(p.chunks > 1 ? step::Plan::INTERLEAVED : step::Plan::ONE_F_ONE_B);
  plan.set_micro_batch_group(p.group);
  plan.set_warm_up(p.warm_up);
  plan.set_no_optimizer(true);
  e.mutable_profiled()->set_forward_ms(p.forward_ms);
  e.mutable_profiled()->set_backward_ms(p.backward_ms);
  e.mutable_profiled()->set_communication_ms(p.communication_ms);
  return e;
}

}  // namespace optimus::testing
