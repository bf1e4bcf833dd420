#include "traces/kineto/file_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace optimus::traces {
namespace {

TEST(FileTime, DecimalsAreExactToAPicosecond) {
  EXPECT_EQ(ParseMicroseconds("1682725898094377.123"), (FileTime{1682725898094377123, 0}));
  EXPECT_EQ(ParseMicroseconds("0.000001"), (FileTime{0, 1}));
  EXPECT_EQ(ParseMicroseconds("4458676416788.066001"), (FileTime{4458676416788066, 1}));
  EXPECT_EQ(ParseMicroseconds("12"), (FileTime{12000, 0}));
  EXPECT_EQ(ParseMicroseconds("1.5"), (FileTime{1500, 0}));
  EXPECT_EQ(ParseMicroseconds("607312.0"), (FileTime{607312000, 0}));
}

TEST(FileTime, ExponentsAndSignsAreRead) {
  EXPECT_EQ(ParseMicroseconds("1.6827258980943771e15"), (FileTime{1682725898094377100, 0}));
  EXPECT_EQ(ParseMicroseconds("5E-6"), (FileTime{0, 5}));
  EXPECT_EQ(ParseMicroseconds("25e+1"), (FileTime{250000, 0}));
  EXPECT_EQ(ParseMicroseconds("-0.000001"), (FileTime{-1, 999}));
  EXPECT_EQ(ParseMicroseconds("0e999"), (FileTime{0, 0}));
  EXPECT_EQ(ParseMicroseconds("1e-999"), (FileTime{0, 0}));
}

TEST(FileTime, BehindSixDecimalsItRounds) {
  EXPECT_EQ(ParseMicroseconds("0.0000004999"), (FileTime{0, 0}));
  EXPECT_EQ(ParseMicroseconds("0.0000005"), (FileTime{0, 1}));
  EXPECT_EQ(ParseMicroseconds("0.9999999"), (FileTime{1000, 0}));
  EXPECT_EQ(ParseMicroseconds("0." + std::string(60, '3')), (FileTime{333, 333}));
}

TEST(FileTime, WhatDoesNotFitOrIsNoNumberIsRefused) {
  EXPECT_EQ(ParseMicroseconds("9223372036854775.807"),
            (FileTime{std::numeric_limits<std::int64_t>::max(), 0}));
  for (const char* text : {"9223372036854775.808", "1e17", "1e400", "", "-", ".5", "1.", "1e",
                           "nan", "0x10", "1 ", "99999999999999999999999999999999999999999999"}) {
    EXPECT_EQ(ParseMicroseconds(text), std::nullopt) << text;
  }
}

TEST(FileTime, DifferencesOfAbsoluteTimesFit) {
  const FileTime a{1682725898094377123, 5}, b{1682725898094377122, 999};
  EXPECT_EQ(Difference(a, b), Picoseconds(6));
  EXPECT_EQ(Difference(b, a), Picoseconds(-6));
  EXPECT_EQ(Difference(a, FileTime{0, 0}), std::nullopt);
  EXPECT_EQ(Sum(b, Picoseconds(6)), a);
  EXPECT_EQ(Sum(FileTime{std::numeric_limits<std::int64_t>::max(), 999}, Picoseconds(1)),
            std::nullopt);
}

}  // namespace
}  // namespace optimus::traces
