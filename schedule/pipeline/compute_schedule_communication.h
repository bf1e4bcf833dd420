#pragma once
// The communication cells of one row of a pipeline-schedule CSV (compute_schedule_csv.h), held
// against what the row computes. They are derived anew, so one that is missing is none the worse;
// one that cannot be is a typing error.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "schedule/pipeline/compute_schedule_cells.h"

namespace optimus::pipeline {

struct CommunicationCell {
  CsvCommunication communication;
  std::size_t column = 0;
};

struct CommunicationProblem {
  std::size_t column = 0;
  std::string what;
};

// The first cell of a stage that the row does not compute, that sends from the end of the model or
// receives in front of it (model of `stages` stages), sends what is not computed before it, or
// receives what is not computed behind it; and one that is there twice. `columns`: of the actions.
std::optional<CommunicationProblem> FindCommunicationProblem(
    const std::vector<CsvAction>& actions, const std::vector<std::size_t>& columns,
    const std::vector<CommunicationCell>& cells, std::size_t stages);

}  // namespace optimus::pipeline
