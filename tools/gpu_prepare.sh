#!/usr/bin/env bash
# Makes DIR: a source tree with all that a bare GPU machine lacks, so that tools/gpu_check.sh can
# build there without a network. What is carried comes from this machine's Debian packages (x86-64,
# Debian 12): Abseil, Protocol Buffers and GoogleTest as static libraries, CLI11, nlohmann-json, and
# the tools protoc and ninja with the libraries they need. The GPU machine must have CMake 3.25, a C++20
# compiler and the CUDA 13 toolkit with cuBLAS and NCCL.
#   tools/gpu_prepare.sh DIR           sources and DIR/third_party
#   tools/gpu_prepare.sh --third-party DIR   only what is carried, into DIR
set -euo pipefail
cd "$(dirname "$0")/.."

only_third_party=
if [ "${1:-}" = --third-party ]; then
  only_third_party=1
  shift
fi
if [ $# -ne 1 ]; then
  echo "usage: tools/gpu_prepare.sh [--third-party] DIR" >&2
  exit 1
fi
case "$1" in /*) target=$1 ;; *) target=$PWD/$1 ;; esac
if [ -e "$target" ] && [ -n "$(ls -A "$target")" ]; then
  echo "error: $target is not empty; give a new folder" >&2
  exit 1
fi
third_party=$target
[ -n "$only_third_party" ] || third_party=$target/third_party
mkdir -p "$third_party"

if [ -z "$only_third_party" ]; then
  git ls-files -z | tar --null --files-from=- -cf - | tar -xf - -C "$target"
fi

# copy_package PACKAGE PATTERN...: the package's files below /usr that match, and its licence.
copy_package() {
  local package=$1 file pattern
  shift
  if ! dpkg -L "$package" >/dev/null 2>&1; then
    echo "error: Debian package $package is not installed; run tools/install_dependencies.sh test" >&2
    exit 1
  fi
  dpkg -L "$package" | while IFS= read -r file; do
    [ -f "$file" ] || continue
    for pattern in "$@"; do
      # shellcheck disable=SC2254  # a pattern
      case "$file" in
        $pattern)
          mkdir -p "$third_party/$(dirname "${file#/usr/}")"
          cp -L "$file" "$third_party/${file#/usr/}"
          break
          ;;
      esac
    done
  done
  mkdir -p "$third_party/licenses"
  cp -L "/usr/share/doc/$package/copyright" "$third_party/licenses/$package"
}

# carry_tool NAME: a program with its libraries and its loader, whatever the other machine has.
carry_tool() {
  local name=$1 library
  mkdir -p "$third_party/bin" "$third_party/libexec/$name"
  cp -L "/usr/bin/$name" "$third_party/libexec/$name/$name"
  ldd "/usr/bin/$name" | grep -o '/[^ ]*' | while IFS= read -r library; do
    cp -L "$library" "$third_party/libexec/$name/"
  done
  cat >"$third_party/bin/$name" <<TOOL
#!/bin/sh
here=\$(dirname "\$(readlink -f "\$0")")/../libexec/$name
exec "\$here/ld-linux-x86-64.so.2" --library-path "\$here" "\$here/$name" "\$@"
TOOL
  chmod +x "$third_party/bin/$name"
}

headers='/usr/include/*'
archives='/usr/lib/x86_64-linux-gnu/*.a'
cmake_files='/usr/*/cmake/*'
copy_package libabsl-dev "$headers" "$archives" "$cmake_files"
copy_package libprotobuf-dev "$headers" '/usr/lib/x86_64-linux-gnu/libprotobuf.a'
copy_package libcli11-dev "$headers" "$cmake_files"
copy_package nlohmann-json3-dev "$headers" "$cmake_files"
copy_package libgtest-dev "$headers" "$archives" "$cmake_files"
copy_package libgmock-dev "$headers" "$archives" "$cmake_files"
carry_tool protoc
carry_tool ninja
for package in protobuf-compiler ninja-build; do
  cp -L "/usr/share/doc/$package/copyright" "$third_party/licenses/$package"
done

# Debian's Abseil is found as shared libraries; the static ones lie beside them.
absl=$third_party/lib/x86_64-linux-gnu/cmake/absl
sed -i 's/ SHARED IMPORTED/ STATIC IMPORTED/' "$absl/abslTargets.cmake"
sed -i 's/\.so\.[0-9.]*"/.a"/; /IMPORTED_SONAME/d' "$absl/abslTargets-none.cmake"

# Debian's Protocol Buffers have no CMake package.
mkdir -p "$third_party/lib/cmake/protobuf"
cat >"$third_party/lib/cmake/protobuf/protobuf-config.cmake" <<'CONFIG'
get_filename_component(_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_package(Threads REQUIRED)
if(NOT TARGET protobuf::libprotobuf)
  add_library(protobuf::libprotobuf STATIC IMPORTED)
  set_target_properties(protobuf::libprotobuf PROPERTIES
    IMPORTED_LOCATION ${_root}/lib/x86_64-linux-gnu/libprotobuf.a
    INTERFACE_INCLUDE_DIRECTORIES ${_root}/include
    INTERFACE_LINK_LIBRARIES Threads::Threads)
  add_executable(protobuf::protoc IMPORTED)
  set_target_properties(protobuf::protoc PROPERTIES IMPORTED_LOCATION ${_root}/bin/protoc)
endif()
CONFIG

# cmake -C third_party/options.cmake: these and no others.
cat >"$third_party/options.cmake" <<'OPTIONS'
set(_here ${CMAKE_CURRENT_LIST_DIR})
set(CMAKE_MAKE_PROGRAM ${_here}/bin/ninja CACHE FILEPATH "")
set(Protobuf_DIR ${_here}/lib/cmake/protobuf CACHE PATH "")
set(absl_DIR ${_here}/lib/x86_64-linux-gnu/cmake/absl CACHE PATH "")
set(GTest_DIR ${_here}/lib/x86_64-linux-gnu/cmake/GTest CACHE PATH "")
set(CLI11_DIR ${_here}/share/cmake/CLI11 CACHE PATH "")
set(nlohmann_json_DIR ${_here}/share/cmake/nlohmann_json CACHE PATH "")
OPTIONS

echo "$target: $(du -sm "$target" | cut -f1) MiB"
[ -n "$only_third_party" ] || echo "On the GPU machine: $(basename "$target")/tools/gpu_check.sh RESULTS"
