// Everything the interpreter prepares before the clock starts.

#include <algorithm>
#include <map>

#include "schedule/ir/critical_path.h"
#include "sim/interpreter.h"

namespace optimus::sim {

void Interpreter::SetUpMeetings() {
  for (std::size_t g = 0; g < schedule_.groups.size(); ++g) {
    Meeting meeting{MemberSets(layout_, schedule_, schedule_.groups[g]),
                    compiler_.MatchedByIssue(static_cast<std::int32_t>(g)),
                    ir::kStreamCount,
                    {},
                    {}};
    if (meeting.by_issue) {
      std::size_t issued = 1;
      for (const CompiledProgram& program : programs_) {
        issued = std::max(issued, program.slot_stream[g].size());
      }
      meeting.slots = static_cast<std::uint32_t>(issued);
    }
    meetings_.push_back(std::move(meeting));
  }
  meetings_.push_back(Meeting{PortSets(layout_, schedule_), false, ir::kStreamCount, {}, {}});
  for (Meeting& meeting : meetings_) {
    meeting.arrived.assign(static_cast<std::size_t>(meeting.sets.instances()) * meeting.slots, 0);
  }
}

void Interpreter::SetUpEntities() {
  entities_.resize(static_cast<std::size_t>(layout_.entities()));
  live_entities_ = entities_.size();
  if (overlap_counts_) {
    ComputeState idle;
    idle.rate = rates_.PerPicosecond(false, false);
    compute_.assign(entities_.size(), idle);
  }
  for (std::uint32_t entity = 0; entity < entities_.size(); ++entity) {
    const Coordinates at = layout_.At(entity);
    entities_[entity].program = layout_.ProgramOf(at);
    const bool first_of_lane = at.d == 0 && at.t % layout_.entities_per_lane() == 0;
    entities_[entity].recorded = options_.record_spans && first_of_lane;
  }
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    receive_words_ = std::max(receive_words_, (programs_[p].receives.size() + 63) / 64);
    if (!options_.record_spans) continue;
    const std::size_t count = schedule_.programs[p].operations.size();
    recordings_.push_back({std::vector<std::int64_t>(count, -1), std::vector<std::int64_t>(count)});
  }
  received_.assign(entities_.size() * receive_words_, 0);
}

void Interpreter::SetUpSlowGpus() {
  slowed_.resize(1);  // 0: not slow
  std::map<double, std::uint16_t> slowness_of;
  for (const SlowGpu& gpu : options_.slow_gpus) {
    if (gpu.factor == 1.0) continue;
    const auto [found, inserted] =
        slowness_of.try_emplace(gpu.factor, static_cast<std::uint16_t>(slowed_.size()));
    if (inserted) {
      std::vector<Durations> by_program;
      for (std::size_t p = 0; p < programs_.size(); ++p) {
        by_program.push_back(compiler_.SlowedDurations(programs_[p], p, gpu.factor));
      }
      slowed_.push_back(std::move(by_program));
    }
    // A slow GPU is only ever run at GPU fidelity, where entities are ranks.
    entities_[static_cast<std::size_t>(gpu.rank)].slowness = found->second;
  }
}

void Interpreter::SetUpRoutes(const CostModel& costs) {
  Fabric fabric(schedule_, layout_, meetings_.back().sets, costs, options_, network_);
  SetUpCollectiveRoutes(fabric);
  SetUpSendPaths(fabric);
  network_.Seal();
}

void Interpreter::SetUpCollectiveRoutes(Fabric& fabric) {
  for (std::size_t c = 0; c < schedule_.collectives.size(); ++c) {
    const TransferPrice& price = pricing_.collectives[c];
    if (!pricing_.UsesFlow(price)) continue;
    Meeting& meeting = meetings_[schedule_.collectives[c].group];
    std::vector<RouteId>& routes = meeting.routes[price.scope == LinkScope::kNic ? 1 : 0];
    if (!routes.empty()) continue;
    for (int instance = 0; instance < meeting.sets.instances(); ++instance) {
      routes.push_back(fabric.CollectiveRoute(meeting.sets.Members(instance), price.scope));
    }
  }
}

void Interpreter::SetUpSendPaths(Fabric& fabric) {
  const std::size_t programs = programs_.size();
  send_paths_.assign(programs, std::vector<std::vector<SendPath>>(programs));
  const MemberSets& ports = meetings_.back().sets;
  for (std::uint32_t from = 0; from < static_cast<std::uint32_t>(ports.instances()); ++from) {
    const std::uint32_t sender = ports.Members(from).front();
    const std::uint32_t program = entities_[sender].program;
    const Coordinates at = layout_.At(sender);
    const int t = at.t * (schedule_.world.tp / layout_.tensor_ranks());
    for (const SendStep& send : programs_[program].sends) {
      std::vector<SendPath>& paths = send_paths_[program][send.peer_program];
      if (paths.size() > PlaceInProgram(from)) continue;
      const std::uint32_t to =
          ports.InstanceOf(layout_.PeerOf(sender, send.peer_stage, send.peer_lane));
      SendPath path;
      path.same_node = ir::SameNode(schedule_, at.stage, send.peer_stage, at.d, t, send.peer_lane);
      if (!path.same_node) {
        path.route = fabric.SendRoute(from, to, LinkScope::kNic);
      } else if (pricing_.nvlink_contends) {
        path.route = fabric.SendRoute(from, to, LinkScope::kNvlink);
      }
      paths.push_back(path);
    }
  }
}

// Ports of one program are numbered by replica, then tensor rank.
std::uint32_t Interpreter::PlaceInProgram(std::uint32_t port) const {
  const std::uint32_t ports_per_replica =
      layout_.lockstep() ? layout_.lanes() : layout_.tensor_ranks();
  const std::uint32_t ports_per_lane = ports_per_replica / layout_.lanes();
  const std::uint32_t replica = port / ports_per_replica % layout_.replicas();
  return replica * ports_per_lane + port % ports_per_lane;
}

}  // namespace optimus::sim
