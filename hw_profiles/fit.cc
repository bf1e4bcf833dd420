#include "hw_profiles/fit.h"

#include <algorithm>
#include <vector>

namespace optimus::hw {
namespace {

// Where the samples' floors stop to matter, ascending: there the sum of squares changes its form.
std::vector<double> Breaks(absl::Span<const Sample> samples) {
  std::vector<double> breaks{0};
  for (const Sample& sample : samples) {
    if (sample.amount > 0 && sample.floor > 0) breaks.push_back(sample.floor / sample.amount);
  }
  std::sort(breaks.begin(), breaks.end());
  return breaks;
}

// The best slope if just the samples above their floor at slopes right of `from` were there.
double BestAbove(absl::Span<const Sample> samples, double overhead, double from) {
  double product = 0, square = 0;
  for (const Sample& sample : samples) {
    if (sample.amount <= 0 || from * sample.amount < sample.floor * (1 - 1e-12)) continue;
    const double weighted = sample.amount / sample.time;
    product += weighted * (1 - overhead / sample.time);
    square += weighted * weighted;
  }
  return square > 0 ? product / square : 0;
}

bool AllOneAmount(absl::Span<const Sample> samples) {
  return std::all_of(samples.begin(), samples.end(),
                     [&](const Sample& sample) { return sample.amount == samples.front().amount; });
}

double SlopeThroughZero(absl::Span<const Sample> samples) {
  double product = 0, square = 0;
  for (const Sample& sample : samples) {
    const double weighted = sample.amount / sample.time;
    product += weighted;
    square += weighted * weighted;
  }
  return square > 0 ? product / square : 0;
}

}  // namespace

double SquaredRelativeErrors(absl::Span<const Sample> samples, Line line) {
  double sum = 0;
  for (const Sample& sample : samples) {
    const double fitted = line.intercept + std::max(line.slope * sample.amount, sample.floor);
    const double error = fitted / sample.time - 1;
    sum += error * error;
  }
  return sum;
}

// Between two breaks the sum of squares is a parabola, so its least value lies at a break or at the
// parabola's own lowest point.
double FitSlope(absl::Span<const Sample> samples, double overhead) {
  const std::vector<double> breaks = Breaks(samples);
  double best = 0;
  double least = SquaredRelativeErrors(samples, {overhead, 0});
  const auto consider = [&](double slope) {
    const double sum = SquaredRelativeErrors(samples, {overhead, slope});
    if (sum >= least) return;
    least = sum;
    best = slope;
  };
  for (std::size_t i = 0; i < breaks.size(); ++i) {
    consider(breaks[i]);
    const double lowest = BestAbove(samples, overhead, breaks[i]);
    const bool inside = lowest > breaks[i] && (i + 1 == breaks.size() || lowest < breaks[i + 1]);
    if (inside) consider(lowest);
  }
  return best;
}

Line FitLine(absl::Span<const Sample> samples) {
  if (samples.empty()) return {};
  if (AllOneAmount(samples)) return {0, SlopeThroughZero(samples)};
  // Normal equations of sum ((a + b x) / t - 1)^2, with u = 1/t and v = x/t.
  double uu = 0, uv = 0, vv = 0, u = 0, v = 0;
  for (const Sample& sample : samples) {
    const double one = 1 / sample.time, x = sample.amount / sample.time;
    uu += one * one;
    uv += one * x;
    vv += x * x;
    u += one;
    v += x;
  }
  const double determinant = uu * vv - uv * uv;
  const Line line{(u * vv - v * uv) / determinant, (v * uu - u * uv) / determinant};
  if (line.intercept >= 0 && line.slope >= 0) return line;
  if (line.intercept < 0) return {0, SlopeThroughZero(samples)};
  return {FitIntercept(samples, 0), 0};
}

double FitIntercept(absl::Span<const Sample> samples, double slope) {
  double product = 0, square = 0;
  for (const Sample& sample : samples) {
    const double one = 1 / sample.time;
    product += one * (1 - slope * sample.amount * one);
    square += one * one;
  }
  return square > 0 ? std::max(product / square, 0.0) : 0;
}

}  // namespace optimus::hw
