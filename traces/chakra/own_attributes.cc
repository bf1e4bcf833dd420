#include "traces/chakra/own_attributes.h"

#include <simdjson.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "traces/chakra/node_facts.h"

namespace optimus::traces::chakra {
namespace {

using ::optimus::chakra::AttributeProto;

AttributeProto& Add(Attributes& to, absl::string_view name) {
  AttributeProto& attribute = *to.Add();
  attribute.set_name(name.data(), name.size());
  return attribute;
}

absl::Status AttributeError(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("attribute ", name, ": ", what));
}

}  // namespace

void AddInt32(Attributes& to, absl::string_view name, std::int32_t value) {
  Add(to, name).set_int32_val(value);
}
void AddInt64(Attributes& to, absl::string_view name, std::int64_t value) {
  Add(to, name).set_int64_val(value);
}
void AddUint64(Attributes& to, absl::string_view name, std::uint64_t value) {
  Add(to, name).set_uint64_val(value);
}
void AddDouble(Attributes& to, absl::string_view name, double value) {
  Add(to, name).set_double_val(value);
}
void AddBool(Attributes& to, absl::string_view name, bool value) {
  Add(to, name).set_bool_val(value);
}
void AddString(Attributes& to, absl::string_view name, absl::string_view value) {
  Add(to, name).set_string_val(value.data(), value.size());
}
void AddBytes(Attributes& to, absl::string_view name, absl::string_view value) {
  Add(to, name).set_bytes_val(value.data(), value.size());
}

void Int64Column::AddTo(Attributes& to, absl::string_view name) const {
  Add(to, name).mutable_int64_list()->mutable_values()->Add(values.begin(), values.end());
}

void TextColumn::AddTo(Attributes& to, absl::string_view name) const {
  auto& list = *Add(to, name).mutable_bytes_list();
  for (const std::string& value : values) list.add_values(value);
}

AttributeIndex::AttributeIndex(const Attributes& attributes) {
  for (const AttributeProto& attribute : attributes) {
    index_.try_emplace(attribute.name(), &attribute);
  }
}

absl::StatusOr<const AttributeProto*> AttributeIndex::Find(absl::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) return AttributeError(name, "not there");
  return found->second;
}

absl::StatusOr<std::int64_t> AttributeIndex::Whole(absl::string_view name, std::int64_t least,
                                                   std::int64_t largest) const {
  OPTIMUS_ASSIGN_OR_RETURN(const AttributeProto* attribute, Find(name));
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t value, WholeNumber(*attribute));
  if (value >= least && value <= largest) return value;
  return AttributeError(name, absl::StrCat(value, " is not from ", least, " to ", largest));
}

absl::StatusOr<std::vector<std::int64_t>> AttributeIndex::Int64s(absl::string_view name,
                                                                 std::int64_t least,
                                                                 std::int64_t largest) const {
  OPTIMUS_ASSIGN_OR_RETURN(const AttributeProto* attribute, Find(name));
  const auto& values = attribute->int64_list().values();
  const bool fits = std::all_of(values.begin(), values.end(), [&](std::int64_t value) {
    return value >= least && value <= largest;
  });
  if (!attribute->has_int64_list() || !fits) {
    return AttributeError(name, absl::StrCat("no list of numbers from ", least, " to ", largest));
  }
  return std::vector<std::int64_t>(values.begin(), values.end());
}

absl::StatusOr<std::vector<std::string>> AttributeIndex::Texts(absl::string_view name) const {
  OPTIMUS_ASSIGN_OR_RETURN(const AttributeProto* attribute, Find(name));
  if (!attribute->has_bytes_list()) return AttributeError(name, "no list of texts");
  const auto& values = attribute->bytes_list().values();
  return std::vector<std::string>(values.begin(), values.end());
}

std::string AsUtf8(absl::string_view text) {
  std::string valid(text);
  if (simdjson::validate_utf8(text.data(), text.size())) return valid;
  std::replace_if(
      valid.begin(), valid.end(), [](char c) { return static_cast<unsigned char>(c) > 127; }, '?');
  return valid;
}

}  // namespace optimus::traces::chakra
