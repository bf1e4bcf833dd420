#include "schedule/bubble/list_assign.h"

#include <algorithm>
#include <utility>

namespace optimus::bubble {

FluidPipeline::FluidPipeline(const WorkGraph& graph, const std::vector<const Slots*>& slots,
                             std::vector<Ps> releases, Ps scale)
    : scale_(scale),
      releases_(std::move(releases)),
      length_(scale * graph.length),
      idle_(graph.nodes == 0) {
  for (std::size_t p = 0; p < slots.size(); ++p) {
    capacity_.emplace_back(*slots[p]);
    // A stage without work has neither lead nor tail.
    const bool works = graph.stage_compute[p] > 0;
    work_.push_back(graph.stage_compute[p] * (scale > 1 ? scale + 1 : 1));
    tail_.push_back(works ? scale * graph.stage_tail[p] : 0);
    std::vector<Ps>& used = used_.emplace_back();
    for (const Ps release : releases_) {
      used.push_back(scale * capacity_[p].Before(release + (works ? graph.stage_lead[p] : 0)));
    }
  }
  for (Ps& release : releases_) release *= scale;
}

Ps FluidPipeline::End(absl::Span<const std::int32_t> owned) const {
  if (owned.empty() || idle_) return -kForever;
  Ps end = -kForever;
  for (const std::int32_t k : owned) {
    end = std::max(end, releases_[static_cast<std::size_t>(k)] + length_);
  }
  // Micro-batches are released in their order (backward) or in the reverse (forward, mirrored).
  const bool ascending = releases_[static_cast<std::size_t>(owned.front())] <=
                         releases_[static_cast<std::size_t>(owned.back())];
  for (std::size_t p = 0; p < capacity_.size(); ++p) {
    if (work_[p] == 0) continue;
    Ps amount = -kForever;
    for (std::size_t n = 0; n < owned.size(); ++n) {
      // The n + 1 micro-batches that are released last, none of them before this one.
      const std::int32_t k = owned[ascending ? owned.size() - 1 - n : n];
      amount = std::max(amount,
                        used_[p][static_cast<std::size_t>(k)] + work_[p] * static_cast<Ps>(n + 1));
    }
    end = std::max(end, capacity_[p].Reach(amount, scale_) + tail_[p]);
  }
  return end;
}

namespace {

// First the length of the step; then the sum over pipelines, so that a move which shortens one of
// several longest pipelines counts as progress.
using Cost = std::pair<Ps, Ps>;

class Search {
 public:
  Search(const std::vector<FluidPipeline>& forward, const std::vector<FluidPipeline>& backward,
         const AssignLimits& limits)
      : forward_(forward),
        backward_(backward),
        limits_(limits),
        ends_(forward.size(), {-kForever, -kForever}) {
    result_.owned.resize(forward.size());
  }

  Assignment Run(std::int32_t micro_batches) {
    // The last backward passes decide the end of the step: they choose first.
    least_each_ = static_cast<std::size_t>(micro_batches) >= pipelines() ? 1 : 0;
    if (!limits_.counts.empty()) least_each_ = 0;
    for (std::int32_t k = micro_batches; k-- > 0;) Insert(k);
    cost_ = CostOf();
    while (ImproveByMove() || ImproveBySwap()) {
    }
    return std::move(result_);
  }

 private:
  using Ends = std::pair<Ps, Ps>;  // forward, backward
  std::size_t pipelines() const { return forward_.size(); }

  bool HasRoom(std::size_t j) const {
    const auto holds = static_cast<std::int32_t>(result_.owned[j].size());
    if (!limits_.counts.empty()) return holds < limits_.counts[j];
    return limits_.most == 0 || holds < limits_.most;
  }

  Ends EndsOf(std::size_t j) {
    ++result_.evaluated;
    return {forward_[j].End(result_.owned[j]), backward_[j].End(result_.owned[j])};
  }

  Cost CostOf() const {
    Ps forward = limits_.least_forward, backward = limits_.least_backward, sum = 0;
    for (const Ends& ends : ends_) {
      forward = std::max(forward, ends.first);
      backward = std::max(backward, ends.second);
      if (ends.first > -kForever) {
        sum += std::max<Ps>(ends.first - limits_.least_forward, 0) +
               std::max<Ps>(ends.second - limits_.least_backward, 0);
      }
    }
    return {forward + backward, sum};
  }

  void Add(std::size_t j, std::int32_t k) {
    std::vector<std::int32_t>& owned = result_.owned[j];
    owned.insert(std::lower_bound(owned.begin(), owned.end(), k), k);
  }
  void Remove(std::size_t j, std::int32_t k) {
    std::vector<std::int32_t>& owned = result_.owned[j];
    owned.erase(std::lower_bound(owned.begin(), owned.end(), k));
  }

  // k and those before it have no pipeline yet.
  void Insert(std::int32_t k) {
    std::size_t best = pipelines();
    Cost best_cost;
    const auto idle = static_cast<std::size_t>(
        std::count_if(result_.owned.begin(), result_.owned.end(),
                      [](const std::vector<std::int32_t>& owned) { return owned.empty(); }));
    const bool only_idle = least_each_ > 0 && idle > static_cast<std::size_t>(k);
    for (std::size_t j = 0; j < pipelines(); ++j) {
      if (!HasRoom(j) || (only_idle && !result_.owned[j].empty())) continue;
      Add(j, k);
      const Ends old = std::exchange(ends_[j], EndsOf(j));
      const Cost cost = CostOf();
      ends_[j] = old;
      Remove(j, k);
      if (best == pipelines() || cost < best_cost) {
        best = j;
        best_cost = cost;
      }
    }
    Add(best, k);
    ends_[best] = EndsOf(best);
  }

  // Keeps what the caller has changed in pipelines a and b if that is better.
  bool Accept(std::size_t a, std::size_t b) {
    const std::pair old = {ends_[a], ends_[b]};
    ends_[a] = EndsOf(a);
    ends_[b] = EndsOf(b);
    const Cost cost = CostOf();
    if (cost < cost_) {
      cost_ = cost;
      return true;
    }
    ends_[a] = old.first;
    ends_[b] = old.second;
    return false;
  }

  bool ImproveByMove() {
    if (!limits_.counts.empty()) return false;
    bool improved = false;
    for (std::size_t a = 0; a < pipelines(); ++a) {
      for (std::size_t n = 0; n < result_.owned[a].size(); ++n) {
        if (result_.owned[a].size() <= least_each_) break;
        const std::int32_t k = result_.owned[a][n];
        for (std::size_t b = 0; b < pipelines(); ++b) {
          if (b == a || !HasRoom(b)) continue;
          Remove(a, k);
          Add(b, k);
          if (Accept(a, b)) {
            improved = true;
            break;
          }
          Remove(b, k);
          Add(a, k);
        }
        if (n >= result_.owned[a].size()) break;
      }
    }
    return improved;
  }

  bool SwapOf(std::size_t a, std::int32_t k) {
    for (std::size_t b = 0; b < pipelines(); ++b) {
      for (std::size_t n = 0; b != a && n < result_.owned[b].size(); ++n) {
        const std::int32_t other = result_.owned[b][n];
        Swap(a, k, b, other);
        if (Accept(a, b)) return true;
        Swap(a, other, b, k);
      }
    }
    return false;
  }
  void Swap(std::size_t a, std::int32_t of_a, std::size_t b, std::int32_t of_b) {
    Remove(a, of_a);
    Remove(b, of_b);
    Add(a, of_b);
    Add(b, of_a);
  }

  bool ImproveBySwap() {
    bool improved = false;
    for (std::size_t a = 0; a < pipelines(); ++a) {
      const std::vector<std::int32_t> owned = result_.owned[a];
      for (const std::int32_t k : owned) improved |= SwapOf(a, k);
    }
    return improved;
  }

  const std::vector<FluidPipeline>& forward_;
  const std::vector<FluidPipeline>& backward_;
  const AssignLimits& limits_;
  Assignment result_;
  std::vector<Ends> ends_;  // by pipeline
  Cost cost_;
  std::size_t least_each_ = 0;
};

}  // namespace

Assignment Assign(const std::vector<FluidPipeline>& forward,
                  const std::vector<FluidPipeline>& backward, std::int32_t micro_batches,
                  const AssignLimits& limits) {
  return Search(forward, backward, limits).Run(micro_batches);
}

}  // namespace optimus::bubble
