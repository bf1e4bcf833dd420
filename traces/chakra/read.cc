#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "traces/chakra/chakra.h"
#include "traces/chakra/draft.h"
#include "traces/chakra/finish.h"
#include "traces/chakra/message_reader.h"
#include "traces/chakra/own_reader.h"

namespace optimus::traces {
namespace {

using chakra::Draft;
using chakra::DraftBuilder;
using chakra::GlobalMetadata;
using chakra::GroupTable;
using chakra::MessageReader;
using chakra::Node;
using chakra::Window;

absl::Status CheckVersion(const GlobalMetadata& metadata, const MessageReader& reader) {
  const std::string& version = metadata.version();
  if (version.empty() || version == "0.0.4" || version == "1.0.0") return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      reader.Where(), "Chakra schema version \"", absl::CHexEscape(version.substr(0, 64)),
      "\"; known: 0.0.4, 1.0.0; hint: convert the file with the version of Chakra that wrote it"));
}

// Whether the trace was recorded on hardware: Chakra's converter of PyTorch traces says of which
// process.
bool IsOfHardware(const GlobalMetadata& metadata) {
  return std::any_of(metadata.attr().begin(), metadata.attr().end(),
                     [](const auto& attribute) { return attribute.name() == "pid"; });
}

// `status` with the file's name in front.
absl::Status Named(const absl::Status& status, const std::string& name) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

class FileReader {
 public:
  FileReader(Window& window, const ChakraOptions& options, const GroupTable* groups)
      : window_(window), reader_(window), options_(options), groups_(groups) {}

  absl::StatusOr<Recording> Run() {
    OPTIMUS_RETURN_IF_ERROR(reader_.CheckIsNoJson());
    GlobalMetadata metadata;
    OPTIMUS_ASSIGN_OR_RETURN(const bool any, reader_.Next(metadata));
    if (!any) return absl::InvalidArgumentError(absl::StrCat(window_.name(), ": no message"));
    OPTIMUS_RETURN_IF_ERROR(CheckVersion(metadata, reader_));
    recording_.format = "chakra";
    OPTIMUS_RETURN_IF_ERROR(chakra::IsOwn(metadata) ? ReadOwn(metadata) : ReadOther(metadata));
    OPTIMUS_RETURN_IF_ERROR(Named(CheckRecording(recording_), window_.name()));
    return std::move(recording_);
  }

 private:
  template <class Builder>
  absl::Status AddNodes(Builder& builder) {
    Node node;
    while (true) {
      OPTIMUS_ASSIGN_OR_RETURN(const bool more, reader_.Next(node));
      if (!more) return absl::OkStatus();
      if (absl::Status status = builder.Add(node); !status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(reader_.Where(), status.message()));
      }
    }
  }

  absl::Status ReadOwn(const GlobalMetadata& metadata) {
    std::vector<std::int32_t> group_numbers;
    OPTIMUS_RETURN_IF_ERROR(
        Named(chakra::ReadOwnMetadata(metadata, recording_, group_numbers), window_.name()));
    RecordedRank& rank = recording_.ranks.front();
    rank.source = window_.name();
    if (options_.rank >= 0 && options_.rank != rank.rank) {
      return absl::InvalidArgumentError(
          absl::StrCat(window_.name(), ": of rank ", rank.rank, ", not of rank ", options_.rank));
    }
    RecordingTables tables(recording_);
    chakra::OwnReader reader(recording_, tables, group_numbers);
    OPTIMUS_RETURN_IF_ERROR(AddNodes(reader));
    return Named(reader.Finish(), window_.name());
  }

  absl::Status ReadOther(const GlobalMetadata& metadata) {
    chakra::FinishOptions finish{.rank = options_.rank,
                                 .world = options_.world,
                                 .control_dependencies = options_.control_dependencies,
                                 .groups = groups_};
    if (finish.rank < 0) finish.rank = RankOfChakraFile(window_.name());
    if (finish.rank < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          window_.name(), ": no rank in the name; hint: call it PREFIX.RANK.et, as run.0.et"));
    }
    recording_.world = options_.world;
    recording_.messages = IsOfHardware(metadata) ? MessageRule::kRendezvous : MessageRule::kEager;
    RecordingTables tables(recording_);
    Draft draft;
    DraftBuilder builder(draft, tables, finish.rank);
    OPTIMUS_RETURN_IF_ERROR(AddNodes(builder));
    return Named(chakra::Finish(draft, finish, window_.name(), recording_, tables), window_.name());
  }

  Window& window_;
  MessageReader reader_;
  const ChakraOptions& options_;
  const GroupTable* groups_;
  Recording recording_;
};

absl::StatusOr<GroupTable> ReadGroupsFile(const std::string& path) {
  if (path.empty()) return GroupTable{};
  OPTIMUS_ASSIGN_OR_RETURN(const std::string json, ReadFile(path));
  return chakra::ParseGroups(json, path);
}

absl::StatusOr<Recording> ReadOne(const std::string& path, const ChakraOptions& options,
                                  const GroupTable& groups) {
  OPTIMUS_ASSIGN_OR_RETURN(Window window, Window::OfFile(path));
  return FileReader(window, options, &groups).Run();
}

absl::Status CheckOptions(const ChakraOptions& options) {
  if (options.world < 0) return absl::InvalidArgumentError("world size below 0");
  return absl::OkStatus();
}

// How many ranks there are, where `paths` are of ranks 0, 1, 2, ...; 0: they are not.
std::int32_t WorldOf(const std::vector<std::string>& paths) {
  std::vector<std::int32_t> ranks;
  ranks.reserve(paths.size());
  for (const std::string& path : paths) ranks.push_back(RankOfChakraFile(path));
  std::sort(ranks.begin(), ranks.end());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] != static_cast<std::int32_t>(i)) return 0;
  }
  return static_cast<std::int32_t>(ranks.size());
}

}  // namespace

absl::StatusOr<Recording> ReadChakra(const std::string& path, const ChakraOptions& options) {
  OPTIMUS_RETURN_IF_ERROR(CheckOptions(options));
  OPTIMUS_ASSIGN_OR_RETURN(const GroupTable groups, ReadGroupsFile(options.groups_path));
  return ReadOne(path, options, groups);
}

absl::StatusOr<Recording> ReadChakraBytes(absl::string_view bytes, const std::string& name,
                                          absl::string_view groups_json,
                                          const ChakraOptions& options) {
  OPTIMUS_RETURN_IF_ERROR(CheckOptions(options));
  GroupTable groups;
  if (!groups_json.empty()) {
    OPTIMUS_ASSIGN_OR_RETURN(groups,
                             chakra::ParseGroups(groups_json, absl::StrCat(name, ": groups")));
  }
  OPTIMUS_ASSIGN_OR_RETURN(Window window, Window::OfBytes(bytes, name));
  return FileReader(window, options, &groups).Run();
}

absl::StatusOr<Recording> ReadChakraAll(const std::vector<std::string>& paths,
                                        const ChakraOptions& options) {
  OPTIMUS_RETURN_IF_ERROR(CheckOptions(options));
  if (paths.empty()) return absl::InvalidArgumentError("no Chakra file given");
  OPTIMUS_ASSIGN_OR_RETURN(const GroupTable groups, ReadGroupsFile(options.groups_path));
  ChakraOptions each = options;
  each.rank = -1;
  if (each.world == 0) each.world = WorldOf(paths);
  std::vector<Recording> parts;
  parts.reserve(paths.size());
  std::vector<std::string> ascending = paths;
  std::stable_sort(ascending.begin(), ascending.end(),
                   [](const std::string& a, const std::string& b) {
                     return RankOfChakraFile(a) < RankOfChakraFile(b);
                   });
  for (const std::string& path : ascending) {
    OPTIMUS_ASSIGN_OR_RETURN(Recording part, ReadOne(path, each, groups));
    parts.push_back(std::move(part));
  }
  return Join(std::move(parts));
}

std::int32_t RankOfChakraFile(absl::string_view path) {
  absl::ConsumeSuffix(&path, ".gz");
  if (!absl::ConsumeSuffix(&path, ".et")) return -1;
  const std::size_t dot = path.rfind('.');
  if (dot == absl::string_view::npos) return -1;
  const absl::string_view digits = path.substr(dot + 1);
  std::int32_t rank = -1;
  const bool plain = !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos;
  return plain && absl::SimpleAtoi(digits, &rank) ? rank : -1;
}

absl::StatusOr<std::vector<std::string>> FindChakraFiles(const std::string& prefix) {
  namespace fs = std::filesystem;
  const fs::path path(prefix);
  const fs::path folder = path.parent_path();
  const std::string stem = absl::StrCat(path.filename().string(), ".");
  std::vector<std::pair<std::int32_t, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? fs::path(".") : folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const std::int32_t rank = RankOfChakraFile(name);
    const bool is_its =
        rank >= 0 && absl::StartsWith(name, stem) &&
        (name == absl::StrCat(stem, rank, ".et") || name == absl::StrCat(stem, rank, ".et.gz"));
    if (is_its) found.emplace_back(rank, (folder / name).string());
  }
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(prefix, ": no file ", prefix, ".RANK.et"));
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  paths.reserve(found.size());
  for (auto& [rank, name] : found) paths.push_back(std::move(name));
  return paths;
}

}  // namespace optimus::traces
