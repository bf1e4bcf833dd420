#pragma once
// The messages of a Chakra file, one after another through a window: each is a varint length and
// then so many bytes.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "traces/chakra/et_subset.pb.h"
#include "traces/chakra/window.h"

namespace optimus::traces::chakra {

using ::optimus::chakra::AttributeProto;
using ::optimus::chakra::GlobalMetadata;
using ::optimus::chakra::Node;

inline constexpr std::uint64_t kLongestMessage = std::uint64_t{64} << 20;

class MessageReader {
 public:
  explicit MessageReader(Window& window) : window_(window) {}

  // INVALID_ARGUMENT naming what the file is, and a hint, where it is JSON or empty. Before the
  // first message.
  absl::Status CheckIsNoJson();

  // False at the end of the file. INVALID_ARGUMENT naming the file and the byte: a file that ends
  // inside a message, a message longer than kLongestMessage, bytes that are no such message, a
  // field that Chakra's schema (et_subset.proto) does not have.
  absl::StatusOr<bool> Next(GlobalMetadata& metadata);
  absl::StatusOr<bool> Next(Node& node);

  // Where the last message begins in the (gunzipped) file, as errors about it say.
  std::uint64_t message_offset() const { return offset_; }
  // "FILE: byte N: " of the last message.
  std::string Where() const;

 private:
  template <class Message>
  absl::StatusOr<bool> Parse(Message& message);
  absl::StatusOr<std::uint64_t> ReadLength();
  Window& window_;
  std::uint64_t offset_ = 0;
};

}  // namespace optimus::traces::chakra
