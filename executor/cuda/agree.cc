#include "executor/cuda/agree.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace optimus::executor::cuda {

absl::Status Agree(World& world, const absl::Status& mine) {
  const std::string text =
      mine.ok() ? "" : absl::StrCat(static_cast<int>(mine.code()), " ", mine.message());
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<std::string> all, world.Gather(text));
  std::string verdict;
  for (std::size_t rank = 0; rank < all.size() && verdict.empty(); ++rank) {
    if (!all[rank].empty()) verdict = absl::StrCat(rank, " ", all[rank]);
  }
  OPTIMUS_ASSIGN_OR_RETURN(verdict, world.Broadcast(verdict));
  if (verdict.empty()) return absl::OkStatus();
  const std::vector<std::string> parts = absl::StrSplit(verdict, absl::MaxSplits(' ', 2));
  int code = static_cast<int>(absl::StatusCode::kInternal);
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &code)) {
    return absl::InternalError("cuda: ranks could not agree");
  }
  return {static_cast<absl::StatusCode>(code),
          world.size() == 1 ? parts[2] : absl::StrCat("rank ", parts[0], ": ", parts[2])};
}

}  // namespace optimus::executor::cuda
