#include "tools/shared_flags.h"

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"

namespace optimus::tools {
namespace {

constexpr char kSchedulers[] = "paper|list";

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
