#include "schedule/pipeline/compute_schedule_communication.h"

#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace optimus::pipeline {
namespace {

class RowCheck {
 public:
  RowCheck(const std::vector<CsvAction>& actions, const std::vector<std::size_t>& columns,
           std::size_t stages)
      : last_stage_(static_cast<std::int32_t>(stages) - 1) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const CsvAction& action = actions[i];
      computed_stages_.insert(action.stage);
      // A gradient is there with the whole backward, or its part for the input.
      if (action.kind == SlotKind::kBackwardWeight) continue;
      computed_[{action.kind == SlotKind::kForward, action.stage, action.micro_batch}] = {
          action.kind, columns[i]};
    }
  }

  // Empty: nothing.
  std::string ProblemOf(const CommunicationCell& cell) {
    const CsvCommunication& what = cell.communication;
    if (computed_stages_.count(what.stage) == 0) {
      return absl::StrCat("the rank computes nothing of stage ", what.stage);
    }
    if (!what.micro_batch.has_value()) return "";  // of a stage: as often as memory wants it
    const bool send = what.name == "SEND_F" || what.name == "SEND_B";
    const bool forward = what.name == "SEND_F" || what.name == "RECV_F";
    if (what.stage == (forward == send ? last_stage_ : 0)) {
      return absl::StrCat("there is no stage ", forward == send ? "behind" : "in front of",
                          " stage ", what.stage, send ? " to send to" : " to receive from");
    }
    if (!seen_.insert({what.name, what.stage, *what.micro_batch}).second) return "is there twice";
    return OutOfOrder(cell, send, forward);
  }

 private:
  struct Computed {
    SlotKind kind = SlotKind::kForward;
    std::size_t column = 0;
  };

  std::string OutOfOrder(const CommunicationCell& cell, bool send, bool forward) const {
    const CsvCommunication& what = cell.communication;
    const auto found = computed_.find({forward, what.stage, *what.micro_batch});
    if (found == computed_.end()) {
      return absl::StrCat("the rank computes no ", forward ? "forward" : "backward",
                          " of micro-batch ", *what.micro_batch, " on stage ", what.stage);
    }
    const Computed& computed = found->second;
    if (send == (computed.column < cell.column)) return "";
    return absl::StrCat(send ? "is sent before it is computed" : "is received after it was needed",
                        ", by ", CellText(CsvAction{computed.kind, what.stage, *what.micro_batch}),
                        " in cell ", computed.column + 1);
  }

  std::int32_t last_stage_;
  absl::flat_hash_set<std::int32_t> computed_stages_;
  // By way (forward or not), stage and micro-batch.
  absl::flat_hash_map<std::tuple<bool, std::int32_t, std::int32_t>, Computed> computed_;
  absl::flat_hash_set<std::tuple<std::string, std::int32_t, std::int32_t>> seen_;
};

}  // namespace

std::optional<CommunicationProblem> FindCommunicationProblem(
    const std::vector<CsvAction>& actions, const std::vector<std::size_t>& columns,
    const std::vector<CommunicationCell>& cells, std::size_t stages) {
  RowCheck check(actions, columns, stages);
  for (const CommunicationCell& cell : cells) {
    std::string problem = check.ProblemOf(cell);
    if (!problem.empty()) return CommunicationProblem{cell.column, std::move(problem)};
  }
  return std::nullopt;
}

}  // namespace optimus::pipeline
