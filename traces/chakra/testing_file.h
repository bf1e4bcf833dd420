#pragma once
// Chakra files for tests, message by message.

#include <zlib.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "traces/chakra/et_subset.pb.h"
#include "traces/chakra/own_attributes.h"

namespace optimus::traces::chakra {

class TestingFile {
 public:
  explicit TestingFile(const std::string& version = "0.0.4") {
    ::optimus::chakra::GlobalMetadata metadata;
    metadata.set_version(version);
    Add(metadata);
  }
  template <class Message>
  TestingFile& Add(const Message& message) {
    return AddBytes(message.SerializeAsString());
  }
  TestingFile& AddBytes(const std::string& message) {
    for (std::size_t rest = message.size(); true; rest >>= 7) {
      bytes_.push_back(static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0)));
      if (rest <= 0x7f) break;
    }
    bytes_ += message;
    ends_.push_back(bytes_.size());
    return *this;
  }
  const std::string& bytes() const { return bytes_; }
  const std::vector<std::size_t>& ends() const { return ends_; }  // of its messages

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

inline ::optimus::chakra::Node MakeNode(std::uint64_t id, ::optimus::chakra::NodeType type,
                                        std::initializer_list<std::uint64_t> data_deps = {}) {
  ::optimus::chakra::Node node;
  node.set_id(id);
  node.set_name("node" + std::to_string(id));
  node.set_type(type);
  for (const std::uint64_t parent : data_deps) node.add_data_deps(parent);
  return node;
}

inline ::optimus::chakra::Node MakeKernel(std::uint64_t id, std::uint64_t start,
                                          std::uint64_t duration,
                                          std::initializer_list<std::uint64_t> data_deps = {}) {
  ::optimus::chakra::Node node = MakeNode(id, ::optimus::chakra::COMP_NODE, data_deps);
  node.set_start_time_micros(start);
  node.set_duration_micros(duration);
  return node;
}

// comm_type below 0: without.
inline ::optimus::chakra::Node MakeCollective(std::uint64_t id, std::int64_t comm_type,
                                              std::int64_t comm_size,
                                              const std::string& pg_name = "") {
  ::optimus::chakra::Node node = MakeNode(id, ::optimus::chakra::COMM_COLL_NODE);
  if (comm_type >= 0) AddInt64(*node.mutable_attr(), "comm_type", comm_type);
  AddInt64(*node.mutable_attr(), "comm_size", comm_size);
  if (!pg_name.empty()) AddString(*node.mutable_attr(), "pg_name", pg_name);
  return node;
}

inline std::string Gzip(const std::string& bytes) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  const std::size_t written = packed.size() - stream.avail_out;
  deflateEnd(&stream);
  return packed.substr(0, written);
}

}  // namespace optimus::traces::chakra
