#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "schedule/partition/partition.h"

namespace optimus::partition {
namespace {

using ::testing::HasSubstr;

// "E+3" style text of a parsed layout, stages separated by a space: v and t are counted.
std::string Parsed(const std::string& layout) {
  const auto stages = ParseLayout(layout);
  if (!stages.ok()) {
    return std::string(stages.status().message());
  }
  std::string text;
  for (const LayoutStage& stage : *stages) {
    text += text.empty() ? "" : " ";
    text += stage.encoder_layers > 0 ? "v" + std::to_string(stage.encoder_layers) : "";
    text += stage.projector ? "p" : "";
    text += stage.embedding ? "E" : "";
    text += stage.decoder_layers > 0 ? "t" + std::to_string(stage.decoder_layers) : "";
    text += stage.loss ? "L" : "";
  }
  return text;
}

TEST(ParseLayoutTest, Plain) { EXPECT_EQ(Parsed("Ettt|ttt|tttL"), "Et3 t3 t3L"); }

TEST(ParseLayoutTest, RepetitionsCommasAndSpaces) {
  EXPECT_EQ(Parsed("Et*3|(tt|)*4,t*2L"), "Et3 t2 t2 t2 t2 t2L");
  EXPECT_EQ(Parsed(" E t * 3 | ( t , t | ) * 2 , L "), "Et3 t2 t2 L");
  EXPECT_EQ(Parsed("E(|tt)*2|L"), "E t2 t2 L");
  EXPECT_EQ(Parsed("E|(t*2|)*2tL"), "E t2 t2 t1L");
}

// The layout of Megatron-LM's documentation for DeepSeek-V3, without its MTP layer.
TEST(ParseLayoutTest, DeepSeekV3) {
  const auto stages = ParseLayout("Et*3|(tt|)*29t|L");
  ASSERT_TRUE(stages.ok()) << stages.status();
  ASSERT_EQ(stages->size(), 32U);
  int decoder_layers = 0;
  for (const LayoutStage& stage : *stages) {
    decoder_layers += stage.decoder_layers;
  }
  EXPECT_EQ(decoder_layers, 3 + 58 + 1);
  EXPECT_TRUE(stages->front().embedding);
  EXPECT_TRUE(stages->back().loss);
}

TEST(ParseLayoutTest, MtpIsUnimplemented) {
  const auto stages = ParseLayout("Et*3|(tt|)*29,m|L");
  EXPECT_EQ(stages.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(stages.status().message(), HasSubstr("column 15: 'm', multi-token prediction (MTP)"));
}

TEST(ParseLayoutTest, EncoderAndProjector) {
  EXPECT_EQ(Parsed("v*24|v*24pEtt|ttL"), "v24 v24pEt2 t2L");
  EXPECT_EQ(Parsed("Ev*2|vp|t|tL"), "v2E v1p t1 t1L");
}

TEST(ParseLayoutTest, EmptyStageIsUnimplemented) {
  for (const char* layout : {"Et||tL", "|EtL", "EttL|", "Et|*2tL"}) {
    const auto stages = ParseLayout(layout);
    EXPECT_EQ(stages.status().code(), absl::StatusCode::kUnimplemented) << layout;
  }
  EXPECT_THAT(Parsed("Et||tL"), HasSubstr("column 4: virtual stage 1 is empty"));
}

TEST(ParseLayoutTest, PointsAtTheOffendingCharacter) {
  EXPECT_THAT(Parsed("Et|(tt|*3L"), HasSubstr("column 4: '(' is never closed"));
  EXPECT_THAT(Parsed("Et|tt)*3|L"), HasSubstr("column 6: ')' without '('"));
  EXPECT_THAT(Parsed("E(t(t|)*2)*3L"), HasSubstr("column 4: groups do not nest"));
  EXPECT_THAT(Parsed("E(tt|)L"), HasSubstr("column 7: a group must be followed by '*'"));
  EXPECT_THAT(Parsed("E()*3L"), HasSubstr("column 2: empty group"));
  EXPECT_THAT(Parsed("Et|xt|L"), HasSubstr("column 4: unknown character 'x'"));
  EXPECT_THAT(Parsed("Et3|L"), HasSubstr("column 3: unknown character '3'"));
  EXPECT_THAT(Parsed("Et*0L"), HasSubstr("column 4: repeated 0 times"));
  EXPECT_THAT(Parsed("Et*L"), HasSubstr("column 3: '*' must be followed by a number"));
  EXPECT_THAT(Parsed("*3tL"), HasSubstr("column 1: '*' must follow"));
  EXPECT_THAT(Parsed("Et*2*3L"), HasSubstr("column 5: '*' must follow"));
  EXPECT_THAT(Parsed("Et*99999999999999999999999L"), HasSubstr("more than 100000 letters"));
  EXPECT_THAT(Parsed(" , "), HasSubstr("empty"));
}

TEST(ParseLayoutTest, RefusesAWrongOrder) {
  EXPECT_THAT(Parsed("tEtL"), HasSubstr("column 1: 't' before E"));
  EXPECT_THAT(Parsed("EtLt"), HasSubstr("column 4: 't' after L"));
  EXPECT_THAT(Parsed("EtEL"), HasSubstr("column 3: 'E' must stand once"));
  EXPECT_THAT(Parsed("EtLL"), HasSubstr("column 4: 'L' after L"));
  EXPECT_THAT(Parsed("EL"), HasSubstr("column 2: 'L' before any t"));
  EXPECT_THAT(Parsed("Et|t"), HasSubstr("no L"));
  EXPECT_THAT(Parsed("vEtL"), HasSubstr("column 3: 't' before the encoder's projector p"));
  EXPECT_THAT(Parsed("EpvtL"), HasSubstr("column 2: 'p' must stand once, after the encoder's v"));
  EXPECT_THAT(Parsed("vpvEtL"), HasSubstr("column 3: 'v' after p"));
  EXPECT_THAT(Parsed("Etv"), HasSubstr("column 3: 'v' after p or t"));
}

// Any string is a layout or one line of error that quotes it.
TEST(ParseLayoutTest, AnyString) {
  constexpr char kAlphabet[] = "EEttttLvp|||()*2,m ";
  std::mt19937_64 random(3);
  int accepted = 0;
  for (int trial = 0; trial < 200'000; ++trial) {
    std::string layout = trial % 2 == 0 ? "E" : "";
    for (std::uint64_t left = random() % 10; left > 0; --left) {
      layout += kAlphabet[random() % (sizeof(kAlphabet) - 1)];
    }
    const auto stages = ParseLayout(layout);
    accepted += stages.ok() ? 1 : 0;
    if (!stages.ok() && stages.status().message() != "layout: empty string") {
      EXPECT_THAT(stages.status().message(), HasSubstr("layout \"" + layout + "\", column "));
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace optimus::partition
