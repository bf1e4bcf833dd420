#!/usr/bin/env bash
# tools/fuzz.sh [SECONDS [NAME...]]: builds the fuzzers (preset `fuzz`) and runs each, or those named
# (kineto_fuzzer ...), for SECONDS (30) on a copy of its corpus. Fails on the first finding and says
# how to run it again; inputs that crash stay in build/fuzz/findings.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-30}"
shift || true
[[ "$seconds" =~ ^[1-9][0-9]*$ ]] || { echo "usage: tools/fuzz.sh [SECONDS [NAME...]]" >&2; exit 2; }

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target fuzzers
findings=build/fuzz/findings
mkdir -p "$findings"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run_fuzzer() {
  local name="$1" kind="${1%_fuzzer}" options=()
  mkdir -p "$work/$kind"
  local input="$kind"
  if [ "$kind" = replay ]; then input=kineto; fi  # it reads what the reader of Kineto does
  if [ -d "tests/fuzz/corpus/$input" ]; then cp -r "tests/fuzz/corpus/$input/." "$work/$kind/"; fi
  if [ -f "tests/fuzz/$input.dict" ]; then options+=("-dict=tests/fuzz/$input.dict"); fi
  echo "== $name: $seconds s"
  if ! "build/fuzz/bin/$name" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=1024 -timeout=10 \
      -print_final_stats=1 -artifact_prefix="$findings/$name-" "${options[@]}" "$work/$kind" \
      >"$work/$name.log" 2>&1; then
    tail -n 60 "$work/$name.log" >&2
    echo "error: $name has a finding; again: build/fuzz/bin/$name $findings/$name-..." \
         "(the file that the log above names)" >&2
    return 1
  fi
  grep -E 'stat::(number_of_executed_units|peak_rss_mb)' "$work/$name.log"
}

if [ "$#" -gt 0 ]; then names=("$@"); else
  names=()
  for path in build/fuzz/bin/*_fuzzer; do names+=("$(basename "$path")"); done
fi
for name in "${names[@]}"; do run_fuzzer "$name"; done
echo "fuzz: no finding"
