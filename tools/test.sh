#!/usr/bin/env bash
# From a bare Debian 12: installs the missing packages, builds, and runs every check and every test.
set -euo pipefail
cd "$(dirname "$0")/.."
export CTEST_PARALLEL_LEVEL="${CTEST_PARALLEL_LEVEL:-$(nproc)}"

step() { echo "== [$(date +%H:%M:%S)] $*"; }

step "1/8 Debian packages"
tools/install_dependencies.sh test
step "2/8 Layers and format"
tools/check_layers.sh
tools/check_format.sh
step "3/8 Build: dev (warnings are errors)"
cmake --preset dev >/dev/null
cmake --build --preset dev
step "4/8 clang-tidy"
tools/check_tidy.sh
step "5/8 Build: release, and the checks that need it (three fidelities on every paper experiment)"
cmake --preset release >/dev/null
cmake --build --preset release
ctest --test-dir build/release --output-on-failure
step "6/8 Tests"
ctest --preset dev
step "7/8 Tests again, with address and undefined-behaviour sanitizers"
cmake --preset asan >/dev/null
cmake --build --preset asan
ctest --preset asan
step "8/8 Fuzzing: 30 s of every reader of traces"
tools/fuzz.sh 30
