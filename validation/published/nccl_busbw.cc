// Collectives alone, as nccl-tests measures them: prices of the profile, nothing is simulated.

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "validation/published/data_set.h"

namespace optimus::validation {
namespace {

struct NamedKind {
  const char* name;
  CollectiveKind kind;
};
constexpr NamedKind kKinds[] = {{"all_reduce", CollectiveKind::kAllReduce},
                                {"all_gather", CollectiveKind::kAllGather},
                                {"reduce_scatter", CollectiveKind::kReduceScatter},
                                {"broadcast", CollectiveKind::kBroadcast},
                                {"all_to_all", CollectiveKind::kAllToAll}};

struct NamedGpu {
  const char* name;
  const char* profile;
};
constexpr NamedGpu kGpus[] = {{"A100", "a100-80gb"}, {"H100", "h100-80gb"}};

// More than any machine has.
constexpr int kMostGpus = 1 << 20;
constexpr std::int64_t kLarge = std::int64_t{16} << 20;  // 16 MiB

template <class Named, std::size_t n>
std::vector<std::string> NamesOf(const Named (&all)[n]) {
  std::vector<std::string> names;
  for (const Named& one : all) names.emplace_back(one.name);
  return names;
}

template <class Named, std::size_t n>
const Named& Find(const Named (&all)[n], const std::string& name) {
  const Named* found = all;
  while (name != found->name) ++found;  // the column allows no other
  return *found;
}

// The time that a bus bandwidth means (nccl-tests, doc/PERFORMANCE.md).
double TimeAtBusBandwidth(const CollectiveWork& work, int gpus, double bytes_per_s) {
  const double at_one_second = hw::BusBandwidth(work, gpus, FromSeconds(1)).value();
  return at_one_second / bytes_per_s;
}

absl::StatusOr<double> MeasuredMicroseconds(const Row& row, const CollectiveWork& work, int gpus) {
  if (row.has("time_us")) return row.number("time_us");
  if (row.has("busbw_gb_per_s")) {
    return 1e6 * TimeAtBusBandwidth(work, gpus, row.number("busbw_gb_per_s") * 1e9);
  }
  return row.Error("time_us", "is empty, and so is busbw_gb_per_s; one of them must be given");
}

absl::Status CheckGroup(const Row& row, const hw::ProfileCostModel& costs) {
  const int gpus = row.count("gpus");
  const int nodes = row.count("nodes");
  if (gpus < 2 || gpus > kMostGpus) {
    return row.Error("gpus", absl::StrCat(gpus, " take part; from 2 to ", kMostGpus, " can"));
  }
  if (gpus % nodes != 0) {
    return row.Error("nodes", absl::StrCat(nodes, " does not divide ", gpus, " gpus"));
  }
  if (gpus / nodes <= costs.gpus_per_node()) return absl::OkStatus();
  return row.Error("nodes", absl::StrCat(nodes, " for ", gpus, " gpus are ", gpus / nodes,
                                         " GPUs a node; the profile has ", costs.gpus_per_node()));
}

absl::StatusOr<RowResult> Evaluate(const Row& row, Simulator& simulator) {
  OPTIMUS_ASSIGN_OR_RETURN(const hw::ProfileCostModel* costs,
                           simulator.Costs(Find(kGpus, row.text("gpu")).profile));
  OPTIMUS_RETURN_IF_ERROR(CheckGroup(row, *costs));
  const int gpus = row.count("gpus");
  const int nodes = row.count("nodes");
  const NamedKind& kind = Find(kKinds, row.text("collective"));
  const CollectiveWork work = {kind.kind, kind.name, Bytes(row.whole("bytes"))};
  OPTIMUS_ASSIGN_OR_RETURN(const double measured, MeasuredMicroseconds(row, work, gpus));
  const Picoseconds time =
      UncontendedTime(*costs, costs->CollectiveCost(work, {gpus, gpus / nodes}));
  RowResult result;
  result.figures.push_back({kind.name, "us",
                            row.whole("bytes") >= kLarge ? "16 MiB and above" : "below 16 MiB",
                            measured, ToSeconds(time) * 1e6});
  if (row.has("note")) result.note = row.text("note");
  return result;
}

}  // namespace

DataSet NcclBusBandwidth() {
  return {
      .name = "nccl_busbw",
      .title = "Collectives alone, by size",
      .source =
          "A100: vTrain (Bang et al., MICRO 2024), look-up tables of its repository; H100: "
          "nccl-tests, issue 290",
      .columns = {TextColumn("gpu", NamesOf(kGpus)), CountColumn("gpus"), CountColumn("nodes"),
                  TextColumn("collective", NamesOf(kKinds)), BytesColumn("bytes"),
                  NumberColumn("time_us").OrEmpty(), NumberColumn("busbw_gb_per_s").OrEmpty(),
                  TextColumn("note").OrAbsent()},
      .conditions = {"gpu", "gpus", "nodes", "bytes"},
      .assumptions = {"prices of the profiles a100-80gb and h100-80gb; the algorithm is the one "
                      "that the profile finds fastest",
                      "where only the bus bandwidth is published, the time follows from it as "
                      "nccl-tests define it"},
      .evaluate = &Evaluate};
}

}  // namespace optimus::validation
