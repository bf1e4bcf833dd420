#include "tools/sweep/spec/names.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/sweep/store/schema.h"

namespace optimus::sweep {
namespace {

// Longest ending first.
constexpr std::pair<const char*, const char*> kUnits[] = {{"_tflop_per_s", "TFLOP/s"},
                                                          {"_gb_per_s", "GB/s"},
                                                          {"_tb_per_s", "TB/s"},
                                                          {"_gib", "GiB"},
                                                          {"_mib", "MiB"},
                                                          {"_ms", "ms"},
                                                          {"_us", "us"},
                                                          {"_percent", "%"},
                                                          {"_s", "s"}};

bool Taken(const std::string& name) {
  for (const auto* columns : {&PlainColumns(), &MetricColumns(), &ConditionColumns()}) {
    for (const Column& column : *columns) {
      if (column.name == name) return true;
    }
  }
  return false;
}

}  // namespace

std::string ShortName(const FieldPath& field) {
  static const auto* const names = new std::map<std::string, std::string>{
      {"plan.data_parallel", "dp"},
      {"plan.pipeline_parallel", "pp"},
      {"plan.tensor_parallel", "tp"},
      {"plan.model_chunks", "v"},
      {"profile.nic.bandwidth_gb_per_s", "nic_gb_per_s"},
      {"profile.nvlink.bandwidth_gb_per_s", "nvlink_gb_per_s"},
      {"encoders[0].model", "encoder"}};
  const auto found = names->find(field.text());
  return found == names->end() ? field.last() : found->second;
}

std::string UnitOf(const std::string& field) {
  if (field == "gpus" || absl::EndsWith(field, "_gpus")) return "GPUs";
  for (const auto& [ending, unit] : kUnits) {
    if (absl::EndsWith(field, ending)) return unit;
  }
  return "";
}

std::string TitleOf(const std::string& field) {
  std::string title = field;
  for (const auto& [ending, unit] : kUnits) {
    if (!absl::EndsWith(title, ending)) continue;
    title = title.substr(0, title.size() - std::string(ending).size());
    break;
  }
  return absl::StrReplaceAll(title, {{"_", " "}});
}

absl::Status CheckName(const std::string& name) {
  constexpr std::size_t kLongest = 60;
  const bool letters = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (name.empty() || name.size() > kLongest || !letters || (name[0] >= '0' && name[0] <= '9')) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", name, "\" is no name of a column: lower case letters, digits and _, at most ",
        kLongest, " of them, no digit first"));
  }
  if (!Taken(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is the name of a column that every sweep has"));
}

const std::vector<ExperimentValue>& ExperimentValues() {
  using step::Experiment;
  static const auto* const values = new std::vector<ExperimentValue>{
      {"dp", "plan.data_parallel",
       [](const Experiment& e) { return std::int64_t{e.plan().data_parallel()}; }},
      {"pp", "plan.pipeline_parallel",
       [](const Experiment& e) { return std::int64_t{e.plan().pipeline_parallel()}; }},
      {"tp", "plan.tensor_parallel",
       [](const Experiment& e) { return std::int64_t{e.plan().tensor_parallel()}; }},
      {"v", "plan.model_chunks",
       [](const Experiment& e) { return std::int64_t{e.plan().model_chunks()}; }},
      {"gpus", "hardware.gpus",
       [](const Experiment& e) { return std::int64_t{e.hardware().gpus()}; }},
      {"micro_batch", "batch.micro_batch",
       [](const Experiment& e) { return std::int64_t{e.batch().micro_batch()}; }},
      {"global_batch", "batch.global_batch",
       [](const Experiment& e) { return std::int64_t{e.batch().global_batch()}; }},
      {"sequence_length", "batch.sequence_length",
       [](const Experiment& e) { return std::int64_t{e.batch().sequence_length()}; }}};
  return *values;
}

}  // namespace optimus::sweep
