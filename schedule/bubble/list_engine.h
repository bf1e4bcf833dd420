#pragma once
// Event-driven list scheduling of one encoder pipeline: whenever a compute stream or NVLink of one
// of its stages is free, the best ready op that fits whole into the rest of the slot starts. Many
// micro-batches and chains are in flight at once, so that collectives of one run under kernels of
// another, and no slot waits for one chain.
//
// The same engine runs forwards in mirrored time: seen from the end, a deadline is a release, and
// the least shift of the LLM is the length of the mirrored schedule. So no search over the shift is
// needed.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "schedule/bubble/list_graph.h"

namespace optimus::bubble {

// Ready ops of one resource go by micro-batch, then by `order`; or by `order` first. On the
// pipeline stage that comes last in time (encoder stage 0, in both directions) another rule can
// hold: what matters there is not to feed the next stage but that layers are complete early, for
// the gradient reductions (mirrored: needed late, for the gathers).
struct ListVariant {
  OpOrder order = OpOrder::kChainsOuter, last_order = OpOrder::kChainsOuter;
  bool jobs_outer = true, last_jobs_outer = true;
};

struct ListJob {
  Ps release = 0;          // no op starts earlier
  std::uint32_t rank = 0;  // smaller goes first
};

// What one run sees of a pipeline, by resource (2 * stage + link) and hop.
struct PipelineView {
  std::vector<const Slots*> slots;
  std::vector<Ps> hops;
};

struct ListPlacement {
  std::vector<Ps> start;                // by job * nodes + node
  std::vector<std::uint32_t> sequence;  // the same index, in order of start; respects the graph
  Ps end = -kForever;                   // of the last op
};

// Holds the memory of a run, so that many runs allocate once.
class ListEngine {
 public:
  void Run(const WorkGraph& graph, const PipelineView& view, absl::Span<const ListJob> jobs,
           const ListVariant& variant, ListPlacement& placement);

 private:
  struct Ready {
    std::uint64_t key = 0;
    Ps duration = 0;
    std::uint32_t id = 0;
  };
  struct Server {  // one resource
    const Interval* slots = nullptr;
    std::size_t slot = 0;
    Ps next = kForever;  // end of the running op, or when to look again
    bool running = false, touched = false;
    Ready op;                  // running
    std::vector<Ready> ready;  // best last
  };

  void Begin(const WorkGraph& graph, const PipelineView& view, absl::Span<const ListJob> jobs,
             const ListVariant& variant);
  void Arrive(std::uint32_t job, std::uint32_t node);
  void Complete(Server& server, Ps now);
  void Dispatch(Server& server, Ps now);
  static Ps NextSlot(const Server& server);
  void Start(Server& server, std::size_t which, Ps now);
  Ps NextEvent() const;
  void Later(Ps at, std::uint32_t job, std::uint32_t node);

  const WorkGraph* graph_ = nullptr;
  absl::Span<const Ps> hops_;
  absl::Span<const ListJob> jobs_;
  ListVariant variant_;
  ListPlacement* placement_ = nullptr;
  std::vector<Server> servers_;
  std::vector<std::uint32_t> waits_for_;  // by job * nodes + node: predecessors not ended
  std::vector<std::pair<Ps, std::uint64_t>> later_;  // heap: (time, job << 32 | node)
};

}  // namespace optimus::bubble
