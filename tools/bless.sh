#!/usr/bin/env bash
# Rewrites the expected outputs of the examples (NAME.expected.txt beside NAME.textproto: what
# `optimus simulate NAME.textproto` prints, without its wall time) and docs/commands.md. An example
# that is meant for another command or flags says so in a comment: "# command: optimus plan FILE".
#
#   tools/bless.sh [OPTIMUS]               rewrite all (default: build/release/bin/optimus)
#   tools/bless.sh --check OPTIMUS FILE    compare one example, or docs/commands.md; change nothing
set -euo pipefail
cd "$(dirname "$0")/.."

# The arguments of optimus for an example, one word each.
arguments_of() {
  local line
  line=$(sed -n -E 's/^# command: optimus (.*)$/\1/p' "$1" | head -1)
  for word in ${line:-simulate FILE}; do
    if [ "$word" = FILE ]; then echo "$1"; else echo "$word"; fi
  done
}

# What OPTIMUS prints for an example, or the command reference.
output_of() {
  local arguments
  case "$2" in
    docs/commands.md) "$1" --help-markdown ;;
    *)
      mapfile -t arguments < <(arguments_of "$2")
      "$1" "${arguments[@]}" | sed -E '$ s/^wall .*/wall .../'
      ;;
  esac
}

expected_of() {
  case "$1" in
    docs/commands.md) echo "$1" ;;
    *) echo "${1%.textproto}.expected.txt" ;;
  esac
}

if [ "${1:-}" = --check ]; then
  expected=$(expected_of "$3")
  if [ ! -e "$expected" ]; then
    echo "$expected is missing; make it with tools/bless.sh" >&2
    exit 1
  fi
  output_of "$2" "$3" | diff -u "$expected" - && exit 0
  echo "if the change is meant, run tools/bless.sh and look at the difference" >&2
  exit 1
fi

optimus="${1:-build/release/bin/optimus}"
for file in examples/*.textproto examples/paper/*.textproto docs/commands.md; do
  expected=$(expected_of "$file")
  output_of "$optimus" "$file" >"$expected.new"
  if [ -e "$expected" ] && cmp -s "$expected" "$expected.new"; then
    rm "$expected.new"
  else
    mv "$expected.new" "$expected"
    echo "changed: $expected"
  fi
done
