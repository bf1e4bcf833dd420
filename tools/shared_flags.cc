#include "tools/shared_flags.h"

#include <utility>
#include <vector>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optimus::tools {
namespace {

constexpr char kSchedulers[] = "paper|list";

// CUSTOM needs a file, so it has no name here.
constexpr std::pair<const char*, step::Plan::PipelineSchedule> kPipelines[] = {
    {"gpipe", step::Plan::GPIPE},
    {"1f1b", step::Plan::ONE_F_ONE_B},
    {"interleaved", step::Plan::INTERLEAVED},
    {"zb-h1", step::Plan::ZB_H1},
    {"zb-h2", step::Plan::ZB_H2},
    {"zb-1p", step::Plan::ZB_1P},
    {"zb-2p", step::Plan::ZB_2P},
    {"zb-v", step::Plan::ZB_V},
    {"dualpipe", step::Plan::DUALPIPE},
    {"dualpipe-v", step::Plan::DUALPIPE_V},
};

std::string PipelineNames() {
  std::vector<std::string> names;
  for (const auto& [name, schedule] : kPipelines) names.emplace_back(name);
  return absl::StrJoin(names, "|");
}

}  // namespace

std::string NotEmpty(const std::string& value) { return value.empty() ? "is empty" : ""; }

void AddSchedulerFlag(CLI::App& command, std::string& scheduler) {
  command
      .add_option("--scheduler", scheduler,
                  "Bubble scheduler of strategy OPTIMUS, instead of the experiment's own: paper "
                  "(Algorithm 2: whole micro-batches) or list (parts of micro-batches in deadline "
                  "order)")
      ->check(NotEmpty)
      ->type_name(kSchedulers);
}

absl::StatusOr<std::optional<step::Optimus::Scheduler>> ParseScheduler(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text == "paper") return step::Optimus::PAPER;
  if (text == "list") return step::Optimus::LIST;
  return absl::InvalidArgumentError(
      absl::StrCat("--scheduler=", text, ": is none of ", kSchedulers));
}

void AddPipelineFlag(CLI::App& command, std::string& pipeline) {
  command
      .add_option("--pipeline", pipeline,
                  "Pipeline schedule, instead of the experiment's plan.schedule; with the model "
                  "chunks that it needs (interleaved: the plan's, or 2). See docs/schedules.md")
      ->check(NotEmpty)
      ->type_name(PipelineNames());
}

absl::StatusOr<std::optional<step::Plan::PipelineSchedule>> ParsePipeline(const std::string& text) {
  if (text.empty()) return std::nullopt;
  for (const auto& [name, schedule] : kPipelines) {
    if (text == name) return schedule;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--pipeline=", text, ": is none of ", PipelineNames()));
}

void AddProfileFlag(CLI::App& command, std::string& profile, const char* need) {
  command
      .add_option("--profile", profile,
                  absl::StrCat("Hardware profile, a name or a textproto (as optimus profile writes "
                               "it): takes the place of the experiment's hardware.profile; ",
                               need))
      ->check(NotEmpty)
      ->type_name("NAME");
}

void AddNoInterferenceFlag(CLI::App& command, bool& no_interference) {
  command.add_flag("--no-interference", no_interference,
                   "Kernels and collectives that run at the same time do not slow each other, "
                   "whatever the profile says");
}

}  // namespace optimus::tools
