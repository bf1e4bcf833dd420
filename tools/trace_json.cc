#include "tools/trace_json.h"

namespace optimus::tools {
namespace {

nlohmann::ordered_json ClocksJson(const traces::ReplayGraph& graph) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const traces::ClockCorrection& c : graph.corrections) {
    nlohmann::ordered_json json;
    json["rank"] = c.rank;
    json["correction_s"] = ToSeconds(c.correction);
    json["spread_s"] = ToSeconds(c.spread);
    json["transfers"] = c.transfers;
    all.push_back(std::move(json));
  }
  return all;
}

nlohmann::ordered_json UnpairedJson(const traces::ReplayGraph& graph) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const traces::Unpaired& unpaired : graph.unpaired) {
    nlohmann::ordered_json json;
    json["what"] = unpaired.what;
    json["effect"] = unpaired.effect;
    json["count"] = unpaired.count;
    json["operations"] = nlohmann::ordered_json::array();
    for (const traces::Unpaired::Operation& op : unpaired.operations) {
      json["operations"].push_back(
          {{"rank", op.rank}, {"name", op.name}, {"time_s", ToSeconds(op.time)}});
    }
    all.push_back(std::move(json));
  }
  return all;
}

nlohmann::ordered_json RemarksJson(const traces::Recording& recording) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const traces::Remark& remark : recording.remarks) {
    nlohmann::ordered_json json;
    json["what"] = remark.what;
    json["effect"] = remark.effect;
    json["count"] = remark.count;
    if (remark.rank >= 0) json["rank"] = remark.rank;
    if (!remark.name.empty()) json["name"] = remark.name;
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace

void AddTraceFacts(const TracedStep& traced, nlohmann::ordered_json& json) {
  const traces::ReplayGraph& graph = traced.graph;
  const traces::Recording& recording = graph.recording;
  json["version"] = traced.version;
  json["files"] = traced.files;
  json["format"] = recording.format;
  json["ranks"] = nlohmann::ordered_json::array();
  for (const traces::RecordedRank& rank : recording.ranks) json["ranks"].push_back(rank.rank);
  if (recording.world > 0) json["world"] = recording.world;
  json["folded"] = recording.folded;
  if (traced.step.has_value()) json["step_number"] = *traced.step;
  json["operations"] = graph.tasks.size();
  json["clocks"] = ClocksJson(graph);
  json["unpaired"] = UnpairedJson(graph);
  json["remarks"] = RemarksJson(recording);
}

}  // namespace optimus::tools
