#pragma once
// A second, independent reading of a Chakra file: by the field numbers that mlcommons/chakra's
// schema/protobuf/et_def.proto publishes (commit a1120dd), without the generated code of our
// subset: a wrong number or type there would pass a test that reads with the same subset.

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace optimus::traces::chakra {

// Field number and value: a varint, or bytes (fixed values too).
using WireField = std::pair<int, std::variant<std::uint64_t, std::string>>;

class WireReader {
 public:
  explicit WireReader(std::string bytes) : bytes_(std::move(bytes)) {}
  bool done() const { return next_ == bytes_.size(); }
  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.at(next_++));
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string Bytes(std::size_t count) {
    if (count > bytes_.size() - next_) throw std::out_of_range("bytes");
    next_ += count;
    return bytes_.substr(next_ - count, count);
  }
  WireField Field() {
    const std::uint64_t key = Varint();
    const int number = static_cast<int>(key >> 3);
    switch (key & 7) {
      case 0:
        return {number, Varint()};
      case 1:
        return {number, Bytes(8)};
      case 2:
        return {number, Bytes(Varint())};
      case 5:
        return {number, Bytes(4)};
      default:
        throw std::out_of_range("wire type");
    }
  }

 private:
  std::string bytes_;
  std::size_t next_ = 0;
};

// One attribute: its value's field number and the value.
struct WireValue {
  int field = 0;
  std::uint64_t number = 0;
  std::string text;
  friend bool operator==(const WireValue&, const WireValue&) = default;
};

// Fields of AttributeProto.
inline constexpr int kInt32Field = 7, kInt64Field = 9, kUint64Field = 13, kBoolField = 27,
                     kStringField = 29;
inline WireValue Int32Value(std::uint64_t number) { return {kInt32Field, number, ""}; }
inline WireValue Int64Value(std::uint64_t number) { return {kInt64Field, number, ""}; }
inline WireValue Uint64Value(std::uint64_t number) { return {kUint64Field, number, ""}; }
inline WireValue BoolValue(bool value) { return {kBoolField, value ? 1U : 0U, ""}; }
inline WireValue StringValue(std::string text) { return {kStringField, 0, std::move(text)}; }

struct WireNode {
  std::uint64_t id = 0, type = 0, start = 0, duration = 0;
  std::string name;
  std::vector<std::uint64_t> ctrl_deps, data_deps;
  std::map<std::string, WireValue> attributes;
};

inline std::pair<std::string, WireValue> ReadWireAttribute(const std::string& bytes) {
  std::string name;
  WireValue value;
  for (WireReader reader(bytes); !reader.done();) {
    const auto [field, content] = reader.Field();
    if (field == 1) {
      name = std::get<std::string>(content);
      continue;
    }
    value.field = field;
    if (const auto* number = std::get_if<std::uint64_t>(&content)) value.number = *number;
    if (const auto* text = std::get_if<std::string>(&content)) value.text = *text;
  }
  return {name, value};
}

inline WireNode ReadWireNode(const std::string& bytes) {
  WireNode node;
  for (WireReader reader(bytes); !reader.done();) {
    const auto [field, content] = reader.Field();
    const auto* number = std::get_if<std::uint64_t>(&content);
    const auto* text = std::get_if<std::string>(&content);
    if (field == 1) node.id = *number;
    if (field == 2) node.name = *text;
    if (field == 3) node.type = *number;
    if (field == 4 || field == 5) {
      for (WireReader list(*text); !list.done();) {
        (field == 4 ? node.ctrl_deps : node.data_deps).push_back(list.Varint());
      }
    }
    if (field == 6) node.start = *number;
    if (field == 7) node.duration = *number;
    if (field == 10) node.attributes.insert(ReadWireAttribute(*text));
  }
  return node;
}

// Nodes of a file; the version, the first field of the first message, apart.
struct WireFile {
  std::string version;
  std::vector<WireNode> nodes;
};

inline WireFile ReadWireFile(const std::string& bytes) {
  WireFile file;
  bool first = true;
  for (WireReader reader(bytes); !reader.done(); first = false) {
    const std::string message = reader.Bytes(reader.Varint());
    if (!first) {
      file.nodes.push_back(ReadWireNode(message));
      continue;
    }
    for (WireReader metadata(message); !metadata.done();) {
      const auto [field, content] = metadata.Field();
      if (field == 1) file.version = std::get<std::string>(content);
    }
  }
  return file;
}

}  // namespace optimus::traces::chakra
