#include "schedule/bubble/list_engine.h"

#include <algorithm>
#include <functional>

namespace optimus::bubble {

void ListEngine::Run(const WorkGraph& graph, const PipelineView& view,
                     absl::Span<const ListJob> jobs, const ListVariant& variant,
                     ListPlacement& placement) {
  placement_ = &placement;
  Begin(graph, view, jobs, variant);
  for (Ps now = NextEvent(); now < kForever; now = NextEvent()) {
    for (Server& server : servers_) {
      if (server.next != now) continue;
      server.touched = true;
      server.next = kForever;
      if (server.running) Complete(server, now);
    }
    while (!later_.empty() && later_.front().first == now) {
      std::pop_heap(later_.begin(), later_.end(), std::greater<>());
      const std::uint64_t what = later_.back().second;
      later_.pop_back();
      Arrive(static_cast<std::uint32_t>(what >> 32U), static_cast<std::uint32_t>(what));
    }
    for (Server& server : servers_) {
      if (server.touched && !server.running && !server.ready.empty()) Dispatch(server, now);
      server.touched = false;
    }
  }
}

void ListEngine::Begin(const WorkGraph& graph, const PipelineView& view,
                       absl::Span<const ListJob> jobs, const ListVariant& variant) {
  graph_ = &graph;
  hops_ = view.hops;
  jobs_ = jobs;
  variant_ = variant;
  servers_.resize(view.slots.size());
  for (std::size_t r = 0; r < servers_.size(); ++r) {
    Server& server = servers_[r];
    server.slots = view.slots[r]->data();
    server.slot = 0;
    server.next = kForever;
    server.running = server.touched = false;
    server.ready.clear();
  }
  placement_->start.assign(jobs.size() * graph.nodes, 0);
  placement_->sequence.clear();
  placement_->sequence.reserve(jobs.size() * graph.nodes);
  placement_->end = -kForever;
  later_.clear();
  waits_for_.clear();
  for (std::uint32_t job = 0; job < jobs.size(); ++job) {
    waits_for_.insert(waits_for_.end(), graph.predecessors.begin(), graph.predecessors.end());
    for (const std::uint32_t node : graph.sources) {
      waits_for_[job * graph.nodes + node] = 1;  // for the release
      Later(jobs[job].release, job, node);
    }
  }
}

void ListEngine::Later(Ps at, std::uint32_t job, std::uint32_t node) {
  later_.emplace_back(at, std::uint64_t{job} << 32U | node);
  std::push_heap(later_.begin(), later_.end(), std::greater<>());
}

Ps ListEngine::NextEvent() const {
  Ps next = later_.empty() ? kForever : later_.front().first;
  for (const Server& server : servers_) next = std::min(next, server.next);
  return next;
}

// One of the predecessors has ended (and its message has come).
void ListEngine::Arrive(std::uint32_t job, std::uint32_t node) {
  const std::uint32_t id = job * graph_->nodes + node;
  if (--waits_for_[id] != 0) return;
  const bool last = graph_->resource[node] < 2;
  const OpOrder order = last ? variant_.last_order : variant_.order;
  const std::uint64_t rank = graph_->rank[static_cast<int>(order)][node];
  const std::uint64_t of_job = jobs_[job].rank;
  const bool jobs_outer = last ? variant_.last_jobs_outer : variant_.jobs_outer;
  const Ready op = {jobs_outer ? of_job << 32U | rank : rank << 32U | of_job,
                    graph_->duration[node], id};
  Server& server = servers_[graph_->resource[node]];
  const auto at = std::find_if(server.ready.rbegin(), server.ready.rend(),
                               [&](const Ready& other) { return other.key > op.key; });
  server.ready.insert(at.base(), op);
  server.touched = true;
}

void ListEngine::Complete(Server& server, Ps now) {
  server.running = false;
  const std::uint32_t job = server.op.id / graph_->nodes, node = server.op.id % graph_->nodes;
  for (std::uint32_t e = graph_->first_edge[node]; e < graph_->first_edge[node + 1]; ++e) {
    const WorkGraph::Edge edge = graph_->edges[e];
    const Ps hop = edge.hop < 0 ? 0 : hops_[static_cast<std::size_t>(edge.hop)];
    if (hop == 0) {
      Arrive(job, edge.to);
    } else {
      Later(now + hop, job, edge.to);
    }
  }
}

// The start of the next slot in which some ready op fits.
Ps ListEngine::NextSlot(const Server& server) {
  Ps shortest = kForever;
  for (const Ready& op : server.ready) shortest = std::min(shortest, op.duration);
  std::size_t slot = server.slot + 1;  // the last slot has no end: anything fits there
  while (server.slots[slot].length().value() < shortest) ++slot;
  return server.slots[slot].start.value();
}

void ListEngine::Dispatch(Server& server, Ps now) {
  while (server.slots[server.slot].end.value() <= now) ++server.slot;
  const Interval slot = server.slots[server.slot];
  if (now < slot.start.value()) {
    server.next = slot.start.value();
    return;
  }
  const Ps room = slot.end.value() - now;
  for (std::size_t i = server.ready.size(); i-- > 0;) {
    if (server.ready[i].duration > room) continue;
    Start(server, i, now);
    return;
  }
  server.next = NextSlot(server);
}

void ListEngine::Start(Server& server, std::size_t which, Ps now) {
  server.op = server.ready[which];
  server.ready.erase(server.ready.begin() + static_cast<std::ptrdiff_t>(which));
  server.running = true;
  server.next = now + server.op.duration;
  placement_->start[server.op.id] = now;
  placement_->sequence.push_back(server.op.id);
  placement_->end = std::max(placement_->end, server.next);
}

}  // namespace optimus::bubble
