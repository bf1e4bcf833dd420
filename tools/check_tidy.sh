#!/usr/bin/env bash
# clang-tidy (.clang-tidy: every finding is an error) on every source of the dev build that is ours.
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! run-clang-tidy -p build/dev -quiet -j "$(nproc)" "$PWD/(base|models|hw_profiles|schedule|sim|executor|validation|traces|tools|tests)/.*\.cc$" \
    >"$log" 2>&1; then
  grep -E '(error|warning):' "$log" | LC_ALL=C sort -u || tail -n 20 "$log"
  exit 1
fi
echo "tidy: clean"
