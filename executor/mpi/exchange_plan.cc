#include "executor/mpi/exchange_plan.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace optimus::executor {
namespace {

// Up to this an all-reduce of two ranks sends everything in one round. Measured on shared memory:
// 19 us against 23 us at 64 KiB, 54 us against 43 us at 256 KiB, where half the floats to add are
// worth a second round.
constexpr std::int64_t kOneRoundFloats = std::int64_t{128} * 1024 / 4;

class Planner {
 public:
  Planner(std::int64_t floats, int rank, int size) : floats_(floats), rank_(rank), size_(size) {
    part_ = (floats + size - 1) / size;
  }

  ExchangePlan AllGather() {
    plan_.input = plan_.own_floats = part_;
    plan_.output = floats_;
    plan_.own_output = rank_ * part_;
    AddRound(
        [&](int peer) {
          return Block{peer, Place::kInput, 0, part_};
        },
        [&](int peer) {
          return Block{peer, Place::kOutput, peer * part_, part_};
        });
    return plan_;
  }

  ExchangePlan ReduceScatter() {
    plan_.input = floats_;
    plan_.output = part_;
    SumParts(0);
    return plan_;
  }

  ExchangePlan AllToAll() {
    plan_.input = plan_.output = floats_;
    plan_.own_input = plan_.own_output = rank_ * part_;
    plan_.own_floats = part_;
    AddRound(
        [&](int peer) {
          return Block{peer, Place::kInput, peer * part_, part_};
        },
        [&](int peer) {
          return Block{peer, Place::kOutput, peer * part_, part_};
        });
    return plan_;
  }

  ExchangePlan AllReduce() {
    plan_.input = plan_.output = floats_;
    if (size_ == 2 && floats_ <= kOneRoundFloats) {
      plan_.scratch = plan_.sum_floats = floats_;
      AddRound(
          [&](int peer) {
            return Block{peer, Place::kInput, 0, floats_};
          },
          [&](int peer) {
            return Block{peer, Place::kScratch, 0, floats_};
          });
      return plan_;
    }
    SumParts(First(rank_));
    AddRound([&](int peer) { return Part(peer, Place::kOutput, rank_); },
             [&](int peer) { return Part(peer, Place::kOutput, peer); });
    return plan_;
  }

  // To one: at once. To more: rank 0 deals out the parts and sends its own to all; then the others
  // pass theirs on, so that rank 0 sends little more than the whole once.
  ExchangePlan Broadcast() {
    plan_.output = floats_;
    if (rank_ == 0) {
      plan_.input = plan_.own_floats = floats_;
    }
    if (size_ == 2) {
      AddRootRound(Block{1, Place::kInput, 0, floats_}, Block{0, Place::kOutput, 0, floats_});
      return plan_;
    }
    ExchangeRound deal;
    ExchangeRound pass;
    for (int peer = 1; peer < size_ && rank_ == 0; ++peer) {
      Add(deal.sends, Part(peer, Place::kInput, peer));
      Add(deal.sends, Part(peer, Place::kInput, 0));
    }
    for (int peer = 1; peer < size_ && rank_ != 0; ++peer) {
      if (peer == rank_) {
        Add(deal.receives, Part(0, Place::kOutput, rank_));
        Add(deal.receives, Part(0, Place::kOutput, 0));
      } else {
        Add(pass.sends, Part(peer, Place::kOutput, rank_));
        Add(pass.receives, Part(peer, Place::kOutput, peer));
      }
    }
    plan_.rounds.push_back(std::move(deal));
    plan_.rounds.push_back(std::move(pass));
    return plan_;
  }

  // One rank alone: its input is its output.
  ExchangePlan Alone() {
    plan_.input = plan_.output = plan_.own_floats = floats_;
    return plan_;
  }

 private:
  std::int64_t First(int part) const { return std::min(part * part_, floats_); }
  Block Part(int peer, Place place, int part) const {
    return {peer, place, First(part), First(part + 1) - First(part)};
  }
  int AmongOthers(int peer) const { return peer < rank_ ? peer : peer - 1; }

  static void Add(std::vector<Block>& blocks, const Block& block) {
    if (block.floats > 0) blocks.push_back(block);
  }

  // Each starts with its neighbour, so that not all send to the same rank first.
  template <class Send, class Receive>
  void AddRound(Send send, Receive receive) {
    ExchangeRound round;
    for (int i = 1; i < size_; ++i) {
      Add(round.sends, send((rank_ + i) % size_));
      Add(round.receives, receive((rank_ + size_ - i) % size_));
    }
    plan_.rounds.push_back(std::move(round));
  }

  void AddRootRound(const Block& send, const Block& receive) {
    ExchangeRound round;
    Add(rank_ == 0 ? round.sends : round.receives, rank_ == 0 ? send : receive);
    plan_.rounds.push_back(std::move(round));
  }

  // Everybody sends part j to rank j, which adds them up.
  void SumParts(std::int64_t output) {
    const Block mine = Part(rank_, Place::kInput, rank_);
    plan_.sum_input = mine.offset;
    plan_.sum_output = output;
    plan_.sum_floats = mine.floats;
    plan_.scratch = mine.floats * (size_ - 1);
    AddRound([&](int peer) { return Part(peer, Place::kInput, peer); },
             [&](int peer) {
               return Block{peer, Place::kScratch, AmongOthers(peer) * mine.floats, mine.floats};
             });
  }

  ExchangePlan plan_;
  std::int64_t floats_;
  std::int64_t part_ = 0;
  int rank_, size_;
};

bool NeedsEqualParts(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter ||
         kind == CollectiveKind::kAllToAll;
}

}  // namespace

absl::StatusOr<ExchangePlan> PlanExchange(CollectiveKind kind, std::int64_t floats, int rank,
                                          int size) {
  if (floats < 0 || (NeedsEqualParts(kind) && floats % size != 0)) {
    return absl::InvalidArgumentError(absl::StrCat("a ", ToString(kind), " of ", floats,
                                                   " floats between ", size,
                                                   " ranks: must be a multiple of ", size));
  }
  Planner planner(floats, rank, size);
  if (size == 1) {
    return planner.Alone();
  }
  switch (kind) {
    case CollectiveKind::kAllGather:
      return planner.AllGather();
    case CollectiveKind::kReduceScatter:
      return planner.ReduceScatter();
    case CollectiveKind::kAllReduce:
      return planner.AllReduce();
    case CollectiveKind::kBroadcast:
      return planner.Broadcast();
    case CollectiveKind::kAllToAll:
      return planner.AllToAll();
  }
  return absl::InvalidArgumentError(absl::StrCat("no collective of kind ", static_cast<int>(kind)));
}

std::int64_t FloatsFor(CollectiveKind kind, Bytes bytes, int size) {
  const std::int64_t floats = FloatsOf(bytes);
  return NeedsEqualParts(kind) ? (floats + size - 1) / size * size : floats;
}

}  // namespace optimus::executor
