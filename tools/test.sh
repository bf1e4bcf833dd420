#!/usr/bin/env bash
# From a bare Debian 12: installs the missing packages, builds, and runs every check and every test.
# An hour and a quarter on two cores. Every source is compiled by GCC (release; its tests are read) and
# by clang (sanitizers), and every test runs once, with sanitizers and assertions.
set -euo pipefail
cd "$(dirname "$0")/.."
export CTEST_PARALLEL_LEVEL="${CTEST_PARALLEL_LEVEL:-$(nproc)}"

step() { echo "== [$(date +%H:%M:%S)] $*"; }
# Compilers spend a tenth of their time less in large pages (glibc's malloc; others ignore it).
build() { GLIBC_TUNABLES=glibc.malloc.hugetlb=1 "$@"; }

step "1/7 Debian packages"
tools/install_dependencies.sh test
step "2/7 Layers, includes and format"
tools/check_layers.sh
tools/check_includes.sh
tools/check_format.sh
step "3/7 clang-tidy"
build tools/check_tidy.sh
step "4/7 Build: release (warnings are errors), and the checks that need it (three fidelities on every paper experiment)"
cmake --preset release >/dev/null
build cmake --build --preset release
ctest --test-dir build/release --output-on-failure
step "5/7 GCC reads the tests (warnings are errors)"
build tools/check_gcc_tests.sh
step "6/7 Tests, with address and undefined-behaviour sanitizers (warnings are errors)"
cmake --preset asan >/dev/null
build cmake --build --preset asan
ctest --preset asan
step "7/7 Fuzzing: 30 s of every reader of traces"
build tools/fuzz.sh 30
