#include "tools/sweep_show_json.h"

#include <nlohmann/json.hpp>

#include "tools/json_pieces.h"

namespace optimus::tools {
namespace {

using Json = nlohmann::ordered_json;
using sweep::Answer;

constexpr JsonField kFields[] = {
    {"sweep", "name of the sweep"},
    {"description", "of the sweep"},
    {"sweep_hash", "of the sweep file and all it names"},
    {"objective", "the column that the best go by: the sweep's, or --sort"},
    {"objective_high_is_good", "whether a high objective is good"},
    {"versions", "of optimus; more than one: results need not compare"},
    {"profile_hashes", "of the hardware profiles of the results"},
    {"points.points", "points of this database"},
    {"points.total_points", "points of the whole sweep: more where the database is of a shard"},
    {"points.excluded", "combinations of values that the sweep's conditions exclude"},
    {"points.done", "points with a result, of any status"},
    {"points.ok", "points that were simulated"},
    {"points.impossible", "points whose experiment is refused"},
    {"points.failed", "points whose simulation stopped"},
    {"points.out_of_memory",
     "points that needed more memory than this machine or --memory-limit "
     "gives"},
    {"points.timeout", "points that took longer than --time-limit"},
    {"points.does_not_fit", "of ok: plans that do not fit into a GPU's memory"},
    {"where", "the expression of --where"},
    {"selected", "ok points that --where selects"},
    {"left_out", "of them: left out since they do not fit into a GPU's memory; 0 with --all"},
    {"seeds.fewest",
     "seeds that an answer is the mean over: the fewest; 0: answers are single points"},
    {"seeds.most", "the same, the most"},
    {"seeds.missing", "points of the means that did not run: the means are without them"},
    {"columns.name", "every column of the sweep"},
    {"columns.kind", "axis, derived, metric or condition"},
    {"columns.unit", "of its values; empty: a count or a name"},
    {"columns.title", "what it means"},
    {"columns.better", "low, high or empty"},
    {"best", "the best points, best first, by column; null: no value"},
    {"groups", "the best point of every group of --group-by, and points: how many it has"},
    {"front", "the points of the Pareto front, from the best of its first measure on"},
    {"sensitivity.points", "points that it is made of"},
    {"sensitivity.left_out", "points without an objective above 0"},
    {"sensitivity.axes.axis", "every axis of more than one value, the largest spread first"},
    {"sensitivity.axes.zipped", "axes that always change together with it"},
    {"sensitivity.axes.reference", "value that pairs are made with; null: no pairs"},
    {"sensitivity.axes.spread", "largest ratio / smallest ratio; null: no pairs"},
    {"sensitivity.axes.values.value", "a value of the axis"},
    {"sensitivity.axes.values.points", "points that have it"},
    {"sensitivity.axes.values.best", "their best objective"},
    {"sensitivity.axes.values.geometric_mean", "of their objectives"},
    {"sensitivity.axes.values.pairs",
     "pairs with a point of the reference that differ in this "
     "axis only"},
    {"sensitivity.axes.values.ratio",
     "geometric mean of objective / objective of the reference, "
     "over the pairs; null: no pairs"},
    {"errors.status", "impossible, failed, out_of_memory or timeout"},
    {"errors.points", "points with this message, whatever the numbers in it"},
    {"errors.error", "the message of the example"},
    {"errors.point", "the first of these points"},
    {"errors.axes", "its axes and derived values"},
};

Json ValueJson(const sweep::SqlValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return nullptr;
}

Json NumberJson(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json RowJson(const std::vector<std::string>& columns, const std::vector<sweep::SqlValue>& row) {
  Json json = Json::object();
  for (std::size_t i = 0; i < columns.size(); ++i) json[columns[i]] = ValueJson(row[i]);
  return json;
}

Json RowsJson(const sweep::SqlTable& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) rows.push_back(RowJson(table.columns, row));
  return rows;
}

Json FrontJson(const sweep::Front& front) {
  Json rows = Json::array();
  for (const std::size_t member : front.members) {
    rows.push_back(RowJson(front.table.columns, front.table.rows[member]));
  }
  return rows;
}

Json PointsJson(const sweep::Summary& summary) {
  Json json;
  json["points"] = summary.points;
  json["total_points"] = summary.total_points;
  json["excluded"] = summary.excluded;
  json["done"] = summary.counts.done();
  json["ok"] = summary.counts.ok;
  json["impossible"] = summary.counts.impossible;
  json["failed"] = summary.counts.failed;
  json["out_of_memory"] = summary.counts.out_of_memory;
  json["timeout"] = summary.counts.timeout;
  json["does_not_fit"] = summary.counts.does_not_fit;
  return json;
}

Json ColumnsJson(const sweep::About& about) {
  Json columns = Json::array();
  for (const sweep::Column& column : about.columns) {
    Json json;
    json["name"] = column.name;
    json["kind"] = sweep::KindName(column.kind);
    json["unit"] = column.unit;
    json["title"] = column.title;
    json["better"] = column.better;
    columns.push_back(std::move(json));
  }
  return columns;
}

Json EffectJson(const sweep::AxisEffect& effect) {
  Json json;
  json["axis"] = effect.axis.name;
  json["zipped"] = effect.zipped;
  json["reference"] = ValueJson(effect.reference.value_or(std::monostate{}));
  json["spread"] = NumberJson(effect.spread);
  json["values"] = Json::array();
  for (const sweep::AxisValue& value : effect.values) {
    Json one;
    one["value"] = ValueJson(value.value);
    one["points"] = value.points;
    one["best"] = value.best;
    one["geometric_mean"] = value.geometric_mean;
    one["pairs"] = value.pairs;
    one["ratio"] = NumberJson(value.ratio);
    json["values"].push_back(std::move(one));
  }
  return json;
}

Json SensitivityJson(const sweep::Sensitivity& sensitivity) {
  Json json;
  json["points"] = sensitivity.points;
  json["left_out"] = sensitivity.left_out;
  json["axes"] = Json::array();
  for (const sweep::AxisEffect& effect : sensitivity.axes) {
    json["axes"].push_back(EffectJson(effect));
  }
  return json;
}

Json ErrorsJson(const sweep::ErrorList& errors) {
  Json groups = Json::array();
  for (const sweep::ErrorGroup& group : errors.groups) {
    Json json;
    json["status"] = group.status;
    json["points"] = group.points;
    json["error"] = group.error;
    json["point"] = group.example;
    json["axes"] = RowJson(sweep::Names(errors.axes), group.axes);
    groups.push_back(std::move(json));
  }
  return groups;
}

}  // namespace

absl::Span<const JsonField> SweepShowJsonFields() { return kFields; }

std::string SweepShowJson(const Answer& answer) {
  Json json;
  json["sweep"] = answer.about.sweep_name;
  json["description"] = answer.about.description;
  json["sweep_hash"] = answer.about.sweep_hash;
  json["objective"] = answer.aim.column.name;
  json["objective_high_is_good"] = answer.aim.high;
  json["versions"] = answer.summary.versions;
  json["profile_hashes"] = answer.summary.profile_hashes;
  json["points"] = PointsJson(answer.summary);
  json["where"] = answer.filter.where;
  json["selected"] = answer.summary.selected;
  json["left_out"] = answer.summary.left_out;
  json["seeds"]["fewest"] = answer.filter.seeds.fewest;
  json["seeds"]["most"] = answer.filter.seeds.most;
  json["seeds"]["missing"] = answer.summary.seeds_missing;
  json["columns"] = ColumnsJson(answer.about);
  if (answer.best) json["best"] = RowsJson(answer.best->table);
  if (answer.groups) json["groups"] = RowsJson(answer.groups->table);
  if (answer.front) json["front"] = FrontJson(*answer.front);
  if (answer.sensitivity) json["sensitivity"] = SensitivityJson(*answer.sensitivity);
  if (answer.errors) json["errors"] = ErrorsJson(*answer.errors);
  return DumpJson(json);
}

}  // namespace optimus::tools
