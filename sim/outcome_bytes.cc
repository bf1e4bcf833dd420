#include "sim/outcome_bytes.h"

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"

namespace optimus::sim {
namespace {

class Writer {
 public:
  template <class T>
  void Put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class Container>
  void PutAll(const Container& values) {
    using T = typename Container::value_type;
    static_assert(std::is_trivially_copyable_v<T>);
    Put<std::uint64_t>(values.size());
    if (values.empty()) return;
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}
  template <class T>
  void Get(T& value) {
    if (!Has(sizeof value)) return;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
  }
  template <class Container>
  void GetAll(Container& values) {
    using T = typename Container::value_type;
    std::uint64_t count = 0;
    Get(count);
    if (count > bytes_.size() / sizeof(T)) ok_ = false;
    if (!ok_ || count == 0) return;
    values.resize(count);
    std::memcpy(values.data(), bytes_.data(), count * sizeof(T));
    bytes_.remove_prefix(count * sizeof(T));
  }
  bool AllRead() const { return ok_ && bytes_.empty(); }

 private:
  bool Has(std::size_t size) {
    if (bytes_.size() < size) ok_ = false;
    return ok_;
  }
  absl::string_view bytes_;
  bool ok_ = true;
};

}  // namespace

std::string ToBytes(const Outcome& outcome) {
  Writer writer;
  writer.Put(outcome.timeline.step);
  writer.PutAll(outcome.timeline.entities);
  writer.PutAll(outcome.timeline.spans);
  writer.Put(outcome.timeline.operations);
  writer.PutAll(outcome.timeline.runner);
  writer.PutAll(outcome.timeline.fidelity);
  writer.PutAll(outcome.timeline.fidelity_reason);
  writer.Put(outcome.stats);
  return writer.Take();
}

absl::StatusOr<Outcome> FromBytes(absl::string_view bytes) {
  Outcome outcome;
  Reader reader(bytes);
  reader.Get(outcome.timeline.step);
  reader.GetAll(outcome.timeline.entities);
  reader.GetAll(outcome.timeline.spans);
  reader.Get(outcome.timeline.operations);
  reader.GetAll(outcome.timeline.runner);
  reader.GetAll(outcome.timeline.fidelity);
  reader.GetAll(outcome.timeline.fidelity_reason);
  reader.Get(outcome.stats);
  if (!reader.AllRead()) {
    return absl::DataLossError("simulation process sent a result of the wrong size");
  }
  return outcome;
}

}  // namespace optimus::sim
