#pragma once
// Text of a Kineto trace of any size, as PyTorch's profiler writes it: steps with CPU operators,
// runtime calls, kernels, NCCL kernels, waits between streams, flows. For benchmarks and tests.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace optimus::testing {

struct KinetoSize {
  int steps = 3;
  int layers = 10;  // a step: each has some operators, kernels and one collective
  std::int32_t rank = 0;
  std::int32_t world = 8;
};

class KinetoGenerator {
 public:
  KinetoGenerator(KinetoSize size, std::function<void(absl::string_view)> sink)
      : size_(size), sink_(std::move(sink)) {}

  void Write() {
    absl::StrAppend(&out_,
                    "\n{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\"id\": 0, "
                    "\"name\": \"NVIDIA H100\", \"numSms\": 132}\n  ],\n  \"distributedInfo\": "
                    "{\"backend\": \"nccl\", \"rank\": ",
                    size_.rank, ", \"world_size\": ", size_.world,
                    ", \"pg_count\": 1, \"pg_config\": [{\"pg_name\": \"0\", "
                    "\"pg_desc\": \"default_pg\", \"pg_size\": ",
                    size_.world,
                    "}]},\n"
                    "  \"traceEvents\": [");
    for (int step = 0; step < size_.steps; ++step) Step(step);
    absl::StrAppend(&out_,
                    "\n  {\n    \"ph\": \"i\", \"s\": \"g\", \"name\": \"Record Window End\", "
                    "\"pid\": \"\", \"tid\": \"\", \"ts\": ",
                    Us(now_),
                    "\n  }\n  ],\n"
                    "  \"traceName\": \"trace.json\",\n  \"displayTimeUnit\": \"ms\",\n"
                    "  \"baseTimeNanoseconds\": 1711964646000000000\n}\n");
    sink_(out_);
    out_.clear();
  }

 private:
  static std::string Us(std::int64_t ns) {
    return absl::StrFormat("%d.%03d", ns / 1000, ns % 1000);
  }

  void Event(absl::string_view category, absl::string_view name, absl::string_view lane,
             std::int64_t start, std::int64_t length, absl::string_view args) {
    absl::StrAppend(&out_, "\n  {\n    \"ph\": \"X\", \"cat\": \"", category, "\", \"name\": \"",
                    name, "\", ", lane, ",\n    \"ts\": ", Us(start), ", \"dur\": ", Us(length),
                    ",\n    \"args\": {\n      ", args, "\n    }\n  },");
    if (out_.size() < (std::size_t{1} << 16)) return;
    sink_(out_);
    out_.clear();
  }

  void Flow(absl::string_view phase, absl::string_view lane, std::int64_t at) {
    absl::StrAppend(&out_, "\n  {\n    \"ph\": \"", phase, "\", \"id\": ", correlation_, ", ", lane,
                    ", \"ts\": ", Us(at), ",\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"",
                    phase == "f" ? ", \"bp\": \"e\"" : "", "\n  },");
  }

  void Operator(absl::string_view name) {
    ++operator_;
    Event("cpu_op", name, kMain, now_, 9'000,
          absl::StrCat("\"External id\": ", operator_,
                       ",\"Record function id\": 0, \"Sequence number\": ", operator_,
                       ", \"Fwd thread id\": 0, \"Ev Idx\": ", operator_,
                       ", \"Input Dims\": [[4096, 8192], [8192, 8192]], \"Input type\": "
                       "[\"c10::BFloat16\", \"c10::BFloat16\"]"));
    now_ += 1'500;
  }

  void Call(absl::string_view name) {
    ++correlation_;
    Event("cuda_runtime", name, kMain, now_, 3'217,
          absl::StrCat("\"External id\": ", operator_,
                       ", \"cbid\": 211, \"correlation\": ", correlation_));
    now_ += 4'003;
  }

  void Launch(absl::string_view name, int stream, std::int64_t length, absl::string_view more) {
    Call("cudaLaunchKernel");
    std::int64_t& free = stream == 7 ? compute_free_ : comm_free_;
    const std::int64_t start = std::max(free, now_);
    free = start + length;
    const std::string lane = absl::StrCat("\"pid\": 0, \"tid\": ", stream);
    Event("kernel", name, lane, start, length,
          absl::StrCat("\"External id\": ", operator_,
                       ",\"queued\": 0, \"device\": 0, \"context\": 1,"
                       "\n      \"stream\": ",
                       stream, ", \"correlation\": ", correlation_,
                       ",\n      \"registers per thread\": 168, \"shared memory\": 213248,\n      "
                       "\"blocks per SM\": 0.969697, \"warps per SM\": 11.636364,\n      \"grid\": "
                       "[128, 1, 1],\n      \"block\": [384, 1, 1],\n      "
                       "\"est. achieved occupancy %\": 19",
                       more));
    Flow("s", kMain, now_);
    Flow("f", lane, start);
  }

  void Collective() {
    Call("cudaEventRecord");
    const std::int64_t record = correlation_;
    Call("cudaStreamWaitEvent");
    Event("cuda_sync", "Stream Wait Event", "\"pid\": 0, \"tid\": 20", now_ - 3'900, 2'000,
          absl::StrCat("\"cuda_sync_kind\": \"Stream Wait Event\", \"wait_on_stream\": 7, "
                       "\"wait_on_cuda_event_record_corr_id\": ",
                       record, ", \"wait_on_cuda_event_id\": 9, \"stream\": 20, \"correlation\": ",
                       correlation_, ", \"device\": 0, \"context\": 1"));
    Launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20, 90'000,
           absl::StrCat(",\n      \"Collective name\": \"allreduce\", \"In msg nelems\": 33554432, "
                        "\"Out msg nelems\": 33554432, \"Group size\": ",
                        size_.world,
                        ", \"dtype\": \"BFloat16\", \"In split size\": \"[]\", \"Out split size\": "
                        "\"[]\", \"Process Group Name\": \"0\", \"Process Group Description\": "
                        "\"default_pg\", \"Process Group Ranks\": \"[0, 1, 2, 3, 4, 5, 6, 7]\", "
                        "\"Seq\": ",
                        ++sequence_));
  }

  void Step(int step) {
    const std::int64_t length = std::int64_t{size_.layers} * 160'000;
    Event("user_annotation", absl::StrCat("ProfilerStep#", 100 + step), kMain, now_, length,
          absl::StrCat("\"External id\": ", operator_,
                       ",\"Record function id\": 0, \"Ev Idx\": ", operator_));
    const std::int64_t end = now_ + length;
    for (int layer = 0; layer < size_.layers; ++layer) {
      for (int kernel = 0; kernel < 8; ++kernel) {
        Operator("aten::linear");
        Operator("aten::matmul");
        Operator("aten::mm");
        Launch(
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_"
            "align8>(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8::Params)",
            7, 15'321, "");
      }
      Collective();
    }
    now_ = std::max(now_, end) + 20'000;
  }

  static constexpr absl::string_view kMain = "\"pid\": 2910249, \"tid\": 2910249";
  KinetoSize size_;
  std::function<void(absl::string_view)> sink_;
  std::string out_;
  std::int64_t now_ = 4'458'676'416'788'066;  // nanoseconds
  std::int64_t compute_free_ = 0, comm_free_ = 0;
  std::int64_t correlation_ = 0, operator_ = 0, sequence_ = 0;
};

// Steps of about 32 MB, as many as make `bytes` or more.
inline KinetoSize SizeOf(std::int64_t bytes) {
  constexpr std::int64_t kStep = 32'000'000;
  KinetoSize size;
  size.steps = static_cast<int>((bytes + kStep - 1) / kStep);
  size.layers = 1'850;
  return size;
}

}  // namespace optimus::testing
