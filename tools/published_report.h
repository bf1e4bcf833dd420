#pragma once
// What `optimus validate published` prints, as text and as JSON.

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tools/json_fields.h"
#include "validation/published/evaluate.h"

namespace optimus::tools {

struct PublishedProfile {
  std::string name, hash;
};

struct PublishedReport {
  std::string version;
  std::vector<PublishedProfile> profiles;  // by name
  std::vector<validation::EvaluatedDataSet> data_sets;
  int runs = 0;  // steps simulated
};
PublishedReport MakePublishedReport(std::vector<validation::EvaluatedDataSet> data_sets,
                                    const validation::Simulator& simulator);

std::string PublishedText(const PublishedReport& report);
std::string PublishedJson(const PublishedReport& report);
// Every name of PublishedJson with its meaning, for the command reference.
absl::Span<const JsonField> PublishedJsonFields();

// One line about the targets that are missed; empty: all are met.
std::string MissedText(const PublishedReport& report);

// "1.23" of 0.0123; "-" where there is none.
std::string PercentOr(const std::optional<double>& share);

}  // namespace optimus::tools
