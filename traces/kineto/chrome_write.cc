#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "traces/kineto/chrome_clock.h"
#include "traces/kineto/chrome_header.h"
#include "traces/kineto/chrome_json.h"
#include "traces/kineto/json_text.h"

namespace optimus::traces {
namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;

const char* CategoryOf(OpKind kind) {
  switch (kind) {
    case OpKind::kHost:
      return "cuda_runtime";
    case OpKind::kCopy:
      return "gpu_memcpy";
    case OpKind::kCompute:
    case OpKind::kCommunication:
      break;
  }
  return "kernel";
}

// Numbers by first use: tables may have entries that no operation has.
class Numbering {
 public:
  std::size_t Of(std::int32_t index) {
    return numbers_.try_emplace(index, numbers_.size()).first->second;
  }

 private:
  absl::flat_hash_map<std::int32_t, std::size_t> numbers_;
};

class RankWriter {
 public:
  RankWriter(const Recording& recording, const RecordedRank& rank, std::string& out)
      : recording_(recording),
        rank_(rank),
        out_(out),
        offset_(ClockOffset(rank.clock_origin_ns, ClockBase(recording))) {}

  void Names() {
    std::string name = absl::StrCat("rank ", rank_.rank);
    if (rank_.stands_for > 1) absl::StrAppend(&name, " (stands for ", rank_.stands_for, " GPUs)");
    Metadata("process_name", 0, name);
    for (std::size_t lane = 0; lane < rank_.lanes.size(); ++lane) {
      Metadata("thread_name", lane, rank_.lanes[lane].name);
    }
  }

  absl::Status Op(std::size_t id) {
    const RecordedOp& op = rank_.ops[id];
    absl::StrAppend(&out_, ",\n{\"ph\":\"X\",\"cat\":\"", CategoryOf(op.kind), "\",\"name\":");
    AppendQuoted(out_, recording_.names[static_cast<std::size_t>(op.name)]);
    absl::StrAppend(&out_, ",\"pid\":", rank_.rank, ",\"tid\":", op.lane, ",\"ts\":");
    const Picoseconds start = op.timed() ? op.start : Picoseconds(0);
    const auto time = Sum(FileTime{offset_, 0}, start);
    if (!time.has_value()) return absl::InvalidArgumentError("a time that does not fit");
    AppendMicroseconds(out_, *time);
    out_ += ",\"dur\":";
    AppendMicroseconds(out_, Sum(FileTime{}, op.duration()).value_or(FileTime{}));
    absl::StrAppend(&out_, ",\"args\":{\"op\":", id, ",\"kind\":\"", ToString(op.kind), "\"");
    if (!op.timed()) out_ += ",\"untimed\":true";
    Launch(id, op);
    After(op);
    OPTIMUS_RETURN_IF_ERROR(OpWork(op));
    if (const Communication* communication = rank_.CommunicationOf(op)) {
      Comm(op.communication, *communication);
    }
    out_ += "}}";
    return absl::OkStatus();
  }

 private:
  void Metadata(absl::string_view what, std::size_t lane, absl::string_view name) {
    absl::StrAppend(&out_, ",\n{\"ph\":\"M\",\"name\":\"", what, "\",\"pid\":", rank_.rank,
                    ",\"tid\":", lane, ",\"args\":{\"name\":");
    AppendQuoted(out_, name);
    out_ += "}}";
  }

  // As in Kineto traces: a call and what it launched have the same correlation.
  void Launch(std::size_t id, const RecordedOp& op) {
    if (op.kind == OpKind::kHost) {
      absl::StrAppend(&out_, ",\"correlation\":", id);
      return;
    }
    absl::StrAppend(&out_, ",\"stream\":", rank_.lanes[static_cast<std::size_t>(op.lane)].id);
    for (const Dependency& dependency : rank_.DependenciesOf(op)) {
      if (dependency.kind != DependencyKind::kLaunch) continue;
      absl::StrAppend(&out_, ",\"correlation\":", dependency.op);
      return;
    }
  }

  void After(const RecordedOp& op) {
    if (op.dependency_count == 0) return;
    out_ += ",\"after\":[";
    const char* comma = "";
    for (const Dependency& dependency : rank_.DependenciesOf(op)) {
      absl::StrAppend(&out_, comma, "[", dependency.op, ",\"", ToString(dependency.kind), "\"]");
      comma = ",";
    }
    out_ += ']';
  }

  absl::Status OpWork(const RecordedOp& op) {
    if (op.work < 0) return absl::OkStatus();
    const Work& work = rank_.works[static_cast<std::size_t>(op.work)];
    if (!std::isfinite(work.flops))
      return absl::InvalidArgumentError("a count of FLOPs that is not finite");
    if (op.kind == OpKind::kCopy) absl::StrAppend(&out_, ",\"bytes\":", work.bytes.value());
    absl::StrAppend(&out_, ",\"work\":{\"id\":", works_.Of(op.work), ",\"flops\":");
    AppendDouble(out_, work.flops);
    absl::StrAppend(&out_, ",\"bytes\":", work.bytes.value(), "}");
    return absl::OkStatus();
  }

  void Comm(std::int32_t index, const Communication& communication) {
    absl::StrAppend(&out_, ",\"communication\":{\"id\":", communications_.Of(index), ",\"kind\":\"",
                    ToString(communication.kind), "\",\"group\":", communication.group,
                    ",\"peer\":", communication.peer, ",\"sequence\":", communication.sequence,
                    ",\"tag\":", communication.tag, ",\"bytes\":", communication.bytes.value(),
                    "}");
    NcclName(communication);
    NcclSizes(communication);
    NcclGroup(communication);
    if (communication.sequence >= 0) absl::StrAppend(&out_, ",\"Seq\":", communication.sequence);
  }

  // What follows is for other tools: arguments as PyTorch writes them.
  void NcclName(const Communication& communication) {
    using Kind = CommunicationKind;
    if (communication.kind == Kind::kUnknown) return;
    const char* name = ToString(communication.kind);
    if (communication.kind == Kind::kAllReduce) name = "allreduce";
    if (communication.kind == Kind::kAllGather) name = "_allgather_base";
    if (communication.kind == Kind::kReduceScatter) name = "_reduce_scatter_base";
    if (communication.kind == Kind::kReceive) name = "recv";
    absl::StrAppend(&out_, ",\"Collective name\":\"", name, "\"");
    if (communication.peer < 0) return;
    if (communication.kind == Kind::kReceive) {
      absl::StrAppend(&out_, ",\"Src Rank\":", communication.peer);
    } else if (communication.kind == Kind::kSend) {
      absl::StrAppend(&out_, ",\"Dst Rank\":", communication.peer);
    }
  }

  void NcclSizes(const Communication& communication) {
    const std::int64_t bytes = communication.bytes.value();
    if (bytes < 0) return;
    std::int64_t in = bytes, out = bytes;
    const std::int64_t size =
        communication.group < 0
            ? 0
            : recording_.groups[static_cast<std::size_t>(communication.group)].size;
    if (communication.kind == CommunicationKind::kAllGather && size > 0) in = bytes / size;
    if (communication.kind == CommunicationKind::kReduceScatter && size > 0) out = bytes / size;
    absl::StrAppend(&out_, ",\"In msg nelems\":", in, ",\"Out msg nelems\":", out,
                    ",\"dtype\":\"Byte\"");
  }

  void NcclGroup(const Communication& communication) {
    if (communication.group < 0) return;
    const CommunicatorGroup& group =
        recording_.groups[static_cast<std::size_t>(communication.group)];
    out_ += ",\"Process Group Name\":";
    AppendQuoted(out_, group.name);
    out_ += ",\"Process Group Description\":";
    AppendQuoted(out_, group.description);
    absl::StrAppend(&out_, ",\"Group size\":", group.size, ",\"Process Group Ranks\":\"",
                    RanksText(group.ranks), "\"");
  }

  // As PyTorch cuts long lists; the whole list is in the header.
  static std::string RanksText(const std::vector<std::int32_t>& ranks) {
    constexpr std::size_t kMostListed = 30;
    if (ranks.size() <= kMostListed) return absl::StrCat("[", absl::StrJoin(ranks, ", "), "]");
    const absl::Span<const std::int32_t> listed = absl::MakeConstSpan(ranks).first(kMostListed);
    return absl::StrCat("[", absl::StrJoin(listed, ", "), ", ..., ", ranks.back(), "]");
  }

  const Recording& recording_;
  const RecordedRank& rank_;
  std::string& out_;
  std::int64_t offset_;
  Numbering works_, communications_;
};

}  // namespace

absl::Status WriteChromeJson(const Recording& recording,
                             absl::FunctionRef<absl::Status(absl::string_view)> sink) {
  OPTIMUS_RETURN_IF_ERROR(CheckRecording(recording));
  std::string out;
  AppendChromeHeader(out, recording);
  bool first = true;
  for (const RecordedRank& rank : recording.ranks) {
    RankWriter writer(recording, rank, out);
    const std::size_t comma = out.size();
    writer.Names();
    if (first) out.erase(comma, 1);
    first = false;
    for (std::size_t id = 0; id < rank.ops.size(); ++id) {
      if (absl::Status status = writer.Op(id); !status.ok()) {
        return absl::Status(status.code(), absl::StrCat("rank ", rank.rank, ", operation ", id,
                                                        ": ", status.message()));
      }
      if (out.size() < kPiece) continue;
      OPTIMUS_RETURN_IF_ERROR(sink(out));
      out.clear();
    }
  }
  out += "\n]}\n";
  return sink(out);
}

absl::StatusOr<std::string> ChromeJsonText(const Recording& recording) {
  std::string text;
  OPTIMUS_RETURN_IF_ERROR(WriteChromeJson(recording, [&text](absl::string_view piece) {
    text.append(piece.data(), piece.size());
    return absl::OkStatus();
  }));
  return text;
}

}  // namespace optimus::traces
