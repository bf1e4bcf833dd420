#!/usr/bin/env bash
# clang-format on every C++ file, as an error.
set -euo pipefail
cd "$(dirname "$0")/.."
find base models hw_profiles schedule sim executor validation traces tools tests \
  \( -name '*.h' -o -name '*.hpp' -o -name '*.cc' -o -name '*.cu' \) -print0 | xargs -0 clang-format --dry-run -Werror
echo "format: clean"
