#!/usr/bin/env bash
# The layer check must find a forbidden #include and a forbidden proto import, and name file and line.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{base,models,hw_profiles,schedule/ir,sim,executor,validation,traces,tools,tests}
cp "$root/layers.txt" "$scratch/"
printf '#include "schedule/ir/schedule.h"\n' > "$scratch/sim/good.cc"
"$root/tools/check_layers.sh" "$scratch" >/dev/null
printf '// one\n#include "sim/x.h"\n' > "$scratch/base/bad.h"
printf 'syntax = "proto3";\nimport "hw_profiles/p.proto";\n' > "$scratch/models/bad.proto"
if "$root/tools/check_layers.sh" "$scratch" > "$scratch/out"; then
  echo "two forbidden edges were not found"
  exit 1
fi
grep -q 'base/bad.h:2: base may not use sim' "$scratch/out"
grep -q 'models/bad.proto:2: models may not use hw_profiles' "$scratch/out"
