// Loading and checking profiles.

#include "hw_profiles/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "google/protobuf/descriptor.h"

namespace optimus::hw {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

HardwareProfile H100() { return *LoadProfile("h100-80gb"); }
HardwareProfile A100() { return *LoadProfile("a100-80gb"); }  // with tiles and protocols

// Counts the numbers of a message and checks each: an independent, plain walk.
int CheckNumbers(const google::protobuf::Message& message, const std::string& prefix) {
  int count = 0;
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->message_type() == nullptr || field->is_repeated()) continue;
    const auto& part = message.GetReflection()->GetMessage(message, field);
    const std::string path = absl::StrCat(prefix, field->name());
    if (const auto* number = dynamic_cast<const Number*>(&part)) {
      EXPECT_TRUE(number->has_value()) << path;
      EXPECT_GT(number->source().size(), 10U) << path;
      EXPECT_GE(number->date().size(), 4U) << path;
      EXPECT_NE(number->origin(), Number::ORIGIN_UNSPECIFIED) << path;
      ++count;
    } else {
      count += CheckNumbers(part, path + ".");
    }
  }
  return count;
}

TEST(Zoo, EveryNumberHasSourceAndDate) {
  ASSERT_THAT(ZooProfiles(),
              ElementsAre("a100-80gb", "a100-80gb-4nic", "h100-80gb", "h100-80gb-eos"));
  for (const std::string& name : ZooProfiles()) {
    const auto profile = LoadProfile(name);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_EQ(profile->name(), name);
    // 8 of the GPU, 8 of tiles, GPUs a node, 2 links of a bandwidth and 6 rows of 2, overlap 3,
    // NVLS 3, 3 protocols of 4 and their 2, shared NICs 2.
    EXPECT_EQ(CheckNumbers(*profile, name + "."), 8 + (profile->gpu().has_tiles() ? 8 : 0) + 1 +
                                                      2 * 13 + 3 + (profile->has_nvls() ? 3 : 0) +
                                                      (profile->has_protocols() ? 3 * 4 + 2 : 0) +
                                                      (profile->has_shared_nics() ? 2 : 0));
  }
}

TEST(Zoo, EveryPhysicalFieldIsANumber) {
  // A bare double or int in the schema would escape the check of sources.
  for (const auto* message :
       {HardwareProfile::descriptor(), Gpu::descriptor(), Link::descriptor(),
        RingCost::descriptor(), Nvls::descriptor(), Overlap::descriptor(), Protocols::descriptor(),
        Protocol::descriptor(), GemmTiles::descriptor()}) {
    for (int i = 0; i < message->field_count(); ++i) {
      using Field = google::protobuf::FieldDescriptor;
      const auto type = message->field(i)->cpp_type();
      EXPECT_TRUE(type == Field::CPPTYPE_MESSAGE || type == Field::CPPTYPE_STRING ||
                  type == Field::CPPTYPE_ENUM)
          << message->field(i)->full_name();
    }
  }
}

TEST(LoadProfile, UnknownNameListsTheKnownOnes) {
  const absl::Status status = LoadProfile("h200").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'h200'"), HasSubstr("a100-80gb, a100-80gb-4nic, h100-80gb")));
}

TEST(LoadProfile, MissingFile) {
  const absl::Status status = LoadProfile("no/such.textproto").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), StartsWith("no/such.textproto: "));
}

class ProfileFile : public ::testing::Test {
 protected:
  ProfileFile()
      : path_(absl::StrCat(::testing::TempDir(), "/profile_test_", getpid(), ".textproto")),
        text_(*ReadFile("hw_profiles/zoo/h100-80gb.textproto")) {}
  ~ProfileFile() override { std::remove(path_.c_str()); }
  // The zoo's H100 with `from` replaced once by `to`.
  absl::Status LoadWith(const std::string& from, const std::string& to) {
    std::string text = text_;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    EXPECT_TRUE(WriteFileAtomically(path_, text).ok());
    return LoadProfile(path_).status();
  }
  std::string path_, text_;
};

TEST_F(ProfileFile, LoadsByPath) { EXPECT_TRUE(LoadWith("989", "990").ok()); }

TEST_F(ProfileFile, UnknownFieldNamesFileAndLine) {
  const absl::Status status = LoadWith("gemm_efficiency {", "gem_efficiency {");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string before = text_.substr(0, text_.find("gemm_efficiency {"));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith(absl::StrCat(path_, ":", line, ":")), HasSubstr("gem_efficiency")));
}

TEST_F(ProfileFile, BrokenValueNamesFileAndField) {
  const absl::Status status = LoadWith("value: 0.65", "value: 65");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith(path_ + ": gpu.gemm_efficiency.value: is 65"),
                    HasSubstr("from 0.001 to 1")));
}

struct Broken {
  const char* message;  // how the error starts
  std::function<void(HardwareProfile&)> edit;
};

TEST(ValidateProfile, NamesTheBrokenField) {
  const Broken cases[] = {
      {"name: is missing", [](auto& p) { p.clear_name(); }},
      {"gpu: is missing", [](auto& p) { p.clear_gpu(); }},
      {"gpu.hbm_efficiency: is missing", [](auto& p) { p.mutable_gpu()->clear_hbm_efficiency(); }},
      {"nic.send.latency_us: is missing",
       [](auto& p) { p.mutable_nic()->mutable_send()->clear_latency_us(); }},
      {"nvlink.all_to_all: is missing", [](auto& p) { p.mutable_nvlink()->clear_all_to_all(); }},
      {"gpus_per_node.value: is missing",
       [](auto& p) { p.mutable_gpus_per_node()->clear_value(); }},
      {"gpus_per_node.value: is 7.5", [](auto& p) { p.mutable_gpus_per_node()->set_value(7.5); }},
      {"gpus_per_node.value: is 0", [](auto& p) { p.mutable_gpus_per_node()->set_value(0); }},
      {"gpu.memory_capacity_gib.value: is -1",
       [](auto& p) { p.mutable_gpu()->mutable_memory_capacity_gib()->set_value(-1); }},
      {"gpu.kernel_launch_us.value: is -3",
       [](auto& p) { p.mutable_gpu()->mutable_kernel_launch_us()->set_value(-3); }},
      {"nic.bandwidth_gb_per_s.value: must be a finite",
       [](auto& p) { p.mutable_nic()->mutable_bandwidth_gb_per_s()->set_value(NAN); }},
      {"nvlink.all_gather.efficiency.value: is 0",
       [](auto& p) {
         p.mutable_nvlink()->mutable_all_gather()->mutable_efficiency()->set_value(0);
       }},
      {"gpu.peak_dense_bf16_tflop_per_s.source: is missing",
       [](auto& p) { p.mutable_gpu()->mutable_peak_dense_bf16_tflop_per_s()->clear_source(); }},
      {"nvls.efficiency.date: is 'last year'",
       [](auto& p) { p.mutable_nvls()->mutable_efficiency()->set_date("last year"); }},
      {"nvls.latency_us.date: is '2025-13'",
       [](auto& p) { p.mutable_nvls()->mutable_latency_us()->set_date("2025-13"); }},
      {"gpu.gemm_efficiency.origin: is missing",
       [](auto& p) { p.mutable_gpu()->mutable_gemm_efficiency()->clear_origin(); }},
      {"interference.kernel_under_nic_factor.source: is missing",
       [](auto& p) {
         p.mutable_interference()->mutable_kernel_under_nic_factor()->clear_source();
       }},
      {"interference.kernel_under_nvlink_factor.value: is missing",
       [](auto& p) {
         p.mutable_interference()->mutable_kernel_under_nvlink_factor()->clear_value();
       }},
      {"protocols.ll128: is missing",
       [](auto& p) {
         *p.mutable_protocols() = A100().protocols();
         p.mutable_protocols()->clear_ll128();
       }},
      {"protocols.simple.nic_step_us: is missing",
       [](auto& p) {
         *p.mutable_protocols() = A100().protocols();
         p.mutable_protocols()->mutable_simple()->clear_nic_step_us();
       }},
      {"gpu.tiles.tile_rows.value: is 127.5; must be a whole number",
       [](auto& p) {
         *p.mutable_gpu()->mutable_tiles() = A100().gpu().tiles();
         p.mutable_gpu()->mutable_tiles()->mutable_tile_rows()->set_value(127.5);
       }},
      {"gpu.tiles.fill_k.source: is missing",
       [](auto& p) {
         *p.mutable_gpu()->mutable_tiles() = A100().gpu().tiles();
         p.mutable_gpu()->mutable_tiles()->mutable_fill_k()->clear_source();
       }},
      {"nvls.collectives: is empty", [](auto& p) { p.mutable_nvls()->clear_collectives(); }},
      {"nvls.collectives: holds COLLECTIVE_UNSPECIFIED",
       [](auto& p) { p.mutable_nvls()->add_collectives(Nvls::COLLECTIVE_UNSPECIFIED); }},
  };
  for (const Broken& broken : cases) {
    HardwareProfile profile = H100();
    broken.edit(profile);
    const absl::Status status = ValidateProfile(profile);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << broken.message;
    EXPECT_THAT(std::string(status.message()), StartsWith(broken.message));
  }
}

// Numbers that are positive and finite, and that no GPU has: prices made of them would be nonsense.
TEST(ValidateProfile, AbsurdNumbersAreRefusedWithTheRange) {
  const Broken cases[] = {
      {"gpu.gemm_efficiency.value: is 1e-300; must be from 0.001 to 1",
       [](auto& p) { p.mutable_gpu()->mutable_gemm_efficiency()->set_value(1e-300); }},
      {"gpu.peak_dense_bf16_tflop_per_s.value: is 1e-300; must be from 0.001 to 1e+06",
       [](auto& p) { p.mutable_gpu()->mutable_peak_dense_bf16_tflop_per_s()->set_value(1e-300); }},
      {"gpu.peak_dense_bf16_tflop_per_s.value: is 9.89e+14; must be from 0.001 to 1e+06",
       [](auto& p) { p.mutable_gpu()->mutable_peak_dense_bf16_tflop_per_s()->set_value(989e12); }},
      {"gpu.hbm_bandwidth_tb_per_s.value: is 1e+300; must be from 0.001 to 1e+06",
       [](auto& p) { p.mutable_gpu()->mutable_hbm_bandwidth_tb_per_s()->set_value(1e300); }},
      {"gpu.optimizer_step_ms.value: is 1e+12; must be from 0 to 1e+06",
       [](auto& p) { p.mutable_gpu()->mutable_optimizer_step_ms()->set_value(1e12); }},
      {"gpu.memory_capacity_gib.value: is 1e+12; must be from 0.001 to 1e+06",
       [](auto& p) { p.mutable_gpu()->mutable_memory_capacity_gib()->set_value(1e12); }},
      {"nic.bandwidth_gb_per_s.value: is 1e-05; must be from 0.001 to 1e+06",
       [](auto& p) { p.mutable_nic()->mutable_bandwidth_gb_per_s()->set_value(1e-5); }},
      {"nvlink.send.latency_us.value: is 1e+300; must be from 0 to 1e+06",
       [](auto& p) { p.mutable_nvlink()->mutable_send()->mutable_latency_us()->set_value(1e300); }},
      {"interference.kernel_under_nvlink_factor.value: is 0.9; must be from 1 to 10",
       [](auto& p) {
         p.mutable_interference()->mutable_kernel_under_nvlink_factor()->set_value(0.9);
       }},
      {"interference.collective_under_kernel_factor.value: is 11; must be from 1 to 10",
       [](auto& p) {
         p.mutable_interference()->mutable_collective_under_kernel_factor()->set_value(11);
       }},
      {"protocols.ll.efficiency.value: is 1.5; must be from 0.001 to 1",
       [](auto& p) {
         *p.mutable_protocols() = A100().protocols();
         p.mutable_protocols()->mutable_ll()->mutable_efficiency()->set_value(1.5);
       }},
      {"gpu.tiles.streaming_multiprocessors.value: is 0; must be from 1 to 10000",
       [](auto& p) {
         *p.mutable_gpu()->mutable_tiles() = A100().gpu().tiles();
         p.mutable_gpu()->mutable_tiles()->mutable_streaming_multiprocessors()->set_value(0);
       }},
      {"gpu.tiles.most_splits.value: is 1000; must be from 1 to 64",
       [](auto& p) {
         *p.mutable_gpu()->mutable_tiles() = A100().gpu().tiles();
         p.mutable_gpu()->mutable_tiles()->mutable_most_splits()->set_value(1000);
       }},
      {"shared_nics.gpus_per_nic.value: is 1.5; must be a whole number",
       [](auto& p) {
         *p.mutable_shared_nics() = LoadProfile("a100-80gb-4nic")->shared_nics();
         p.mutable_shared_nics()->mutable_gpus_per_nic()->set_value(1.5);
       }},
      {"shared_nics.spread_ring_efficiency: is missing",
       [](auto& p) {
         *p.mutable_shared_nics() = LoadProfile("a100-80gb-4nic")->shared_nics();
         p.mutable_shared_nics()->clear_spread_ring_efficiency();
       }},
      {"nvls.minimum_mib.value: is 1e+07; must be from 0 to 1e+06",
       [](auto& p) { p.mutable_nvls()->mutable_minimum_mib()->set_value(1e7); }},
      {"nvls.collectives: holds 77; one of ALL_GATHER",
       [](auto& p) { p.mutable_nvls()->mutable_collectives()->Add(77); }},
  };
  for (const Broken& broken : cases) {
    HardwareProfile profile = H100();
    broken.edit(profile);
    const absl::Status status = ValidateProfile(profile);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << broken.message;
    EXPECT_THAT(std::string(status.message()), StartsWith(broken.message));
  }
}

TEST_F(ProfileFile, AbsurdNumberNamesTheFile) {
  const absl::Status status = LoadWith("value: 989", "value: 989e12");
  EXPECT_THAT(std::string(status.message()), StartsWith(path_ + ": gpu.peak_dense_bf16_tflop"));
}

TEST(ValidateProfile, ZeroLatencyAndNoNvlsAreFine) {
  HardwareProfile profile = H100();
  profile.mutable_gpu()->mutable_kernel_launch_us()->set_value(0);
  profile.clear_nvls();
  EXPECT_TRUE(ValidateProfile(profile).ok());
}

TEST(ValidateProfile, OverlapOrPartsOfItMayBeMissing) {
  HardwareProfile profile = H100();
  profile.mutable_interference()->clear_kernel_under_nic_factor();
  EXPECT_TRUE(ValidateProfile(profile).ok());
  const Interference part = ProfileCostModel(profile).interference();
  EXPECT_EQ(part.kernel_under_nvlink, 1.189);
  EXPECT_EQ(part.kernel_under_nic, 1);
  profile.clear_interference();
  EXPECT_TRUE(ValidateProfile(profile).ok());
  EXPECT_EQ(ProfileCostModel(profile).interference().kernel_under_nvlink, 1);
}

// Lee et al., arXiv 2507.03114, abstract: computation 18.9 % slower on average under overlapping
// communication. Streaming multiprocessors left to kernels: 124 of 132, 104 of 108.
TEST(Zoo, OverlapFactors) {
  const Interference h100 = ProfileCostModel(H100()).interference();
  EXPECT_EQ(h100.kernel_under_nvlink, 1.189);
  EXPECT_NEAR(h100.kernel_under_nic, 132.0 / 124.0, 0.005);
  EXPECT_EQ(h100.collective_under_kernel, 1);
  const Interference a100 = ProfileCostModel(*LoadProfile("a100-80gb")).interference();
  EXPECT_EQ(a100.kernel_under_nvlink, 1.189);
  EXPECT_NEAR(a100.kernel_under_nic, 108.0 / 104.0, 0.005);
  EXPECT_EQ(a100.collective_under_kernel, 1);
}

TEST(Validate, CalibrationRowsNameDataSetAndRow) {
  HardwareProfile profile = H100();
  profile.clear_calibrated_on();
  CalibrationRow& row = *profile.add_calibrated_on();
  row.set_dataset("nccl_busbw");
  EXPECT_THAT(std::string(ValidateProfile(profile).message()),
              StartsWith("calibrated_on[0].row: is missing; name the row by its columns"));
  row.set_row("gpu=H100,bytes=134217728");
  EXPECT_TRUE(ValidateProfile(profile).ok());
  row.clear_dataset();
  EXPECT_THAT(std::string(ValidateProfile(profile).message()),
              StartsWith("calibrated_on[0].dataset: is missing"));
}

}  // namespace
}  // namespace optimus::hw
