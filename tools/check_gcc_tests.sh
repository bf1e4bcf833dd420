#!/usr/bin/env bash
# GCC reads every source of the tests, with its warnings as errors, and builds none of them: the release
# build is GCC's, the tests that run are clang's (preset asan), and the dev preset must build as well.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset dev >/dev/null
cmake --build --preset dev --target generated optimus_precompiled_library optimus_precompiled_test >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# As JSON has them: "command": "c++ ... -o x_test.cc.o -c x_test.cc"
sed -nE 's|^ *"command": "(.*) -o [^ ]+ (-c [^ ]*_test\.cc)",?$|\1 -fsyntax-only \2|p' build/dev/compile_commands.json |
  sed -E 's/\\(.)/\1/g' | LC_ALL=C sort -u >"$work/commands"
[ -s "$work/commands" ]
if ! (cd build/dev && xargs -P "$(nproc)" -d '\n' -n 1 -a "$work/commands" bash -c 'eval "$1" >&2' gcc) 2>"$work/log"; then
  grep -E '(error|warning):' "$work/log" | LC_ALL=C sort -u || tail -n 20 "$work/log"
  exit 1
fi
echo "gcc: $(wc -l <"$work/commands") sources of tests compile"
