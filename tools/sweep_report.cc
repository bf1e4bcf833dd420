#include "tools/sweep_report.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/resources.h"
#include "tools/text_pieces.h"

namespace optimus::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostProblems = 8;

constexpr JsonField kFields[] = {
    {"version", "of optimus"},
    {"sweep", "its name"},
    {"sweep_hash", "of all its points, names and what is kept; equal sweeps have equal tables"},
    {"combinations", "of the values of all axes"},
    {"excluded",
     "by condition, in their order: those that it leaves out, unless an earlier one does"},
    {"excluded.condition", "as written"},
    {"excluded.combinations", "that it leaves out"},
    {"points", "that remain, of all shards"},
    {"simulations", "that are different, of all shards"},
    {"shard", "\"0/1\": all"},
    {"shard_points", "of this shard"},
    {"shard_simulations", "of this shard, the impossible ones among them"},
    {"impossible_points", "of this shard: refused before anything is simulated"},
    {"problems", "why, most frequent first"},
    {"problems.points", "how many"},
    {"problems.example", "what the first of them says"},
    {"problems.first_point", "its number"},
    {"database", "where results are (absent from here on: --dry-run)"},
    {"found", "simulations that were done before this run"},
    {"simulated", "in this run"},
    {"ok", "points with a result"},
    {"impossible", "points: refused, some of them only when they were planned"},
    {"failed", "points: a bug of ours, or an engine that stopped; --resume tries again"},
    {"out_of_memory", "points that needed more memory than this machine gave; likewise"},
    {"timeout", "points that took longer than --time-limit; likewise"},
    {"simulations_per_s", "of this run"},
    {"wall_s", "of this run"},
    {"peak_memory_mib", "highest resident memory of one process"}};

std::string ShardText(const sweep::Shard& shard) {
  return absl::StrCat(shard.index, "/", shard.count);
}

double Rate(const sweep::EngineResult& result) {
  return result.wall_s > 0 ? static_cast<double>(result.simulated) / result.wall_s : 0;
}

Json ProblemsJson(const sweep::Survey& survey) {
  Json problems = Json::array();
  for (const auto& problem : survey.problems) {
    problems.push_back({{"points", problem.points},
                        {"example", problem.example},
                        {"first_point", problem.first_point}});
  }
  return problems;
}

Json ExcludedJson(const sweep::LoadedSweep& sweep) {
  Json excluded = Json::array();
  for (std::size_t i = 0; i < sweep.excluded().size(); ++i) {
    excluded.push_back({{"condition", sweep.spec().conditions(static_cast<int>(i))},
                        {"combinations", sweep.excluded()[i]}});
  }
  return excluded;
}

std::string PointsText(const SweepReport& report) {
  const sweep::Survey& survey = report.survey;
  std::string text =
      absl::StrCat(survey.all_points, " of ",
                   Count(report.sweep->combinations(), "combination", "combinations"));
  absl::StrAppend(&text, ", ",
                  Count(survey.all_simulations, "different simulation", "different simulations"));
  if (report.shard.count > 1) {
    absl::StrAppend(&text, "; shard ", ShardText(report.shard), ": ",
                    Count(survey.points, "point", "points"), ", ",
                    Count(std::ssize(survey.simulations), "simulation", "simulations"));
  }
  return text;
}

void AppendResult(const sweep::EngineResult& result, std::string& text) {
  std::string done =
      absl::StrCat(Count(result.simulated, "simulation", "simulations"), " in this run");
  if (result.found > 0) absl::StrAppend(&done, ", ", result.found, " found done");
  if (result.simulated > 0) absl::StrAppendFormat(&done, ", %.1f/s", Rate(result));
  AppendFact("done", done, text);
  std::string points = absl::StrCat(Count(result.counts.ok, "point", "points"), " with a result, ",
                                    result.counts.impossible, " impossible");
  if (result.counts.failed > 0) absl::StrAppend(&points, ", ", result.counts.failed, " failed");
  if (result.counts.out_of_memory > 0) {
    absl::StrAppend(&points, ", ", result.counts.out_of_memory, " out of memory");
  }
  if (result.counts.timeout > 0)
    absl::StrAppend(&points, ", ", result.counts.timeout, " over the time limit");
  AppendFact("results", points, text);
}

}  // namespace

std::string SurveyText(const SweepReport& report) {
  std::string text;
  const sweep::LoadedSweep& sweep = *report.sweep;
  AppendFact("sweep",
             sweep.spec().description().empty()
                 ? sweep.spec().name()
                 : absl::StrCat(sweep.spec().name(), ": ", sweep.spec().description()),
             text);
  AppendFact("points", PointsText(report), text);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < sweep.excluded().size(); ++i) {
    if (sweep.excluded()[i] == 0) continue;
    lines.push_back(
        absl::StrCat(sweep.excluded()[i], " by ", sweep.spec().conditions(static_cast<int>(i))));
  }
  AppendBullets("left out by conditions:", lines, text);
  lines.clear();
  for (const auto& problem : report.survey.problems) {
    if (lines.size() == kMostProblems) {
      lines.push_back(
          absl::StrCat("and ", report.survey.problems.size() - kMostProblems, " other kinds"));
      break;
    }
    lines.push_back(absl::StrCat(Count(problem.points, "point", "points"), ", the first is ",
                                 problem.first_point, ": ", problem.example));
  }
  AppendBullets(
      absl::StrCat("impossible: ", Count(report.survey.impossible_points, "point", "points"), ", ",
                   report.survey.points - report.survey.impossible_points, " remain"),
      lines, text);
  return text;
}

std::string SweepText(const SweepReport& report) {
  std::string text = SurveyText(report);
  AppendFact("database", report.database, text);
  AppendResult(*report.result, text);
  absl::StrAppend(&text, WallLine(report.result->wall_s, PeakMemoryMib()));
  return text;
}

std::string SweepJson(const SweepReport& report) {
  const sweep::Survey& survey = report.survey;
  Json json;
  json["version"] = OPTIMUS_VERSION;
  json["sweep"] = report.sweep->spec().name();
  json["sweep_hash"] = survey.sweep_hash;
  json["combinations"] = report.sweep->combinations();
  json["excluded"] = ExcludedJson(*report.sweep);
  json["points"] = survey.all_points;
  json["simulations"] = survey.all_simulations;
  json["shard"] = ShardText(report.shard);
  json["shard_points"] = survey.points;
  json["shard_simulations"] = survey.simulations.size();
  json["impossible_points"] = survey.impossible_points;
  json["problems"] = ProblemsJson(survey);
  if (report.result != nullptr) {
    const sweep::EngineResult& result = *report.result;
    json["database"] = report.database;
    json["found"] = result.found;
    json["simulated"] = result.simulated;
    json["ok"] = result.counts.ok;
    json["impossible"] = result.counts.impossible;
    json["failed"] = result.counts.failed;
    json["out_of_memory"] = result.counts.out_of_memory;
    json["timeout"] = result.counts.timeout;
    json["simulations_per_s"] = Rate(result);
    json["wall_s"] = result.wall_s;
    json["peak_memory_mib"] = PeakMemoryMib();
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Span<const JsonField> SweepJsonFields() { return kFields; }

}  // namespace optimus::tools
