#include <utility>

#include "tools/json_pieces.h"
#include "tools/published_report.h"

namespace optimus::tools {
namespace {

using Json = nlohmann::ordered_json;
using validation::EvaluatedDataSet;
using validation::EvaluatedRow;
using validation::Summary;

constexpr JsonField kFields[] = {
    {"version", "of optimus"},
    {"profiles.name", "every hardware profile that was used"},
    {"profiles.hash", "of its content (FNV-1a, 64 bits, hexadecimal)"},
    {"results.dataset", "name of the data set"},
    {"results.title", "what was measured"},
    {"results.source", "who published it"},
    {"results.file", "where the rows are"},
    {"results.rows", "how many rows"},
    {"results.calibration_rows", "how many of them a profile was fitted on"},
    {"results.figures", "measured values of the other rows, the predictions"},
    {"results.mean_abs_error",
     "of predictions, as a fraction: simulated / measured - 1, of shares (bubble rates) simulated "
     "- measured; null without predictions, as the next four"},
    {"results.median_abs_error", "of predictions"},
    {"results.max_abs_error", "of predictions"},
    {"results.max_error", "of predictions, with its sign: the most that was simulated too much"},
    {"results.kendall_tau",
     "tau-b between measured and simulated predictions, over pairs of one quantity; null where "
     "no two measured values differ, 0 where they do and no two simulated ones"},
    {"results.all_rows", "object: figures to kendall_tau again, calibration rows included"},
    {"results.parts.quantity",
     "predictions by quantity and group, each with figures to kendall_tau as above: what was "
     "measured (step, forward, bubble_zb_h1, ...)"},
    {"results.parts.group", "what is ranked together, such as one model; may be empty"},
    {"results.targets.quantity", "a target: of which figures; empty: all"},
    {"results.targets.group", "of which group; empty: all"},
    {"results.targets.statistic", "mean_abs_error, max_abs_error, max_error or kendall_tau"},
    {"results.targets.limit", "at most this, of kendall_tau at least"},
    {"results.targets.value", "over predictions; null where there are none"},
    {"results.targets.met", "whether it is; true where there is nothing to judge"},
    {"results.assumptions", "what the source does not say; they hold for every row"},
    {"results.row_list.line", "of the file, from 1"},
    {"results.row_list.conditions", "object: the cells that tell the row from the others"},
    {"results.row_list.prediction", "false: a profile was fitted on the row"},
    {"results.row_list.fitted", "the profiles that were"},
    {"results.row_list.note", "what was searched for the row, such as its micro-batch size"},
    {"results.row_list.figures.quantity", "what was measured"},
    {"results.row_list.figures.group", "as in parts"},
    {"results.row_list.figures.unit", "of measured and simulated"},
    {"results.row_list.figures.measured", "the published value"},
    {"results.row_list.figures.simulated", "ours"},
    {"results.row_list.figures.error", "a fraction, with its sign"},
    {"runs", "steps simulated"},
};

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

void AddSummary(const Summary& summary, Json& json) {
  json["figures"] = summary.errors.figures;
  json["mean_abs_error"] = OrNull(summary.errors.mean);
  json["median_abs_error"] = OrNull(summary.errors.median);
  json["max_abs_error"] = OrNull(summary.errors.largest);
  json["max_error"] = OrNull(summary.errors.highest);
  json["kendall_tau"] = OrNull(summary.kendall_tau);
}

Json PartsJson(const EvaluatedDataSet& evaluated) {
  Json parts = Json::array();
  for (const Summary& part : evaluated.parts) {
    Json json;
    json["quantity"] = part.quantity;
    json["group"] = part.group;
    AddSummary(part, json);
    parts.push_back(std::move(json));
  }
  return parts;
}

Json TargetsJson(const EvaluatedDataSet& evaluated) {
  Json targets = Json::array();
  for (const validation::JudgedTarget& judged : evaluated.targets) {
    Json json;
    json["quantity"] = judged.target.quantity;
    json["group"] = judged.group;
    json["statistic"] = validation::ToString(judged.target.statistic);
    json["limit"] = judged.target.limit;
    json["value"] = OrNull(judged.value);
    json["met"] = judged.met();
    targets.push_back(std::move(json));
  }
  return targets;
}

Json RowJson(const validation::DataSet& data_set, const EvaluatedRow& row) {
  Json json;
  json["line"] = row.line;
  json["conditions"] = Json::object();
  for (std::size_t i = 0; i < row.conditions.size(); ++i) {
    json["conditions"][data_set.conditions[i]] = row.conditions[i];
  }
  json["prediction"] = row.prediction();
  json["fitted"] = row.fitted;
  json["note"] = row.note;
  json["figures"] = Json::array();
  for (const validation::Figure& figure : row.figures) {
    Json one;
    one["quantity"] = figure.quantity;
    one["group"] = figure.group;
    one["unit"] = figure.unit;
    one["measured"] = figure.measured;
    one["simulated"] = figure.simulated;
    one["error"] = figure.error();
    json["figures"].push_back(std::move(one));
  }
  return json;
}

Json DataSetJson(const EvaluatedDataSet& evaluated) {
  Json json;
  json["dataset"] = evaluated.data_set->name;
  json["title"] = evaluated.data_set->title;
  json["source"] = evaluated.data_set->source;
  json["file"] = evaluated.path;
  json["rows"] = evaluated.rows.size();
  json["calibration_rows"] = evaluated.calibration_rows();
  AddSummary(evaluated.predictions, json);
  AddSummary(evaluated.all, json["all_rows"]);
  json["parts"] = PartsJson(evaluated);
  json["targets"] = TargetsJson(evaluated);
  json["assumptions"] = evaluated.data_set->assumptions;
  json["row_list"] = Json::array();
  for (const EvaluatedRow& row : evaluated.rows) {
    json["row_list"].push_back(RowJson(*evaluated.data_set, row));
  }
  return json;
}

}  // namespace

absl::Span<const JsonField> PublishedJsonFields() { return kFields; }

std::string PublishedJson(const PublishedReport& report) {
  Json json;
  json["version"] = report.version;
  json["profiles"] = Json::array();
  for (const PublishedProfile& profile : report.profiles) {
    Json one;
    one["name"] = profile.name;
    one["hash"] = profile.hash;
    json["profiles"].push_back(std::move(one));
  }
  json["results"] = Json::array();
  for (const EvaluatedDataSet& one : report.data_sets) json["results"].push_back(DataSetJson(one));
  json["runs"] = report.runs;
  return DumpJson(json);
}

}  // namespace optimus::tools
