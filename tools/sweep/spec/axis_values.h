#pragma once
// The values of one axis, as text.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/sweep/spec/field_path.h"
#include "tools/sweep/spec/sweep.pb.h"

namespace optimus::sweep {

// INVALID_ARGUMENT where the axis has no values or several ways of giving them, a range does not
// end or has over a million values, or a value is not of the field's type or there twice. The
// message starts with the field.
// `repeats`: a value may be there twice (zips).
absl::StatusOr<std::vector<std::string>> AxisValues(const Axis& axis, const FieldPath& field,
                                                    bool repeats = false);

}  // namespace optimus::sweep
