#include "tools/scaled_timeline.h"

namespace optimus::tools {
namespace {

Picoseconds Times(Picoseconds time, double factor) {
  return Picoseconds(RoundSaturated(static_cast<double>(time.value()) * factor));
}

}  // namespace

ir::Timeline Scaled(ir::Timeline timeline, double factor) {
  timeline.step = Times(timeline.step, factor);
  for (ir::EntityAccount& entity : timeline.entities) {
    ir::RankAccount& account = entity.account;
    account.compute = Times(account.compute, factor);
    account.optimizer = Times(account.optimizer, factor);
    for (Picoseconds& bubble : account.bubbles) bubble = Times(bubble, factor);
    account.compute += timeline.step - account.total();
  }
  for (ir::Span& span : timeline.spans) {
    span.start = Times(span.start, factor);
    span.end = Times(span.end, factor);
  }
  return timeline;
}

}  // namespace optimus::tools
