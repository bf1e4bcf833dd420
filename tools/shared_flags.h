#pragma once
// Flags that several commands have.

#include <optional>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "schedule/step/step.h"

namespace optimus::tools {

// CLI11's form of a check: what is wrong, or nothing.
std::string NotEmpty(const std::string& value);

void AddSchedulerFlag(CLI::App& command, std::string& scheduler);
// Absent for an empty text: the flag was not given.
absl::StatusOr<std::optional<step::Optimus::Scheduler>> ParseScheduler(const std::string& text);

// The pipeline schedule of an experiment, instead of its plan.schedule.
void AddPipelineFlag(CLI::App& command, std::string& pipeline);
// Absent for an empty text: the flag was not given.
absl::StatusOr<std::optional<step::Plan::PipelineSchedule>> ParsePipeline(const std::string& text);

// A hardware profile: of schedule files, and of experiments instead of their own. `need`: when a
// schedule file needs it.
void AddProfileFlag(CLI::App& command, std::string& profile,
                    const char* need = "a schedule file needs it");

void AddNoInterferenceFlag(CLI::App& command, bool& no_interference);

}  // namespace optimus::tools
