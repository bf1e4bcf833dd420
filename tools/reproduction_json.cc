#include "tools/reproduction_json.h"

#include "tools/json_pieces.h"

namespace optimus::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr JsonField kFields[] = {
    {"version", "of optimus"},
    {"profiles.name", "every hardware profile that was used"},
    {"profiles.hash", "of its content (FNV-1a, 64 bits, hexadecimal)"},
    {"profiles.interference", "factors applied, as in optimus simulate"},
    {"tables.table", "number of the table"},
    {"tables.title", "what it shows"},
    {"tables.rows.experiment", "as in examples/paper/experiments.csv"},
    {"tables.rows.method", "megatron, balanced, fsdp, alpa, optimus or optimus_list"},
    {"tables.rows.quantity", "what is compared; the name ends in its unit"},
    {"tables.rows.unit", "of simulated, paper and difference"},
    {"tables.rows.simulated", "our value"},
    {"tables.rows.paper", "the published value; this and what follows only where one is known"},
    {"tables.rows.difference", "simulated - paper"},
    {"tables.rows.error_percent",
     "100 x (simulated / paper - 1); left out where paper is 0, and for planning_s"},
    {"tables.rows.fitted",
     "constants of the hardware profile that were fitted on this very figure"},
    {"tables.rows.plan_chosen_on_it",
     "whether the plan or the model's assumptions were chosen since they fit this very figure"},
    {"tables.rows.source", "of the published value"},
    {"tables.rows.note", "on the published value"},
    {"tables.inferred.experiment", "cases for which something was inferred"},
    {"tables.inferred.method", "their method"},
    {"tables.inferred.file", "their experiment file"},
    {"tables.inferred.text", "what the paper does not say"},
    {"tables.assumptions.experiment", "cases with rows"},
    {"tables.assumptions.method", "their method"},
    {"tables.assumptions.texts", "what their experiment file says it assumes"},
    {"tables.notes", "on how our values came about"},
    {"runs", "steps simulated"},
    {"wall_s", "wall time of planning and simulating; differs from run to run, as planning_s does"},
    {"peak_memory_mib", "resident memory of optimus; differs from run to run"},
};

Json RowJson(const ReproducedRow& row) {
  Json json;
  json["experiment"] = row.experiment;
  json["method"] = row.method->name;
  json["quantity"] = row.quantity;
  json["unit"] = row.unit;
  json["simulated"] = row.simulated;
  if (row.paper == nullptr) return json;
  json["paper"] = row.paper->value;
  json["difference"] = row.difference();
  if (const auto error = row.error_percent(); error) json["error_percent"] = *error;
  json["fitted"] = row.fitted;
  json["plan_chosen_on_it"] = row.plan_chosen_on_it;
  json["source"] = row.paper->source;
  json["note"] = row.paper->note;
  return json;
}

Json InferredJson(const PaperTable& table) {
  Json inferred = Json::array();
  for (const PaperCase& entry : table.cases) {
    if (entry.inferred.empty()) continue;
    Json json;
    json["experiment"] = entry.experiment;
    json["method"] = entry.method->name;
    json["file"] = entry.file;
    json["text"] = entry.inferred;
    inferred.push_back(std::move(json));
  }
  return inferred;
}

Json AssumptionsJson(const ReproducedTable& table) {
  Json assumptions = Json::array();
  for (const CaseAssumptions& assumed : table.assumptions) {
    Json json;
    json["experiment"] = assumed.experiment;
    json["method"] = assumed.method->name;
    json["texts"] = assumed.texts;
    assumptions.push_back(std::move(json));
  }
  return assumptions;
}

Json TableJson(const ReproducedTable& table) {
  Json json;
  json["table"] = table.table->number;
  json["title"] = table.table->title;
  json["rows"] = Json::array();
  for (const ReproducedRow& row : table.rows) json["rows"].push_back(RowJson(row));
  json["inferred"] = InferredJson(*table.table);
  json["assumptions"] = AssumptionsJson(table);
  json["notes"] = table.notes;
  return json;
}

}  // namespace

absl::Span<const JsonField> ReproduceJsonFields() { return kFields; }

std::string ReproductionJson(const Reproduction& reproduction) {
  Json json;
  json["version"] = reproduction.version;
  json["profiles"] = Json::array();
  for (const UsedProfile& profile : reproduction.profiles) {
    Json one;
    one["name"] = profile.name;
    one["hash"] = profile.hash;
    one["interference"] = InterferenceJson(profile.interference.factors);
    json["profiles"].push_back(std::move(one));
  }
  json["tables"] = Json::array();
  for (const ReproducedTable& table : reproduction.tables) {
    json["tables"].push_back(TableJson(table));
  }
  json["runs"] = reproduction.runs;
  json["wall_s"] = reproduction.wall_s;
  json["peak_memory_mib"] = reproduction.peak_memory_mib;
  return DumpJson(json);
}

}  // namespace optimus::tools
