#include "executor/cpu/primitives.h"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dnnl.hpp"

namespace optimus::executor {
namespace {

static_assert(DNNL_VERSION_MAJOR == 2, "written for oneDNN 2");

using dnnl::memory;
constexpr int kMostArguments = 5;

// Engine and stream have no state that operations could share on a CPU. Never destroyed: oneDNN's
// own statics may go first.
const dnnl::engine& Engine() {
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}
const dnnl::stream& Stream() {
  static const auto* stream = new dnnl::stream(Engine());
  return *stream;
}

memory::data_type TypeOf(Element element) {
  return element == Element::kF32 ? memory::data_type::f32 : memory::data_type::bf16;
}

memory::desc Dense(std::int64_t rows, std::int64_t columns, Element element) {
  return {{rows, columns}, TypeOf(element), memory::format_tag::ab};
}

memory::desc Operand(std::int64_t rows, std::int64_t columns, Element element, Transpose lies) {
  return {{rows, columns},
          TypeOf(element),
          lies == Transpose::kYes ? memory::format_tag::ba : memory::format_tag::ab};
}

dnnl::primitive_attr Attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace

class Primitive::Impl {
 public:
  struct Argument {
    int name = 0;
    memory::desc description;
  };

  template <class Description>
  Impl(const dnnl::primitive& primitive, const Description& description,
       const std::vector<Argument>& arguments)
      : primitive_(primitive), implementation_(description.impl_info_str()) {
    for (const Argument& argument : arguments) Add(argument);
    const memory::desc scratch = description.scratchpad_desc();
    scratch_ = Bytes(static_cast<std::int64_t>(scratch.get_size()));
    Add({DNNL_ARG_SCRATCHPAD, scratch});
  }

  absl::Status Execute(const void* const* operands, std::byte* scratch) const {
    UseOneThread();
    for (std::size_t i = 0; i + 1 < memories_.size(); ++i) {
      SetData(i, const_cast<void*>(operands[i]));  // NOLINT: oneDNN has no const memory
    }
    SetData(memories_.size() - 1, scratch);
    const dnnl_status_t status = dnnl_primitive_execute(
        primitive_.get(), Stream().get(), static_cast<int>(memories_.size()), arguments_.data());
    if (status == dnnl_success) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("oneDNN's ", implementation_, " failed with code ", static_cast<int>(status)));
  }

  Bytes scratch() const { return scratch_; }
  const std::string& implementation() const { return implementation_; }

 private:
  void Add(const Argument& argument) {
    memories_.emplace_back(argument.description, Engine(), nullptr);
    arguments_[memories_.size() - 1] = {argument.name, memories_.back().get()};
  }
  void SetData(std::size_t index, void* data) const {
    // Can only fail for a memory without an engine.
    (void)dnnl_memory_set_data_handle(memories_[index].get(), data);
  }

  dnnl::primitive primitive_;
  std::string implementation_;
  std::vector<memory> memories_;
  std::array<dnnl_exec_arg_t, kMostArguments> arguments_{};
  Bytes scratch_;
};

namespace {

// Runs `make`, which may throw as oneDNN's C++ interface does.
template <class Made>
absl::StatusOr<Made> Guarded(const std::string& what, const std::function<Made()>& make) {
  UseOneThread();
  try {
    return make();
  } catch (const dnnl::error& error) {
    const std::string text = absl::StrCat("oneDNN ", OneDnnVersion(), " (", InstructionSet(),
                                          "): ", what, ": ", error.what());
    if (error.status == dnnl_out_of_memory) return absl::ResourceExhaustedError(text);
    return absl::UnimplementedError(text);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("out of memory for oneDNN's ", what));
  }
}

std::string Shape(std::int64_t rows, std::int64_t columns, Element result) {
  return absl::StrCat("[", rows, ", ", columns, "] to ", result == Element::kF32 ? "f32" : "bf16");
}

// oneDNN 2 takes sizes of 64 bits and counts in 32 in some of its implementations: it would do less
// than it was asked for, or crash.
absl::Status CheckSizes(const std::string& what, std::initializer_list<std::int64_t> sizes) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto [least, most] = std::minmax(sizes);
  if (least < 1) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": sizes must be at least 1"));
  }
  if (most <= kMost) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(what, ": ", most, " is too large for oneDNN; hint: at most ", kMost));
}

dnnl::primitive_attr MatMulAttributes(const MatMulShape& shape) {
  dnnl::primitive_attr attributes = Attributes();
  if (shape.scale != 1) attributes.set_output_scales(0, {shape.scale});
  if (shape.accumulate) {
    dnnl::post_ops post;
    post.append_sum(1);
    attributes.set_post_ops(post);
  }
  return attributes;
}

dnnl::softmax_v2_forward::primitive_desc SoftmaxDescription(std::int64_t rows, std::int64_t columns,
                                                            Element result) {
  const dnnl::softmax_v2_forward::desc description(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate,
      Dense(rows, columns, Element::kF32), Dense(rows, columns, result), /*axis=*/1);
  return {description, Attributes(), Engine()};
}

}  // namespace

Primitive::Primitive(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Primitive::Primitive(Primitive&&) noexcept = default;
Primitive& Primitive::operator=(Primitive&&) noexcept = default;
Primitive::~Primitive() = default;

Bytes Primitive::scratch() const { return impl_->scratch(); }
const std::string& Primitive::implementation() const { return impl_->implementation(); }
absl::Status Primitive::Execute(const void* const* operands, std::byte* scratch) const {
  return impl_->Execute(operands, scratch);
}

absl::StatusOr<MatMul> MatMul::Create(const MatMulShape& shape) {
  const std::string what = absl::StrCat("matmul of m ", shape.m, ", n ", shape.n, ", k ", shape.k);
  if (absl::Status s = CheckSizes(what, {shape.m, shape.n, shape.k}); !s.ok()) return s;
  return Guarded<MatMul>(what, [&] {
    const memory::desc a = Operand(shape.m, shape.k, shape.operands, shape.a);
    const memory::desc b = Operand(shape.k, shape.n, shape.operands, shape.b);
    const memory::desc c = Dense(shape.m, shape.n, shape.result);
    const dnnl::matmul::primitive_desc description({a, b, c}, MatMulAttributes(shape), Engine());
    return MatMul(std::make_unique<Impl>(
        dnnl::matmul(description), description,
        std::vector<Impl::Argument>{{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}}));
  });
}

absl::Status MatMul::Run(const void* a, const void* b, void* c, std::byte* scratch) const {
  const void* operands[] = {a, b, c};
  return Execute(operands, scratch);
}

absl::StatusOr<Softmax> Softmax::Create(std::int64_t rows, std::int64_t columns, Element result) {
  const std::string what = absl::StrCat("softmax of ", Shape(rows, columns, result));
  if (absl::Status s = CheckSizes(what, {rows, columns}); !s.ok()) return s;
  return Guarded<Softmax>(what, [&] {
    const auto description = SoftmaxDescription(rows, columns, result);
    return Softmax(std::make_unique<Impl>(
        dnnl::softmax_v2_forward(description), description,
        std::vector<Impl::Argument>{{DNNL_ARG_SRC, Dense(rows, columns, Element::kF32)},
                                    {DNNL_ARG_DST, Dense(rows, columns, result)}}));
  });
}

absl::Status Softmax::Run(const float* scores, void* result, std::byte* scratch) const {
  const void* operands[] = {scores, result};
  return Execute(operands, scratch);
}

absl::StatusOr<SoftmaxBackward> SoftmaxBackward::Create(std::int64_t rows, std::int64_t columns,
                                                        Element result) {
  const std::string what = absl::StrCat("softmax backward of ", Shape(rows, columns, result));
  if (absl::Status s = CheckSizes(what, {rows, columns}); !s.ok()) return s;
  return Guarded<SoftmaxBackward>(what, [&] {
    const memory::desc f32 = Dense(rows, columns, Element::kF32);
    const memory::desc target = Dense(rows, columns, result);
    const dnnl::softmax_v2_backward::desc of(dnnl::algorithm::softmax_accurate, target, f32, f32,
                                             /*axis=*/1);
    const dnnl::softmax_v2_backward::primitive_desc description(
        of, Attributes(), Engine(), SoftmaxDescription(rows, columns, Element::kF32));
    return SoftmaxBackward(std::make_unique<Impl>(
        dnnl::softmax_v2_backward(description), description,
        std::vector<Impl::Argument>{
            {DNNL_ARG_DST, f32}, {DNNL_ARG_DIFF_DST, f32}, {DNNL_ARG_DIFF_SRC, target}}));
  });
}

absl::Status SoftmaxBackward::Run(const float* p, const float* p_gradient, void* result,
                                  std::byte* scratch) const {
  const void* operands[] = {p, p_gradient, result};
  return Execute(operands, scratch);
}

absl::StatusOr<ToBf16> ToBf16::Create(std::int64_t elements) {
  const std::string what = absl::StrCat("conversion of ", Shape(1, elements, Element::kBf16));
  if (absl::Status s = CheckSizes(what, {elements}); !s.ok()) return s;
  return Guarded<ToBf16>(what, [&] {
    const memory::desc from = Dense(1, elements, Element::kF32);
    const memory::desc to = Dense(1, elements, Element::kBf16);
    const dnnl::reorder::primitive_desc description(Engine(), from, Engine(), to, Attributes());
    return ToBf16(std::make_unique<Impl>(
        dnnl::reorder(description), description,
        std::vector<Impl::Argument>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}));
  });
}

absl::Status ToBf16::Run(const float* from, void* to, std::byte* scratch) const {
  const void* operands[] = {from, to};
  return Execute(operands, scratch);
}

// oneDNN's instruction sets are sets of bits.
bool HasBf16() {
  const auto isa = static_cast<unsigned>(dnnl_get_effective_cpu_isa());
  constexpr auto kNeeded = static_cast<unsigned>(dnnl_cpu_isa_avx512_core_bf16);
  return (isa & kNeeded) == kNeeded;
}

std::string OneDnnVersion() {
  const dnnl_version_t* version = dnnl_version();
  return absl::StrCat(version->major, ".", version->minor, ".", version->patch);
}

std::string InstructionSet() {
  switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
      return "sse41";
    case dnnl_cpu_isa_avx:
      return "avx";
    case dnnl_cpu_isa_avx2:
      return "avx2";
    case dnnl_cpu_isa_avx2_vnni:
      return "avx2_vnni";
    case dnnl_cpu_isa_avx512_core:
      return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_amx:
      return "avx512_core_amx";
    default:
      return absl::StrCat("instruction set ", static_cast<unsigned>(dnnl_get_effective_cpu_isa()));
  }
}

absl::Status CheckOneDnnThreading() {
  const unsigned runtime = dnnl_version()->cpu_runtime;
  if (runtime == DNNL_RUNTIME_OMP || runtime == DNNL_RUNTIME_SEQ) return absl::OkStatus();
  return absl::UnimplementedError(
      "the cpu backend needs a oneDNN built for OpenMP or for one thread, so that a rank keeps to "
      "its core; this one has another threading runtime; hint: ONEDNN_CPU_RUNTIME=OMP");
}

}  // namespace optimus::executor
