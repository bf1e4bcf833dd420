#include "traces/kineto/kineto.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "traces/kineto/build_rank.h"
#include "traces/kineto/chrome_json.h"
#include "traces/kineto/event_stream.h"
#include "traces/kineto/step_collector.h"
#include "traces/kineto/steps.h"

namespace optimus::traces {
namespace {

struct RankOfFile {
  std::int32_t rank = 0;
  bool assumed = false;
};

RankOfFile RankOf(const TraceHeader& header, const std::string& name,
                  const KinetoOptions& options) {
  if (header.rank.has_value()) return {*header.rank};
  if (options.rank.has_value()) return {*options.rank};
  if (const auto rank = RankOfFileName(name); rank.has_value()) return {*rank};
  return {0, true};
}

absl::StatusOr<StepEvents> Collect(ByteSource& source, const ChosenStep& chosen,
                                   CommunicationReader communications, const KinetoLimits& limits) {
  StepCollector collector(chosen.step, std::move(communications), limits);
  OPTIMUS_RETURN_IF_ERROR(EventStream(source, limits).Read(collector, /*whole=*/false));
  if (collector.NeedsAnotherPass()) {
    collector.BeginAgain();
    OPTIMUS_RETURN_IF_ERROR(EventStream(source, limits).Read(collector, /*whole=*/false));
  }
  return std::move(collector).Finish();
}

absl::StatusOr<Recording> ReadRank(ByteSource& source, const std::string& name,
                                   const StepFinder& found, const KinetoOptions& options) {
  Recording recording;
  RecordingTables tables(recording);
  const RankOfFile rank = RankOf(found.header(), name, options);
  RankFacts facts;
  facts.rank = rank.rank;
  facts.source = name;
  facts.base_ns = found.header().base_ns;
  facts.steps = found.Steps();
  OPTIMUS_ASSIGN_OR_RETURN(facts.chosen, ChooseStep(facts.steps, options.step));
  CommunicationReader communications(found.header(), rank.rank, tables);
  OPTIMUS_ASSIGN_OR_RETURN(
      StepEvents events, Collect(source, facts.chosen, std::move(communications), options.limits));
  OPTIMUS_RETURN_IF_ERROR(AddRank(facts, std::move(events), recording, tables));
  if (rank.assumed) {
    tables.Note(
        {"the file does not say its rank", "it is taken for rank 0", 0, "", Picoseconds(0)});
  }
  recording.format = "kineto";
  recording.world = found.header().world;
  return recording;
}

absl::StatusOr<Recording> Read(ByteSource& source, const std::string& name,
                               const KinetoOptions& options) {
  StepFinder finder;
  OPTIMUS_RETURN_IF_ERROR(EventStream(source, options.limits).Read(finder, /*whole=*/true));
  const bool ours = !finder.header().ours.empty();
  OPTIMUS_ASSIGN_OR_RETURN(Recording recording,
                           ours ? ReadChromeJson(source, name, finder.header(), options.limits)
                                : ReadRank(source, name, finder, options));
  OPTIMUS_RETURN_IF_ERROR(CheckRecording(recording));
  return recording;
}

}  // namespace

absl::StatusOr<Recording> ReadKinetoSource(ByteSource& source, const std::string& name,
                                           const KinetoOptions& options) {
  absl::StatusOr<Recording> recording = Read(source, name, options);
  if (recording.ok()) return recording;
  return absl::Status(recording.status().code(),
                      absl::StrCat(name, ": ", recording.status().message()));
}

absl::StatusOr<Recording> ReadKinetoText(absl::string_view text, const std::string& name,
                                         const KinetoOptions& options) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, Unzipped(TextSource(text)));
  return ReadKinetoSource(*source, name, options);
}

absl::StatusOr<Recording> ReadKineto(const std::string& path, const KinetoOptions& options) {
  OPTIMUS_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> file, OpenFileSource(path));
  absl::StatusOr<std::unique_ptr<ByteSource>> source = Unzipped(std::move(file));
  if (!source.ok()) {
    return absl::Status(source.status().code(),
                        absl::StrCat(path, ": ", source.status().message()));
  }
  return ReadKinetoSource(**source, path, options);
}

}  // namespace optimus::traces
