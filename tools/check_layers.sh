#!/usr/bin/env bash
# Checks every #include "..." and proto import of our folders against layers.txt.
# Prints each edge that is not allowed as file:line and exits 1 if there is one.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

awk '
  # The folder of a path by layers.txt: its longest listed prefix.
  function layer_of(path,   i, best) {
    best = ""
    for (i in allowed) if (index(path, i "/") == 1 && length(i) > length(best)) best = i
    return best
  }
  FILENAME == "layers.txt" {
    if ($0 ~ /^[a-z]/) { split($0, part, ":"); allowed[part[1]] = part[2] " " }
    next
  }
  /^[ \t]*#[ \t]*include[ \t]+"/ || /^import[ \t]+"/ {
    split($0, quoted, "\""); from = layer_of(FILENAME); to = layer_of(quoted[2])
    if (to == "" || from == "" || from == to) next
    if (allowed[from] ~ /\*/ || index(" " allowed[from], " " to " ")) next
    printf "%s:%d: %s may not use %s (layers.txt: %s:%s)\n", FILENAME, FNR, from, to, from, allowed[from]
    bad = 1
  }
  END { exit bad }
' layers.txt $(find base models hw_profiles schedule sim executor validation traces tools tests \
    \( -name '*.h' -o -name '*.hpp' -o -name '*.cc' -o -name '*.cu' -o -name '*.proto' \) | LC_ALL=C sort)
echo "layers: every include edge is in layers.txt"
