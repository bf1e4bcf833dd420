#include "tools/engine_options.h"

namespace optimus::tools {

sim::Options EngineOptions(const step::Hardware& hardware) {
  sim::Options engine;
  engine.interference = !hardware.no_interference();
  if (hardware.nodes_per_leaf() > 0) engine.nodes_per_leaf = hardware.nodes_per_leaf();
  if (hardware.oversubscription() > 0) engine.oversubscription = hardware.oversubscription();
  for (const auto& slow : hardware.slow_gpus()) {
    engine.slow_gpus.push_back({slow.rank(), slow.factor()});
  }
  return engine;
}

}  // namespace optimus::tools
