#!/usr/bin/env bash
# Installs what Optimus needs on Debian 12 and skips what is there.
#   tools/install_dependencies.sh        what a build needs
#   tools/install_dependencies.sh test   that, and what the checks and tests need
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config          # build
  libsimgrid-dev                            # simulator (3.32; the code also compiles with up to 4.1)
  libprotobuf-dev protobuf-compiler         # file formats
  libabsl-dev                               # status, strings
  libcli11-dev nlohmann-json3-dev           # command line, JSON
  libsimdjson-dev zlib1g-dev                # trace files: JSON, gzip
  libsqlite3-dev gnuplot-nox                # sweeps: results, plots
  libbenchmark-dev                          # optimus_bench
  libdnnl-dev libopenmpi-dev openmpi-bin    # executor on CPUs: oneDNN kernels, MPI
)
if [ "${1:-}" = test ]; then
  packages+=(libgtest-dev libgmock-dev librapidcheck-dev clang-format clang-tidy
             clang lld libclang-rt-14-dev libclang-14-dev  # sanitizers, libFuzzer, check_tidy.sh
             slurm-wlm munge)          # sweeps on a cluster of one node (tests/slurm_sweep_test.sh)
fi

missing=()
for package in "${packages[@]}"; do
  if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" != installed ]; then
    missing+=("$package")
  fi
done
if [ "${#missing[@]}" -eq 0 ]; then
  echo "All ${#packages[@]} Debian packages are there: nothing to install."
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "error: need root or sudo to install: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Installing from Debian: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
