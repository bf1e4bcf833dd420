#!/usr/bin/env bash
# tools/check_tidy.sh [FILE...]: clang-tidy (.clang-tidy: every finding is an error) on every source that
# is ours, or on those named. Nothing needs to be built before. Seconds a source became one in three
# steps: precompiled headers, tools/tidy/own_code.cc, and no modules of C++20, which we do not use
# (with them clang-tidy 14 reads every header twice).
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --preset tidy >/dev/null
cmake --build --preset tidy >/dev/null
compiled=build/tidy/compile_commands.json

llvm=$(dirname "$(dirname "$(readlink -f "$(command -v clang-tidy)")")")
"$llvm/bin/clang++" -std=c++17 -O1 -fno-rtti -shared -fPIC -isystem "$llvm/include" \
  tools/tidy/own_code.cc -o "$work/own_code.so"
tidy=("$llvm/bin/clang-tidy" --load "$work/own_code.so" --config-file=.clang-tidy -quiet)

# Is a mistake still found, in a source and in a header of ours? Otherwise "clean" would mean nothing.
mkdir "$work/tools"
printf 'inline int Header(int a) {\n  if (a > 1)\n    a++;\n  else\n    a--;\n  return a;\n}\n' >"$work/tools/canary.h"
printf '#include "%s/tools/canary.h"\nint Source(int a) {\n  int b;\n  b = Header(a);\n  return b;\n}\n' "$work" >"$work/tools/canary.cc"
"${tidy[@]}" "$work/tools/canary.cc" -- >"$work/canary.txt" 2>/dev/null || true
for expected in 'canary\.h:2.*\[readability-braces-around-statements' 'canary\.cc:3.*\[cppcoreguidelines-init-variables'; do
  if ! grep -q "$expected" "$work/canary.txt"; then
    echo "error: clang-tidy does not find $expected in two lines that have it" >&2
    exit 1
  fi
done

if [ "$#" -gt 0 ]; then printf '%s\n' "$@" >"$work/sources"; else
  sed -nE "s|^ *\"file\": \"$PWD/((base\|models\|hw_profiles\|schedule\|sim\|executor\|validation\|traces\|tools\|tests)/.*\.cc)\".*|\1|p" \
    "$compiled" | LC_ALL=C sort -u >"$work/sources"
  [ -s "$work/sources" ]
fi
export work
if ! xargs -P "$(nproc)" -d '\n' -n 1 -a "$work/sources" bash -c '
    source="${@: -1}"; log="$work/$(echo "$source" | tr / _).log"
    "$@" >"$log" 2>&1' tidy "${tidy[@]}" -p build/tidy; then
  # A header'"'"'s finding is met by every source that includes it.
  if ! cat "$work"/*.log | grep -E '(error|warning):' | LC_ALL=C sort -u; then cat "$work"/*.log | tail -n 20; fi
  exit 1
fi
echo "tidy: $(wc -l <"$work/sources") sources clean"
