#include "executor/torchrun/environment.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace optimus::executor {
namespace {

constexpr const char* kHint =
    "; hint: torchrun sets them all; by hand, give every rank RANK, WORLD_SIZE, LOCAL_RANK, "
    "LOCAL_WORLD_SIZE (0 and 1 where a node has one rank), MASTER_ADDR and MASTER_PORT; to run one "
    "rank alone, unset RANK, LOCAL_RANK and WORLD_SIZE";

bool IsSet(const EnvironmentReader& read, const std::string& name) {
  return !read(name).value_or("").empty();
}

// "rank 3: ", where it is known.
std::string Speaker(const EnvironmentReader& read) {
  int rank = 0;
  if (!absl::SimpleAtoi(read("RANK").value_or(""), &rank)) return "";
  return absl::StrCat("rank ", rank, ": ");
}

std::vector<std::string> Needed(const EnvironmentReader& read) {
  std::vector<std::string> needed = {"RANK", "WORLD_SIZE"};
  if (read("WORLD_SIZE") != "1" || IsSet(read, "LOCAL_WORLD_SIZE")) {
    needed.insert(needed.end(), {"LOCAL_RANK", "LOCAL_WORLD_SIZE"});
  }
  needed.emplace_back("MASTER_ADDR");
  if (!IsSet(read, "OPTIMUS_PORT")) needed.emplace_back("MASTER_PORT");
  return needed;
}

// "A", "A and B", "A, B and C", with the verb.
std::string Are(const std::vector<std::string>& names) {
  if (names.size() == 1) return absl::StrCat(names.front(), " is");
  const std::vector<std::string> first(names.begin(), names.end() - 1);
  return absl::StrCat(absl::StrJoin(first, ", "), " and ", names.back(), " are");
}

absl::Status CheckAllSet(const EnvironmentReader& read) {
  std::vector<std::string> set, missing;
  for (const std::string& name : Needed(read)) (IsSet(read, name) ? set : missing).push_back(name);
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Speaker(read), Are(missing), " not set",
                   set.empty() ? "" : absl::StrCat(", but ", Are(set)), kHint));
}

// A whole number in [first, last]; `why` is that last.
absl::StatusOr<int> Number(const EnvironmentReader& read, const std::string& name, int first,
                           int last, const std::string& why = "") {
  const std::string text = read(name).value_or("");
  int value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= first && value <= last) return value;
  return absl::InvalidArgumentError(absl::StrCat(Speaker(read), name, " is '", text,
                                                 "'; must be a whole number from ", first, " to ",
                                                 last, why.empty() ? "" : " by ", why));
}

constexpr int kLargestWorld = 1 << 20;
constexpr int kLargestPort = 65535;

absl::StatusOr<int> Port(const EnvironmentReader& read) {
  if (IsSet(read, "OPTIMUS_PORT")) return Number(read, "OPTIMUS_PORT", 1, kLargestPort);
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

bool MeantAsTorchrun(const EnvironmentReader& read) {
  int size = 0;
  const bool others = (absl::SimpleAtoi(read("WORLD_SIZE").value_or(""), &size) && size > 1) ||
                      IsSet(read, "MASTER_ADDR");
  return others && (IsSet(read, "RANK") || IsSet(read, "LOCAL_RANK"));
}

absl::StatusOr<TorchrunEnvironment> ReadTorchrunEnvironment(const EnvironmentReader& read) {
  OPTIMUS_RETURN_IF_ERROR(CheckAllSet(read));
  TorchrunEnvironment environment;
  OPTIMUS_ASSIGN_OR_RETURN(environment.size, Number(read, "WORLD_SIZE", 1, kLargestWorld));
  const std::string size = absl::StrCat("WORLD_SIZE ", environment.size);
  OPTIMUS_ASSIGN_OR_RETURN(environment.rank, Number(read, "RANK", 0, environment.size - 1, size));
  if (environment.size > 1 || IsSet(read, "LOCAL_WORLD_SIZE")) {
    OPTIMUS_ASSIGN_OR_RETURN(environment.local_size,
                             Number(read, "LOCAL_WORLD_SIZE", 1, environment.size, size));
    OPTIMUS_ASSIGN_OR_RETURN(environment.local_rank,
                             Number(read, "LOCAL_RANK", 0, environment.local_size - 1,
                                    absl::StrCat("LOCAL_WORLD_SIZE ", environment.local_size)));
  }
  environment.address = read("MASTER_ADDR").value_or("");
  OPTIMUS_ASSIGN_OR_RETURN(environment.port, Port(read));
  environment.job = read("TORCHELASTIC_RUN_ID").value_or("");
  return environment;
}

}  // namespace optimus::executor
