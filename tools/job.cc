#include "tools/job.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/zoo.h"
#include "schedule/ir/serialize.h"
#include "schedule/step/stack.h"
#include "tools/job.pb.h"

namespace optimus::tools {
namespace {

absl::Status AddModels(const step::Step& step, proto::Job& job) {
  const step::Experiment& experiment = step.experiment;
  if (experiment.llm().empty() && !experiment.has_inline_llm()) {
    return absl::FailedPreconditionError(absl::StrCat(
        step.schedule.name,
        ": --numerics trains a real model, which neither a schedule file nor profiled stages "
        "name; give an experiment with llm"));
  }
  OPTIMUS_ASSIGN_OR_RETURN(*job.mutable_llm(), step::LoadLlm(experiment));
  for (const step::Encoder& encoder : experiment.encoders()) {
    OPTIMUS_ASSIGN_OR_RETURN(*job.add_encoders(), models::LoadModel(encoder.model()));
  }
  return absl::OkStatus();
}

executor::NumericsModel NumericsOf(const proto::Job& job) {
  executor::NumericsModel model;
  model.llm = job.llm();
  const step::Batch& batch = job.experiment().batch();
  model.micro_batch = batch.micro_batch();
  model.sequence_length = batch.sequence_length();
  model.global_batch = batch.global_batch();
  for (int i = 0; i < job.encoders_size(); ++i) {
    const step::Encoder& encoder = job.experiment().encoders(i);
    executor::NumericsEncoder one;
    one.model = job.encoders(i);
    one.sequences_per_sample = encoder.sequences_per_sample();
    one.sequence_length = encoder.sequence_length();
    one.sequences_per_slice = encoder.sequences_per_slice();
    one.frozen = encoder.frozen();
    one.micro_batches_without_input.assign(encoder.micro_batches_without_input().begin(),
                                           encoder.micro_batches_without_input().end());
    model.encoders.push_back(std::move(one));
  }
  return model;
}

}  // namespace

absl::StatusOr<std::string> EncodeJobs(absl::Span<const PlannedStep> steps, bool numerics) {
  proto::Jobs jobs;
  for (const PlannedStep& planned : steps) {
    proto::Job& job = *jobs.add_jobs();
    *job.mutable_schedule() = ir::ToProto(planned.step.schedule);
    if (planned.costs) *job.mutable_profile() = planned.costs->profile();
    if (!numerics) continue;
    *job.mutable_experiment() = planned.step.experiment;
    OPTIMUS_RETURN_IF_ERROR(AddModels(planned.step, job));
  }
  return jobs.SerializeAsString();
}

absl::StatusOr<std::vector<Job>> DecodeJobs(const std::string& bytes) {
  proto::Jobs jobs;
  if (!jobs.ParseFromString(bytes)) return absl::InternalError("rank 0 sent no valid job");
  std::vector<Job> decoded;
  for (const proto::Job& job : jobs.jobs()) {
    Job one;
    OPTIMUS_ASSIGN_OR_RETURN(one.schedule, ir::FromProto(job.schedule()));
    if (job.has_profile()) one.costs = std::make_shared<hw::ProfileCostModel>(job.profile());
    if (job.has_llm()) one.numerics = NumericsOf(job);
    decoded.push_back(std::move(one));
  }
  return decoded;
}

}  // namespace optimus::tools
