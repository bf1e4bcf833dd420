#!/usr/bin/env bash
# clang-tidy (.clang-tidy: every finding is an error) on every source of the dev build that is ours. GCC's
# precompiled headers are of no use to it: it is shown the commands without, so that a source that lacks
# an #include is found as well.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -E 's/-Winvalid-pch -include [^ ]+cmake_pch\.hxx//' build/dev/compile_commands.json >"$work/compile_commands.json"
if grep -v -e "-x c++-header" "$work/compile_commands.json" | grep -q -e "-include [^ ]*cmake_pch"; then
  echo "error: build/dev/compile_commands.json names a precompiled header in a way that is not known here" >&2
  exit 1
fi
if ! run-clang-tidy -p "$work" -quiet -j "$(nproc)" "$PWD/(base|models|hw_profiles|schedule|sim|executor|validation|traces|tools|tests)/.*\.cc$" \
    >"$work/log" 2>&1; then
  grep -E '(error|warning):' "$work/log" | LC_ALL=C sort -u || tail -n 20 "$work/log"
  exit 1
fi
echo "tidy: clean"
