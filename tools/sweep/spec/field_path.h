#pragma once
// "plan.tensor_parallel", "encoders[0].model", "profile.nic.bandwidth_gb_per_s": a field of an
// experiment or of its hardware profile, found by protobuf's own descriptions and set from text.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace optimus::sweep {

class FieldPath {
 public:
  enum class Root { kExperiment, kProfile };

  // INVALID_ARGUMENT where there is no such field, with the fields there are; where it is a
  // message, a list of messages without an index, or a list of values with one.
  static absl::StatusOr<FieldPath> Parse(const std::string& text);

  // `message`: the root's. INVALID_ARGUMENT "plan.tensor_parallel: ..." where `value` is not of the
  // field's type, or an index is beyond the end of its list.
  absl::Status Set(const std::string& value, google::protobuf::Message& message) const;
  // What Set would say of the value, whatever the message.
  absl::Status CheckValue(const std::string& value) const;

  Root root() const { return root_; }
  const std::string& text() const { return text_; }
  const std::string& last() const { return steps_.back().field->name(); }
  bool is_integer() const;
  // Of a column: INTEGER, REAL or TEXT (names, booleans, lists).
  std::string SqlType() const;
  // Names a model, profile or schedule: a zoo's name or a path.
  bool may_be_path() const;

 private:
  struct Step {
    const google::protobuf::FieldDescriptor* field = nullptr;
    int index = -1;  // of lists of messages
  };
  FieldPath() = default;
  // The field that takes the value: of a Number of a profile its `value`.
  const google::protobuf::FieldDescriptor* ValueField() const;
  absl::Status SetValue(const std::string& value, google::protobuf::Message& holder) const;
  absl::Status Error(const std::string& what) const;

  Root root_ = Root::kExperiment;
  std::string text_;
  std::vector<Step> steps_;
};

}  // namespace optimus::sweep
