#pragma once
// The processes that one launcher started on this node: who is there before ranks can talk to each
// other. Read from /proc.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace optimus::executor {

struct Sibling {
  std::int32_t pid = 0;
  int rank = -1;                       // as the launcher told it
  std::string program;                 // "optimus"; of a process that may be read
  bool same_program = false;           // runs the file that this process runs
  bool stopped = false;                // by a signal or a debugger
  std::vector<std::string> arguments;  // after the program's name
};

// This process and the other living children of its parent that have a rank, by rank. `variable`:
// of the environment, where the launcher says the rank. Nothing where that cannot be known: no
// /proc, or a process between the launcher and this one, as of a script that starts the rank.
std::optional<std::vector<Sibling>> FindSiblings(const std::string& variable);

// The lowest rank among them that runs this program and can speak, if it is not this process.
std::optional<Sibling> WhoSpeaksInstead(const std::vector<Sibling>& siblings);

// To all others that run this program: this process has said why the run ends.
void TellSiblingsThatAllIsSaid(const std::string& variable);

}  // namespace optimus::executor
