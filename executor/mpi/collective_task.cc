#include "executor/mpi/collective_task.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/mpi/exchange_plan.h"
#include "executor/mpi/mpi_status.h"
#include "executor/mpi/sum.h"
#include "executor/mpi/wire.h"

namespace optimus::executor {
namespace {

class CollectiveTask : public HostTask {
 public:
  CollectiveTask(std::shared_ptr<const GroupLink> group, std::int32_t number,
                 const CollectiveCall& call)
      : group_(std::move(group)), transport_(*group_->transport), number_(number), call_(call) {}

  ~CollectiveTask() override {
    const std::lock_guard lock(transport_.mutex);
    Flight& flight = *flight_;
    if (flight.header_pending.done() && flight.payload_pending.done()) {
      return;
    }
    // Given up: MPI may still use the buffers, for as long as this process lives.
    transport_.mpi.failed.store(true, std::memory_order_relaxed);
    (void)flight_.release();
  }

  absl::Status Start(std::int64_t ready_ns) override {
    latest_ns_ = ready_ns;
    if (call_.payload.input && HasInput()) data_ = call_.payload.input();
    const std::int64_t floats = Floats();
    flight_->mine = {call_.stamp, number_, static_cast<std::int32_t>(call_.work->kind),
                     0,           floats,  transport_.ToWire(ready_ns)};
    flight_->others.resize(group_->ranks.size());
    if (floats != kUnknownFloats) OPTIMUS_RETURN_IF_ERROR(Plan(floats));
    const std::lock_guard lock(transport_.mutex);
    OPTIMUS_RETURN_IF_ERROR(ExchangeHeaders());
    return floats == kUnknownFloats ? absl::OkStatus() : PostRound();
  }

  absl::StatusOr<std::optional<std::int64_t>> Poll() override {
    if (!headers_checked_) {
      OPTIMUS_ASSIGN_OR_RETURN(headers_checked_, TakeHeaders());
      if (!headers_checked_) {
        return std::nullopt;
      }
    }
    if (transport_.pacing != nullptr) {
      return PollPaced();
    }
    OPTIMUS_ASSIGN_OR_RETURN(const bool moved, MovePayload());
    if (!moved) {
      return std::nullopt;
    }
    OPTIMUS_RETURN_IF_ERROR(Deliver());
    return NowNs();
  }

  std::int64_t NotBeforeNs() const override { return end_ns_; }

 private:
  struct Flight {
    WireHeader mine;
    std::vector<WireHeader> others;  // by member; its own is not used
    Pending header_pending, payload_pending;
    std::vector<float> data;  // of those below, where it means something
    float* input = nullptr;
    float* output = nullptr;
    float* scratch = nullptr;
  };

  bool IsBroadcast() const { return call_.work->kind == CollectiveKind::kBroadcast; }
  bool HasInput() const { return !IsBroadcast() || group_->rank == 0; }
  bool IsReal() const { return call_.payload.input || call_.payload.output; }

  // What the operation is about, as PlanExchange counts it.
  std::int64_t Floats() const {
    if (!IsReal() || transport_.pacing != nullptr) {
      return FloatsFor(call_.work->kind, call_.work->bytes, group_->size());
    }
    if (!HasInput()) {
      return kUnknownFloats;
    }
    const auto given = static_cast<std::int64_t>(data_.size());
    return call_.work->kind == CollectiveKind::kAllGather ? given * group_->size() : given;
  }

  std::string Where() const {
    return absl::StrCat("collective ", number_, " of group '", group_->name, "'");
  }

  absl::Status Plan(std::int64_t floats) {
    absl::StatusOr<ExchangePlan> plan =
        PlanExchange(call_.work->kind, floats, group_->rank, group_->size());
    if (!plan.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(StampLine(call_.stamp, call_.text), ": ",
                                                     Where(), ": ", plan.status().message()));
    }
    plan_ = *std::move(plan);
    if (transport_.pacing != nullptr) {
      plan_.rounds.clear();
      return absl::OkStatus();
    }
    // One rank alone moves nothing that means nothing.
    if (!IsReal() && group_->size() == 1) {
      return absl::OkStatus();
    }
    FindPlaces();
    return absl::OkStatus();
  }

  void FindPlaces() {
    if (IsReal()) {
      flight_->data.resize(static_cast<std::size_t>(plan_.input + plan_.output + plan_.scratch));
      flight_->input = flight_->data.data();
      flight_->output = flight_->input + plan_.input;
      flight_->scratch = flight_->output + plan_.output;
      std::copy(data_.begin(), data_.end(), flight_->input);
      return;
    }
    const std::lock_guard lock(transport_.mutex);
    flight_->input = Piece(transport_.inputs, plan_.input);
    flight_->output = Piece(transport_.results, plan_.output);
    flight_->scratch = Piece(transport_.results, plan_.scratch);
  }

  static float* Piece(MemoryRing& ring, std::int64_t floats) {
    return floats == 0 ? nullptr : ring.Next(floats);
  }

  absl::Status ExchangeHeaders() {
    RequestSet& requests = transport_.requests;
    const int tag = TagOf(group_->number, GroupTag::kHeader);
    for (int i = 1; i < group_->size(); ++i) {
      const int from = (group_->rank + group_->size() - i) % group_->size();
      OPTIMUS_RETURN_IF_ERROR(requests.Receive(&flight_->others[static_cast<std::size_t>(from)],
                                               sizeof(WireHeader), MPI_BYTE, GlobalRank(from), tag,
                                               transport_.mpi.groups, flight_->header_pending));
    }
    for (int i = 1; i < group_->size(); ++i) {
      const int to = (group_->rank + i) % group_->size();
      OPTIMUS_RETURN_IF_ERROR(requests.Send(&flight_->mine, sizeof(WireHeader), MPI_BYTE,
                                            GlobalRank(to), tag, transport_.mpi.groups,
                                            flight_->header_pending));
    }
    return absl::OkStatus();
  }

  int GlobalRank(int member) const { return group_->ranks[static_cast<std::size_t>(member)]; }

  float* At(const Block& block) const {
    float* const place = block.place == Place::kInput    ? flight_->input
                         : block.place == Place::kOutput ? flight_->output
                                                         : flight_->scratch;
    return place + block.offset;
  }

  absl::Status PostRound() {
    if (round_ >= plan_.rounds.size()) {
      return absl::OkStatus();
    }
    const ExchangeRound& round = plan_.rounds[round_];
    const int tag = TagOf(group_->number, GroupTag::kPayload);
    for (const Block& block : round.receives) {
      OPTIMUS_RETURN_IF_ERROR(
          transport_.requests.Receive(At(block), block.floats, MPI_FLOAT, GlobalRank(block.peer),
                                      tag, transport_.mpi.groups, flight_->payload_pending));
    }
    for (const Block& block : round.sends) {
      OPTIMUS_RETURN_IF_ERROR(
          transport_.requests.Send(At(block), block.floats, MPI_FLOAT, GlobalRank(block.peer), tag,
                                   transport_.mpi.groups, flight_->payload_pending));
    }
    return absl::OkStatus();
  }

  // True once all are there and agree. The payload may be moving meanwhile; what goes wrong with it
  // is told after a disagreement that explains it.
  absl::StatusOr<bool> TakeHeaders() {
    {
      const std::lock_guard lock(transport_.mutex);
      OPTIMUS_RETURN_IF_ERROR(transport_.Test());
      if (!flight_->header_pending.done()) {
        return false;
      }
    }
    OPTIMUS_RETURN_IF_ERROR(MpiStatus(flight_->header_pending.error, "headers of a collective"));
    for (int member = 0; member < group_->size(); ++member) {
      if (member == group_->rank) {
        continue;
      }
      const WireHeader& other = flight_->others[static_cast<std::size_t>(member)];
      OPTIMUS_RETURN_IF_ERROR(Compare(other));
      latest_ns_ = std::max(latest_ns_, transport_.FromWire(other.ready_ns));
    }
    if (flight_->mine.floats == kUnknownFloats) {
      OPTIMUS_RETURN_IF_ERROR(Plan(flight_->others[0].floats));
      const std::lock_guard lock(transport_.mutex);
      OPTIMUS_RETURN_IF_ERROR(PostRound());
    }
    return true;
  }

  absl::Status Compare(const WireHeader& other) const {
    const WireHeader& mine = flight_->mine;
    const bool same_size = mine.floats == other.floats || mine.floats == kUnknownFloats ||
                           other.floats == kUnknownFloats;
    if (same_size && mine.number == other.number && mine.kind == other.kind &&
        SameCollective(mine.stamp, other.stamp)) {
      return absl::OkStatus();
    }
    return absl::DataLossError(
        absl::StrCat(Where(), " is not the same on all ranks: ", HeaderLine(mine, call_.text),
                     " meets ", HeaderLine(other, call_.text)));
  }

  absl::StatusOr<std::optional<std::int64_t>> PollPaced() {
    if (end_ns_ == 0) {
      end_ns_ = group_->size() == 1
                    ? latest_ns_
                    : transport_.pacing->CollectiveEndNs(*call_.work, group_->ranks, latest_ns_);
    }
    if (NowNs() < end_ns_) {
      return std::nullopt;
    }
    if (call_.payload.done) call_.payload.done();
    return end_ns_;
  }

  // True after the last round.
  absl::StatusOr<bool> MovePayload() {
    while (round_ < plan_.rounds.size()) {
      {
        const std::lock_guard lock(transport_.mutex);
        OPTIMUS_RETURN_IF_ERROR(transport_.Test());
        if (!flight_->payload_pending.done()) {
          return false;
        }
      }
      OPTIMUS_RETURN_IF_ERROR(MpiStatus(flight_->payload_pending.error, "payload of a collective"));
      if (round_ == 0) Sum();
      ++round_;
      const std::lock_guard lock(transport_.mutex);
      OPTIMUS_RETURN_IF_ERROR(PostRound());
    }
    return true;
  }

  void Sum() {
    if (plan_.sum_floats == 0) {
      return;
    }
    std::vector<const float*> parts;
    const float* other = flight_->scratch;
    for (int member = 0; member < group_->size(); ++member) {
      if (member == group_->rank) {
        parts.push_back(flight_->input + plan_.sum_input);
      } else {
        parts.push_back(other);
        other += plan_.sum_floats;
      }
    }
    SumParts(parts, plan_.sum_floats, flight_->output + plan_.sum_output);
  }

  // The caller's copy of the result.
  absl::Status Deliver() {
    if (call_.payload.output) {
      std::copy_n(flight_->input + plan_.own_input, plan_.own_floats,
                  flight_->output + plan_.own_output);
      const absl::Span<float> place = call_.payload.output();
      if (static_cast<std::int64_t>(place.size()) != plan_.output) {
        return absl::InvalidArgumentError(
            absl::StrCat(HeaderLine(flight_->mine, call_.text), ": the result has ",
                         plan_.output * 4, " bytes, its place ", place.size() * sizeof(float)));
      }
      std::copy_n(flight_->output, plan_.output, place.begin());
    }
    if (call_.payload.done) call_.payload.done();
    return absl::OkStatus();
  }

  std::shared_ptr<const GroupLink> group_;
  Transport& transport_;
  std::int32_t number_;
  CollectiveCall call_;
  absl::Span<const float> data_;
  ExchangePlan plan_;
  std::size_t round_ = 0;
  bool headers_checked_ = false;
  std::int64_t latest_ns_ = 0;  // nominal: the last member was ready
  std::int64_t end_ns_ = 0;     // nominal, where there is a pacing
  std::unique_ptr<Flight> flight_ = std::make_unique<Flight>();
};

}  // namespace

std::unique_ptr<HostTask> MakeCollectiveTask(std::shared_ptr<const GroupLink> group,
                                             std::int32_t number, const CollectiveCall& call) {
  return std::make_unique<CollectiveTask>(std::move(group), number, call);
}

}  // namespace optimus::executor
