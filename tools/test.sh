#!/usr/bin/env bash
# From a bare Debian 12: installs the missing packages, builds, and runs every check and every test.
# An hour and a quarter on two cores. Sources are compiled by GCC (release) and by clang (sanitizers),
# tests by clang (tools/check_gcc_tests.sh: by GCC), and every test runs once, with sanitizers and
# assertions.
set -euo pipefail
cd "$(dirname "$0")/.."
export CTEST_PARALLEL_LEVEL="${CTEST_PARALLEL_LEVEL:-$(nproc)}"

step() { echo "== [$(date +%H:%M:%S)] $*"; }
# Compilers spend a tenth of their time less in large pages (glibc's malloc; others ignore it).
build() { GLIBC_TUNABLES=glibc.malloc.hugetlb=1 "$@"; }

step "1/6 Debian packages"
tools/install_dependencies.sh test
step "2/6 Layers, includes and format"
tools/check_layers.sh
tools/check_includes.sh
tools/check_format.sh
step "3/6 clang-tidy"
build tools/check_tidy.sh
step "4/6 Build: release (warnings are errors), and the checks that need it (three fidelities on every paper experiment)"
cmake --preset release >/dev/null
build cmake --build --preset release
ctest --test-dir build/release --output-on-failure
step "5/6 Tests, with address and undefined-behaviour sanitizers (warnings are errors)"
cmake --preset asan >/dev/null
build cmake --build --preset asan
ctest --preset asan
step "6/6 Fuzzing: 30 s of every reader of traces"
build tools/fuzz.sh 30
