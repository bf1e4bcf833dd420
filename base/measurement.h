#pragma once
// What was measured of real hardware: executor/measure makes it, hw_profiles makes a profile of it.

#include <cstdint>
#include <string>
#include <vector>

#include "base/cost_model.h"
#include "base/kernel.h"
#include "base/units.h"

namespace optimus {

struct MeasuredTime {
  Picoseconds median;
  Picoseconds spread;  // between the quartiles
  std::int32_t repetitions = 0;
  friend bool operator==(const MeasuredTime&, const MeasuredTime&) = default;
};

struct KernelMeasurement {
  Kernel kernel;
  MeasuredTime time;
};

struct TransferPoint {
  Bytes bytes;  // as CollectiveWork::bytes, or of the message
  MeasuredTime time;
};

struct TransferMeasurement {
  bool send = false;  // a message; `kind` has no meaning
  CollectiveKind kind = CollectiveKind::kAllReduce;
  LinkScope scope = LinkScope::kNvlink;  // inside a node, or between nodes
  GroupShape group;                      // a message: 2 ranks
  std::vector<TransferPoint> points;     // by bytes, ascending
};

// How often each factor was measured. 0: not at all, and the factor is 1.
struct InterferenceRepetitions {
  int kernel_under_nvlink = 0;
  int kernel_under_nic = 0;
  int collective_under_kernel = 0;
};

struct HardwareMeasurements {
  std::string backend;  // "cpu", "cuda"
  std::string device;   // Device::Description
  std::string host;
  std::string date;  // YYYY-MM-DD
  int ranks = 1;     // that measured together
  int ranks_per_node = 1;
  Bytes memory;  // of one rank
  std::vector<KernelMeasurement> kernels;
  std::vector<TransferMeasurement> transfers;
  MeasuredTime launch;        // of a kernel without work
  Interference interference;  // factors, at least 1
  InterferenceRepetitions interference_repetitions;
};

}  // namespace optimus
