#include "tools/sweep/store/merge.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/staged_files.h"
#include "base/status_macros.h"
#include "tools/sweep/store/merge_rows.h"
#include "tools/sweep/store/schema.h"

namespace optimus::sweep {
namespace {

namespace fs = std::filesystem;

absl::Status Named(const std::string& path, const absl::Status& status) {
  const std::string message(status.message());
  if (status.ok() || message.rfind(path, 0) == 0) return status;
  return absl::Status(status.code(), absl::StrCat(path, ": ", message));
}

std::string Described(const Column& column) {
  return absl::StrCat(KindName(column.kind), " ", column.name, " (", column.type,
                      column.unit.empty() ? "" : ", ", column.unit,
                      column.field.empty() ? "" : ", ", column.field, ")");
}

bool Same(const Column& a, const Column& b) {
  return a.name == b.name && a.kind == b.kind && a.type == b.type && a.unit == b.unit &&
         a.title == b.title && a.better == b.better && a.field == b.field;
}

// `about` against the first database that was read.
absl::Status CheckSameSweep(const About& first, const About& about) {
  const std::string& other = first.path;
  if (about.sweep_hash != first.sweep_hash) {
    return absl::InvalidArgumentError(absl::StrCat(
        about.path, ": is of the sweep ", about.sweep_name, " (sweep_hash ", about.sweep_hash,
        "), ", other, " of ", first.sweep_name, " (", first.sweep_hash, ")"));
  }
  const std::size_t columns = std::max(about.columns.size(), first.columns.size());
  for (std::size_t i = 0; i < columns; ++i) {
    const bool here = i < about.columns.size();
    const bool there = i < first.columns.size();
    if (here && there && Same(about.columns[i], first.columns[i])) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        about.path, ": column ", i, " is ", here ? Described(about.columns[i]) : "missing", ", in ",
        other, " it is ", there ? Described(first.columns[i]) : "missing",
        "; were they made by the same optimus?"));
  }
  return absl::OkStatus();
}

// What `about` of the union says, whatever the order of what is united: that of the newest version,
// then of the texts that come last.
void Unite(const About& about, About& all) {
  const auto texts = [](const About& of) {
    return std::tie(of.sweep_name, of.description, of.sweep, of.objective, of.total_points,
                    of.excluded);
  };
  const bool later = about.version == all.version ? texts(all) < texts(about)
                                                  : OlderVersion(all.version, about.version);
  if (later) all = about;
}

// A file under a temporary name beside its target, removed unless it has got its own name.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target)
      : path_(
            (fs::path(target).parent_path() / absl::StrCat(".optimus-merge-", getpid())).string()) {
    Remove();  // left by a killed process that had our number
  }
  ~TemporaryFile() { Remove(); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  void Remove() const {
    std::remove(path_.c_str());
    std::remove((path_ + "-journal").c_str());
  }
  std::string path_;
};

// One merge into `out`: a new database, or an old one within a transaction.
class Merge {
 public:
  Merge(const Database& out, const std::string& out_name) : out_(&out), name_(out_name) {}

  absl::Status Read(const Database& source);
  absl::Status ReadFile(const std::string& path);
  // Replaces the rows of `out` by the union, and commits.
  absl::StatusOr<MergeSummary> Write(bool allow_mixed_versions) const;

 private:
  absl::Status Replace(MergeSummary& summary) const;
  absl::Status Begin(const Database& source, const About& about);

  const Database* out_;
  std::string name_;
  std::optional<MergeRows> rows_;
  About first_, all_;
  std::int64_t databases_ = 0;
};

absl::Status Merge::Begin(const Database& source, const About& about) {
  first_ = about;
  all_ = about;
  if (&source != out_) {
    OPTIMUS_RETURN_IF_ERROR(Named(name_, out_->Execute("BEGIN IMMEDIATE")));
    OPTIMUS_RETURN_IF_ERROR(Named(name_, CreateTables(*out_, about)));
  }
  absl::StatusOr<MergeRows> rows = MergeRows::Make(*out_, about);
  if (!rows.ok()) return Named(name_, rows.status());
  rows_ = *std::move(rows);
  return absl::OkStatus();
}

// A sweep makes its file, then its tables with all its points in one piece.
absl::Status CheckHasTables(const Database& source) {
  OPTIMUS_ASSIGN_OR_RETURN(const bool has_tables, HasTables(source));
  if (has_tables) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(source.path(),
                   ": has no tables: its sweep ended before it began; run it again with --resume"));
}

absl::Status Merge::Read(const Database& source) {
  OPTIMUS_RETURN_IF_ERROR(CheckHasTables(source));
  OPTIMUS_ASSIGN_OR_RETURN(const About about, ReadAbout(source));
  if (!rows_.has_value()) OPTIMUS_RETURN_IF_ERROR(Begin(source, about));
  OPTIMUS_RETURN_IF_ERROR(CheckSameSweep(first_, about));
  OPTIMUS_RETURN_IF_ERROR(rows_->Add(source, about));
  Unite(about, all_);
  ++databases_;
  return absl::OkStatus();
}

absl::Status Merge::ReadFile(const std::string& path) {
  const absl::StatusOr<Database> source = Database::Open(path, Database::Mode::kReadOnly);
  if (absl::IsUnavailable(source.status())) {
    return absl::UnavailableError(
        absl::StrCat(std::string(source.status().message()),
                     "; SQLite needs to write beside it: copy it to where that is possible"));
  }
  if (!source.ok()) return source.status();
  // Everything is read as it is at the first read, whoever writes meanwhile.
  absl::Status status = source->Execute("BEGIN");
  if (status.ok()) status = Read(*source);
  return Named(path, status);
}

absl::Status Merge::Replace(MergeSummary& summary) const {
  OPTIMUS_RETURN_IF_ERROR(rows_->Fill());
  OPTIMUS_ASSIGN_OR_RETURN(summary.counts, CountPoints(*out_));
  About about = all_;
  about.points = summary.counts.all();
  OPTIMUS_RETURN_IF_ERROR(UpdateAbout(*out_, about));
  summary.not_listed = about.total_points - about.points;
  OPTIMUS_ASSIGN_OR_RETURN(summary.of_several_versions, rows_->OfSeveralVersions());
  return out_->Execute("COMMIT");
}

absl::StatusOr<MergeSummary> Merge::Write(bool allow_mixed_versions) const {
  const absl::Status checked = rows_->Check(allow_mixed_versions);
  // What contradicts has its files' names already.
  if (!checked.ok()) return absl::IsInvalidArgument(checked) ? checked : Named(name_, checked);
  MergeSummary summary;
  summary.databases = databases_;
  summary.versions = rows_->Versions();
  OPTIMUS_RETURN_IF_ERROR(Named(name_, Replace(summary)));
  return summary;
}

absl::StatusOr<MergeSummary> MergeFiles(Merge& merge, const std::vector<std::string>& in,
                                        bool allow_mixed_versions) {
  for (const std::string& path : in) OPTIMUS_RETURN_IF_ERROR(merge.ReadFile(path));
  return merge.Write(allow_mixed_versions);
}

absl::StatusOr<MergeSummary> MergeIntoOld(const std::string& out,
                                          const std::vector<std::string>& in,
                                          bool allow_mixed_versions) {
  OPTIMUS_ASSIGN_OR_RETURN(const Database database,
                           Database::Open(out, Database::Mode::kReadWrite));
  OPTIMUS_RETURN_IF_ERROR(Named(out, database.Execute("BEGIN IMMEDIATE")));
  Merge merge(database, out);
  OPTIMUS_RETURN_IF_ERROR(Named(out, merge.Read(database)));
  return MergeFiles(merge, in, allow_mixed_versions);
}

// SQLite would take these for the changes that the new file still lacks.
absl::Status CheckNoLeftovers(const std::string& target) {
  for (const char* suffix : {"-wal", "-journal"}) {
    std::error_code ignored;
    if (fs::exists(target + suffix, ignored)) {
      return absl::InvalidArgumentError(
          absl::StrCat(target, suffix,
                       ": is left of a database that is gone; remove it, or choose another OUT"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<MergeSummary> MergeNewFile(const std::string& path, const std::string& out,
                                          const std::vector<std::string>& in,
                                          bool allow_mixed_versions) {
  const absl::StatusOr<Database> database = Database::Open(path, Database::Mode::kCreate);
  if (!database.ok()) {
    return absl::Status(database.status().code(),
                        absl::StrCat(out, ": no database can be made in its folder"));
  }
  Merge merge(*database, out);
  return MergeFiles(merge, in, allow_mixed_versions);
}

absl::StatusOr<MergeSummary> MergeNew(const std::string& target, const std::string& out,
                                      const std::vector<std::string>& in,
                                      bool allow_mixed_versions) {
  OPTIMUS_RETURN_IF_ERROR(CheckNoLeftovers(target));
  const TemporaryFile temporary(target);
  OPTIMUS_ASSIGN_OR_RETURN(const MergeSummary summary,
                           MergeNewFile(temporary.path(), out, in, allow_mixed_versions));
  if (std::rename(temporary.path().c_str(), target.c_str()) != 0) {
    return absl::UnavailableError(
        absl::StrCat(out, ": cannot be given its name: ", std::strerror(errno)));
  }
  return summary;
}

// `in` without files that are there twice, or that are `out`, by whatever name.
std::vector<std::string> Different(const std::string& out, const std::vector<std::string>& in) {
  std::set<std::string> seen;
  std::error_code ignored;
  if (fs::exists(out, ignored)) seen.insert(FileIdentity(out));
  std::vector<std::string> files;
  std::copy_if(in.begin(), in.end(), std::back_inserter(files),
               [&](const std::string& path) { return seen.insert(FileIdentity(path)).second; });
  return files;
}

}  // namespace

absl::StatusOr<MergeSummary> MergeSweeps(const std::string& out, const std::vector<std::string>& in,
                                         bool allow_mixed_versions) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::string target, FollowLinks(out));
  const std::vector<std::string> files = Different(out, in);
  std::error_code ignored;
  if (fs::exists(target, ignored)) return MergeIntoOld(out, files, allow_mixed_versions);
  return MergeNew(target, out, files, allow_mixed_versions);
}

}  // namespace optimus::sweep
