#pragma once
// Attributes by name: lists and single values, with errors that name them.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "traces/chakra/et_subset.pb.h"

namespace optimus::traces::chakra {

using Attributes = ::google::protobuf::RepeatedPtrField<::optimus::chakra::AttributeProto>;

void AddInt32(Attributes& to, absl::string_view name, std::int32_t value);
void AddInt64(Attributes& to, absl::string_view name, std::int64_t value);
void AddUint64(Attributes& to, absl::string_view name, std::uint64_t value);
void AddDouble(Attributes& to, absl::string_view name, double value);
void AddBool(Attributes& to, absl::string_view name, bool value);
void AddString(Attributes& to, absl::string_view name, absl::string_view value);
void AddBytes(Attributes& to, absl::string_view name, absl::string_view value);

// Lists that grow one value at a time; added (also empty ones) by AddTo.
struct Int64Column {
  std::vector<std::int64_t> values;
  void AddTo(Attributes& to, absl::string_view name) const;
};
struct TextColumn {
  std::vector<std::string> values;
  void AddTo(Attributes& to, absl::string_view name) const;
};

// Looks up attributes by name. Errors: INVALID_ARGUMENT "attribute NAME: ...".
class AttributeIndex {
 public:
  explicit AttributeIndex(const Attributes& attributes);
  absl::StatusOr<std::int64_t> Whole(absl::string_view name, std::int64_t least,
                                     std::int64_t largest) const;
  absl::StatusOr<std::vector<std::int64_t>> Int64s(absl::string_view name, std::int64_t least,
                                                   std::int64_t largest) const;
  absl::StatusOr<std::vector<std::string>> Texts(absl::string_view name) const;
  bool Has(absl::string_view name) const { return index_.contains(name); }

 private:
  absl::StatusOr<const ::optimus::chakra::AttributeProto*> Find(absl::string_view name) const;
  absl::flat_hash_map<absl::string_view, const ::optimus::chakra::AttributeProto*> index_;
};

// Valid UTF-8 for readers that insist on it: `text`, with '?' for each byte above 127 if it is
// none.
std::string AsUtf8(absl::string_view text);

}  // namespace optimus::traces::chakra
