// Reading Kineto traces: megabytes of JSON a second (of the unzipped text, both passes together)
// and the peak memory of a process that reads once. `kineto_import_benchmark --write FILE BYTES`
// writes the trace that is measured instead. Table of results: docs/benchmarks.md.

#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/kineto_generator.h"
#include "traces/kineto/kineto.h"

namespace optimus {
namespace {

constexpr std::int64_t kDefaultBytes = 1'000'000'000;

[[noreturn]] void Stop(const std::string& what) {
  std::fprintf(stderr, "kineto_import_benchmark: %s\n", what.c_str());
  std::exit(3);
}

std::int64_t WritePlain(const std::string& path, std::int64_t bytes) {
  std::ofstream file(path, std::ios::binary);
  std::int64_t written = 0;
  testing::KinetoGenerator(testing::SizeOf(bytes), [&](absl::string_view text) {
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    written += static_cast<std::int64_t>(text.size());
  }).Write();
  if (!file.flush()) Stop(absl::StrCat(path, ": cannot be written"));
  return written;
}

std::int64_t WriteGzip(const std::string& path, std::int64_t bytes) {
  gzFile file = gzopen(path.c_str(), "wb1");
  if (file == nullptr) Stop(absl::StrCat(path, ": cannot be written"));
  std::int64_t written = 0;
  testing::KinetoGenerator(testing::SizeOf(bytes), [&](absl::string_view text) {
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    written += static_cast<std::int64_t>(text.size());
  }).Write();
  gzclose(file);
  return written;
}

// Peak memory of a process that reads the file, in MiB.
double PeakMib(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    const auto recording = traces::ReadKineto(path, {});
    _exit(recording.ok() ? 0 : 1);
  }
  int status = 0;
  struct rusage usage {};
  if (wait4(child, &status, 0, &usage) < 0 || status != 0) Stop(absl::StrCat(path, ": not read"));
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

void Import(benchmark::State& state, bool gzip) {
  const std::int64_t asked = state.range(0);
  const char* folder = std::getenv("TMPDIR");
  const std::string path = absl::StrCat(folder == nullptr ? "/tmp" : folder, "/kineto_import_",
                                        getpid(), gzip ? ".json.gz" : ".json");
  const std::int64_t bytes = gzip ? WriteGzip(path, asked) : WritePlain(path, asked);
  for (auto unused : state) {
    const auto recording = traces::ReadKineto(path, {});
    if (!recording.ok()) Stop(recording.status().ToString());
    benchmark::DoNotOptimize(recording);
  }
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["peak_MiB"] = PeakMib(path);
  std::remove(path.c_str());
}

BENCHMARK_CAPTURE(Import, plain, false)->Arg(kDefaultBytes)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Import, gzip, true)->Arg(kDefaultBytes)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace optimus

int main(int argc, char** argv) {
  std::int64_t bytes = optimus::kDefaultBytes;
  if (argc >= 3 && std::string(argv[1]) == "--write") {
    if (argc > 3 && !absl::SimpleAtoi(argv[3], &bytes)) optimus::Stop("BYTES is no number");
    optimus::WritePlain(argv[2], bytes);
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
