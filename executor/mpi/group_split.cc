#include "executor/mpi/group_split.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "executor/mpi/mpi_status.h"

namespace optimus::executor {
namespace {

// What a member tells the first one, and is told.
struct Wish {
  std::int32_t next_group = 0;  // the first number that it has not used; -1: they differ
  std::uint32_t ranks_hash = 0;
  std::array<char, 120> text{};  // "group 'tp' of ranks 0, 2"
};

struct Talk {
  std::vector<Wish> wishes;
  std::vector<MPI_Request> requests;
};

// FNV-1a.
std::uint32_t Hash(const std::vector<std::int32_t>& ranks, const std::string& name) {
  std::uint32_t hash = 2166136261U;
  const auto add = [&hash](std::uint32_t value) { hash = (hash ^ value) * 16777619U; };
  for (const std::int32_t rank : ranks) add(static_cast<std::uint32_t>(rank));
  for (const char c : name) add(static_cast<unsigned char>(c));
  return hash;
}

Wish MakeWish(std::int32_t next_group, const std::vector<std::int32_t>& ranks,
              const std::string& name) {
  Wish wish;
  wish.next_group = next_group;
  wish.ranks_hash = Hash(ranks, name);
  const std::string text = absl::StrCat("group '", name, "' of ranks ", absl::StrJoin(ranks, ", "));
  std::copy_n(text.begin(), std::min(text.size(), wish.text.size() - 1), wish.text.begin());
  return wish;
}

absl::StatusOr<std::vector<std::int32_t>> GlobalRanks(const GroupLink& parent,
                                                      absl::Span<const std::int32_t> ranks,
                                                      const std::string& name) {
  std::vector<std::int32_t> global;
  bool fits = std::find(ranks.begin(), ranks.end(), parent.rank) != ranks.end();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    fits = fits && ranks[i] >= 0 && ranks[i] < parent.size() && (i == 0 || ranks[i] > ranks[i - 1]);
    if (fits) global.push_back(parent.ranks[static_cast<std::size_t>(ranks[i])]);
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "group '", name, "' of ranks ", absl::StrJoin(ranks, ", "), ": must be ascending, below ",
        parent.size(), ", with rank ", parent.rank, ", which asks for it"));
  }
  return global;
}

class Agreement {
 public:
  Agreement(MpiState& mpi, int tag, const std::vector<std::int32_t>& ranks, Wish mine)
      : mpi_(mpi), tag_(tag), ranks_(ranks), mine_(mine) {}

  // The group's number.
  absl::StatusOr<std::int32_t> Run() {
    OPTIMUS_ASSIGN_OR_RETURN(const Wish agreed, mpi_.rank == ranks_.front() ? Lead() : Follow());
    if (agreed.next_group < 0) {
      return absl::DataLossError(absl::StrCat("ranks split differently: rank ", mpi_.rank,
                                              " asks for ", mine_.text.data(), ", another for ",
                                              agreed.text.data()));
    }
    return agreed.next_group;
  }

 private:
  absl::StatusOr<Wish> Lead() {
    const std::size_t others = ranks_.size() - 1;
    OPTIMUS_ASSIGN_OR_RETURN(const std::vector<Wish> wishes, Receive(1, others));
    Wish agreed = mine_;
    for (const Wish& wish : wishes) {
      agreed.next_group = std::max(agreed.next_group, wish.next_group);
    }
    const auto other = std::find_if(wishes.begin(), wishes.end(), [this](const Wish& wish) {
      return wish.ranks_hash != mine_.ranks_hash;
    });
    if (other != wishes.end()) {
      agreed.next_group = -1;
    }
    OPTIMUS_RETURN_IF_ERROR(Send(1, others, agreed));
    if (other != wishes.end()) {
      agreed.text = other->text;
    }
    return agreed;
  }

  absl::StatusOr<Wish> Follow() {
    OPTIMUS_RETURN_IF_ERROR(Send(0, 1, mine_));
    OPTIMUS_ASSIGN_OR_RETURN(const std::vector<Wish> answer, Receive(0, 1));
    return answer.front();
  }

  absl::StatusOr<std::vector<Wish>> Receive(std::size_t first, std::size_t count) {
    auto talk = std::make_unique<Talk>();
    talk->wishes.resize(count);
    talk->requests.resize(count, MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < count; ++i) {
      OPTIMUS_RETURN_IF_ERROR(
          MpiStatus(MPI_Irecv(&talk->wishes[i], sizeof(Wish), MPI_BYTE, ranks_[first + i], tag_,
                              mpi_.groups, &talk->requests[i]),
                    "MPI_Irecv"));
    }
    OPTIMUS_RETURN_IF_ERROR(Await(talk));
    return std::move(talk->wishes);
  }

  absl::Status Send(std::size_t first, std::size_t count, const Wish& wish) {
    auto talk = std::make_unique<Talk>();
    talk->wishes.assign(1, wish);
    talk->requests.resize(count, MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < count; ++i) {
      OPTIMUS_RETURN_IF_ERROR(
          MpiStatus(MPI_Isend(talk->wishes.data(), sizeof(Wish), MPI_BYTE, ranks_[first + i], tag_,
                              mpi_.groups, &talk->requests[i]),
                    "MPI_Isend"));
    }
    return Await(talk);
  }

  absl::Status Await(std::unique_ptr<Talk>& talk) {
    const auto done = [&]() -> absl::StatusOr<bool> {
      int all = 0;
      OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Testall, static_cast<int>(talk->requests.size()),
                                  talk->requests.data(), &all, MPI_STATUSES_IGNORE);
      return all != 0;
    };
    absl::Status result = AwaitMpi(mpi_, done, [&] {
      return absl::StrCat("Split: not all ranks of ", mine_.text.data(), " answer");
    });
    if (!result.ok()) {
      (void)talk.release();  // MPI may still write there
    }
    return result;
  }

  MpiState& mpi_;
  int tag_;
  const std::vector<std::int32_t>& ranks_;
  Wish mine_;
};

}  // namespace

absl::StatusOr<GroupLink> SplitGroup(const GroupLink& parent, absl::Span<const std::int32_t> ranks,
                                     const std::string& name) {
  Transport& transport = *parent.transport;
  GroupLink group;
  group.transport = parent.transport;
  group.name = name;
  OPTIMUS_ASSIGN_OR_RETURN(group.ranks, GlobalRanks(parent, ranks, name));
  group.rank = static_cast<int>(std::find(ranks.begin(), ranks.end(), parent.rank) - ranks.begin());
  const Wish mine = MakeWish(transport.next_group, group.ranks, name);
  OPTIMUS_ASSIGN_OR_RETURN(
      group.number,
      Agreement(transport.mpi, TagOf(parent.number, GroupTag::kAgreement), group.ranks, mine)
          .Run());
  transport.next_group = group.number + 1;
  if (group.number >= transport.mpi.largest_tag / 4) {
    return absl::ResourceExhaustedError(absl::StrCat("group '", name, "' is number ", group.number,
                                                     ": this MPI library has tags for ",
                                                     transport.mpi.largest_tag / 4));
  }
  return group;
}

}  // namespace optimus::executor
