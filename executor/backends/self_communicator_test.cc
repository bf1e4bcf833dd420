#include "executor/backends/self_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace optimus::executor {
namespace {

using testing::HasSubstr;

class PlainDevice : public HostDevice {
 public:
  PlainDevice() : HostDevice(HostOptions{}) {}
  ~PlainDevice() override { StopThreads(); }
  std::string Description() const override { return "no kernels"; }

 protected:
  absl::Status PrepareKernels(absl::Span<const Kernel> /*kernels*/) override {
    return absl::OkStatus();
  }
  absl::StatusOr<std::int64_t> RunKernel(const Kernel& /*kernel*/, std::int64_t ready_ns) override {
    return ready_ns;
  }
};

absl::Status RunCollective(Communicator& ranks, PlainDevice& device,
                           const std::vector<float>& input, std::vector<float>& output) {
  const CollectiveWork work{CollectiveKind::kReduceScatter, "gradients", Bytes(8)};
  int done = 0;
  CollectiveCall call;
  call.work = &work;
  call.payload.input = [&] { return absl::MakeConstSpan(input); };
  call.payload.output = [&] { return absl::MakeSpan(output); };
  call.payload.done = [&] { ++done; };
  absl::Status status = device.Prepare(1, 1, {});
  if (status.ok()) status = device.Begin();
  if (status.ok()) status = ranks.Collective(ir::Stream::kDataParallel, call);
  if (status.ok()) status = device.Start();
  absl::StatusOr<bool> ended = false;
  while (status.ok() && ended.ok() && !*ended) ended = device.Synchronize(absl::Milliseconds(50));
  if (status.ok()) status = ended.status();
  EXPECT_EQ(done, status.ok() ? 1 : 0);
  return status;
}

TEST(SelfCommunicatorTest, InputIsOutput) {
  PlainDevice device;
  const auto ranks = MakeSelfCommunicator(device);
  EXPECT_EQ(ranks->rank(), 0);
  EXPECT_EQ(ranks->size(), 1);
  const auto group = ranks->Split({0}, "dp");
  ASSERT_TRUE(group.ok());
  std::vector<float> output(3);
  ASSERT_TRUE(RunCollective(**group, device, {1, 2, 3}, output).ok());
  EXPECT_EQ(output, std::vector<float>({1, 2, 3}));
}

TEST(SelfCommunicatorTest, RefusesAPlaceOfAnotherSize) {
  PlainDevice device;
  const auto ranks = MakeSelfCommunicator(device);
  std::vector<float> output(2);
  const absl::Status status = RunCollective(*ranks, device, {1, 2, 3}, output);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("reduce_scatter 'gradients' of one rank: 3 floats go in"));
}

TEST(SelfCommunicatorTest, RefusesMessagesAndOtherRanks) {
  PlainDevice device;
  const auto ranks = MakeSelfCommunicator(device);
  EXPECT_FALSE(ranks->Split({0, 1}, "dp").ok());
  MessageCall call;
  call.peer = 0;
  EXPECT_FALSE(ranks->Send(ir::Stream::kForwardSend, call).ok());
  EXPECT_FALSE(ranks->Receive(ir::Stream::kForwardSend, call).ok());
  EXPECT_FALSE(ranks->Expect({call}).ok());
  EXPECT_TRUE(ranks->Expect({}).ok());
}

}  // namespace
}  // namespace optimus::executor
