#pragma once
// A sweep and its base in a folder of their own.

#include <fstream>
#include <string>

#include "base/testing_folder.h"
#include "tools/sweep/spec/sweep.h"

namespace optimus::sweep {

// Four stages of given times, so that nothing but arithmetic decides.
inline constexpr char kTestingBase[] = R"(
  name: "base"
  profiled { forward_ms: 1 backward_ms: 2 }
  hardware { profile: "h100-80gb" gpus: 4 }
  batch { global_batch: 16 micro_batch: 1 }
  plan { data_parallel: 1 pipeline_parallel: 4 tensor_parallel: 1 schedule: ONE_F_ONE_B
         no_optimizer: true }
)";

class TestingSweepFiles {
 public:
  explicit TestingSweepFiles(const std::string& base = kTestingBase) {
    Write("base.textproto", base);
  }
  std::string Write(const std::string& name, const std::string& content) const {
    std::string path = Path(name);
    std::ofstream(path) << content;
    return path;
  }
  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }
  // Of the text of a sweep without its base.
  absl::StatusOr<LoadedSweep> Load(const std::string& sweep) const {
    return LoadedSweep::Load(Write("test.textproto", "base: 'base.textproto'\n" + sweep));
  }

 private:
  TestingFolder folder_;
};

}  // namespace optimus::sweep
