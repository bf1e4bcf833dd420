#include "base/parse_units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"

namespace optimus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ParseDuration, EveryUnit) {
  EXPECT_EQ(*ParseDuration("7ps"), Picoseconds(7));
  EXPECT_EQ(*ParseDuration("7ns"), Picoseconds(7'000));
  EXPECT_EQ(*ParseDuration("3us"), Picoseconds(3'000'000));
  EXPECT_EQ(*ParseDuration("1.5 ms"), Picoseconds(1'500'000'000));
  EXPECT_EQ(*ParseDuration("5.91s"), FromSeconds(5.91));
  EXPECT_EQ(*ParseDuration("2min"), FromSeconds(120));
  EXPECT_EQ(*ParseDuration(" 1h "), FromSeconds(3600));
  EXPECT_EQ(*ParseDuration("0s"), Picoseconds(0));
  EXPECT_EQ(*ParseDuration("1e-3us"), Picoseconds(1'000));
}

TEST(ParseBytes, DecimalAndBinaryDiffer) {
  EXPECT_EQ(*ParseBytes("5B"), Bytes(5));
  EXPECT_EQ(*ParseBytes("1kB"), Bytes(1'000));
  EXPECT_EQ(*ParseBytes("80GB"), Bytes(80'000'000'000));
  EXPECT_EQ(*ParseBytes("1KiB"), Bytes(1'024));
  EXPECT_EQ(*ParseBytes("16MiB"), Bytes(16'777'216));
  EXPECT_EQ(*ParseBytes("80GiB"), Bytes(85'899'345'920));
  EXPECT_EQ(*ParseBytes("0.5TiB"), Bytes(549'755'813'888));
  EXPECT_EQ(*ParseBytes("2PB"), Bytes(2'000'000'000'000'000));
}

TEST(ParseBandwidth, BytesAndBits) {
  EXPECT_DOUBLE_EQ(ParseBandwidth("400GB/s")->value(), 400e9);
  EXPECT_DOUBLE_EQ(ParseBandwidth("400Gb/s")->value(), 50e9);
  EXPECT_DOUBLE_EQ(ParseBandwidth("3.35TB/s")->value(), 3.35e12);
  EXPECT_DOUBLE_EQ(ParseBandwidth("1GiB/s")->value(), 1073741824);
}

TEST(ParseFlops, Rates) {
  EXPECT_DOUBLE_EQ(ParseFlopsPerSecond("989TFLOP/s")->value(), 989e12);
  EXPECT_DOUBLE_EQ(ParseFlopsPerSecond("1.2 EFLOP/s")->value(), 1.2e18);
}

TEST(ParseUnits, ErrorsNameTheTextAndTheUnits) {
  const auto error = [](absl::string_view text) {
    return std::string(ParseDuration(text).status().message());
  };
  EXPECT_THAT(error("3"), AllOf(HasSubstr("'3'"), HasSubstr("has no unit"), HasSubstr("us, ms")));
  EXPECT_THAT(error("3 GB"), AllOf(HasSubstr("unknown unit 'GB'"), HasSubstr("ps, ns")));
  EXPECT_THAT(error("3US"), HasSubstr("unknown unit 'US'"));
  EXPECT_THAT(error("3 u s"), HasSubstr("unknown unit 'u s'"));
  EXPECT_THAT(error("us"), HasSubstr("does not start with a number"));
  EXPECT_THAT(error(""), HasSubstr("does not start with a number"));
  EXPECT_THAT(error("-3us"), HasSubstr("negative"));
  EXPECT_THAT(error("-0s"), HasSubstr("negative"));
  EXPECT_THAT(error("1e999s"), HasSubstr("out of range"));
  EXPECT_THAT(error("nan s"), HasSubstr("out of range"));
  EXPECT_THAT(error("inf s"), HasSubstr("out of range"));
  EXPECT_THAT(error("1e10s"), HasSubstr("too large"));
  EXPECT_EQ(ParseDuration("3").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ParseUnits, TheLargestThatFits) {
  EXPECT_FALSE(ParseBytes("9223372036854775808B").ok());  // 2^63
  EXPECT_EQ(*ParseBytes("8191PiB"), Bytes(8191LL << 50));
  EXPECT_FALSE(ParseBytes("8192PiB").ok());
}

TEST(ParseUnits, RatesMustBePositive) {
  EXPECT_THAT(std::string(ParseBandwidth("0GB/s").status().message()), HasSubstr("zero"));
  EXPECT_THAT(std::string(ParseBandwidth("400GB").status().message()),
              HasSubstr("unknown unit 'GB'"));
  EXPECT_FALSE(ParseFlopsPerSecond("1e300EFLOP/s").ok());
}

}  // namespace
}  // namespace optimus
