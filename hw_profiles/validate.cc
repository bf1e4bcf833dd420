// Walks the whole message by reflection, so that a number added to profile.proto is checked without
// a line of code here.

#include <cmath>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "hw_profiles/measured_tables.h"
#include "hw_profiles/number_range.h"
#include "hw_profiles/profile.h"

namespace optimus::hw {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

absl::Status Bad(const std::string& field, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

// Wide enough for any GPU there was or will be soon, and for a core of a CPU; narrow enough that
// every price is a number to calculate with.
struct SuffixRange {
  absl::string_view suffix;
  double least = 0, most = 0;
};
constexpr SuffixRange kRanges[] = {
    {"gpus_per_node", 1, 1024},
    {"gpus_per_nic", 1, 1024},
    {"cluster_gpus", 1, 1e7},
    {"multiprocessors", 1, 1e4},
    {"_rows", 1, 1e4},
    {"_columns", 1, 1e4},
    {"_k", 0, 1e4},
    {"_splits", 1, 64},
    {"efficiency", 1e-3, 1},
    {"_factor", 1, 10},
    {"_tflop_per_s", 1e-3, 1e6},
    {"_tb_per_s", 1e-3, 1e6},
    {"_gb_per_s", 1e-3, 1e6},
    {"_us", 0, 1e6},
    {"_ms", 0, 1e6},
    {"_mib", 0, 1e6},
    {"_gib", 1e-3, 1e6},
};
constexpr NumberRange kAnyPositive{1e-3, 1e6};

absl::Status CheckRange(const std::string& path, const std::string& field, double value) {
  const std::string name = absl::StrCat(path, ".value");
  if (!std::isfinite(value)) return Bad(name, "must be a finite number");
  const NumberRange range = RangeOf(field);
  if (value < range.least || value > range.most) {
    return Bad(name, absl::StrCat("is ", value, "; must be from ", range.least, " to ", range.most,
                                  value > 0 ? " (is the unit the one in its name?)" : ""));
  }
  const bool whole = field == "gpus_per_node" || field == "gpus_per_nic" ||
                     field == "cluster_gpus" || field == "streaming_multiprocessors" ||
                     absl::EndsWith(field, "_rows") || absl::EndsWith(field, "_columns") ||
                     field == "most_splits";
  if (whole && value != std::floor(value)) {
    return Bad(name, absl::StrCat("is ", value, "; must be a whole number"));
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

// Parts of a profile that may be missing, because there is a plain meaning to that.
bool IsOptional(const FieldDescriptor* field) {
  return field->name() == "cluster_gpus" || field->message_type() == Nvls::descriptor() ||
         field->message_type() == Protocols::descriptor() ||
         field->message_type() == GemmTiles::descriptor() ||
         field->message_type() == SharedNics::descriptor() ||
         field->message_type() == Overlap::descriptor() ||
         field->containing_type() == Overlap::descriptor();
}

// Every message field must be there, except the optional ones. Tables have a check of their own.
absl::Status CheckMessage(const std::string& prefix, const Message& message) {
  const auto* reflection = message.GetReflection();
  const auto* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_repeated()) continue;
    const std::string path = absl::StrCat(prefix, field->name());
    if (!reflection->HasField(message, field)) {
      if (IsOptional(field)) continue;
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
    if (!Nvls::Collective_IsValid(collective)) {
      return Bad("nvls.collectives",
                 absl::StrCat("holds ", collective,
                              "; one of ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, BROADCAST"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCalibratedOn(const HardwareProfile& profile) {
  for (int i = 0; i < profile.calibrated_on_size(); ++i) {
    const CalibrationRow& row = profile.calibrated_on(i);
    const std::string field = absl::StrCat("calibrated_on[", i, "]");
    if (row.dataset().empty()) {
      return Bad(field + ".dataset", "is missing; name a published data set, such as nccl_busbw");
    }
    if (row.row().empty()) {
      return Bad(field + ".row",
                 "is missing; name the row by its columns, such as gpu=A100,bytes=16777216");
    }
  }
  return absl::OkStatus();
}

}  // namespace

NumberRange RangeOf(const std::string& field) {
  for (const SuffixRange& range : kRanges) {
    if (absl::EndsWith(field, range.suffix)) return {range.least, range.most};
  }
  return kAnyPositive;
}

absl::Status ValidateProfile(const HardwareProfile& profile) {
  if (profile.name().empty()) return Bad("name", "is missing");
  OPTIMUS_RETURN_IF_ERROR(CheckMessage("", profile));
  if (profile.has_nvls()) OPTIMUS_RETURN_IF_ERROR(CheckNvls(profile.nvls()));
  OPTIMUS_RETURN_IF_ERROR(CheckCalibratedOn(profile));
  return ValidateMeasuredTables(profile);
}

}  // namespace optimus::hw
