#!/usr/bin/env bash
# Every relative link in README.md, CHANGELOG.md and docs/ must lead to a file or folder.
set -euo pipefail
cd "$(dirname "$0")/.."
bad=0
while IFS= read -r page; do
  while IFS= read -r target; do
    case "$target" in http*|'#'*|'') continue ;; esac
    if [ ! -e "$(dirname "$page")/${target%%#*}" ]; then
      echo "$page: dead link: $target"
      bad=1
    fi
  done < <(grep -o '](\([^)]*\))' "$page" | sed 's/^](//; s/)$//')
done < <(find README.md CHANGELOG.md docs -name '*.md' | LC_ALL=C sort)
[ "$bad" -eq 0 ] && echo "links: all lead somewhere"
exit "$bad"
