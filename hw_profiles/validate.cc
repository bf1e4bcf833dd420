// Walks the whole message by reflection, so that a number added to profile.proto is checked without
// a line of code here.

#include <cmath>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "hw_profiles/profile.h"

namespace optimus::hw {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

absl::Status Bad(const std::string& field, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

// The range of a number follows from the unit in its name.
absl::Status CheckRange(const std::string& path, const std::string& field, double value) {
  const std::string name = absl::StrCat(path, ".value");
  if (!std::isfinite(value)) return Bad(name, "must be a finite number");
  if (absl::EndsWith(field, "efficiency")) {
    if (value > 0 && value <= 1) return absl::OkStatus();
    return Bad(name, absl::StrCat("is ", value, "; an efficiency is above 0 and at most 1"));
  }
  if (absl::EndsWith(field, "_us") || absl::EndsWith(field, "_ms") || field == "minimum_mib") {
    if (value >= 0) return absl::OkStatus();
    return Bad(name, absl::StrCat("is ", value, "; must not be negative"));
  }
  if (value <= 0) return Bad(name, absl::StrCat("is ", value, "; must be positive"));
  if (field == "gpus_per_node" && (value != std::floor(value) || value > 1024)) {
    return Bad(name, absl::StrCat("is ", value, "; must be a whole number up to 1024"));
  }
  return absl::OkStatus();
}

absl::Status CheckNumber(const std::string& path, const std::string& field, const Number& number) {
  if (!number.has_value()) return Bad(absl::StrCat(path, ".value"), "is missing");
  OPTIMUS_RETURN_IF_ERROR(CheckRange(path, field, number.value()));
  if (number.origin() == Number::ORIGIN_UNSPECIFIED) {
    return Bad(absl::StrCat(path, ".origin"),
               "is missing; one of DATASHEET, MEASURED, FITTED, ASSUMED");
  }
  if (number.source().empty()) {
    return Bad(absl::StrCat(path, ".source"), "is missing; say where the number comes from");
  }
  static const std::regex date("[12][0-9]{3}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?");
  if (!std::regex_match(number.date(), date)) {
    return Bad(absl::StrCat(path, ".date"),
               absl::StrCat("is '", number.date(), "'; write YYYY, YYYY-MM or YYYY-MM-DD"));
  }
  return absl::OkStatus();
}

// Every message field must be there, except the optional `nvls`.
absl::Status CheckMessage(const std::string& prefix, const Message& message) {
  const auto* reflection = message.GetReflection();
  const auto* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const std::string path = absl::StrCat(prefix, field->name());
    if (!reflection->HasField(message, field)) {
      if (field->message_type() == Nvls::descriptor()) continue;
      return Bad(path, "is missing");
    }
    const Message& part = reflection->GetMessage(message, field);
    if (field->message_type() == Number::descriptor()) {
      OPTIMUS_RETURN_IF_ERROR(CheckNumber(path, field->name(), static_cast<const Number&>(part)));
    } else {
      OPTIMUS_RETURN_IF_ERROR(CheckMessage(absl::StrCat(path, "."), part));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNvls(const Nvls& nvls) {
  if (nvls.collectives().empty()) {
    return Bad("nvls.collectives", "is empty; list at least one, or drop nvls");
  }
  for (const int collective : nvls.collectives()) {
    if (collective == Nvls::COLLECTIVE_UNSPECIFIED) {
      return Bad("nvls.collectives", "holds COLLECTIVE_UNSPECIFIED");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateProfile(const HardwareProfile& profile) {
  if (profile.name().empty()) return Bad("name", "is missing");
  OPTIMUS_RETURN_IF_ERROR(CheckMessage("", profile));
  if (profile.has_nvls()) return CheckNvls(profile.nvls());
  return absl::OkStatus();
}

}  // namespace optimus::hw
