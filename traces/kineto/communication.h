#pragma once
// NCCL (and RCCL) kernels: which operation, of how many bytes, with whom.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "traces/kineto/event.h"
#include "traces/kineto/trace_header.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

// "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(...)", "ncclKernel_SendRecv...", "nccl:all_reduce".
bool IsCommunicationKernel(absl::string_view name);

// From "Collective name", else from the kernel's name. kUnknown where neither says it.
CommunicationKind KindOfCommunication(absl::string_view collective, absl::string_view kernel);

// Bytes of one element of PyTorch's "dtype"; 0: not known.
std::int64_t ElementSize(absl::string_view dtype);

// As nccl-tests count: all-gather what comes out, reduce-scatter and all-to-all what goes in,
// others the buffer. -1: not said.
Bytes BytesOfCommunication(CommunicationKind kind, const EventArgs& args);

// Ranks of "[0, 1, 2]"; empty where the list is cut off ("...") or no list of ranks.
std::vector<std::int32_t> ParseRanks(absl::string_view text);

// Makes the Communication of a kernel; groups of one name and one list are one group.
class CommunicationReader {
 public:
  CommunicationReader(const TraceHeader& header, std::int32_t rank, RecordingTables& tables)
      : header_(header), rank_(rank), tables_(tables) {}
  Communication Read(absl::string_view kernel, const EventArgs& args);

 private:
  std::int32_t Group(const EventArgs& args);
  CommunicatorGroup MakeGroup(const EventArgs& args) const;
  std::int32_t Peer(CommunicationKind kind, const EventArgs& args) const;

  const TraceHeader& header_;
  std::int32_t rank_;
  RecordingTables& tables_;
  absl::flat_hash_map<std::string, std::int32_t> groups_;  // by the text of name and ranks
};

// Keeps a group's sequence numbers only where no two of its collectives on this rank have the same.
void KeepUniqueSequences(std::vector<Communication>& communications);

}  // namespace optimus::traces
