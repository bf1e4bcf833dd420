#pragma once
// oneDNN's primitives as functions on plain pointers: made once for a shape, run often. They work
// on the calling thread alone, and none of oneDNN's exceptions leaves this file.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "executor/cpu/gemm.h"

namespace optimus::executor {

enum class Element : std::uint8_t { kF32, kBf16 };
constexpr std::int64_t SizeOf(Element element) { return element == Element::kF32 ? 4 : 2; }

// A primitive with its operands' memories. `scratch` of Run: at least scratch() bytes, aligned to
// 64. Pointers of Run are in the order that the class names, and must be aligned to their elements.
class Primitive {
 public:
  Primitive(Primitive&&) noexcept;
  Primitive& operator=(Primitive&&) noexcept;
  ~Primitive();

  Bytes scratch() const;
  // oneDNN's name of the implementation: "brg:avx512_core".
  const std::string& implementation() const;

 protected:
  class Impl;
  explicit Primitive(std::unique_ptr<Impl> impl);
  // As many pointers as the primitive has operands.
  absl::Status Execute(const void* const* operands, std::byte* scratch) const;

 private:
  std::unique_ptr<Impl> impl_;
};

// C[m,n] = scale op(A)[m,k] op(B)[k,n], or added to C. All matrices lie by rows without gaps; C is
// of the operands' type or f32, and what is summed is f32 throughout.
struct MatMulShape {
  std::int64_t m = 0, n = 0, k = 0;
  Transpose a = Transpose::kNo, b = Transpose::kNo;
  Element operands = Element::kF32, result = Element::kF32;
  float scale = 1;
  bool accumulate = false;  // f32 results only
};
class MatMul : public Primitive {
 public:
  // INVALID_ARGUMENT where a size is below 1, UNIMPLEMENTED where oneDNN has none, or where a size
  // does not fit 32 bits. The same of all primitives.
  static absl::StatusOr<MatMul> Create(const MatMulShape& shape);
  absl::Status Run(const void* a, const void* b, void* c, std::byte* scratch) const;

 private:
  using Primitive::Primitive;
};

// Over each of `rows` rows of `columns` f32 scores.
class Softmax : public Primitive {
 public:
  static absl::StatusOr<Softmax> Create(std::int64_t rows, std::int64_t columns, Element result);
  // `result` may be `scores` where it is f32.
  absl::Status Run(const float* scores, void* result, std::byte* scratch) const;

 private:
  using Primitive::Primitive;
};

// d scores = p (d p - sum(p d p)) in every row, of f32 p and d p.
class SoftmaxBackward : public Primitive {
 public:
  static absl::StatusOr<SoftmaxBackward> Create(std::int64_t rows, std::int64_t columns,
                                                Element result);
  // `result` may be `p_gradient` where it is f32.
  absl::Status Run(const float* p, const float* p_gradient, void* result, std::byte* scratch) const;

 private:
  using Primitive::Primitive;
};

// f32 to bf16.
class ToBf16 : public Primitive {
 public:
  static absl::StatusOr<ToBf16> Create(std::int64_t elements);
  absl::Status Run(const float* from, void* to, std::byte* scratch) const;

 private:
  using Primitive::Primitive;
};

// Whether this CPU multiplies bf16 (AVX-512 BF16, AMX); else oneDNN would only imitate it.
bool HasBf16();
std::string OneDnnVersion();          // "2.6.3"
std::string InstructionSet();         // "avx512_core_bf16", as oneDNN uses it
absl::Status CheckOneDnnThreading();  // UNIMPLEMENTED: built with threads that we cannot bound

}  // namespace optimus::executor
