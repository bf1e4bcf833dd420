// Everything the interpreter prepares before the clock starts.

#include <algorithm>
#include <map>

#include "schedule/ir/critical_path.h"
#include "sim/interpreter.h"

namespace optimus::sim {

void Interpreter::SetUpMeetings() {
  for (std::size_t g = 0; g < schedule_.groups.size(); ++g) {
    Meeting meeting{MemberSets(layout_, schedule_.groups[g]), ir::kStreamCount, {}, {}};
    if (schedule_.groups[g].over_pp) {
      std::size_t issued = 1;
      for (const CompiledProgram& program : programs_) {
        issued = std::max(issued, program.slot_stream[g].size());
      }
      meeting.slots = static_cast<std::uint32_t>(issued);
    }
    meetings_.push_back(std::move(meeting));
  }
  meetings_.push_back(Meeting{PortSets(layout_), ir::kStreamCount, {}, {}});
  for (Meeting& meeting : meetings_) {
    meeting.arrived.assign(static_cast<std::size_t>(meeting.sets.instances()) * meeting.slots, 0);
  }
}

void Interpreter::SetUpEntities() {
  entities_.resize(static_cast<std::size_t>(layout_.entities()));
  live_entities_ = entities_.size();
  for (std::uint32_t entity = 0; entity < entities_.size(); ++entity) {
    const Coordinates at = layout_.At(entity);
    entities_[entity].stage = static_cast<std::uint16_t>(at.stage);
    entities_[entity].recorded = options_.record_spans && at.d == 0 && at.t == 0;
  }
  for (std::size_t s = 0; s < programs_.size(); ++s) {
    receive_words_ = std::max(receive_words_, (programs_[s].receives.size() + 63) / 64);
    if (!options_.record_spans) continue;
    const std::size_t count = schedule_.programs[s].operations.size();
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
      std::vector<Durations> by_stage;
      for (std::size_t s = 0; s < programs_.size(); ++s) {
        by_stage.push_back(
            compiler_.SlowedDurations(programs_[s], static_cast<int>(s), gpu.factor));
      }
      slowed_.push_back(std::move(by_stage));
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
  const std::size_t stages = programs_.size();
  send_paths_.assign(stages, std::vector<std::vector<SendPath>>(stages));
  const MemberSets& ports = meetings_.back().sets;
  const std::uint32_t per_stage = ports.instances() / layout_.stages();
  for (std::size_t stage = 0; stage < stages; ++stage) {
    for (const SendStep& send : programs_[stage].sends) {
      std::vector<SendPath>& paths = send_paths_[stage][send.peer_stage];
      if (!paths.empty()) continue;
      for (std::uint32_t i = 0; i < per_stage; ++i) {
        const auto from = static_cast<std::uint32_t>(stage * per_stage + i);
        const auto to = static_cast<std::uint32_t>(send.peer_stage * per_stage + i);
        const Coordinates at = layout_.At(ports.Members(from).front());
        SendPath path;
        path.same_node = ir::SameNode(schedule_, at.stage, send.peer_stage, at.d, at.t);
        if (!path.same_node) {
          path.route = fabric.SendRoute(from, to, LinkScope::kNic);
        } else if (pricing_.nvlink_contends) {
          path.route = fabric.SendRoute(from, to, LinkScope::kNvlink);
        }
        paths.push_back(path);
      }
    }
  }
}

}  // namespace optimus::sim
