#pragma once
// Which communicator carries which collective. One communicator is used on one stream by each of
// its members, so that streams never wait for each other, and collectives that members issue in one
// order arrive at it in that order everywhere. Its members use the same stream as a rule; where a
// Schedule puts a collective on different streams at different members, those are a channel of
// their own.

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/ir/schedule.h"

namespace optimus::executor {

// All ranks make communicators for all channels of all groups, in this order, also where a rank's
// own instance of the group does not use one.
struct Channel {
  std::int32_t group = 0;
  std::int32_t number = 0;  // among the group's
  std::string name;         // "tp" or, for further channels, "tp #1"
};

// The collective as its instance's first program issues it: what all members agree on.
struct FirstMember {
  std::int32_t program = 0;
  std::uint32_t operation = 0;
};

struct Channels {
  std::vector<Channel> channels;
  // By program and operation; only those of collectives have a meaning.
  std::vector<std::vector<std::int32_t>> channel_of;  // index into `channels`
  std::vector<std::vector<FirstMember>> first_of;
};

// The Schedule must be valid.
Channels ChannelsOf(const ir::Schedule& schedule);

}  // namespace optimus::executor
