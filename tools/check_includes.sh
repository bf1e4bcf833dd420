#!/usr/bin/env bash
# Every source that uses a name of cmake/precompiled/*.h includes the header the name is from, itself or
# through headers of ours. The compiler does not say so: it has read the precompiled header before.
# Prints each use that lacks one as file:line and exits 1 if there is one.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

awk '
  function need(header, pattern) { header_of[++rules] = header; pattern_of[rules] = pattern }
  # Whether `file` includes `header`, itself or through our own headers.
  function reaches(file, header,   i, n, next_files) {
    if ((file, header) in known) return known[file, header]
    known[file, header] = 0  # while it is looked at: circles end here
    n = split(includes[file], next_files, "\n")
    for (i = 1; i <= n; ++i) {
      if (next_files[i] == header || (next_files[i] in read && reaches(next_files[i], header))) {
        return known[file, header] = 1
      }
    }
    return 0
  }
  BEGIN {
    end = "([^A-Za-z0-9_]|$)"
    need("algorithm", "std::(sort|stable_sort|max|min|find_if|any_of|all_of|none_of|count_if|transform|reverse|unique|remove_if|lower_bound|upper_bound|max_element|min_element|clamp|is_sorted|for_each)" end)
    need("cstdint", "std::u?int(8|16|32|64)_t" end)
    need("functional", "std::(function|greater|less|hash)" end)
    need("map", "std::(multi)?map" end)
    need("memory", "std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared)" end)
    need("optional", "std::(optional|nullopt)" end)
    need("string", "std::(string|to_string)" end)
    need("utility", "std::(pair|exchange|make_pair)" end)
    need("vector", "std::vector" end)
    need("absl/status/status.h", "absl::(Status|StatusCode|OkStatus|[A-Z][A-Za-z]*Error)" end)
    need("absl/status/statusor.h", "absl::StatusOr" end)
    need("absl/strings/str_cat.h", "absl::(StrCat|StrAppend|AlphaNum)" end)
    need("absl/time/time.h", "absl::(Duration|Time|Seconds|Milliseconds|FormatDuration)" end)
    need("absl/types/span.h", "absl::(Span|MakeSpan|MakeConstSpan)" end)
    need("gmock/gmock.h", "(EXPECT_THAT|ASSERT_THAT|[^A-Za-z0-9_]MATCHER_?P?[0-9]?)" "\\(")
    need("gtest/gtest.h", "(^|[^A-Za-z0-9_])(TEST|TEST_F|TEST_P|EXPECT_EQ|EXPECT_TRUE|ASSERT_TRUE|ASSERT_EQ)" "\\(")
  }
  FNR == 1 { read[FILENAME] = 1 }
  /^[ \t]*#[ \t]*include[ \t]+["<]/ {
    split($0, parts, /["<>]/); includes[FILENAME] = includes[FILENAME] "\n" parts[2]; next
  }
  {
    line = $0; sub(/\/\/.*/, "", line)
    if (line !~ /std::|absl::|TEST|EXPECT_|ASSERT_|MATCHER/) next
    for (i = 1; i <= rules; ++i) {
      if (((FILENAME, i) in first) || line !~ pattern_of[i]) continue
      first[FILENAME, i] = FNR; file_of[FILENAME, i] = FILENAME; rule_of[FILENAME, i] = i
    }
  }
  END {
    for (use in first) {
      if (reaches(file_of[use], header_of[rule_of[use]])) continue
      printf "%s:%d: needs #include of %s\n", file_of[use], first[use], header_of[rule_of[use]] | "LC_ALL=C sort"
      bad = 1
    }
    close("LC_ALL=C sort")
    exit bad
  }
' $(find base models hw_profiles schedule sim executor validation traces tools tests \
    \( -name '*.h' -o -name '*.cc' \) -not -path 'tools/tidy/*' | LC_ALL=C sort)
echo "includes: every name of the precompiled headers has its header"
