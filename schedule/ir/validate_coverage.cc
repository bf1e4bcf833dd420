// Nothing missing, nothing twice: every layer of every declared module runs forward and (unless it
// is frozen) backward, once for every micro-batch and slice, on one stage and model chunk.

#include <map>
#include <set>
#include <string>
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
  friend bool operator==(const CellKey&, const CellKey&) = default;
  template <class H>
  friend H AbslHashValue(H h, const CellKey& key) {
    return H::combine(std::move(h), key.module, key.layer, key.slice, key.phase, key.collective,
                      key.micro_batch);
  }
};

struct Cell {
  CellKey key;
  OperationRef first;
  int count = 0;
};

class Coverage {
 public:
  explicit Coverage(const Schedule& schedule) : schedule_(schedule) {}
  absl::Status Collect();
  absl::Status CheckModule(std::int16_t module) const;
  absl::Status CheckCounts() const;

 private:
  absl::Status Add(OperationRef ref, const Operation& op);
  absl::Status CheckHome(OperationRef ref, const Tag& tag);
  absl::Status CheckPresent(const CellKey& key) const;
  absl::Status CompareWithFirst(const Cell& first, const CellKey& key) const;
  std::string Say(const CellKey& key) const;
  const Cell* Find(const CellKey& key) const {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &cells_[found->second];
  }

  const Schedule& schedule_;
  std::vector<Cell> cells_;  // in order of first issue
  std::size_t last_ = 0;     // the cell of the operation before: neighbours mostly share it
  absl::flat_hash_map<CellKey, std::size_t> index_;
  std::map<std::pair<std::int16_t, std::int16_t>, OperationRef> homes_;  // by (module, layer)
  std::map<std::int16_t, std::set<std::int16_t>> slices_;                // by module
};

// Gradient and parameter synchronisation may carry a layer's tag too, but runs once per step.
bool IsWorkOfLayer(const Operation& op) {
  if (op.tag.module < 0 || op.tag.layer < 0 || op.tag.micro_batch < 0) return false;
  if (op.kind == OperationKind::kSend || op.kind == OperationKind::kReceive) return false;
  return op.tag.phase <= Phase::kWeightGradient && op.stream != Stream::kDataParallel;
}

absl::Status Coverage::Collect() {
  for (std::size_t p = 0; p < schedule_.programs.size(); ++p) {
    const std::vector<Operation>& operations = schedule_.programs[p].operations;
    for (std::uint32_t id = 0; id < operations.size(); ++id) {
      if (!IsWorkOfLayer(operations[id])) continue;
      OPTIMUS_RETURN_IF_ERROR(Add({static_cast<std::int32_t>(p), id}, operations[id]));
    }
  }
  return absl::OkStatus();
}

absl::Status Coverage::Add(OperationRef ref, const Operation& op) {
  const Tag& tag = op.tag;
  const CellKey key{
      tag.module,     tag.layer, tag.slice, tag.phase, op.kind == OperationKind::kCollective,
      tag.micro_batch};
  if (cells_.empty() || cells_[last_].key != key) {
    const auto [entry, added] = index_.try_emplace(key, cells_.size());
    if (added) {
      cells_.push_back({key, ref, 0});
      slices_[tag.module].insert(tag.slice);
    }
    last_ = entry->second;
  }
  Cell& cell = cells_[last_];
  const Operation& first = schedule_.programs[cell.first.program].operations[cell.first.operation];
  const bool opens = cell.count == 0;
  ++cell.count;
  const bool moved = cell.first.program != ref.program || first.tag.chunk != tag.chunk;
  return opens || moved ? CheckHome(ref, tag) : absl::OkStatus();
}

absl::Status Coverage::CheckHome(OperationRef ref, const Tag& tag) {
  const auto [home, added] = homes_.try_emplace({tag.module, tag.layer}, ref);
  if (added) return absl::OkStatus();
  const OperationRef first = home->second;
  const Tag& home_tag = schedule_.programs[first.program].operations[first.operation].tag;
  if (first.program == ref.program && home_tag.chunk == tag.chunk) return absl::OkStatus();
  return OperationError(schedule_, ref, "tag.layer",
                        absl::StrCat("this layer also runs at ", NameOperation(schedule_, first)),
                        "a layer has one stage and one model chunk");
}

std::string Coverage::Say(const CellKey& key) const {
  std::string text = absl::StrCat("module '", schedule_.modules[key.module].name, "' layer ",
                                  key.layer, " micro-batch ", key.micro_batch);
  if (key.slice != -1) absl::StrAppend(&text, " slice ", key.slice);
  return absl::StrCat(text, " ", ToString(key.phase));
}

absl::Status Coverage::CheckPresent(const CellKey& key) const {
  if (Find(key) != nullptr) return absl::OkStatus();
  const auto home = homes_.find({key.module, key.layer});
  const std::string where =
      home == homes_.end()
          ? "the layer is on no stage"
          : absl::StrCat("other work of the layer is at ", NameOperation(schedule_, home->second));
  return absl::InvalidArgumentError(
      absl::StrCat(Say(key), ": is missing (", where,
                   "); hint: every layer runs for every micro-batch and slice; a module without "
                   "backward is marked frozen"));
}

// The first miss ends it, so this takes no longer than there are cells.
absl::Status Coverage::CheckModule(std::int16_t module) const {
  const ModuleInfo& info = schedule_.modules[module];
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
    for (key.micro_batch = 0; key.micro_batch < schedule_.micro_batches; ++key.micro_batch) {
      for (const std::int16_t slice : slices->second) {
        key.slice = slice;
        key.phase = Phase::kForward;
        OPTIMUS_RETURN_IF_ERROR(CheckPresent(key));
        key.phase = Phase::kBackward;
        if (!info.frozen) OPTIMUS_RETURN_IF_ERROR(CheckPresent(key));
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
      Say(key), ": has ", count, key.collective ? " collectives" : " kernels", ", micro-batch ",
      first.key.micro_batch, " has ", first.count, " (from ", NameOperation(schedule_, first.first),
      " on); hint: every micro-batch does the same work, once"));
}

absl::Status Coverage::CheckCounts() const {
  for (const Cell& cell : cells_) {
    CellKey key = cell.key;
    if (key.micro_batch != 0) {
      key.micro_batch = 0;
      if (Find(key) == nullptr) OPTIMUS_RETURN_IF_ERROR(CompareWithFirst(cell, key));
      continue;
    }
    for (key.micro_batch = 1; key.micro_batch < schedule_.micro_batches; ++key.micro_batch) {
      OPTIMUS_RETURN_IF_ERROR(CompareWithFirst(cell, key));
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
