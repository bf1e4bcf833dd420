#include "tools/emulation.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/text_pieces.h"

namespace optimus::tools {
namespace {

constexpr double kAllowed = 0.02;  // of the step as it should have been

// The least of 1, 2 and 5 times a power of ten that is not below `value`.
double RoundUp(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (digit * power >= value) return digit * power;
  }
  return 10 * power;
}

}  // namespace

double Emulation::short_s() const { return std::max(0.0, compute_s - measured_compute_s); }

bool Emulation::kept_time() const { return std::max(late_s, short_s()) <= kAllowed * step_s; }

// A hint, by what runs of 8 and 64 ranks on 2 cores showed. A machine that cannot keep up is busy
// all the time at this scale; it keeps time where it is busy for a tenth of it. One that keeps up
// is less late about as the square of the scale.
double Emulation::better_time_scale() const {
  if (kept_time() || step_s <= 0) return time_scale;
  if (measured_step_s > (1 + kAllowed) * step_s) {
    return RoundUp(time_scale * 9 * measured_step_s / step_s);
  }
  return RoundUp(time_scale * 1.4 * std::sqrt(std::max(late_s, short_s()) / (kAllowed * step_s)));
}

Emulation EmulationOf(const executor::Lateness& lateness, const ir::Timeline& timeline,
                      double time_scale) {
  Emulation emulation;
  emulation.time_scale = time_scale;
  emulation.step_s = ToSeconds(lateness.step) / time_scale;
  emulation.measured_step_s = ToSeconds(timeline.step);
  emulation.late_s = ToSeconds(lateness.late) / time_scale;
  emulation.compute_s = ToSeconds(lateness.compute) / time_scale;
  double gpus = 0;
  for (const ir::EntityAccount& entity : timeline.entities) {
    const ir::RankAccount& account = entity.account;
    emulation.measured_compute_s += entity.gpus * ToSeconds(account.compute + account.optimizer);
    gpus += entity.gpus;
  }
  if (gpus > 0) emulation.measured_compute_s /= gpus;
  return emulation;
}

std::string LateText(const Emulation& emulation) {
  const TimeUnit unit(FromSeconds(emulation.measured_step_s));
  return absl::StrFormat(
      "emulated operations ended up to %s %s after their time, and computing reads %s %s short: "
      "the step should have taken %s %s; give --time-scale=%g",
      unit.Format(emulation.late_s), unit.name, unit.Format(emulation.short_s()), unit.name,
      unit.Format(emulation.step_s), unit.name, emulation.better_time_scale());
}

}  // namespace optimus::tools
