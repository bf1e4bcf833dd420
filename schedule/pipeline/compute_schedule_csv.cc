#include "schedule/pipeline/compute_schedule_csv.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "schedule/pipeline/compute_schedule_cells.h"
#include "schedule/pipeline/compute_schedule_communication.h"
#include "schedule/pipeline/order_builder.h"
#include "schedule/pipeline/order_span.h"
#include "schedule/pipeline/validate_order.h"

namespace optimus::pipeline {
namespace {

// One row of the file.
struct RankActions {
  std::vector<CsvAction> actions;
  std::vector<std::size_t> columns;  // of the cell of each action, from 0
  std::vector<CommunicationCell> communication;
};

std::string RankName(std::size_t rank) {
  return absl::StrCat("rank ", rank, " (line ", rank + 1, ")");
}

absl::Status ErrorAt(std::size_t rank, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(RankName(rank), problem));
}

class Reader {
 public:
  explicit Reader(std::optional<Placement> placement) : asked_(placement) {}

  absl::StatusOr<ComputeSchedule> Read(absl::string_view text) {
    OPTIMUS_ASSIGN_OR_RETURN(cells_, SplitCells(text));
    OPTIMUS_RETURN_IF_ERROR(ParseCells());
    OPTIMUS_RETURN_IF_ERROR(FindHolders());
    OPTIMUS_RETURN_IF_ERROR(CountMicroBatches());
    OPTIMUS_RETURN_IF_ERROR(ChoosePlacement());
    FillSlots();
    OPTIMUS_RETURN_IF_ERROR(CheckOrder());
    OPTIMUS_RETURN_IF_ERROR(CheckCommunication());
    return std::move(result_);
  }

 private:
  Order& order() { return result_.order; }
  int ranks() const { return static_cast<int>(ranks_.size()); }

  absl::Status ErrorAtCell(std::size_t rank, std::size_t column, absl::string_view problem) const {
    return ErrorAt(
        rank, absl::StrCat(", cell ", column + 1, " \"", cells_[rank][column], "\": ", problem));
  }
  absl::Status ErrorAtAction(std::size_t rank, std::size_t index, absl::string_view problem) const {
    return ErrorAtCell(rank, ranks_[rank].columns[index], problem);
  }

  absl::Status ParseCells() {
    ranks_.reserve(cells_.size());
    for (std::size_t rank = 0; rank < cells_.size(); ++rank) {
      RankActions& row = ranks_.emplace_back();
      for (std::size_t column = 0; column < cells_[rank].size(); ++column) {
        absl::StatusOr<CsvCell> cell = ParseCell(cells_[rank][column]);
        if (!cell.ok()) return ErrorAtCell(rank, column, cell.status().message());
        if (cell->communication.has_value()) {
          ++result_.left_out[cell->communication->name];
          row.communication.push_back({*std::move(cell->communication), column});
        }
        for (const CsvAction& action : cell->actions) {
          row.actions.push_back(action);
          row.columns.push_back(column);
        }
      }
      if (row.actions.empty()) {
        return ErrorAt(rank, ": computes nothing; every row holds the actions of one rank");
      }
    }
    if (!ranks_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("is empty; expected one row of actions (0F0,0B0,...) a rank");
  }

  // Which rank holds which stage: each one, no more than one, and all ranks equally many.
  absl::Status FindHolders() {
    std::vector<std::size_t> held(ranks_.size(), 0);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::size_t i = 0; i < ranks_[rank].actions.size(); ++i) {
        const std::int32_t stage = ranks_[rank].actions[i].stage;
        const auto [holder, is_new] = holders_.emplace(stage, rank);
        if (holder->second != rank) {
          return ErrorAtAction(rank, i,
                               absl::StrCat("stage ", stage, " is on rank ", holder->second,
                                            " as well; a stage is on one rank"));
        }
        if (is_new) ++held[rank];
      }
    }
    std::int32_t expected = 0;
    for (const auto& [stage, rank] : holders_) {
      if (stage != expected) {
        return absl::InvalidArgumentError(absl::StrCat("stage ", expected, " is on no rank, but ",
                                                       RankName(rank), " runs stage ", stage));
      }
      ++expected;
    }
    for (std::size_t rank = 1; rank < held.size(); ++rank) {
      if (held[rank] != held[0]) {
        return ErrorAt(rank, absl::StrCat(": runs ", held[rank], " stages, but rank 0 runs ",
                                          held[0], "; every rank runs equally many"));
      }
    }
    order().stages = ranks();
    order().chunks = static_cast<std::int32_t>(held[0]);
    return absl::OkStatus();
  }

  // From the largest index, which a row of so few actions can hold.
  absl::Status CountMicroBatches() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const std::vector<CsvAction>& actions = ranks_[rank].actions;
      for (std::size_t i = 0; i < actions.size(); ++i) {
        const auto index = static_cast<std::size_t>(actions[i].micro_batch);
        if (index >= actions.size()) {
          return ErrorAtAction(
              rank, i,
              absl::StrCat("micro-batch ", index, ", but rank ", rank, " computes only ",
                           actions.size(), " times; micro-batches count from 0 without gaps"));
        }
        order().micro_batches = std::max(order().micro_batches, actions[i].micro_batch + 1);
      }
    }
    return CheckCounts(order().stages, order().chunks, order().micro_batches);
  }

  // By stage along the model, where `placement` puts it.
  std::vector<Place> PlacesOf(Placement placement) const {
    std::vector<Place> places(holders_.size());
    for (std::int32_t rank = 0; rank < result_.order.stages; ++rank) {
      for (std::int32_t chunk = 0; chunk < result_.order.chunks; ++chunk) {
        const Place place{rank, chunk};
        places[VirtualStageOf(placement, result_.order.stages, place)] = place;
      }
    }
    return places;
  }

  // The first rank that holds a stage which `placement` puts elsewhere, and that stage.
  struct Misplaced {
    std::size_t rank;
    std::int32_t stage;
  };
  std::optional<Misplaced> FindMisplaced(const std::vector<Place>& places) const {
    std::optional<Misplaced> first;
    for (const auto& [stage, rank] : holders_) {
      if (static_cast<std::size_t>(places[stage].stage) == rank) continue;
      if (!first.has_value() || rank < first->rank) first = Misplaced{rank, stage};
    }
    return first;
  }

  std::string Held(std::size_t rank) const {
    std::vector<std::int32_t> stages;
    for (const auto& [stage, holder] : holders_) {
      if (holder == rank) stages.push_back(stage);
    }
    return absl::StrJoin(stages, " and ");
  }

  absl::Status ChoosePlacement() {
    if (asked_ == Placement::kBidirectional) {
      return absl::InvalidArgumentError(
          "a bidirectional placement has every stage on two ranks, which this format cannot say");
    }
    std::string problem;
    std::size_t farthest = 0;
    for (const Placement placement : {Placement::kLoop, Placement::kV}) {
      if (asked_.value_or(placement) != placement) continue;
      places_ = PlacesOf(placement);
      const std::optional<Misplaced> misplaced = FindMisplaced(places_);
      if (!misplaced.has_value()) {
        order().placement = placement;
        return absl::OkStatus();
      }
      // Of two that do not fit, the one that fits longer is more likely what was meant.
      if (!problem.empty() && misplaced->rank <= farthest) continue;
      farthest = misplaced->rank;
      problem = absl::StrCat(
          ": runs stages ", Held(farthest), ", but a placement as a ", ToString(placement),
          " has stage ", misplaced->stage, " on rank ", places_[misplaced->stage].stage,
          asked_.has_value() ? ""
                             : "; all ranks hold their stages in a loop (rank r: r, r + ranks, "
                               "...) or all in a V (down the ranks and back)");
    }
    return ErrorAt(farthest, problem);
  }

  void FillSlots() {
    order().slots.resize(ranks_.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      order().slots[rank].reserve(ranks_[rank].actions.size());
      for (const CsvAction& action : ranks_[rank].actions) {
        order().slots[rank].push_back(
            {action.kind, places_[action.stage].chunk, action.micro_batch, action.with_next});
      }
    }
  }

  CsvAction InWordsOfFile(std::size_t rank, const Slot& slot) const {
    return {slot.kind, VirtualStageOf(result_.order, rank, slot), slot.micro_batch};
  }

  absl::Status CheckOrder() const {
    const std::optional<OrderProblem> problem = FindProblem(result_.order);
    if (problem.has_value() && problem->index.has_value()) return AtProblem(*problem);
    if (problem.has_value()) {
      return ErrorAt(problem->stage,
                     absl::StrCat(": ", CellText(InWordsOfFile(problem->stage, problem->slot)),
                                  " is missing; the largest micro-batch in the file is ",
                                  result_.order.micro_batches - 1));
    }
    const std::vector<Wait> circle = FindDeadlock(result_.order);
    return circle.empty() ? absl::OkStatus() : AtCircle(circle);
  }

  std::string CellName(std::size_t rank, std::size_t index) const {
    const std::size_t column = ranks_[rank].columns[index];
    return absl::StrCat(RankName(rank), ", cell ", column + 1, " \"", cells_[rank][column], "\"");
  }

  // Every member: the one that waits, what for, and which member that cannot run before.
  absl::Status AtCircle(const std::vector<Wait>& circle) const {
    std::string text = absl::StrCat(CellName(circle[0].stage, circle[0].index), ": ");
    for (std::size_t i = 0; i < circle.size(); ++i) {
      const Wait& wait = circle[i];
      const Wait& next = circle[(i + 1) % circle.size()];
      const Slot& needed = result_.order.slots[wait.needs_stage][wait.needs_index];
      absl::StrAppend(&text, i == 0 ? "" : ", which ", "waits for ",
                      CellText(InWordsOfFile(wait.needs_stage, needed)),
                      wait.needs_index == next.index ? ", which is " : ", which cannot run before ",
                      CellName(next.stage, next.index));
    }
    return absl::InvalidArgumentError(
        absl::StrCat(text, circle.size() == 1 ? ": the rank waits for itself for ever"
                                              : ": the ranks wait for each other for ever"));
  }

  absl::Status CheckCommunication() const {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const RankActions& row = ranks_[rank];
      const auto problem =
          FindCommunicationProblem(row.actions, row.columns, row.communication, holders_.size());
      if (problem.has_value()) return ErrorAtCell(rank, problem->column, problem->what);
    }
    return absl::OkStatus();
  }

  absl::Status AtProblem(const OrderProblem& problem) const {
    const std::vector<Slot>& slots = result_.order.slots[problem.stage];
    const auto same_whole = [&](const Slot& slot) {
      return slot.kind == SlotKind::kBackward && slot.chunk == problem.slot.chunk &&
             slot.micro_batch == problem.slot.micro_batch;
    };
    const bool after_whole =
        problem.slot.kind == SlotKind::kBackwardWeight &&
        std::any_of(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(*problem.index),
                    same_whole);
    return ErrorAtAction(
        problem.stage, *problem.index,
        absl::StrCat(problem.what,
                     after_whole ? ": B was the whole backward already (files of older PyTorch "
                                   "write B for an input gradient; write I)"
                                 : ""));
  }

  const std::optional<Placement> asked_;
  std::vector<std::vector<std::string>> cells_;  // by rank
  std::vector<RankActions> ranks_;
  std::map<std::int32_t, std::size_t> holders_;  // rank by stage along the model
  std::vector<Place> places_;                    // by stage along the model
  ComputeSchedule result_;
};

}  // namespace

absl::StatusOr<ComputeSchedule> ReadComputeSchedule(absl::string_view text,
                                                    std::optional<Placement> placement) {
  return Reader(placement).Read(text);
}

}  // namespace optimus::pipeline
