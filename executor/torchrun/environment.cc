#include "executor/torchrun/environment.h"

#include <cstdint>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::executor {
namespace {

constexpr const char* kHint = "; hint: start the command under torchrun, mpirun or srun";

absl::StatusOr<std::string> Text(const EnvironmentReader& read, const std::string& name) {
  const std::optional<std::string> text = read(name);
  if (text && !text->empty()) return *text;
  return absl::InvalidArgumentError(absl::StrCat("torchrun: ", name, " is not set", kHint));
}

// A whole number in [first, last].
absl::StatusOr<int> Number(const EnvironmentReader& read, const std::string& name, int first,
                           int last) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::string text, Text(read, name));
  int value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= first && value <= last) return value;
  return absl::InvalidArgumentError(absl::StrCat(
      "torchrun: ", name, " is '", text, "'; must be a whole number from ", first, " to ", last));
}

constexpr int kLargestWorld = 1 << 20;
constexpr int kLargestPort = 65535;

absl::StatusOr<int> Port(const EnvironmentReader& read) {
  if (read("OPTIMUS_PORT")) return Number(read, "OPTIMUS_PORT", 1, kLargestPort);
  OPTIMUS_ASSIGN_OR_RETURN(const int held, Number(read, "MASTER_PORT", 1, kLargestPort - 1));
  return held + 1;
}

}  // namespace

EnvironmentReader ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

bool UnderTorchrun(const EnvironmentReader& read) {
  return read("RANK") && read("WORLD_SIZE") && read("MASTER_ADDR");
}

absl::StatusOr<TorchrunEnvironment> ReadTorchrunEnvironment(const EnvironmentReader& read) {
  TorchrunEnvironment environment;
  OPTIMUS_ASSIGN_OR_RETURN(environment.size, Number(read, "WORLD_SIZE", 1, kLargestWorld));
  OPTIMUS_ASSIGN_OR_RETURN(environment.rank, Number(read, "RANK", 0, environment.size - 1));
  if (environment.size > 1 || read("LOCAL_WORLD_SIZE")) {
    OPTIMUS_ASSIGN_OR_RETURN(environment.local_size,
                             Number(read, "LOCAL_WORLD_SIZE", 1, environment.size));
    OPTIMUS_ASSIGN_OR_RETURN(environment.local_rank,
                             Number(read, "LOCAL_RANK", 0, environment.local_size - 1));
  }
  OPTIMUS_ASSIGN_OR_RETURN(environment.address, Text(read, "MASTER_ADDR"));
  OPTIMUS_ASSIGN_OR_RETURN(environment.port, Port(read));
  environment.job = read("TORCHELASTIC_RUN_ID").value_or("");
  return environment;
}

}  // namespace optimus::executor
