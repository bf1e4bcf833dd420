#pragma once
// The text of a pipeline-schedule CSV (compute_schedule_csv.h): rows, cells and what a cell says.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

// One action of a rank.
struct CsvAction {
  SlotKind kind = SlotKind::kForward;
  std::int32_t stage = 0;  // along the whole model
  std::int32_t micro_batch = 0;
  bool with_next = false;
};

// "1SEND_B0", "0UNSHARD".
struct CsvCommunication {
  std::string name;        // "SEND_B"
  std::int32_t stage = 0;  // along the whole model
  std::optional<std::int32_t> micro_batch;
};

struct CsvCell {
  std::vector<CsvAction> actions;  // none: idle or communication
  std::optional<CsvCommunication> communication;
};

// By row its cells, without quotes and surrounding spaces. Line ends may be \n or \r\n; lines at
// the end that are empty are no rows. INVALID_ARGUMENT, naming the line, for quotes that do not
// match.
absl::StatusOr<std::vector<std::vector<std::string>>> SplitCells(absl::string_view text);

// INVALID_ARGUMENT: what is wrong with it, without its place.
absl::StatusOr<CsvCell> ParseCell(absl::string_view text);

// "0F3"; of a forward that shares the rank with `next`: "(0F3;7B0)OVERLAP_F_B".
std::string CellText(const CsvAction& action);
std::string CellText(const CsvAction& forward, const CsvAction& next);

}  // namespace optimus::pipeline
