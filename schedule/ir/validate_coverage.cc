// Nothing missing, nothing twice: every layer of every declared module runs forward and (unless it
// is frozen) backward, once for every micro-batch and slice, on one stage and model chunk, in all
// lanes alike.
//
// Where a module has pipelines of its own, each of them holds every layer and has its own stages
// and lanes, and every micro-batch passes through one of them. The same for the two copies of a
// module that goes in both directions.

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/blocked.h"
#include "schedule/ir/validate_parts.h"

namespace optimus::ir::internal {
namespace {

// The operations of one kind that one phase of one layer issues for one micro-batch and slice.
struct CellKey {
  std::int16_t module = -1, layer = -1, slice = -1;
  Phase phase = Phase::kForward;
  bool collective = false;
  std::int32_t micro_batch = -1;
  std::int32_t lane = 0;  // of the pipeline's lanes, counted from its first
  friend bool operator==(const CellKey&, const CellKey&) = default;
  template <class H>
  friend H AbslHashValue(H h, const CellKey& key) {
    // Two words: hashing seven fields one by one is a tenth of a short simulation's time.
    const auto word = [](std::int64_t value, int shift) {
      return static_cast<std::uint64_t>(value) << shift;
    };
    const std::uint64_t work = word(key.module, 48) ^ word(key.layer, 32) ^ word(key.slice, 16) ^
                               word(static_cast<int>(key.phase), 1) ^
                               word(key.collective ? 1 : 0, 0);
    return H::combine(std::move(h), work, word(key.micro_batch, 32) ^ word(key.lane, 0));
  }
};

// Fewer than in any schedule of whole layers: a guess for the size of tables.
constexpr std::size_t kOperationsOfACell = 4;

struct Cell {
  CellKey key;
  OperationRef first;
  std::int16_t chunk = -1;  // of `first`: looked at for every operation, and `first` lies elsewhere
  int count = 0;
};

// How the pipelines of a module lie in the world: pipeline k has the `stages` stages from
// k / blocks * stages on, and in them the `lanes` lanes from k % blocks * lanes on. A module
// without pipelines of its own is one pipeline over everything.
struct Layout {
  std::int32_t stages = 1, blocks = 1, lanes = 1;
};

Layout LayoutOf(const Schedule& schedule, const ModuleInfo& module) {
  const Parallelism& world = schedule.world;
  const std::int32_t blocks = module.tensor_parallel == 0 ? 1 : world.tp / module.tensor_parallel;
  const std::int32_t pipelines = std::max(module.pipelines, 1);
  return {world.pp / (pipelines / blocks), blocks, schedule.lanes / blocks};
}

class Coverage {
 public:
  explicit Coverage(const Schedule& schedule) : schedule_(schedule) {
    for (const ModuleInfo& module : schedule.modules) {
      layouts_.push_back(LayoutOf(schedule, module));
    }
  }
  absl::Status Collect();
  absl::Status CheckModule(std::int16_t module) const;
  absl::Status CheckCounts() const;

 private:
  // Where all pipelines of a module have one layer.
  struct Home {
    std::int32_t stage = 0;  // of the pipeline
    std::int16_t chunk = -1;
    OperationRef first;  // the operation that says so
  };
  // The pipeline (or of two copies the chunk) that a micro-batch passes through.
  struct Passage {
    std::int32_t pipeline = 0;
    OperationRef first;
  };

  absl::Status Add(OperationRef ref, const Operation& op);
  absl::Status CheckHome(OperationRef ref, const Tag& tag);
  absl::Status CheckPassage(OperationRef ref, const Tag& tag);
  absl::Status CheckNotSkipped(OperationRef ref, const Tag& tag) const;
  absl::Status CheckLayer(CellKey key) const;
  absl::Status CheckPresent(const CellKey& key) const;
  absl::Status CompareWithFirst(const Cell& first, const CellKey& key) const;
  std::string Say(const CellKey& key) const;
  std::string SayMicroBatch(const CellKey& key) const;
  bool Skips(std::int16_t module, std::int32_t micro_batch) const {
    const auto& skipped = schedule_.modules[module].skipped_micro_batches;
    return std::binary_search(skipped.begin(), skipped.end(), micro_batch);
  }
  // The first that the module has input in; micro_batches where there is none.
  std::int32_t FirstMicroBatch(std::int16_t module) const;
  // Which copy of a layer is at `tag`: its chunk under both_directions.
  int CopyOf(const Tag& tag) const {
    return schedule_.modules[tag.module].both_directions ? tag.chunk : 0;
  }
  absl::Status CheckMirror(OperationRef ref, const Tag& tag) const;
  const Home* FindHome(const CellKey& key) const;
  const Cell* Find(const CellKey& key) const {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &cells_[found->second];
  }

  const Schedule& schedule_;
  std::vector<Layout> layouts_;  // by module
  std::vector<Cell> cells_;      // in order of first issue
  // The cells of the last kernel and of the last collective: neighbours mostly share theirs, and in
  // a layer kernels and collectives take turns.
  std::array<std::size_t, 2> last_{};
  absl::flat_hash_map<CellKey, std::size_t> index_;
  std::map<std::tuple<std::int16_t, std::int16_t, int>, Home> homes_;  // by (module, layer, copy)
  // By (module, micro-batch).
  absl::flat_hash_map<std::pair<std::int16_t, std::int32_t>, Passage> passages_;
  std::map<std::int16_t, std::set<std::int16_t>> slices_;  // by module
};

// Gradient and parameter synchronisation may carry a layer's tag too, but runs once per step.
bool IsWorkOfLayer(const Operation& op) {
  if (op.tag.module < 0 || op.tag.layer < 0 || op.tag.micro_batch < 0) return false;
  if (op.kind == OperationKind::kSend || op.kind == OperationKind::kReceive) return false;
  return op.tag.phase <= Phase::kWeightGradient && op.stream != Stream::kDataParallel;
}

absl::Status Coverage::Collect() {
  std::size_t operations_in_all = 0;
  for (const Program& program : schedule_.programs) operations_in_all += program.operations.size();
  index_.reserve(operations_in_all / kOperationsOfACell);
  for (std::size_t p = 0; p < schedule_.programs.size(); ++p) {
    const std::vector<Operation>& operations = schedule_.programs[p].operations;
    for (std::uint32_t id = 0; id < operations.size(); ++id) {
      const OperationRef ref{static_cast<std::int32_t>(p), id};
      OPTIMUS_RETURN_IF_ERROR(CheckNotSkipped(ref, operations[id].tag));
      if (!IsWorkOfLayer(operations[id])) continue;
      OPTIMUS_RETURN_IF_ERROR(Add(ref, operations[id]));
    }
  }
  return absl::OkStatus();
}

absl::Status Coverage::CheckNotSkipped(OperationRef ref, const Tag& tag) const {
  if (tag.module < 0 || tag.micro_batch < 0 || !Skips(tag.module, tag.micro_batch)) {
    return absl::OkStatus();
  }
  const std::string& name = schedule_.modules[tag.module].name;
  return OperationError(
      schedule_, ref, "tag.micro_batch",
      absl::StrCat("module '", name, "' has no input in micro-batch ", tag.micro_batch),
      "take it out of the module's skipped_micro_batches, or leave its operations out");
}

absl::Status Coverage::Add(OperationRef ref, const Operation& op) {
  const Tag& tag = op.tag;
  const CellKey key{tag.module,
                    tag.layer,
                    tag.slice,
                    tag.phase,
                    op.kind == OperationKind::kCollective,
                    tag.micro_batch,
                    schedule_.programs[ref.program].lane % layouts_[tag.module].lanes};
  std::size_t& last = last_[key.collective ? 1 : 0];
  if (cells_.empty() || cells_[last].key != key) {
    const auto [entry, added] = index_.try_emplace(key, cells_.size());
    if (added) {
      cells_.push_back({key, ref, tag.chunk, 0});
      slices_[tag.module].insert(tag.slice);
    }
    last = entry->second;
  }
  Cell& cell = cells_[last];
  const bool opens = cell.count == 0;
  ++cell.count;
  const bool moved = cell.first.program != ref.program || cell.chunk != tag.chunk;
  if (!opens && !moved) return absl::OkStatus();
  OPTIMUS_RETURN_IF_ERROR(CheckMirror(ref, tag));
  OPTIMUS_RETURN_IF_ERROR(CheckPassage(ref, tag));
  return CheckHome(ref, tag);
}

absl::Status Coverage::CheckPassage(OperationRef ref, const Tag& tag) {
  const bool copies = schedule_.modules[tag.module].both_directions;
  if (schedule_.modules[tag.module].pipelines == 0 && !copies) return absl::OkStatus();
  const Layout& layout = layouts_[tag.module];
  const Program& program = schedule_.programs[ref.program];
  const std::int32_t pipeline =
      copies ? CopyOf(tag)
             : program.stage / layout.stages * layout.blocks + program.lane / layout.lanes;
  const auto [passage, added] =
      passages_.try_emplace({tag.module, tag.micro_batch}, Passage{pipeline, ref});
  if (added || passage->second.pipeline == pipeline) return absl::OkStatus();
  return OperationError(schedule_, ref, "tag.micro_batch",
                        absl::StrCat("is in ", copies ? "copy " : "encoder pipeline ", pipeline,
                                     ", but this micro-batch also passes through ",
                                     copies ? "copy " : "pipeline ", passage->second.pipeline,
                                     ", at ", NameOperation(schedule_, passage->second.first)),
                        copies ? "a micro-batch passes through one copy of a module"
                               : "a micro-batch passes through one pipeline of a module");
}

// The copies of a layer are on stages that mirror each other.
absl::Status Coverage::CheckMirror(OperationRef ref, const Tag& tag) const {
  if (!schedule_.modules[tag.module].both_directions) return absl::OkStatus();
  if (tag.chunk != 0 && tag.chunk != 1) {
    return OperationError(schedule_, ref, "tag.chunk",
                          absl::StrCat("is ", tag.chunk, " of a module in both directions"),
                          "0 is the copy that goes down the stages, 1 the one that goes up");
  }
  const auto other = homes_.find({tag.module, tag.layer, 1 - tag.chunk});
  const std::int32_t mirror = schedule_.world.pp - 1 - schedule_.programs[ref.program].stage;
  if (other == homes_.end() || other->second.stage == mirror) return absl::OkStatus();
  return OperationError(
      schedule_, ref, "tag.layer",
      absl::StrCat("the other copy of this layer is at ",
                   NameOperation(schedule_, other->second.first), ", not on stage ", mirror),
      "chunk 0 of stage s and chunk 1 of stage pp - 1 - s hold the same layers");
}

absl::Status Coverage::CheckHome(OperationRef ref, const Tag& tag) {
  const std::int32_t stage = schedule_.programs[ref.program].stage % layouts_[tag.module].stages;
  const auto [home, added] =
      homes_.try_emplace({tag.module, tag.layer, CopyOf(tag)}, Home{stage, tag.chunk, ref});
  if (added || (home->second.stage == stage && home->second.chunk == tag.chunk)) {
    return absl::OkStatus();
  }
  return OperationError(
      schedule_, ref, "tag.layer",
      absl::StrCat("this layer also runs at ", NameOperation(schedule_, home->second.first)),
      schedule_.modules[tag.module].pipelines == 0
          ? "a layer has one stage and one model chunk"
          : "a layer has one stage and one model chunk, the same in all pipelines");
}

std::string Coverage::SayMicroBatch(const CellKey& key) const {
  std::string text = absl::StrCat("micro-batch ", key.micro_batch);
  const Layout& layout = layouts_[key.module];
  if (layout.lanes == 1) return text;
  const auto passage = passages_.find({key.module, key.micro_batch});
  const std::int32_t block =
      passage == passages_.end() ? 0 : passage->second.pipeline % layout.blocks;
  absl::StrAppend(&text, " lane ", block * layout.lanes + key.lane);
  return text;
}

std::string Coverage::Say(const CellKey& key) const {
  std::string text = absl::StrCat("module '", schedule_.modules[key.module].name, "' layer ",
                                  key.layer, " ", SayMicroBatch(key));
  if (key.slice != -1) absl::StrAppend(&text, " slice ", key.slice);
  return absl::StrCat(text, " ", ToString(key.phase));
}

const Coverage::Home* Coverage::FindHome(const CellKey& key) const {
  const auto home = homes_.lower_bound({key.module, key.layer, 0});
  const bool found = home != homes_.end() && std::get<0>(home->first) == key.module &&
                     std::get<1>(home->first) == key.layer;
  return found ? &home->second : nullptr;
}

absl::Status Coverage::CheckPresent(const CellKey& key) const {
  if (Find(key) != nullptr) return absl::OkStatus();
  const Home* home = FindHome(key);
  const std::string where = home == nullptr ? "the layer is on no stage"
                                            : absl::StrCat("other work of the layer is at ",
                                                           NameOperation(schedule_, home->first));
  return absl::InvalidArgumentError(
      absl::StrCat(Say(key), ": is missing (", where,
                   "); hint: every layer runs for every micro-batch and slice; a module without "
                   "backward is marked frozen"));
}

std::int32_t Coverage::FirstMicroBatch(std::int16_t module) const {
  std::int32_t first = 0;
  for (const std::int32_t skipped : schedule_.modules[module].skipped_micro_batches) {
    if (skipped != first) break;
    ++first;
  }
  return first;
}

// One layer, micro-batch and slice, in every lane.
absl::Status Coverage::CheckLayer(CellKey key) const {
  for (key.lane = 0; key.lane < layouts_[key.module].lanes; ++key.lane) {
    key.phase = Phase::kForward;
    OPTIMUS_RETURN_IF_ERROR(CheckPresent(key));
    key.phase = Phase::kBackward;
    if (!schedule_.modules[key.module].frozen) OPTIMUS_RETURN_IF_ERROR(CheckPresent(key));
  }
  return absl::OkStatus();
}

// The first miss ends it, so this takes no longer than there are cells.
absl::Status Coverage::CheckModule(std::int16_t module) const {
  const ModuleInfo& info = schedule_.modules[module];
  const std::int32_t first = FirstMicroBatch(module);
  if (first == schedule_.micro_batches) return absl::OkStatus();  // it has no input at all
  const auto slices = slices_.find(module);
  if (slices == slices_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "module '", info.name, "': no operation belongs to it, but it has ", info.layers,
        " layers; hint: tag its operations with module ", module, " and a layer"));
  }
  CellKey key;
  key.module = module;
  for (int layer = 0; layer < info.layers; ++layer) {
    key.layer = static_cast<std::int16_t>(layer);
    for (key.micro_batch = first; key.micro_batch < schedule_.micro_batches; ++key.micro_batch) {
      if (Skips(module, key.micro_batch)) continue;
      for (const std::int16_t slice : slices->second) {
        key.slice = slice;
        OPTIMUS_RETURN_IF_ERROR(CheckLayer(key));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Coverage::CompareWithFirst(const Cell& first, const CellKey& key) const {
  const Cell* cell = Find(key);
  const int count = cell == nullptr ? 0 : cell->count;
  if (count == first.count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Say(key), ": has ", count, key.collective ? " collectives" : " kernels", ", ",
      SayMicroBatch(first.key), " has ", first.count, " (from ",
      NameOperation(schedule_, first.first), " on); hint: every micro-batch does the same work, ",
      layouts_[key.module].lanes == 1 ? "once" : "once, in every lane"));
}

// Every cell against the one of the first micro-batch in the first lane.
absl::Status Coverage::CheckCounts() const {
  for (const Cell& cell : cells_) {
    CellKey key = cell.key;
    const std::int32_t first = FirstMicroBatch(key.module);
    if (key.micro_batch != first || key.lane != 0) {
      key.micro_batch = first;
      key.lane = 0;
      if (Find(key) == nullptr) OPTIMUS_RETURN_IF_ERROR(CompareWithFirst(cell, key));
      continue;
    }
    for (key.micro_batch = first; key.micro_batch < schedule_.micro_batches; ++key.micro_batch) {
      if (Skips(key.module, key.micro_batch)) continue;
      for (key.lane = 0; key.lane < layouts_[key.module].lanes; ++key.lane) {
        OPTIMUS_RETURN_IF_ERROR(CompareWithFirst(cell, key));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCoverage(const Schedule& schedule) {
  if (schedule.modules.empty()) return absl::OkStatus();
  Coverage coverage(schedule);
  OPTIMUS_RETURN_IF_ERROR(coverage.Collect());
  for (std::size_t module = 0; module < schedule.modules.size(); ++module) {
    OPTIMUS_RETURN_IF_ERROR(coverage.CheckModule(static_cast<std::int16_t>(module)));
  }
  return coverage.CheckCounts();
}

}  // namespace optimus::ir::internal
