#include "tools/sweep/run/survey.h"

#include <algorithm>

#include "base/status_macros.h"

namespace optimus::sweep {
namespace {

class Surveyor {
 public:
  Surveyor(LoadedSweep& sweep, const Shard& shard) : sweep_(sweep), shard_(shard) {}

  absl::StatusOr<Survey> Run(
      const std::function<absl::Status(const Point& point, bool first)>& each,
      const std::function<bool()>& stop) {
    std::vector<std::string> hashes;
    hashes.reserve(static_cast<std::size_t>(sweep_.points()));
    for (std::int64_t number = 0; number < sweep_.points(); ++number) {
      if (stop && stop()) return absl::CancelledError("stopped");
      OPTIMUS_ASSIGN_OR_RETURN(const Point point, sweep_.Make(number));
      hashes.push_back(point.hash);
      const auto [found, first] = numbers_.insert({point.hash, survey_.all_simulations});
      if (first) ++survey_.all_simulations;
      if (found->second % shard_.count != shard_.index) continue;
      Count(point, first);
      OPTIMUS_RETURN_IF_ERROR(each(point, first));
    }
    survey_.all_points = sweep_.points();
    survey_.sweep_hash = SweepHash(sweep_, hashes);
    SortProblems();
    return std::move(survey_);
  }

 private:
  void Count(const Point& point, bool first) {
    ++survey_.points;
    if (first) survey_.simulations.push_back({point.hash, point.number, !point.problem.ok()});
    if (point.problem.ok()) return;
    ++survey_.impossible_points;
    const std::string message(point.problem.message());
    const auto [found, is_new] =
        problems_.insert({WithoutNumbers(message), survey_.problems.size()});
    if (is_new) survey_.problems.push_back({message, point.number, 0});
    ++survey_.problems[found->second].points;
  }

  void SortProblems() {
    std::stable_sort(
        survey_.problems.begin(), survey_.problems.end(),
        [](const Survey::Problem& a, const Survey::Problem& b) { return a.points > b.points; });
  }

  LoadedSweep& sweep_;
  Shard shard_;
  Survey survey_;
  std::unordered_map<std::string, std::int64_t> numbers_;
  std::map<std::string, std::size_t> problems_;
};

}  // namespace

absl::StatusOr<Survey> SurveyPoints(
    LoadedSweep& sweep, const Shard& shard,
    const std::function<absl::Status(const Point& point, bool first)>& each,
    const std::function<bool()>& stop) {
  return Surveyor(sweep, shard).Run(each, stop);
}

}  // namespace optimus::sweep
