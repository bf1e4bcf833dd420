// Bubble rates of pipeline schedules from profiled stage times.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "validation/published/data_set.h"

namespace optimus::validation {
namespace {

using step::Plan;

struct Schedule {
  const char* column;
  Plan::PipelineSchedule schedule;
};
constexpr Schedule kSchedules[] = {{"bubble_1f1b", Plan::ONE_F_ONE_B},
                                   {"bubble_1f1b_interleaved", Plan::INTERLEAVED},
                                   {"bubble_zb_h1", Plan::ZB_H1},
                                   {"bubble_zb_h2", Plan::ZB_H2},
                                   {"bubble_zb_2p", Plan::ZB_2P}};

// M_W / M_B of the source's Table 1 is 32 h / (34 h + 5 a s) a layer. The data set has no heads and
// no sequence length; the rates are the same for every share from 0.25 to 0.5.
constexpr double kWeightShare = 0.4;

step::Experiment ExperimentOf(const Row& row, Plan::PipelineSchedule schedule) {
  step::Experiment experiment;
  step::ProfiledStages& times = *experiment.mutable_profiled();
  times.set_forward_ms(row.number("f_ms"));
  times.set_backward_ms(row.number("b_ms"));
  times.set_weight_ms(row.number("w_ms"));
  times.set_communication_ms(row.number("comm_ms"));
  if (schedule == Plan::ZB_2P) times.set_weight_share(kWeightShare);
  experiment.mutable_hardware()->set_profile("a100-80gb");  // prices nothing: all times are given
  experiment.mutable_hardware()->set_gpus(row.count("pp"));
  experiment.mutable_batch()->set_global_batch(row.count("micro_batches"));
  experiment.mutable_batch()->set_micro_batch(1);
  Plan& plan = *experiment.mutable_plan();
  plan.set_data_parallel(1);
  plan.set_tensor_parallel(1);
  plan.set_pipeline_parallel(row.count("pp"));
  plan.set_schedule(schedule);
  plan.set_no_optimizer(true);
  if (schedule == Plan::INTERLEAVED) plan.set_model_chunks(row.count("interleave"));
  return experiment;
}

// From the start of a stage's first to the end of its last operation, of the stage that takes
// longest: what an entity does not wait before and after them.
double LargestStageSpan(const ir::Timeline& timeline) {
  Picoseconds largest;
  for (const ir::EntityAccount& entity : timeline.entities) {
    const ir::RankAccount& account = entity.account;
    const auto bubble = [&](ir::BubbleClass one) {
      return account.bubbles[static_cast<std::size_t>(one)];
    };
    largest = std::max(largest, account.total() - bubble(ir::BubbleClass::kPpWarmup) -
                                    bubble(ir::BubbleClass::kPpCooldown));
  }
  return ToSeconds(largest) * 1e3;
}

double WorkMs(const Row& row) {
  return row.count("micro_batches") *
         (row.number("f_ms") + row.number("b_ms") + row.number("w_ms"));
}

absl::StatusOr<double> BubbleRate(const Row& row, const step::Experiment& experiment,
                                  Simulator& simulator) {
  OPTIMUS_ASSIGN_OR_RETURN(const step::Step step, simulator.Build(experiment));
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline timeline, simulator.Run(step));
  return 1 - WorkMs(row) / LargestStageSpan(timeline);
}

// The printed rates of the interleaved schedule are those of a bubble of
// (p-1)(F+B+W)/v + (2pv-p-2) comm; simulating every transfer gives (2pv-2) comm, p transfers more.
std::string AsTheSourceCounts(const Row& row, double rate) {
  const double span = WorkMs(row) / (1 - rate) - row.count("pp") * row.number("comm_ms");
  return absl::StrFormat(
      "interleaved, with p transfers fewer as the source counts: %.4f, printed %.4f",
      1 - WorkMs(row) / span, row.number("bubble_1f1b_interleaved"));
}

absl::Status AddRate(const Row& row, const Schedule& schedule, Simulator& simulator,
                     RowResult& result) {
  const bool interleaved = schedule.schedule == Plan::INTERLEAVED;
  if (interleaved && !row.has("interleave")) {
    return row.Error("interleave", "is empty, but bubble_1f1b_interleaved is given");
  }
  const absl::StatusOr<double> rate =
      BubbleRate(row, ExperimentOf(row, schedule.schedule), simulator);
  if (absl::IsUnimplemented(rate.status())) {
    absl::StrAppend(&result.note, result.note.empty() ? "" : "; ", schedule.column,
                    " is not simulated: ", rate.status().message());
    return absl::OkStatus();
  }
  if (!rate.ok()) {
    return {rate.status().code(),
            absl::StrCat("column ", schedule.column, ": ", rate.status().message())};
  }
  if (interleaved) result.note = AsTheSourceCounts(row, *rate);
  result.figures.push_back({schedule.column, "share", "", row.number(schedule.column), *rate});
  return absl::OkStatus();
}

absl::StatusOr<RowResult> Evaluate(const Row& row, Simulator& simulator) {
  RowResult result;
  for (const Schedule& schedule : kSchedules) {
    if (!row.has(schedule.column)) continue;
    OPTIMUS_RETURN_IF_ERROR(AddRate(row, schedule, simulator, result));
  }
  return result;
}

Column Rate(const char* name) { return ShareColumn(name).OrEmpty(); }

}  // namespace

DataSet ZeroBubble() {
  return {.name = "zero_bubble",
          .title = "Bubble rates of pipeline schedules, from profiled times of a stage, A100",
          .source = "Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, Tables 5 and 9",
          .columns = {NumberColumn("params_b"), CountColumn("layers"), CountColumn("hidden"),
                      CountColumn("pp"), CountColumn("micro_batch"), CountColumn("micro_batches"),
                      NumberColumn("f_ms"), NumberColumn("b_ms"), NumberColumn("w_ms"),
                      NumberColumn("comm_ms").OrZero(), Rate("bubble_1f1b"),
                      Rate("bubble_1f1b_interleaved"), CountColumn("interleave").OrEmpty(),
                      Rate("bubble_zb_h1"), Rate("bubble_zb_h2"), Rate("bubble_zb_2p")},
          .conditions = {"params_b", "pp", "micro_batches"},
          .assumptions =
              {"bubble rate = (span - m (F + B + W)) / span, span = from the first to the "
               "last operation of the stage that takes longest",
               "all stages take the times given; every forward and backward edge between "
               "stages takes comm_ms, also between the chunks of the interleaved schedule, "
               "whose stage times are split evenly",
               "the printed rates of the interleaved schedule fit a bubble of (p-1)(F+B+W)/v "
               "+ (2pv-p-2) comm_ms; simulated it is (p-1)(F+B+W)/v + (2pv-2) comm_ms: p "
               "transfers more, the gap of definition",
               "ZB-2p may hold 2 p micro-batches a stage; a weight gradient keeps 0.4 of a "
               "micro-batch's activations (the rates are the same from 0.25 to 0.5)"},
          .evaluate = &Evaluate};
}

}  // namespace optimus::validation
