// Timeline to and from its proto.

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "schedule/ir/serialize.h"

namespace optimus::ir {
namespace {

std::int64_t Bubble(const RankAccount& account, BubbleClass bubble) {
  return account.bubbles[static_cast<std::size_t>(bubble)].value();
}

proto::Account ToProto(const RankAccount& account) {
  proto::Account out;
  out.set_compute_ps(account.compute.value());
  out.set_optimizer_ps(account.optimizer.value());
  out.set_dp_all_gather_ps(Bubble(account, BubbleClass::kDpAllGather));
  out.set_dp_reduce_scatter_ps(Bubble(account, BubbleClass::kDpReduceScatter));
  out.set_pp_warmup_ps(Bubble(account, BubbleClass::kPpWarmup));
  out.set_pp_cooldown_ps(Bubble(account, BubbleClass::kPpCooldown));
  out.set_pp_other_ps(Bubble(account, BubbleClass::kPpOther));
  out.set_tp_ps(Bubble(account, BubbleClass::kTp));
  return out;
}

RankAccount FromProto(const proto::Account& message) {
  RankAccount account;
  account.compute = Picoseconds(message.compute_ps());
  account.optimizer = Picoseconds(message.optimizer_ps());
  auto set = [&](BubbleClass bubble, std::int64_t time_ps) {
    account.bubbles[static_cast<std::size_t>(bubble)] = Picoseconds(time_ps);
  };
  set(BubbleClass::kDpAllGather, message.dp_all_gather_ps());
  set(BubbleClass::kDpReduceScatter, message.dp_reduce_scatter_ps());
  set(BubbleClass::kPpWarmup, message.pp_warmup_ps());
  set(BubbleClass::kPpCooldown, message.pp_cooldown_ps());
  set(BubbleClass::kPpOther, message.pp_other_ps());
  set(BubbleClass::kTp, message.tp_ps());
  return account;
}

}  // namespace

proto::Timeline ToProto(const Timeline& timeline) {
  proto::Timeline out;
  out.set_version(kTimelineVersion);
  out.set_step_ps(timeline.step.value());
  for (const EntityAccount& entity : timeline.entities) {
    proto::Entity& e = *out.add_entities();
    e.set_rank(entity.rank);
    e.set_stage(entity.stage);
    e.set_gpus(entity.gpus);
    e.set_lane(entity.lane);
    *e.mutable_account() = ToProto(entity.account);
  }
  out.mutable_spans()->Reserve(static_cast<int>(timeline.spans.size()));
  for (const Span& span : timeline.spans) {
    proto::Span& s = *out.add_spans();
    s.set_rank(span.rank);
    s.set_operation(span.operation);
    s.set_start_ps(span.start.value());
    s.set_end_ps(span.end.value());
  }
  out.set_operations(timeline.operations);
  out.set_runner(timeline.runner);
  out.set_fidelity(timeline.fidelity);
  out.set_fidelity_reason(timeline.fidelity_reason);
  return out;
}

absl::StatusOr<Timeline> FromProto(const proto::Timeline& message) {
  if (message.version() != kTimelineVersion) {
    return absl::InvalidArgumentError(absl::StrCat("version: ", message.version(),
                                                   " is not known; hint: this build reads version ",
                                                   kTimelineVersion, " of timeline.proto"));
  }
  Timeline timeline;
  timeline.step = Picoseconds(message.step_ps());
  for (const proto::Entity& e : message.entities()) {
    timeline.entities.push_back({e.rank(), e.stage(), e.gpus(), FromProto(e.account()), e.lane()});
  }
  timeline.spans.reserve(message.spans_size());
  for (const proto::Span& s : message.spans()) {
    timeline.spans.push_back(
        {s.rank(), s.operation(), Picoseconds(s.start_ps()), Picoseconds(s.end_ps())});
  }
  timeline.operations = message.operations();
  timeline.runner = message.runner();
  timeline.fidelity = message.fidelity();
  timeline.fidelity_reason = message.fidelity_reason();
  return timeline;
}

}  // namespace optimus::ir
