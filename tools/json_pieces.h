#pragma once
// What the JSON of several commands has in common.

#include <nlohmann/json.hpp>
#include <string>

#include "base/cost_model.h"
#include "tools/emulation.h"
#include "tools/report.h"

namespace optimus::tools {

// The factors under the names of the hardware profile.
inline nlohmann::ordered_json InterferenceJson(const Interference& factors) {
  nlohmann::ordered_json json;
  json["kernel_under_nvlink_factor"] = factors.kernel_under_nvlink;
  json["kernel_under_nic_factor"] = factors.kernel_under_nic;
  json["collective_under_kernel_factor"] = factors.collective_under_kernel;
  return json;
}

// What every report begins with: the conditions of its figures.
inline void AddConditions(const Report& report, nlohmann::ordered_json& json) {
  json["version"] = report.version;
  json["experiment"] = report.experiment;
  json["profile"] = report.profile;
  json["profile_hash"] = report.profile_hash;
  json["fidelity"] = report.fidelity;
}

// How an emulated run kept its time; better_time_scale where it did not.
inline void AddEmulation(const Emulation& emulation, nlohmann::ordered_json& json) {
  json["due_s"] = emulation.step_s;
  json["late_s"] = emulation.late_s;
  json["compute_short_s"] = emulation.short_s();
  json["kept_time"] = emulation.kept_time();
  if (!emulation.kept_time()) json["better_time_scale"] = emulation.better_time_scale();
}

// Indented, with a newline at the end. Bytes that are no UTF-8 are replaced.
inline std::string DumpJson(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace optimus::tools
