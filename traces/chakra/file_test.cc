// Files that are no Chakra traces, of another schema, truncated or packed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/testing_folder.h"
#include "traces/chakra/chakra.h"
#include "traces/chakra/testing_file.h"

namespace optimus::traces::chakra {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace schema = ::optimus::chakra;

std::string ErrorOf(const std::string& bytes) {
  return std::string(ReadChakraBytes(bytes, "run.3.et").status().message());
}

TestingFile SmallFile() {
  return TestingFile().Add(MakeKernel(0, 1, 2)).Add(MakeCollective(1, 0, 8));
}

TEST(ChakraFile, TruncatedIsRefusedWithItsByte) {
  const TestingFile file = SmallFile();
  for (std::size_t size = 0; size < file.bytes().size(); ++size) {
    const bool is_end = std::count(file.ends().begin(), file.ends().end(), size) > 0;
    const auto recording = ReadChakraBytes(file.bytes().substr(0, size), "run.3.et");
    EXPECT_EQ(recording.ok(), is_end) << size;
    if (is_end || size == 0) continue;
    EXPECT_THAT(std::string(recording.status().message()),
                AllOf(HasSubstr("run.3.et: byte "), HasSubstr("truncated")));
  }
}

TEST(ChakraFile, GzipIsReadAndTruncatedGzipRefused) {
  const std::string packed = Gzip(SmallFile().bytes());
  const auto plain = ReadChakraBytes(SmallFile().bytes(), "run.3.et");
  const auto read = ReadChakraBytes(packed, "run.3.et");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, *plain);
  for (std::size_t size = 2; size < packed.size(); ++size) {
    EXPECT_FALSE(ReadChakraBytes(packed.substr(0, size), "run.3.et").ok()) << size;
  }
}

TEST(ChakraFile, GzipStreamsOneBehindTheOther) {
  const std::string bytes = SmallFile().bytes();
  const auto read =
      ReadChakraBytes(Gzip(bytes.substr(0, 9)) + Gzip("") + Gzip(bytes.substr(9)), "run.3.et");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ranks.front().ops.size(), 2U);
}

TEST(ChakraFile, Versions) {
  for (const char* version : {"", "0.0.4", "1.0.0"}) {
    EXPECT_TRUE(ReadChakraBytes(TestingFile(version).bytes() + '\0', "run.3.et").ok()) << version;
  }
  EXPECT_THAT(ErrorOf(TestingFile("0.0.1").bytes()),
              HasSubstr("schema version \"0.0.1\"; known: 0.0.4, 1.0.0"));
}

TEST(ChakraFile, UnknownFieldsAreNamed) {
  EXPECT_THAT(ErrorOf(TestingFile().AddBytes("\x5a\x01x").bytes()),
              HasSubstr("Node has a field 11"));
  EXPECT_THAT(ErrorOf(TestingFile().AddBytes("\x52\x04\x8a\x02\x01x").bytes()),
              HasSubstr("AttributeProto has a field 33"));
  EXPECT_THAT(ErrorOf(TestingFile().AddBytes("\x42\x03\x22\x01x").bytes()),
              HasSubstr("IOInfo has a field 4"));
  EXPECT_THAT(ErrorOf(TestingFile().AddBytes("\x52\x05\x42\x03\x12\x01x").bytes()),
              HasSubstr("Int32List has a field 2"));
  EXPECT_THAT(ErrorOf("\x02\x18\x01"), HasSubstr("GlobalMetadata has a field 3"));
}

TEST(ChakraFile, UnknownNodeTypeIsNamed) {
  EXPECT_THAT(ErrorOf(TestingFile().AddBytes("\x08\x02\x18\x08").bytes()),
              HasSubstr("node 2: type 8"));
}

TEST(ChakraFile, MessageThatIsTooLong) {
  EXPECT_THAT(ErrorOf(TestingFile().bytes() + "\xff\xff\xff\xff\x07"), HasSubstr("longest"));
  EXPECT_THAT(ErrorOf(TestingFile().bytes() + std::string(12, '\xff')), HasSubstr("no length"));
  // A length that fits, and nothing behind it: not a reason to allocate it.
  EXPECT_THAT(ErrorOf(TestingFile().bytes() + "\xff\xff\xff\x1f"), HasSubstr("truncated"));
}

TEST(ChakraFile, JsonIsNamed) {
  EXPECT_THAT(ErrorOf(R"({"schema": "1.0.2-chakra.0.0.4", "nodes": []})"),
              AllOf(HasSubstr("PyTorch execution trace"), HasSubstr("1.0.2-chakra.0.0.4"),
                    HasSubstr("chakra_converter")));
  EXPECT_THAT(ErrorOf("\n{\n \"workload_graph\": []}"), HasSubstr("workload_graph"));
  EXPECT_THAT(ErrorOf(Gzip(R"({"traceEvents": []})")), HasSubstr("Kineto"));
  EXPECT_THAT(ErrorOf(R"([{"ph": "X"}])"), HasSubstr("JSON, not a Chakra"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("empty file"));
}

// Its first byte is '{', that of JSON.
TEST(ChakraFile, FirstMessageOf123BytesIsNoJson) {
  schema::GlobalMetadata metadata;
  metadata.set_version("0.0.4");
  AddBytes(*metadata.mutable_attr(), "x", std::string(108, 'a'));
  ASSERT_EQ(metadata.ByteSizeLong(), 123U);
  std::string bytes = "{" + metadata.SerializeAsString();
  EXPECT_TRUE(ReadChakraBytes(bytes, "run.3.et").ok());
}

TEST(ChakraFile, FilesOfAPrefixAreJoined) {
  const TestingFolder folder;
  const std::string prefix = (folder.path() / "run").string();
  for (const char* rank : {"0", "1", "10"}) {
    std::ofstream(prefix + "." + rank + ".et")
        << TestingFile().Add(MakeCollective(0, schema::ALL_GATHER, 8)).bytes();
  }
  std::ofstream(prefix + ".x.et") << "no";
  std::ofstream(prefix + "ner.2.et") << "no";
  const auto files = FindChakraFiles(prefix);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(prefix + ".0.et", prefix + ".1.et", prefix + ".10.et"));
  const auto all = ReadChakraAll(*files);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->ranks.size(), 3U);
  EXPECT_EQ(all->world, 0);  // ranks 2 to 9 are not there: how many there are is not known
  const auto two = ReadChakraAll({prefix + ".1.et", prefix + ".0.et"});
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->world, 2);
  EXPECT_EQ(two->ranks[1].communications[0].bytes, Bytes(16));
  EXPECT_FALSE(FindChakraFiles(prefix + "x").ok());
  EXPECT_FALSE(ReadChakra(folder.path().string()).ok());
  EXPECT_FALSE(ReadChakra(prefix + ".77.et").ok());
}

}  // namespace
}  // namespace optimus::traces::chakra
