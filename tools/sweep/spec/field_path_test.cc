#include "tools/sweep/spec/field_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw_profiles/profile.pb.h"
#include "schedule/step/experiment.pb.h"

namespace optimus::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Problem(const std::string& path) {
  return std::string(FieldPath::Parse(path).status().message());
}

step::Experiment TwoEncoders() {
  step::Experiment experiment;
  experiment.add_encoders()->set_model("a");
  experiment.add_encoders()->set_model("b");
  return experiment;
}

TEST(FieldPathTest, SetsWhatItNames) {
  step::Experiment experiment = TwoEncoders();
  const auto set = [&](const std::string& path, const std::string& value) {
    EXPECT_TRUE(FieldPath::Parse(path)->Set(value, experiment).ok()) << path;
  };
  set("plan.tensor_parallel", "8");
  set("encoders[1].model", "it's \"x\"\\");
  set("encoders[0].frozen", "true");
  set("plan.layout", "BALANCED");
  set("plan.layer_counts", "3, 4,5");
  set("hardware.oversubscription", "1.5");
  set("plan.dp_bucket_parameters", "40000000000");
  EXPECT_EQ(experiment.plan().tensor_parallel(), 8);
  EXPECT_EQ(experiment.encoders(0).model(), "a");
  EXPECT_EQ(experiment.encoders(1).model(), "it's \"x\"\\");
  EXPECT_TRUE(experiment.encoders(0).frozen());
  EXPECT_EQ(experiment.plan().layout(), step::Plan::BALANCED);
  EXPECT_THAT(experiment.plan().layer_counts(), ElementsAre(3, 4, 5));
  EXPECT_EQ(experiment.hardware().oversubscription(), 1.5);
  EXPECT_EQ(experiment.plan().dp_bucket_parameters(), 40000000000);
  set("plan.layer_counts", "7");
  EXPECT_THAT(experiment.plan().layer_counts(), ElementsAre(7));
}

TEST(FieldPathTest, NumbersOfAProfileAreMarkedAsChanged) {
  hw::HardwareProfile profile;
  profile.mutable_nic()->mutable_bandwidth_gb_per_s()->set_origin(hw::Number::DATASHEET);
  profile.mutable_nic()->mutable_bandwidth_gb_per_s()->set_date("2022");
  const FieldPath path = FieldPath::Parse("profile.nic.bandwidth_gb_per_s").value();
  EXPECT_EQ(path.root(), FieldPath::Root::kProfile);
  EXPECT_EQ(path.SqlType(), "REAL");
  ASSERT_TRUE(path.Set("25", profile).ok());
  EXPECT_EQ(profile.nic().bandwidth_gb_per_s().value(), 25);
  EXPECT_EQ(profile.nic().bandwidth_gb_per_s().origin(), hw::Number::ASSUMED);
  EXPECT_EQ(profile.nic().bandwidth_gb_per_s().date(), "2022");
}

TEST(FieldPathTest, TypesOfColumns) {
  EXPECT_EQ(FieldPath::Parse("hardware.gpus")->SqlType(), "INTEGER");
  EXPECT_EQ(FieldPath::Parse("plan.layout")->SqlType(), "TEXT");
  EXPECT_EQ(FieldPath::Parse("plan.layer_counts")->SqlType(), "TEXT");
  EXPECT_EQ(FieldPath::Parse("encoders[0].frozen")->SqlType(), "TEXT");
  EXPECT_EQ(FieldPath::Parse("hardware.oversubscription")->SqlType(), "REAL");
}

TEST(FieldPathTest, WrongPathsSayWhatThereIs) {
  EXPECT_THAT(Problem("plan.tensor_paralel"),
              AllOf(HasSubstr("no field \"tensor_paralel\""), HasSubstr("tensor_parallel")));
  EXPECT_THAT(Problem("nonsense"), AllOf(HasSubstr("hardware"), HasSubstr("profile")));
  EXPECT_THAT(Problem("plan"), HasSubstr("is no value"));
  EXPECT_THAT(Problem("encoders.model"), HasSubstr("encoders[0]"));
  EXPECT_THAT(Problem("encoders[x].model"), HasSubstr("no index"));
  EXPECT_THAT(Problem("encoders[-1].model"), HasSubstr("no index"));
  EXPECT_THAT(Problem("encoders[0.model"), HasSubstr("no index"));
  EXPECT_THAT(Problem("plan[0].layout"), HasSubstr("takes no index"));
  EXPECT_THAT(Problem("hardware.gpus.x"), HasSubstr("has no fields"));
  EXPECT_THAT(Problem("profile.nic.bandwidth_gb_per_s.value"), HasSubstr("has no fields"));
  EXPECT_FALSE(FieldPath::Parse("").ok());
  EXPECT_FALSE(FieldPath::Parse("plan.").ok());
  EXPECT_FALSE(FieldPath::Parse(".").ok());
}

TEST(FieldPathTest, ListsEnd) {
  step::Experiment experiment = TwoEncoders();
  const absl::Status status = FieldPath::Parse("encoders[2].model")->Set("x", experiment);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has 2 entries"));
}

}  // namespace
}  // namespace optimus::sweep
