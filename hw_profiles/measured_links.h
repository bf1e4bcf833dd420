#pragma once
// Alpha and beta of every kind of transfer over one link, fitted to measured tables. Internal to
// hw_profiles.

#include <cstdint>
#include <string>
#include <vector>

#include "base/cost_model.h"
#include "hw_profiles/profile.pb.h"

namespace optimus::hw {

// A row of a Link: Link's field of the same name.
struct FittedRow {
  std::string field;  // "all_gather", ..., "send"
  double efficiency = 1;
  double latency_us = 0;
  // Times of one size cannot tell latency from rate: the efficiency is then the profile's as it
  // was, and the latency what the bytes leave of the times.
  bool one_size = false;
  int points = 0;
  std::int32_t repetitions = 0;  // the fewest of them
};

struct FittedLink {
  // Of the fastest kind; the others' efficiencies refer to it. Where no kind has more than one
  // size, the profile's as it was.
  double bandwidth_gb_per_s = 0;
  std::string fastest;          // that kind; empty: none
  std::vector<FittedRow> rows;  // of the kinds that were measured; empty: nothing was
};

// Of the transfers of `profile` (a valid table) over the link of `scope`, all groups of a kind
// together: each contributes the bytes that its ring puts on the link. The link itself is read only
// where one size was measured.
FittedLink FitLink(const HardwareProfile& profile, LinkScope scope);

}  // namespace optimus::hw
