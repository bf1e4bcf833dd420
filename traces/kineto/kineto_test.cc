#include "traces/kineto/kineto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optimus::traces {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr const char* kThread = R"("pid":9,"tid":9)";

std::string Call(const char* name, const char* ts, const char* dur, int correlation,
                 const char* lane = kThread) {
  return absl::StrCat(R"({"ph":"X","cat":"cuda_runtime","name":")", name, R"(",)", lane,
                      R"(,"ts":)", ts, R"(,"dur":)", dur, R"(,"args":{"correlation":)", correlation,
                      "}}");
}

std::string Gpu(const char* name, const char* ts, const char* dur, int correlation, int stream,
                const std::string& more = "", const char* category = "kernel") {
  return absl::StrCat(R"({"ph":"X","cat":")", category, R"(","name":")", name,
                      R"(","pid":0,"tid":)", stream, R"(,"ts":)", ts, R"(,"dur":)", dur,
                      R"(,"args":{"device":0,"stream":)", stream, R"(,"correlation":)", correlation,
                      more, "}}");
}

std::string Step(int number, const char* ts, const char* dur) {
  return absl::StrCat(R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)", number, R"(",)",
                      kThread, R"(,"ts":)", ts, R"(,"dur":)", dur, "}");
}

std::string Trace(const std::vector<std::string>& events, const std::string& header = "") {
  return absl::StrCat(R"({"schemaVersion":1,"distributedInfo":{"rank":0,"world_size":4},)", header,
                      R"("traceEvents":[)", absl::StrJoin(events, ",\n"), "]}");
}

absl::StatusOr<Recording> Read(const std::string& text, KinetoOptions options = {}) {
  return ReadKinetoText(text, "trace.json", options);
}

Recording ReadOrDie(const std::string& text, KinetoOptions options = {}) {
  absl::StatusOr<Recording> recording = Read(text, options);
  EXPECT_TRUE(recording.ok()) << recording.status();
  if (recording.ok()) return *std::move(recording);
  Recording empty;
  empty.ranks.resize(1);
  return empty;
}

// "gemm<-launch cudaLaunchKernel".
std::vector<std::string> Edges(const Recording& recording) {
  std::vector<std::string> edges;
  const RecordedRank& rank = recording.ranks.front();
  const auto name = [&](const RecordedOp& op) { return recording.names[op.name]; };
  for (const RecordedOp& op : rank.ops) {
    for (const Dependency& dependency : rank.DependenciesOf(op)) {
      edges.push_back(absl::StrCat(name(op), "<-", ToString(dependency.kind), " ",
                                   name(rank.ops[dependency.op])));
    }
  }
  return edges;
}

std::vector<std::string> Names(const Recording& recording) {
  std::vector<std::string> names;
  names.reserve(recording.ranks.front().ops.size());
  for (const RecordedOp& op : recording.ranks.front().ops)
    names.push_back(recording.names[op.name]);
  return names;
}

std::vector<std::string> Remarks(const Recording& recording) {
  std::vector<std::string> remarks;
  remarks.reserve(recording.remarks.size());
  for (const Remark& remark : recording.remarks) {
    remarks.push_back(absl::StrCat(remark.what, " x", remark.count));
  }
  return remarks;
}

std::string Gzip(const std::string& text) {
  std::string packed(text.size() + 200, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string copy = text;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

const std::string& Small() {
  static const std::string text = Trace({Call("cudaLaunchKernel", "1682725898094377.123", "2", 1),
                                         Gpu("gemm", "1682725898094380.000001", "0.25", 1, 7),
                                         Call("cudaMalloc", "1682725898094381", "1", 2)},
                                        R"("baseTimeNanoseconds":5,)");
  return text;
}

TEST(Kineto, AKernelAndItsLaunchWithTimesToAPicosecond) {
  const Recording recording = ReadOrDie(Small());
  const RecordedRank& rank = recording.ranks.front();
  EXPECT_EQ(recording.format, "kineto");
  EXPECT_EQ(recording.world, 4);
  EXPECT_EQ(rank.clock_origin_ns, 1682725898094377123 + 5);
  ASSERT_EQ(rank.ops.size(), 2U);
  EXPECT_EQ(rank.ops[0].start, Picoseconds(0));
  EXPECT_EQ(rank.ops[0].end, Picoseconds(2'000'000));
  EXPECT_EQ(rank.ops[1].start, Picoseconds(2'877'001));
  EXPECT_EQ(rank.ops[1].duration(), Picoseconds(250'000));  // a sub-microsecond kernel
  EXPECT_EQ(rank.step_end, Picoseconds(3'127'001));
  EXPECT_THAT(Edges(recording), ElementsAre("gemm<-launch cudaLaunchKernel"));
  EXPECT_THAT(recording.remarks, IsEmpty());
}

TEST(Kineto, GzipOfOneOrSeveralMembersIsReadAsTheText) {
  const std::string& text = Small();
  const Recording plain = ReadOrDie(text);
  EXPECT_EQ(ReadOrDie(Gzip(text)), plain);
  EXPECT_EQ(ReadOrDie(Gzip(text.substr(0, 100)) + Gzip(text.substr(100))), plain);
  const std::string packed = Gzip(text);
  EXPECT_THAT(Read(packed.substr(0, packed.size() / 2)).status().message(), HasSubstr("cut off"));
}

TEST(Kineto, TheWindowDoesNotMatter) {
  std::vector<std::string> events;
  for (int i = 0; i < 200; ++i) {
    const std::string at = absl::StrCat(100 + 10 * i);
    events.push_back(Call("cudaLaunchKernel", at.c_str(), "2", i));
    events.push_back(Gpu((std::string(static_cast<std::size_t>(i) * 3, 'k') + "\\\"}").c_str(),
                         at.c_str(), "3", i, 7));
  }
  const std::string text = Trace(events);
  KinetoOptions narrow;
  narrow.limits.window = 256;
  EXPECT_EQ(ReadOrDie(text, narrow), ReadOrDie(text));
  EXPECT_EQ(ReadOrDie(text).ranks.front().ops.size(), 400U);
}

TEST(Kineto, ABareArrayAndAHeaderBehindTheEvents) {
  const std::string event = Gpu("k", "3", "1", -1, 7);
  EXPECT_EQ(ReadOrDie("[" + event + "]").ranks.front().ops.size(), 1U);
  const Recording behind = ReadOrDie("{\"traceEvents\":[" + event +
                                     "],\"distributedInfo\":{\"rank\":3,\"world_size\":8}}");
  EXPECT_EQ(behind.ranks.front().rank, 3);
  EXPECT_EQ(behind.world, 8);
}

TEST(Kineto, TwoStepsInOneFileTheLastIsReadOrTheOneAskedFor) {
  const std::string text =
      Trace({Step(4, "100", "50"), Step(5, "150", "50"), Call("cudaLaunchKernel", "110", "1", 1),
             Gpu("a", "120", "5", 1, 7), Call("cudaLaunchKernel", "148", "1", 2),
             Gpu("late", "160", "5", 2, 7), Call("cudaLaunchKernel", "170", "1", 3),
             Gpu("b", "220", "5", 3, 7), Gpu("orphan", "180", "1", 77, 7)});
  const Recording last = ReadOrDie(text);
  EXPECT_THAT(Names(last), ElementsAre("cudaLaunchKernel", "orphan", "b"));
  EXPECT_EQ(last.ranks.front().step_start, Picoseconds(0));
  EXPECT_EQ(last.ranks.front().step_end, Picoseconds(50'000'000));
  ASSERT_EQ(last.steps.size(), 2U);
  EXPECT_EQ(last.steps[0].number, 4);
  EXPECT_EQ(last.steps[0].start, Picoseconds(-50'000'000));
  KinetoOptions first;
  first.step = 4;
  // A kernel belongs to the step that launched it.
  EXPECT_THAT(Names(ReadOrDie(text, first)),
              ElementsAre("cudaLaunchKernel", "a", "cudaLaunchKernel", "late"));
  first.step = 9;
  EXPECT_THAT(Read(text, first).status().message(), HasSubstr("it has 4, 5"));
}

TEST(Kineto, AKernelBehindItsStepMayStandBeforeItsLaunchInTheFile) {
  const std::string text =
      Trace({Step(4, "100", "50"), Step(5, "150", "50"), Gpu("late", "210", "5", 2, 7),
             Call("cudaLaunchKernel", "148", "1", 2), Call("cudaLaunchKernel", "160", "1", 3),
             Gpu("b", "165", "5", 3, 7)});
  KinetoOptions options;
  options.step = 4;
  EXPECT_THAT(Names(ReadOrDie(text, options)), ElementsAre("cudaLaunchKernel", "late"));
}

TEST(Kineto, AStubOfAStepAtTheEndIsPassedOver) {
  const Recording recording =
      ReadOrDie(Trace({Step(1, "100", "9000"), Step(2, "9100", "40"),
                       Call("cudaLaunchKernel", "110", "1", 1), Gpu("a", "120", "5", 1, 7)}));
  EXPECT_THAT(Names(recording), ElementsAre("cudaLaunchKernel", "a"));
  EXPECT_THAT(Remarks(recording), ElementsAre("the last step is a stub x1"));
}

std::string StreamWait(int stream, int waits_for, int record, int correlation) {
  return absl::StrCat(
      R"({"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":7,"ts":112,"dur":1,)",
      R"("args":{"cuda_sync_kind":"Stream Wait Event","device":0,"stream":)", stream,
      R"(,"wait_on_stream":)", waits_for, R"(,"wait_on_cuda_event_record_corr_id":)", record,
      R"(,"correlation":)", correlation, "}}");
}

TEST(Kineto, AStreamWaitsForWhatWasIssuedBeforeTheEvent) {
  const Recording recording =
      ReadOrDie(Trace({Call("cudaLaunchKernel", "100", "1", 1), Gpu("first", "103", "50", 1, 7),
                       Call("cudaLaunchKernel", "102", "1", 2), Gpu("second", "153", "9", 2, 7),
                       Call("cudaEventRecord", "104", "1", 3),
                       Call("cudaLaunchKernel", "106", "1", 4), Gpu("behind", "162", "9", 4, 7),
                       Call("cudaLaunchKernel", "108", "1", 5), Gpu("free", "110", "9", 5, 20),
                       Call("cudaStreamWaitEvent", "112", "1", 6), StreamWait(20, 7, 3, 6),
                       Call("cudaLaunchKernel", "114", "1", 7), Gpu("held", "162", "9", 7, 20)}));
  const std::vector<std::string> edges = Edges(recording);
  EXPECT_THAT(edges, ::testing::Contains("held<-event second"));
  EXPECT_EQ(std::count_if(edges.begin(), edges.end(),
                          [](const std::string& edge) { return edge.find("event ") != edge.npos; }),
            1);
  EXPECT_THAT(recording.remarks, IsEmpty());
}

TEST(Kineto, SynchronisationsEndAfterWhatWasLaunchedBefore) {
  const std::string sync =
      R"({"ph":"X","cat":"cuda_sync","name":"Stream Sync","pid":0,"tid":20,"ts":110,"dur":1,"args":)"
      R"({"cuda_sync_kind":"Stream Sync","stream":20,"correlation":3,"device":0}})";
  const Recording recording =
      ReadOrDie(Trace({Call("cudaLaunchKernel", "100", "1", 1), Gpu("a", "103", "50", 1, 7),
                       Call("cudaLaunchKernel", "102", "1", 2), Gpu("b", "103", "9", 2, 20),
                       Call("cudaStreamSynchronize", "110", "5", 3), sync,
                       Call("cudaDeviceSynchronize", "120", "50", 4)}));
  EXPECT_THAT(Edges(recording),
              UnorderedElementsAre("a<-launch cudaLaunchKernel", "b<-launch cudaLaunchKernel",
                                   "cudaStreamSynchronize<-end_after b",
                                   "cudaDeviceSynchronize<-end_after a",
                                   "cudaDeviceSynchronize<-end_after b"));
}

TEST(Kineto, WhatAFileWithoutSyncEventsLeavesOpenIsRemarked) {
  const Recording recording = ReadOrDie(
      Trace({Call("cudaEventRecord", "100.5", "1", 1), Call("cudaStreamWaitEvent", "102", "1", 2),
             Call("cudaStreamSynchronize", "104", "1", 3), Call("cudaEventQuery", "106", "1", 4),
             Gpu("k", "107", "1", 99, 7)}));
  EXPECT_THAT(Names(recording),
              ElementsAre("cudaEventRecord", "cudaStreamWaitEvent", "cudaStreamSynchronize", "k"));
  EXPECT_THAT(Remarks(recording),
              UnorderedElementsAre(
                  "GPU operation without a launching call x1",
                  "wait of a stream for an event that the file does not name x1",
                  "synchronisation with a stream or event that the file does not name x1"));
}

TEST(Kineto, ThreadsHandOverToEachOther) {
  const char* other = R"("pid":9,"tid":10)";
  const Recording recording = ReadOrDie(Trace(
      {Call("cudaEventRecord", "100", "1", 1), Call("cudaEventRecord", "102", "1", 2, other),
       Call("cudaEventRecord", "103.5", "1", 3, other), Call("cudaEventRecord", "110", "1", 4)}));
  const RecordedRank& rank = recording.ranks.front();
  ASSERT_EQ(rank.ops.size(), 4U);
  ASSERT_EQ(rank.dependencies.size(), 2U);
  EXPECT_EQ(rank.DependenciesOf(rank.ops[1])[0].op, 0U);
  EXPECT_EQ(rank.DependenciesOf(rank.ops[3])[0].op, 2U);
}

TEST(Kineto, TimesRoundedToZeroAreRemarked) {
  const std::string zero = Gpu("k", "107", "0", -1, 7);
  EXPECT_THAT(Remarks(ReadOrDie(Trace({zero}))),
              ::testing::Contains(HasSubstr("were rounded to 0 by whoever wrote the file x1")));
  EXPECT_THAT(Remarks(ReadOrDie(Trace({zero, Gpu("k", "108.5", "1", -1, 7)}))),
              ElementsAre("GPU operation without a launching call x2"));
}

TEST(Kineto, CopiesHaveTheirBytes) {
  const Recording recording =
      ReadOrDie(Trace({Gpu("Memcpy HtoD", "1.5", "1", -1, 7, R"(,"bytes":512)", "gpu_memcpy")}));
  const RecordedRank& rank = recording.ranks.front();
  EXPECT_EQ(rank.ops[0].kind, OpKind::kCopy);
  EXPECT_EQ(rank.works[rank.ops[0].work].bytes, Bytes(512));
}

TEST(Kineto, TheRankComesFromTheFileTheOptionOrTheName) {
  const std::string text = "[" + Gpu("k", "1", "1", -1, 7) + "]";
  const auto rank_of = [&](const char* name, KinetoOptions options) {
    return ReadKinetoText(text, name, options)->ranks.front().rank;
  };
  EXPECT_EQ(rank_of("x/rank-34.Jul_15.1074.pt.trace.json.gz", {}), 34);
  EXPECT_EQ(rank_of("rank_3.json", {}), 3);
  EXPECT_EQ(rank_of("frank/trace.5.json", {}), 5);
  KinetoOptions seven;
  seven.rank = 7;
  EXPECT_EQ(rank_of("rank_3.json", seven), 7);
  EXPECT_THAT(Remarks(*ReadKinetoText(text, "trace.json", {})),
              ::testing::Contains("the file does not say its rank x1"));
}

struct Refused {
  std::string text;
  const char* message;
};

TEST(Kineto, WhatIsNoTraceIsRefusedInOneLineThatSaysWhere) {
  const std::string& text = Small();
  const std::vector<Refused> cases = {
      {"", "trace.json: the file is empty"},
      {"hello", "byte 0: no JSON object or array"},
      {text.substr(0, 150), "the file is cut off in the event that begins at byte"},
      {text.substr(0, 40), "the file is cut off"},
      {text + "x", "something behind the end of the trace"},
      {"{}", "no \"traceEvents\""},
      {R"({"schemaVersion":2,"traceEvents":[]})", "schemaVersion 2 is not known"},
      {R"({"schema":"1.0.1","nodes":[]})", "execution trace"},
      {"[{\"a\":tru}]", "byte 1: the event here is no JSON"},
      {"[{\"a\":1} {\"b\":2}]", "no JSON"},
      {"[{\"a\":1},]", "an event expected"},
      {"[1]", "an event expected"},
      {"[[1]]", "an event that is no object"},
      {"[{\"a\":[1}]", "brackets that do not match"},
      {"[" + Gpu("k", "\"x\"", "1", 1, 7) + "]", "\"ts\" of \"k\" is no time"},
      {"[" + Gpu("k", "1", "-1", 1, 7) + "]", "\"dur\" of \"k\" is no length"},
      {"[" + Gpu("k", "1e300", "1", 1, 7) + "]", "is no time"},
      {"[" + Gpu("k", "1", "1", 1, 7) + "," + Gpu("k", "1682725898094377", "1", 1, 7) + "]",
       "days from another one"},
      {"[" + std::string(2000, '{'), "nested too deeply"},
      {R"({"baseTimeNanoseconds":9223372036854775807,"traceEvents":[)" + Gpu("k", "1", "1", 1, 7) +
           "]}",
       "does not fit 64 bits"},
  };
  for (const Refused& refused : cases) {
    const absl::Status status = Read(refused.text).status();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("trace.json: "), HasSubstr(refused.message)))
        << refused.text.substr(0, 200);
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  }
}

TEST(Kineto, AnEventLongerThanTheLimitIsRefused) {
  KinetoOptions options;
  options.limits.longest = 1000;
  options.limits.window = 256;
  const std::string text = "[" + Gpu(std::string(3000, 'k').c_str(), "1", "1", 1, 7) + "]";
  EXPECT_THAT(Read(text, options).status().message(),
              HasSubstr("an event of more than 1000 bytes"));
}

TEST(Kineto, AFileThatIsNotThereOrNoFile) {
  EXPECT_EQ(ReadKineto("/no/such/file.json", {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadKineto("/tmp", {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace optimus::traces
