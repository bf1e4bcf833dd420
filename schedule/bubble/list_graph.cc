#include "schedule/bubble/list_graph.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace optimus::bubble {
namespace {

struct FullEdge {
  std::uint32_t from = 0, to = 0;
  std::int16_t hop = -1;
  auto Key() const { return std::tuple(from, to, hop); }
};

class Builder {
 public:
  Builder(const EncoderWork& encoder, Direction direction, bool mirrored)
      : encoder_(encoder),
        works_(direction == Direction::kForward ? encoder.forward : encoder.backward),
        forward_(direction == Direction::kForward),
        mirrored_(mirrored) {}

  WorkGraph Build() {
    AddNodes();
    for (std::int32_t stage = 0; stage < graph_.stages; ++stage) {
      AddInnerEdges(stage);
      AddMessages(stage);
    }
    SetEntry();
    SetShortestHops();
    StoreEdges();
    const std::vector<std::uint32_t> order = TopologicalOrder();
    SetTails(order);
    SetLeads(order);
    SetRanks(order);
    return std::move(graph_);
  }

 private:
  void AddNodes() {
    graph_.stages = static_cast<std::int32_t>(works_.size());
    for (std::int32_t stage = 0; stage < graph_.stages; ++stage) {
      const StageWork& work = works_[static_cast<std::size_t>(stage)];
      graph_.first_node.push_back(static_cast<std::uint32_t>(graph_.duration.size()));
      std::vector<std::int32_t> names = work.chain;
      std::sort(names.begin(), names.end());
      names.erase(std::unique(names.begin(), names.end()), names.end());
      Ps compute = 0;
      for (std::size_t i = 0; i < work.ops.size(); ++i) {
        const WorkOp& op = work.ops[i];
        const bool link = op.resource == Resource::kLink;
        graph_.duration.push_back(op.duration.value());
        graph_.resource.push_back(static_cast<std::uint16_t>(2 * stage + (link ? 1 : 0)));
        const auto name = std::lower_bound(names.begin(), names.end(), work.chain[i]);
        chain_.push_back(chains_ + static_cast<std::uint32_t>(name - names.begin()));
        if (!link) compute += op.duration.value();
      }
      chains_ += static_cast<std::uint32_t>(names.size());
      graph_.stage_compute.push_back(compute);
    }
    graph_.nodes = static_cast<std::uint32_t>(graph_.duration.size());
    graph_.first_node.push_back(graph_.nodes);
  }

  void AddEdge(std::uint32_t from, std::uint32_t to, std::int16_t hop) {
    if (mirrored_) std::swap(from, to);
    edges_.push_back({from, to, hop});
  }

  void AddInnerEdges(std::int32_t stage) {
    const StageWork& work = works_[static_cast<std::size_t>(stage)];
    const std::uint32_t first = graph_.first_node[static_cast<std::size_t>(stage)];
    constexpr auto kNone = static_cast<std::uint32_t>(-1);
    std::vector<std::uint32_t> last(2 * std::size_t{chains_}, kNone);  // by chain and resource
    for (std::uint32_t i = 0; i < work.ops.size(); ++i) {
      const WorkOp& op = work.ops[i];
      const std::uint32_t node = first + i;
      for (std::uint32_t d = 0; d < op.dependency_count; ++d) {
        AddEdge(first + work.dependencies[op.first_dependency + d], node, -1);
      }
      std::uint32_t& before = last[2 * chain_[node] + graph_.resource[node] % 2U];
      if (before != kNone) AddEdge(before, node, -1);
      before = node;
    }
  }

  // Of the stages before `stage` (in this direction) the nearest that has ops; -1: none.
  std::int32_t Before(std::int32_t stage) const {
    const std::int32_t step = forward_ ? -1 : 1;
    for (stage += step; stage >= 0 && stage < graph_.stages; stage += step) {
      if (!works_[static_cast<std::size_t>(stage)].outputs.empty()) return stage;
    }
    return -1;
  }

  void AddMessages(std::int32_t stage) {
    const StageWork& to = works_[static_cast<std::size_t>(stage)];
    const std::int32_t before = Before(stage);
    if (before < 0 || to.ops.empty()) return;
    const StageWork& from = works_[static_cast<std::size_t>(before)];
    const std::uint32_t first_from = graph_.first_node[static_cast<std::size_t>(before)];
    const std::uint32_t first_to = graph_.first_node[static_cast<std::size_t>(stage)];
    graph_.hops.push_back({static_cast<std::int16_t>(std::min(before, stage)),
                           static_cast<std::int16_t>(std::max(before, stage))});
    const auto hop = static_cast<std::int16_t>(graph_.hops.size() - 1);
    for (std::uint32_t i = 0; i < to.ops.size(); ++i) {
      if (to.ops[i].input_part < 0) continue;
      const std::size_t part =
          std::min(static_cast<std::size_t>(to.ops[i].input_part), from.outputs.size() - 1);
      AddEdge(first_from + from.outputs[part], first_to + i, hop);
    }
  }

  void SetEntry() {
    const auto last = static_cast<std::int16_t>(graph_.stages - 1);
    std::int16_t with_ops = last;
    while (with_ops > 0 && works_[static_cast<std::size_t>(with_ops)].ops.empty()) --with_ops;
    graph_.entry = {with_ops, last};
  }

  void StoreEdges() {
    std::sort(edges_.begin(), edges_.end(),
              [](const FullEdge& a, const FullEdge& b) { return a.Key() < b.Key(); });
    const auto same = [](const FullEdge& a, const FullEdge& b) { return a.Key() == b.Key(); };
    edges_.erase(std::unique(edges_.begin(), edges_.end(), same), edges_.end());
    graph_.first_edge.assign(graph_.nodes + 1, 0);
    graph_.predecessors.assign(graph_.nodes, 0);
    for (const FullEdge& edge : edges_) {
      ++graph_.first_edge[edge.from + 1];
      ++graph_.predecessors[edge.to];
      graph_.edges.push_back({edge.to, edge.hop});
    }
    std::partial_sum(graph_.first_edge.begin(), graph_.first_edge.end(), graph_.first_edge.begin());
    for (std::uint32_t node = 0; node < graph_.nodes; ++node) {
      if (graph_.predecessors[node] == 0) graph_.sources.push_back(node);
    }
  }

  std::vector<std::uint32_t> TopologicalOrder() const {
    std::vector<std::uint32_t> order = graph_.sources, left = graph_.predecessors;
    order.reserve(graph_.nodes);
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::uint32_t e = graph_.first_edge[order[i]]; e < graph_.first_edge[order[i] + 1];
           ++e) {
        if (--left[graph_.edges[e].to] == 0) order.push_back(graph_.edges[e].to);
      }
    }
    return order;
  }

  void SetShortestHops() {
    const std::size_t hops = works_.size() - 1;
    const std::size_t blocks = hops == 0 ? 0 : encoder_.forward_hop.size() / hops;
    for (const WorkGraph::Hop hop : graph_.hops) {
      Ps shortest = blocks == 0 ? 0 : kForever;
      for (std::size_t block = 0; block < blocks; ++block) {
        const Direction direction = forward_ ? Direction::kForward : Direction::kBackward;
        shortest =
            std::min(shortest, HopTime(encoder_, direction, hop, static_cast<std::int32_t>(block)));
      }
      shortest_hops_.push_back(shortest);
    }
  }
  Ps ShortestHop(std::int16_t hop) const {
    return hop < 0 ? 0 : shortest_hops_[static_cast<std::size_t>(hop)];
  }

  void SetTails(const std::vector<std::uint32_t>& order) {
    std::vector<Ps> tail = graph_.duration;
    graph_.stage_tail.assign(static_cast<std::size_t>(graph_.stages), kForever);
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::uint32_t node = order[i];
      Ps after = 0;
      for (std::uint32_t e = graph_.first_edge[node]; e < graph_.first_edge[node + 1]; ++e) {
        const WorkGraph::Edge& edge = graph_.edges[e];
        after = std::max(after, tail[edge.to] + ShortestHop(edge.hop));
      }
      tail[node] += after;
      graph_.length = std::max(graph_.length, tail[node]);
      Ps& least = graph_.stage_tail[graph_.resource[node] / 2U];
      least = std::min(least, after);
    }
  }

  void SetLeads(const std::vector<std::uint32_t>& order) {
    std::vector<Ps> lead(graph_.nodes, 0);
    graph_.stage_lead.assign(static_cast<std::size_t>(graph_.stages), kForever);
    for (const std::uint32_t node : order) {
      for (std::uint32_t e = graph_.first_edge[node]; e < graph_.first_edge[node + 1]; ++e) {
        const WorkGraph::Edge& edge = graph_.edges[e];
        lead[edge.to] =
            std::max(lead[edge.to], lead[node] + graph_.duration[node] + ShortestHop(edge.hop));
      }
      Ps& least = graph_.stage_lead[graph_.resource[node] / 2U];
      least = std::min(least, lead[node]);
    }
  }

  // Smaller keys first; nodes of one key in the order that they have.
  void Rank(OpOrder order, std::vector<std::pair<std::uint64_t, std::uint32_t>> keys) {
    std::sort(keys.begin(), keys.end());
    std::vector<std::uint32_t>& rank = graph_.rank[static_cast<int>(order)];
    rank.assign(graph_.nodes, 0);
    for (std::uint32_t i = 0; i < graph_.nodes; ++i) rank[keys[i].second] = i;
  }

  void SetRanks(const std::vector<std::uint32_t>& order) {
    std::vector<std::uint32_t> depth(graph_.nodes, 0);
    for (const std::uint32_t node : order) {
      for (std::uint32_t e = graph_.first_edge[node]; e < graph_.first_edge[node + 1]; ++e) {
        std::uint32_t& deeper = depth[graph_.edges[e].to];
        deeper = std::max(deeper, depth[node] + 1);
      }
    }
    std::vector<std::pair<std::uint64_t, std::uint32_t>> by_chain, by_pair, by_layer;
    for (std::uint32_t node = 0; node < graph_.nodes; ++node) {
      // Chains of one stage are numbered in their own order; with time mirrored the last is first.
      const std::uint64_t chain = mirrored_ ? chains_ - chain_[node] : chain_[node];
      by_chain.emplace_back(chain << 32U | depth[node], node);
      by_pair.emplace_back((chain / 2) << 52U | std::uint64_t{depth[node]} << 20U | chain, node);
      by_layer.emplace_back(std::uint64_t{depth[node]} << 32U | chain, node);
    }
    Rank(OpOrder::kChainsOuter, std::move(by_chain));
    Rank(OpOrder::kPairsOuter, std::move(by_pair));
    Rank(OpOrder::kLayersOuter, std::move(by_layer));
  }

  const EncoderWork& encoder_;
  const std::vector<StageWork>& works_;
  const bool forward_, mirrored_;
  WorkGraph graph_;
  std::vector<FullEdge> edges_;
  std::uint32_t chains_ = 0;          // over all stages
  std::vector<std::uint32_t> chain_;  // by node
  std::vector<Ps> shortest_hops_;     // by graph_.hops
};

}  // namespace

Ps HopTime(const EncoderWork& encoder, Direction direction, WorkGraph::Hop hop,
           std::int32_t block) {
  const bool forward = direction == Direction::kForward;
  const std::vector<Picoseconds>& times = forward ? encoder.forward_hop : encoder.backward_hop;
  const std::size_t first = static_cast<std::size_t>(block) *
                            static_cast<std::size_t>(encoder.plan.pipeline_parallel - 1);
  Ps sum = 0;
  for (std::int16_t i = hop.lower; i < hop.upper; ++i) {
    sum += times[first + static_cast<std::size_t>(i)].value();
  }
  return sum;
}

WorkGraph MakeGraph(const EncoderWork& encoder, Direction direction, bool mirrored) {
  return Builder(encoder, direction, mirrored).Build();
}

}  // namespace optimus::bubble
