#!/usr/bin/env bash
# The check of includes must find a name whose header is missing, name file and line, and take a header
# that comes through one of ours.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{base,models,hw_profiles,schedule,sim,executor,validation,traces,tools,tests}
printf '#include <vector>\n#include "absl/status/status.h"\n' > "$scratch/base/good.h"
printf '#include "base/good.h"\nstd::vector<int> f();\nabsl::Status g();  // std::map\n' > "$scratch/sim/good.cc"
"$root/tools/check_includes.sh" "$scratch" >/dev/null
printf '#include "base/good.h"\n\nstd::map<int, int> f();\n' > "$scratch/sim/bad.cc"
printf '#include <gmock/gmock.h>\nTEST(A, B) { EXPECT_THAT(absl::StrCat(1), x); }\n' > "$scratch/sim/bad_test.cc"
if "$root/tools/check_includes.sh" "$scratch" > "$scratch/out"; then
  echo "missing includes were not found"
  exit 1
fi
grep -q 'sim/bad.cc:3: needs #include of map' "$scratch/out"
grep -q 'sim/bad_test.cc:2: needs #include of gtest/gtest.h' "$scratch/out"
grep -q 'sim/bad_test.cc:2: needs #include of absl/strings/str_cat.h' "$scratch/out"
[ "$(wc -l < "$scratch/out")" -eq 3 ]
