#include "tools/backend_flags.h"

#include <algorithm>
#include <vector>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/parse_units.h"
#include "base/status_macros.h"
#include "tools/shared_flags.h"

namespace optimus::tools {
namespace {

// Of all that there are, those of `kinds`.
std::vector<std::string> OfKinds(const std::vector<std::string>& texts, const char* kinds) {
  const std::vector<std::string> known = absl::StrSplit(kinds, '|');
  std::vector<std::string> chosen;
  for (const std::string& text : texts) {
    const bool is = std::any_of(known.begin(), known.end(), [&](const std::string& kind) {
      return absl::StartsWith(text, kind);
    });
    if (is) chosen.push_back(text);
  }
  return chosen;
}

}  // namespace

void AddBackendFlag(CLI::App& command, std::string& backend, const char* kinds) {
  const std::vector<std::string> meanings = {
      "cpu (oneDNN and MPI)", "cuda (cuBLAS and NCCL)",
      "emulated (every operation only takes its time by the profile)"};
  command
      .add_option("--backend", backend,
                  absl::StrCat("What runs it: ", absl::StrJoin(OfKinds(meanings, kinds), ", ")))
      ->required()
      ->check(NotEmpty)
      ->type_name(kinds);
  command.footer(absl::StrCat(
      "Backends of this build: ", absl::StrJoin(OfKinds(executor::DescribeBackends(), kinds), "; "),
      "\n", command.get_footer()));
}

void AddTimeScaleFlag(CLI::App& command, double& time_scale) {
  command
      .add_option("--time-scale", time_scale,
                  "emulated: real time for each time of the profile. What begins late still ends "
                  "in time, so lateness does not add up, but computing reads a bit short and waits "
                  "a bit long; the larger the scale, the less. The report says where it was late")
      ->type_name("FACTOR")
      ->capture_default_str();
}

absl::Status OnlyFor(bool given, const std::string& flag, bool fits, const std::string& backend) {
  if (!given || fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is for --backend=", backend, " only; leave it out"));
}

void AddTimeoutFlag(CLI::App& command, std::string& timeout) {
  command
      .add_option("--timeout", timeout,
                  "End the run, with what every rank is at, when no operation of a rank has ended "
                  "for so long")
      ->check(NotEmpty)
      ->type_name("TIME")
      ->capture_default_str();
}

void AddBf16Flag(CLI::App& command, bool& bf16) {
  command.add_flag("--bf16", bf16,
                   "cpu: GEMMs and attention in bf16 instead of f32 (faster where the CPU has it)");
}

void AddNoPinFlag(CLI::App& command, bool& no_pin) {
  command.add_flag("--no-pin", no_pin, "cpu: leave it to the launcher which rank is on which core");
}

absl::StatusOr<executor::BackendKind> BackendOf(const std::string& backend, const char* kinds) {
  const std::vector<std::string> known = absl::StrSplit(kinds, '|');
  if (std::find(known.begin(), known.end(), backend) == known.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--backend=", backend, ": is none of ", absl::StrJoin(known, ", ")));
  }
  return executor::ParseBackend(backend);
}

absl::StatusOr<absl::Duration> TimeoutOf(const std::string& timeout) {
  const absl::StatusOr<Picoseconds> parsed = ParseDuration(timeout);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--timeout=", timeout, ": ", parsed.status().message()));
  }
  const double seconds = ToSeconds(*parsed);
  if (seconds >= 0.1 && seconds <= 86400) return absl::Seconds(seconds);
  return absl::InvalidArgumentError(
      absl::StrCat("--timeout=", timeout, ": must be from 0.1s to 86400s (a day)"));
}

absl::Status CheckRange(const std::string& flag, double value, double least, double greatest) {
  if (value >= least && value <= greatest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: is %g; must be from %g to %g", flag, value, least, greatest));
}

}  // namespace optimus::tools
