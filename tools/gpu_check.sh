#!/usr/bin/env bash
# Tries the CUDA backend on a machine with one GPU (CUDA 13 toolkit with cuBLAS and NCCL, CMake 3.25, a
# C++20 compiler; no network), from a tree that tools/gpu_prepare.sh has made: builds, runs the backend's
# tests, then profiles, runs and validates examples/gpu and measures the layer shards of ViT-22B and
# GPT-175B at TP 8. Under 8 minutes; what does not fit into them is left out, and said.
#   tools/gpu_check.sh RESULTS [THIRD_PARTY]
# THIRD_PARTY: what gpu_prepare.sh carried; third_party of the tree where that is there, else the
# machine's own libraries are used. OPTIMUS_BUILD: where to build (build/gpu_check).
# RESULTS: summary.txt, the output of every step, measured.textproto, timelines, validation/.
# Exit codes: 0 all is well, 1 something failed, 2 a simulated step is outside the tolerance.
set -uo pipefail
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: tools/gpu_check.sh RESULTS [THIRD_PARTY]" >&2
  exit 1
fi
mkdir -p "$1" || exit 1
results=$(cd "$1" && pwd)
third_party=${2:+$(cd "$2" && pwd)}
cd "$(dirname "$0")/.." || exit 1
[ -n "$third_party" ] || { [ ! -d third_party ] || third_party=$PWD/third_party; }
build=${OPTIMUS_BUILD:-build/gpu_check}
jobs=$(nproc)
deadline=$((SECONDS + ${OPTIMUS_SECONDS:-460}))
summary=$results/summary.txt
worst=0

fail() {
  echo "gpu_check: $1" | tee -a "$summary" >&2
  exit 1
}

# step NAME SECONDS COMMAND...: output into RESULTS/NAME.txt, a line into the summary. Its exit code.
step() {
  local name=$1 limit=$2 begin=$SECONDS left code
  shift 2
  left=$((deadline - SECONDS))
  if [ "$left" -lt 5 ]; then
    echo "left out  $name: no time left" | tee -a "$summary"
    worst=1
    return 1
  fi
  [ "$limit" -le "$left" ] || limit=$left
  timeout "$limit" "$@" >"$results/$name.txt" 2>&1
  code=$?
  case $code in
    0) echo "ok        $name ($((SECONDS - begin)) s)" | tee -a "$summary" ;;
    124) echo "too long  $name (stopped after $limit s)" | tee -a "$summary" ;;
    *) echo "exit $code    $name ($((SECONDS - begin)) s): $(tail -n 1 "$results/$name.txt")" |
      tee -a "$summary" ;;
  esac
  return $code
}

# The same for a step on the GPU, whose failure does not stop the others.
try() {
  local code
  step "$@"
  code=$?
  if [ $code -eq 2 ] && [ $worst -eq 0 ]; then worst=2; fi
  if [ $code -ne 0 ] && [ $code -ne 2 ]; then worst=1; fi
}

find_nvcc() {
  local nvcc
  for nvcc in "$(command -v nvcc)" "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"; do
    [ -x "$nvcc" ] && echo "$nvcc" && return
  done
  return 1
}

describe() {
  echo "date      $(date -u +%Y-%m-%d)"
  echo "card      $(nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>/dev/null || echo none)"
  echo "clocks    $(nvidia-smi --query-gpu=clocks.max.sm,clocks.max.mem,power.limit --format=csv,noheader 2>/dev/null || echo none)"
  echo "toolkit   $("$nvcc" --version | tail -n 2 | head -n 1)"
  echo "machine   $jobs cores, $(uname -r), $(${CXX:-c++} --version | head -n 1)"
}

nvcc=$(find_nvcc) || fail "no nvcc: install the CUDA toolkit, or set CUDA_HOME"
command -v cmake >/dev/null || fail "no cmake"
describe >"$summary"
cat "$summary"

# Only for the card that is there: half the work.
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1)
architecture=${capability//./}
# Built with -O1: the host only launches, and minutes are few.
configure=(cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"
  -DOPTIMUS_SIMULATOR=OFF -DOPTIMUS_BUILD_BENCHMARKS=OFF -DOPTIMUS_WARNINGS_ARE_ERRORS=OFF
  -DOPTIMUS_MPI=OFF -DOPTIMUS_ONEDNN=OFF -DOPTIMUS_CUDA=ON
  "-DCMAKE_CUDA_ARCHITECTURES=${architecture:-90}")
[ -z "$third_party" ] || configure=(cmake -C "$third_party/options.cmake" -G Ninja "${configure[@]:1}")
step configure 120 "${configure[@]}" || fail "cannot configure: $(grep -m 1 -A 2 'CMake Error' "$results/configure.txt" | tr -s '\n ' ' ')"
step build 420 cmake --build "$build" --target optimus cuda_cuda_backend_test -j "$jobs" ||
  fail "cannot build: $(grep -m 1 'error' "$results/build.txt")"

optimus=$build/bin/optimus
probe=$results/probe.txt
if ! timeout 60 "$optimus" run examples/gpu/gpt.textproto --backend=cuda --iterations=1 --warmup=1 >"$probe" 2>&1; then
  fail "$(grep -m 1 'error' "$probe" || tail -n 1 "$probe")"
fi

try tests 60 "$build/bin/cuda_cuda_backend_test"
for example in gpt mllm_megatron mllm_optimus shards; do
  try "run_$example" 60 "$optimus" run "examples/gpu/$example.textproto" --backend=cuda \
    --iterations=20 --warmup=3 "--timeline=$results/$example.timeline.pb" \
    "--trace=$results/$example.pftrace"
done
try run_shards_graph 60 "$optimus" run examples/gpu/shards.textproto --backend=cuda --cuda-graph \
  --iterations=20 --warmup=4 "--timeline=$results/shards_graph.timeline.pb"
# Alone, a rank measures the kernels of any schedule: these are one GPU's of 3072.
try profile 120 "$optimus" profile --backend=cuda --for=examples/gpu/gpt.textproto \
  --for=examples/gpu/mllm_megatron.textproto --for=examples/gpu/shards.textproto \
  --for=examples/paper/strong_3072_megatron.textproto "--out=$results/measured.textproto"
try validate 150 "$optimus" validate run examples/gpu/gpt.textproto \
  examples/gpu/mllm_megatron.textproto examples/gpu/mllm_optimus.textproto \
  examples/gpu/shards.textproto --backend=cuda --rounds=3 --iterations=10 --warmup=3 \
  "--out=$results/validation"
echo "total     $SECONDS s" | tee -a "$summary"
exit $worst
