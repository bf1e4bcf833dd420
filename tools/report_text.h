#pragma once
// Reports for people.

#include <string>
#include <vector>

#include "tools/report.h"

namespace optimus::tools {

// One experiment in full: plan, figures with their formulas, time and memory per stage, layers,
// assumptions. The last line, "wall ...", is the only one that differs from run to run.
std::string FullText(const Report& report);

// What both FullText and PlanText begin with: the conditions of the run.
void AppendHeader(const Report& report, std::string& out);

// "what runs at the same time takes longer: a kernel under an NVLink collective x1.02, ...".
std::string InterferenceText(const InterferenceReport& interference);

// One row an experiment, compared with the first. Two or more reports.
std::string ComparisonText(const std::vector<Report>& reports);

// How the step time of `report` compares with that of `reference`.
double SpeedUp(const Report& reference, const Report& report);           // 1.21: 1.21 times as fast
double ReductionPercent(const Report& reference, const Report& report);  // of the step time

}  // namespace optimus::tools
