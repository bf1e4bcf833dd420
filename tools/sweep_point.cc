#include "tools/sweep_point.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/staged_files.h"
#include "base/status_macros.h"
#include "hw_profiles/profile.h"
#include "schedule/step/step.h"
#include "tools/exit_codes.h"
#include "tools/experiment_text.h"
#include "tools/outputs.h"
#include "tools/printable.h"
#include "tools/sweep/store/schema.h"

namespace optimus::tools {
namespace {

// "strategy Megatron-LM, gpus 512"
std::string Coordinates(const sweep::LoadedSweep& sweep, const sweep::Point& point) {
  std::string text;
  for (std::size_t i = 0; i < point.columns.size(); ++i) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", sweep.columns()[i].name, " ",
                    sweep::ToText(point.columns[i]));
  }
  return text;
}

absl::StatusOr<bool> ChangesProfile(const sweep::Point& point) {
  OPTIMUS_ASSIGN_OR_RETURN(const hw::HardwareProfile named,
                           step::LoadExperimentProfile(point.experiment));
  return SerializeDeterministically(named) != SerializeDeterministically(point.profile);
}

// "a/b.textproto" -> "a/b_profile.textproto"
std::string ProfileFile(const std::string& file) {
  std::filesystem::path path(file);
  return path.replace_filename(path.stem().string() + "_profile.textproto").string();
}

}  // namespace

absl::StatusOr<int> WritePoint(sweep::LoadedSweep& sweep, std::int64_t number,
                               const std::string& file) {
  if (number >= sweep.points()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--point: there is no ", number, "; the sweep has points 0 to ", sweep.points() - 1));
  }
  OPTIMUS_ASSIGN_OR_RETURN(sweep::Point point, sweep.Make(number));
  const std::string where = Coordinates(sweep, point);
  const std::string title =
      Printable(absl::StrCat("point ", number, " of ", sweep.spec().name(), ": ", where));
  if (!point.problem.ok()) {
    return absl::Status(point.problem.code(),
                        absl::StrCat("--point: ", number, " (", where,
                                     ") is impossible: ", std::string(point.problem.message())));
  }
  std::vector<NamedFile> outputs = {{"--experiment", file}};
  OPTIMUS_ASSIGN_OR_RETURN(const bool changes_profile, ChangesProfile(point));
  if (changes_profile) outputs.push_back({"its profile", ProfileFile(file)});
  for (const NamedFile& output : outputs) {
    OPTIMUS_RETURN_IF_ERROR(CheckWritableFile(output.origin, output.path));
  }
  OPTIMUS_RETURN_IF_ERROR(
      CheckOverwrites({{"SWEEP", sweep.path()}, {"base", sweep.base_path()}}, outputs));

  StagedFiles files;
  if (changes_profile) {
    point.experiment.mutable_hardware()->set_profile(outputs[1].path);
    OPTIMUS_RETURN_IF_ERROR(files.Add(outputs[1].path, hw::ToTextProto(point.profile)));
  }
  OPTIMUS_RETURN_IF_ERROR(files.Add(
      file, absl::StrCat("# ", title, "\n", ExperimentText(file, std::move(point.experiment)))));
  OPTIMUS_RETURN_IF_ERROR(files.Commit());
  OPTIMUS_RETURN_IF_ERROR(WriteStdout(absl::StrCat(title, "\n", WroteText(outputs), "\n")));
  return kExitSuccess;
}

}  // namespace optimus::tools
