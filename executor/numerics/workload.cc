#include "executor/numerics/workload.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/numerics/keep.h"

namespace optimus::executor::numerics {

absl::StatusOr<std::unique_ptr<NumericsWorkload>> NumericsWorkload::Make(
    const ir::Schedule& schedule, int rank, const NumericsModel& model) {
  if (rank < 0 || rank >= schedule.world.gpus()) {
    return absl::InvalidArgumentError(
        absl::StrCat("numerics: rank ", rank, " of ", schedule.world.gpus(), " ranks"));
  }
  std::unique_ptr<NumericsWorkload> workload(new NumericsWorkload());
  workload->model_ = model;
  OPTIMUS_ASSIGN_OR_RETURN(Anatomy anatomy, Anatomy::Of(schedule, workload->model_));
  workload->anatomy_ = std::make_unique<Anatomy>(std::move(anatomy));
  workload->place_ = workload->anatomy_->PlaceOf(rank);
  OPTIMUS_RETURN_IF_ERROR(workload->parameters_.Init(*workload->anatomy_, rank));
  workload->context_.reset(new Context{*workload->anatomy_, workload->place_, workload->slots_,
                                       workload->parameters_, &workload->loss_});
  OPTIMUS_RETURN_IF_ERROR(workload->CompileAll());
  return workload;
}

std::string NumericsWorkload::Name(std::uint32_t id) const {
  return absl::StrCat("rank ", place_.rank, ": ",
                      ir::Describe(anatomy_->schedule(), *place_.program, id), " (operation ", id,
                      ")");
}

absl::Status NumericsWorkload::CompileAll() {
  const std::vector<ir::Operation>& operations = place_.program->operations;
  tasks_.resize(operations.size());
  bool optimizer = false;
  // Kernels of one name and tag: the second residual_grad_add of a layer is another one.
  std::map<std::tuple<int, int, int, int, int, int>, int> seen;
  for (std::uint32_t id = 0; id < operations.size(); ++id) {
    const ir::Operation& op = operations[id];
    optimizer |= op.tag.phase == Phase::kOptimizer;
    const bool kernel = op.kind == ir::OperationKind::kKernel;
    const int count = kernel ? seen[{op.work, op.tag.module, op.tag.layer, op.tag.slice,
                                     op.tag.micro_batch, static_cast<int>(op.tag.phase)}]++
                             : 0;
    OPTIMUS_RETURN_IF_ERROR(CompileOne(id, count > 0));
  }
  if (!optimizer) {
    return absl::UnimplementedError(
        "numerics: the schedule has no optimizer step, so nothing is learnt; remove no_optimizer "
        "from its plan");
  }
  NoteMakers();
  OPTIMUS_RETURN_IF_ERROR(KeepForWeightGradients(*context_, tasks_));
  CountContributions();
  FreeBetweenGathers();
  return absl::OkStatus();
}

namespace {

// Who knows what this operation does; null: nobody.
absl::Status (*CompilerFor(const Anatomy& anatomy, const ir::Operation& op))(Compiled&) {
  if (op.kind == ir::OperationKind::kSend || op.kind == ir::OperationKind::kReceive) {
    return CompileMessage;
  }
  switch (op.tag.phase) {
    case Phase::kParameterSync:
    case Phase::kGradientSync:
    case Phase::kOptimizer:
      return CompileSync;
    default:
      break;
  }
  if (op.tag.module < 0 || op.tag.module >= anatomy.modules()) return nullptr;
  if (op.tag.layer >= 0) return CompileLayer;
  if (op.tag.layer == ir::kProjectorLayer) return CompileProjector;
  if (op.tag.module != ir::kLlmModule) return nullptr;
  if (op.tag.layer == ir::kEmbeddingLayer) return CompileEmbedding;
  return op.tag.layer == ir::kHeadLayer ? CompileHead : nullptr;
}

}  // namespace

absl::Status NumericsWorkload::CompileOne(std::uint32_t id, bool repeated) {
  const ir::Operation& op = place_.program->operations[id];
  Compiled compiled{*context_, id, op, repeated, {}};
  const auto compile = CompilerFor(*anatomy_, op);
  if (compile == nullptr) return compiled.Unknown();
  OPTIMUS_RETURN_IF_ERROR(compile(compiled));
  tasks_[id] = std::move(compiled.task);
  return absl::OkStatus();
}

void NumericsWorkload::NoteMakers() {
  for (std::uint32_t id = 0; id < tasks_.size(); ++id) {
    for (Slot* slot : tasks_[id].makes) slot->makers.push_back(id);
    for (Slot* slot : tasks_[id].remakes) slot->makers.push_back(id);
  }
}

// How many contributions a gradient has when it is reduced: those issued since the last reduction.
void NumericsWorkload::CountContributions() {
  std::map<const Parameter*, int> since;
  for (std::uint32_t id = 0; id < tasks_.size(); ++id) {
    for (const Parameter* parameter : tasks_[id].adds_to) ++since[parameter];
    for (auto& [parameter, expected] : tasks_[id].contributions) {
      expected = since[parameter];
      if (!tasks_[id].final_gradients) since[parameter] = 0;
    }
  }
}

// Where a layer is gathered more than once (FSDP), its values are let go after their last use in
// front of each gather but the first.
void NumericsWorkload::FreeBetweenGathers() {
  std::map<Parameter*, std::uint32_t> last_use;
  std::set<Parameter*> gathered;
  for (std::uint32_t id = 0; id < tasks_.size(); ++id) {
    for (Parameter* parameter : tasks_[id].brings) {
      if (!gathered.insert(parameter).second)
        tasks_[last_use[parameter]].frees.push_back(parameter);
    }
    for (Parameter* parameter : tasks_[id].reads) last_use[parameter] = id;
  }
}

absl::Status NumericsWorkload::Begin(int step) {
  if (running_) OPTIMUS_RETURN_IF_ERROR(Finished());
  (void)step;
  running_ = true;
  optimized_ = false;
  loss_ = 0;
  for (Parameter& parameter : parameters_.all()) {
    std::fill(parameter.gradient.begin(), parameter.gradient.end(), 0.0F);
    std::fill(parameter.shard_gradient.begin(), parameter.shard_gradient.end(), 0.0F);
    parameter.contributions = parameter.reductions = 0;
    parameter.present = !parameter.holding.gathered;
  }
  return absl::OkStatus();
}

absl::Status NumericsWorkload::Finished() {
  if (running_) losses_.push_back(loss_);
  running_ = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    OPTIMUS_RETURN_IF_ERROR(error_);
  }
  if (!optimized_) {
    return absl::FailedPreconditionError(
        absl::StrCat("numerics: rank ", place_.rank, " has not come to its optimizer step"));
  }
  for (const auto& [key, slot] : slots_.all()) {
    if (!slot->present) continue;
    return absl::InternalError(absl::StrCat(
        "numerics: ", Describe(key), " is still there after the step: ",
        slot->makers.empty() ? "?" : Name(slot->makers.back()), " made it and nothing let it go"));
  }
  return absl::OkStatus();
}

namespace {

template <class T>
bool Share(const std::vector<T>& a, const std::vector<T>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const T& each) { return std::find(b.begin(), b.end(), each) != b.end(); });
}

}  // namespace

bool NumericsWorkload::Feeds(std::uint32_t from, std::uint32_t to) const {
  const Task& maker = tasks_[from];
  const Task& user = tasks_[to];
  std::vector<Parameter*> gradients;
  for (const auto& [parameter, expected] : user.contributions) gradients.push_back(parameter);
  return Share(maker.makes, user.needs) || Share(maker.remakes, user.needs) ||
         Share(maker.brings, user.reads) || Share(maker.adds_to, gradients);
}

std::vector<double> NumericsWorkload::Losses() const { return losses_; }

absl::StatusOr<std::function<absl::Status()>> NumericsWorkload::Kernel(std::uint32_t operation) {
  if (operation >= tasks_.size() || !tasks_[operation].body) {
    return absl::InvalidArgumentError(
        absl::StrCat("numerics: operation ", operation, " is no kernel of rank ", place_.rank));
  }
  return std::function<absl::Status()>([this, operation] { return RunKernel(operation); });
}

absl::StatusOr<Payload> NumericsWorkload::Data(std::uint32_t operation) {
  if (operation >= tasks_.size() || tasks_[operation].body) {
    return absl::InvalidArgumentError(absl::StrCat("numerics: operation ", operation, " of rank ",
                                                   place_.rank, " moves no data"));
  }
  Payload payload;
  const Task& task = tasks_[operation];
  if (task.pack) payload.input = [this, operation] { return Start(operation); };
  if (task.unpack) payload.output = [this, operation] { return Output(operation); };
  payload.done = [this, operation] { End(operation); };
  return payload;
}

absl::Status NumericsWorkload::Fail(absl::Status status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error_.ok()) error_ = std::move(status);
  failed_ = true;
  return error_;
}

absl::Status NumericsWorkload::Missing(std::uint32_t id, const Slot& slot) const {
  std::string maker = "no operation of this rank makes it";
  if (!slot.makers.empty()) {
    const auto behind = std::upper_bound(slot.makers.begin(), slot.makers.end(), id);
    const std::uint32_t by = behind == slot.makers.begin() ? *behind : *(behind - 1);
    maker =
        absl::StrCat("it is made by ", Name(by), ", which the schedule has not ordered in front");
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "numerics: ", Name(id), " needs the ", Describe(slot.key), ", which is not there: ", maker));
}

absl::Status NumericsWorkload::MissingValues(std::uint32_t id, const Parameter& parameter) const {
  std::string gather = "nothing brings them";
  for (std::uint32_t other = 0; other < tasks_.size(); ++other) {
    const auto& brings = tasks_[other].brings;
    if (std::find(brings.begin(), brings.end(), &parameter) == brings.end()) continue;
    if (other > id && gather != "nothing brings them") break;
    gather = absl::StrCat("they are brought by ", Name(other));
  }
  return absl::FailedPreconditionError(absl::StrCat("numerics: ", Name(id), " needs the values of ",
                                                    parameter.holding.tensor,
                                                    ", which are not there: ", gather));
}

absl::Status NumericsWorkload::Check(std::uint32_t id) const {
  const Task& task = tasks_[id];
  for (const Slot* slot : task.needs) {
    if (!slot->present.load(std::memory_order_acquire)) return Missing(id, *slot);
  }
  for (const Parameter* parameter : task.reads) {
    if (!parameter->present.load(std::memory_order_acquire)) return MissingValues(id, *parameter);
  }
  for (const auto& [parameter, expected] : task.contributions) {
    if (parameter->contributions == expected &&
        (!task.final_gradients || parameter->holding.members == 1 || parameter->reductions > 0)) {
      continue;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("numerics: ", Name(id), " uses the gradient of ", parameter->holding.tensor,
                     ", which has ", parameter->contributions, " of ", expected,
                     " contributions and was reduced ", parameter->reductions, " times"));
  }
  return absl::OkStatus();
}

absl::Status NumericsWorkload::CheckMakes(std::uint32_t id) const {
  for (const Slot* slot : tasks_[id].makes) {
    if (!slot->present.load(std::memory_order_acquire)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("numerics: ", Name(id), " makes the ", Describe(slot->key),
                     ", which is still there: ", Name(slot->makers.front()), " made it"));
  }
  return absl::OkStatus();
}

void NumericsWorkload::Made(Task& task) {
  for (Parameter* parameter : task.adds_to) ++parameter->contributions;
  for (const std::vector<Slot*>* slots : {&task.makes, &task.remakes}) {
    for (Slot* slot : *slots) {
      memory_.Made(*slot);
      slot->present.store(true, std::memory_order_release);
    }
  }
  for (Parameter* parameter : task.brings) {
    parameter->present.store(true, std::memory_order_release);
  }
  for (Parameter* parameter : task.frees) {
    parameter->present.store(false, std::memory_order_release);
  }
}

void NumericsWorkload::Drop(Task& task) {
  for (Slot* slot : task.keeps) memory_.Kept(*slot);
  for (Slot* slot : task.drops) {
    memory_.Dropped(*slot);
    slot->present.store(false, std::memory_order_release);
    slot->data = Floats();
  }
}

absl::Status NumericsWorkload::RunKernel(std::uint32_t id) {
  if (failed_) return Fail(absl::OkStatus());
  Task& task = tasks_[id];
  if (absl::Status status = Check(id); !status.ok()) return Fail(std::move(status));
  if (absl::Status status = CheckMakes(id); !status.ok()) return Fail(std::move(status));
  task.body();
  Drop(task);
  Made(task);
  if (place_.program->operations[id].tag.phase == Phase::kOptimizer) optimized_ = true;
  return absl::OkStatus();
}

// A payload cannot fail: it moves zeros, and the next kernel, or the end of the step, says why.
absl::Span<const float> NumericsWorkload::Start(std::uint32_t id) {
  Task& task = tasks_[id];
  task.input.assign(task.input_size, 0.0F);
  if (failed_) return task.input;
  if (absl::Status status = Check(id); !status.ok()) {
    (void)Fail(std::move(status));
    return task.input;
  }
  task.pack(task.input);
  if (task.input.size() != task.input_size) {
    (void)Fail(absl::InternalError(absl::StrCat(
        "numerics: ", Name(id), " packs ", task.input.size(), " numbers, not ", task.input_size)));
    task.input.resize(task.input_size, 0.0F);
  }
  if (task.drops_early) Drop(task);
  return task.input;
}

absl::Span<float> NumericsWorkload::Output(std::uint32_t id) {
  Task& task = tasks_[id];
  task.output.resize(task.output_size);
  return absl::MakeSpan(task.output);
}

void NumericsWorkload::End(std::uint32_t id) {
  Task& task = tasks_[id];
  task.input = Floats();
  if (failed_) return;
  if (absl::Status status = CheckMakes(id); !status.ok()) {
    (void)Fail(std::move(status));
    return;
  }
  if (task.unpack) {
    for (const Slot* slot : task.needs) {
      if (slot->present.load(std::memory_order_acquire)) continue;
      (void)Fail(Missing(id, *slot));
      return;
    }
    task.unpack(task.output);
  }
  task.output = Floats();
  if (!task.drops_early) Drop(task);
  Made(task);
}

}  // namespace optimus::executor::numerics

namespace optimus::executor {

absl::StatusOr<std::unique_ptr<Workload>> MakeNumericsWorkload(const ir::Schedule& schedule,
                                                               int rank,
                                                               const NumericsModel& model) {
  OPTIMUS_ASSIGN_OR_RETURN(std::unique_ptr<numerics::NumericsWorkload> workload,
                           numerics::NumericsWorkload::Make(schedule, rank, model));
  return workload;
}

}  // namespace optimus::executor
