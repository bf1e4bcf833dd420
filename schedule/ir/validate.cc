#include "schedule/ir/validate.h"

#include "absl/strings/str_cat.h"
#include "schedule/ir/blocked.h"
#include "schedule/ir/validate_parts.h"

namespace optimus::ir {
namespace internal {

absl::Status FieldError(const std::string& where, absl::string_view field, absl::string_view what,
                        absl::string_view hint) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, where.empty() ? "" : ".", field, ": ", what, "; hint: ", hint));
}

absl::Status AtLeast(const std::string& where, absl::string_view field, std::int64_t value,
                     std::int64_t least) {
  if (value >= least) return absl::OkStatus();
  return FieldError(where, field, absl::StrCat(value, " is too small"),
                    absl::StrCat("at least ", least));
}

absl::Status OperationError(const Schedule& schedule, OperationRef ref, absl::string_view field,
                            absl::string_view what, absl::string_view hint) {
  return absl::InvalidArgumentError(
      absl::StrCat(NameOperation(schedule, ref), ": ", field, ": ", what, "; hint: ", hint));
}

absl::Status CheckDeadlock(const Schedule& schedule) {
  Walk walk(schedule);
  walk.Run([](absl::Span<const OperationRef> /*members*/) {});
  if (walk.complete()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(ExplainBlocked(schedule, walk),
                   "; hint: no order of execution meets these waits; reorder one of the streams"));
}

}  // namespace internal

absl::Status Validate(const Schedule& schedule) {
  using Check = absl::Status (*)(const Schedule&);
  constexpr Check kChecks[] = {internal::CheckTables,      internal::CheckWork,
                               internal::CheckOperations,  internal::CheckMessages,
                               internal::CheckCollectives, internal::CheckCoverage,
                               internal::CheckDeadlock};
  for (const Check check : kChecks) {
    const absl::Status status = check(schedule);
    if (status.ok()) continue;
    return absl::Status(status.code(), absl::StrCat("schedule '", schedule.name,
                                                    "': ", std::string(status.message())));
  }
  return absl::OkStatus();
}

}  // namespace optimus::ir
