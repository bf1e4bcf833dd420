#include "tools/numerics_report.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/text_pieces.h"
#include "tools/text_table.h"

namespace optimus::tools {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kWorstShown = 5;
constexpr std::size_t kStepsShown = 4;

// The first few steps and the last.
std::string LossTable(const executor::NumericsReport& report) {
  TextTable table({{{"step"}, false}, {{"loss"}, false}, {{"reference"}, false}});
  const std::size_t steps = std::min(report.losses.size(), report.reference_losses.size());
  for (std::size_t step = 0; step < steps; ++step) {
    if (step >= kStepsShown && step + 1 < steps) {
      if (step == kStepsShown) table.AddRow({"...", "...", "..."});
      continue;
    }
    table.AddRow({absl::StrCat(step + 1), absl::StrFormat("%.8g", report.losses[step]),
                  absl::StrFormat("%.8g", report.reference_losses[step])});
  }
  return table.Render();
}

std::string GradientTable(const executor::NumericsReport& report) {
  TextTable table({{{"gradient"}, true}, {{"elements"}, false}, {{"relative error"}, false}});
  for (std::size_t i = 0; i < std::min(kWorstShown, report.gradients.size()); ++i) {
    const auto& tensor = report.gradients[i];
    table.AddRow({tensor.name, absl::StrCat(tensor.elements),
                  absl::StrFormat("%.2e", tensor.relative_error)});
  }
  return table.Render();
}

// The rank that kept the most for weight gradients that ran apart from the data gradients.
void AppendKept(const executor::NumericsReport& report, std::string& out) {
  using Memory = executor::NumericsReport::Memory;
  const auto most = std::max_element(report.memory.begin(), report.memory.end(),
                                     [](const Memory& a, const Memory& b) {
                                       return a.weight_gradient_bytes < b.weight_gradient_bytes;
                                     });
  if (most == report.memory.end() || most->weight_gradient_bytes == 0) return;
  AppendFact("kept",
             absl::StrFormat("rank %d: up to %d bytes for weight gradients alone, up to %d bytes "
                             "of activations and gradients in all",
                             most - report.memory.begin(), most->weight_gradient_bytes,
                             most->tensor_bytes),
             out);
}

}  // namespace

void AppendNumerics(const NumericsOutcome& numerics, std::string& out) {
  const executor::NumericsReport& report = numerics.report;
  absl::StrAppend(
      &out,
      "\nNumerics: the model trained by the schedule against a plain single-process program\n\n",
      "Loss by step (", report.losses.size(), " in all: warm-up steps train as well)\n\n",
      LossTable(report), "\nThe worst ", std::min(kWorstShown, report.gradients.size()), " of ",
      report.gradients.size(), " gradients, last step\n\n", GradientTable(report), "\n");
  AppendFact("loss", absl::StrFormat("worst relative error %.2e", report.worst_loss_error), out);
  AppendFact("gradients",
             absl::StrFormat("worst relative error %.2e of %d tensors, last step",
                             report.worst_gradient_error, report.gradients.size()),
             out);
  AppendKept(report, out);
  AppendFact("tolerance",
             absl::StrFormat("%g: %s", numerics.tolerance,
                             numerics.within() ? "both are within it" : "EXCEEDED"),
             out);
}

std::string ExceededText(const NumericsOutcome& numerics) {
  const executor::NumericsReport& report = numerics.report;
  return absl::StrFormat(
      "--numerics: worst relative error of the loss %.2e, of a gradient %.2e (%s), tolerance %g",
      report.worst_loss_error, report.worst_gradient_error,
      report.gradients.empty() ? "none" : report.gradients.front().name, numerics.tolerance);
}

Json NumericsJson(const NumericsOutcome& numerics) {
  const executor::NumericsReport& report = numerics.report;
  Json json;
  json["tolerance"] = numerics.tolerance;
  json["within_tolerance"] = numerics.within();
  json["worst_loss_error"] = report.worst_loss_error;
  json["worst_gradient_error"] = report.worst_gradient_error;
  json["losses"] = report.losses;
  json["reference_losses"] = report.reference_losses;
  json["gradients"] = Json::array();
  for (const auto& tensor : report.gradients) {
    Json one;
    one["name"] = tensor.name;
    one["elements"] = tensor.elements;
    one["relative_error"] = tensor.relative_error;
    json["gradients"].push_back(std::move(one));
  }
  json["memory"] = Json::array();
  for (const auto& rank : report.memory) {
    Json one;
    one["tensor_bytes"] = rank.tensor_bytes;
    one["weight_gradient_bytes"] = rank.weight_gradient_bytes;
    json["memory"].push_back(std::move(one));
  }
  return json;
}

}  // namespace optimus::tools
