#pragma once
// The words of a refused field, shared by the checks of an experiment. Internal to this folder.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace optimus::step {

inline absl::Status Bad(const std::string& field, const std::string& problem,
                        const std::string& hint) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", problem, "; ", hint));
}

inline absl::Status CheckPositive(const std::string& field, std::int64_t value) {
  if (value > 0) return absl::OkStatus();
  return Bad(field, absl::StrCat("is ", value), "it must be 1 or more");
}

inline absl::Status CheckNotNegative(const std::string& field, std::int64_t value) {
  if (value >= 0) return absl::OkStatus();
  return Bad(field, absl::StrCat("is ", value), "it must be 0 (the default) or more");
}

// proto3 enums are open: a file may hold any number.
inline absl::Status CheckKnown(const std::string& field, int value, bool known,
                               const std::string& allowed) {
  if (known) return absl::OkStatus();
  return Bad(field, absl::StrCat("unknown value ", value), "use " + allowed);
}

// As CheckKnown, for an enum whose 0 means that nothing was chosen.
inline absl::Status CheckChosen(const std::string& field, int value, bool known,
                                const std::string& allowed) {
  if (value == 0) return Bad(field, "is missing", "use " + allowed);
  return CheckKnown(field, value, known, allowed);
}

}  // namespace optimus::step
