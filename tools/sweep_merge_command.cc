#include "tools/sweep_merge_command.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tools/exit_codes.h"
#include "tools/outputs.h"
#include "tools/shared_flags.h"
#include "tools/sweep/run/file_lock.h"
#include "tools/sweep/store/merge.h"
#include "tools/text_pieces.h"

namespace optimus::tools {
namespace {

// "out.sqlite: 12 points of 3 databases: 10 done (2 of them impossible), 1 failed, 1 missing", and
// a line for what is to be done about it.
std::string MergedText(const SweepMergeFlags& flags, const sweep::MergeSummary& summary) {
  std::string text = absl::StrCat(flags.out, ": ", Count(summary.counts.all(), "point", "points"),
                                  " of ", Count(summary.databases, "database", "databases"), ": ",
                                  summary.counts.ok + summary.counts.impossible, " done");
  if (summary.counts.impossible > 0)
    absl::StrAppend(&text, " (", summary.counts.impossible, " impossible)");
  absl::StrAppend(&text, ", ", summary.counts.by_chance(), " failed, ", summary.counts.missing,
                  " missing\n");
  if (summary.versions.size() > 1) {
    absl::StrAppend(&text, "versions of optimus ", absl::StrJoin(summary.versions, ", "),
                    " are mixed; simulations with results of several of them: ",
                    summary.of_several_versions, ", the newest is kept\n");
  }
  if (summary.not_listed > 0) {
    absl::StrAppend(&text, Count(summary.not_listed, "more point", "more points"),
                    " of the sweep: in none of these databases, of shards that are not here\n");
  }
  if (summary.counts.missing + summary.counts.by_chance() > 0) {
    absl::StrAppend(&text, "run those shards again with --resume, and merge again\n");
  }
  return text;
}

// Not while we merge into it: a sweep takes its own database for what it has written itself.
absl::StatusOr<std::optional<sweep::FileLock>> LockOld(const std::string& out) {
  std::error_code ignored;
  if (!std::filesystem::exists(out, ignored)) return std::nullopt;
  OPTIMUS_ASSIGN_OR_RETURN(sweep::FileLock lock, sweep::FileLock::Take(out));
  return lock;
}

}  // namespace

CLI::App* AddSweepMergeCommand(CLI::App& sweep, SweepMergeFlags& flags) {
  CLI::App* command = sweep.add_subcommand(
      "merge",
      "Unite the databases of the shards of a sweep. The order does not matter, and merging again "
      "changes nothing; a result that failed by chance gives way to one that did not.");
  command
      ->add_option("OUT", flags.out,
                   "Database to write, whole or not at all; where it exists, it is merged into")
      ->required()
      ->check(NotEmpty)
      ->type_name("");
  command->add_option("IN", flags.in, "Databases of one sweep, finished or not")
      ->required()
      ->expected(1, -1)
      ->check(NotEmpty)
      ->type_name("");
  command->add_flag("--allow-mixed-versions", flags.allow_mixed_versions,
                    "Unite results of several versions of optimus; of one simulation the newest "
                    "version's result is kept");
  return command;
}

absl::StatusOr<int> RunSweepMerge(const SweepMergeFlags& flags) {
  OPTIMUS_RETURN_IF_ERROR(CheckReplaceable("OUT", flags.out));
  OPTIMUS_ASSIGN_OR_RETURN(const auto lock, LockOld(flags.out));
  const absl::StatusOr<sweep::MergeSummary> summary =
      sweep::MergeSweeps(flags.out, flags.in, flags.allow_mixed_versions);
  if (absl::IsResourceExhausted(summary.status())) {
    return absl::UnavailableError(absl::StrCat(std::string(summary.status().message()),
                                               "; nothing is merged; free some space"));
  }
  if (!summary.ok()) return summary.status();
  OPTIMUS_RETURN_IF_ERROR(WriteStdout(MergedText(flags, *summary)));
  return kExitSuccess;
}

}  // namespace optimus::tools
