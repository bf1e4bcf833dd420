#include "models/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "models/accounting.h"

namespace optimus::models {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ZooFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::path(::testing::TempDir()) / absl::StrCat("optimus_zoo_", getpid());
    std::filesystem::create_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string Write(const std::string& name, const std::string& content) {
    std::string path = dir_ / name;
    EXPECT_TRUE(WriteFileAtomically(path, content).ok());
    return path;
  }
  std::filesystem::path dir_;
};

TEST(Zoo, HoldsThePapersModels) {
  EXPECT_THAT(ZooModels(),
              ElementsAre("gpt-11b", "gpt-175b", "gpt-22b-korthikanti", "gpt-530b-korthikanti",
                          "llama-70b", "vit-11b", "vit-22b", "vit-3b", "vit-5b"));
}

TEST(Zoo, EveryModelLoadsAndNamesItsSource) {
  for (const std::string& name : ZooModels()) {
    const absl::StatusOr<ModelConfig> model = LoadModel(name);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->name(), name);
    EXPECT_THAT(model->source(), HasSubstr("arXiv")) << name;
    EXPECT_TRUE(ValidateModel(*model, name == "vit-3b" ? 2 : 8).ok()) << name;
    const bool encoder = name.rfind("vit-", 0) == 0;
    EXPECT_EQ(model->vocabulary_size() == 0, encoder) << name;
    EXPECT_EQ(model->attention(), encoder ? ModelConfig::FULL : ModelConfig::CAUSAL) << name;
  }
}

TEST(Zoo, UnknownNameListsTheKnownOnes) {
  const absl::Status status = LoadModel("vit-23b").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'vit-23b'"), HasSubstr("vit-22b"), HasSubstr("llama-70b")));
}

TEST_F(ZooFiles, ErrorsNameFileAndField) {
  const auto message = [&](const std::string& name, const std::string& content) {
    const absl::Status status = LoadModel(Write(name, content)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(message("a.textproto", "name: \"x\" hidden: 3"),
              AllOf(HasSubstr("a.textproto:1:"), HasSubstr("hidden")));
  EXPECT_THAT(message("b.textproto", "hidden_size: 8"),
              AllOf(HasSubstr("b.textproto"), HasSubstr("name is empty")));
  EXPECT_THAT(message("c.textproto", "name: \"x\" hidden_size: 8"),
              AllOf(HasSubstr("c.textproto"), HasSubstr("num_layers")));
  EXPECT_EQ(LoadModel((dir_ / "none.textproto").string()).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ZooFiles, ReadsAModelByPath) {
  const absl::StatusOr<std::string> text = ReadFile(DataDir() + "/models/zoo/vit-22b.textproto");
  ASSERT_TRUE(text.ok()) << text.status();
  const absl::StatusOr<ModelConfig> model = LoadModel(Write("mine.textproto", *text));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->name(), "vit-22b");
}

}  // namespace
}  // namespace optimus::models
