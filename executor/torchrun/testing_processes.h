#pragma once
// Ranks as real processes, for tests.

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "executor/torchrun/connection.h"
#include "executor/torchrun/environment.h"

namespace optimus::executor {

inline int FreePort() {
  const auto listening = Listen(0);
  if (!listening.ok()) return 0;
  const int port = PortOf(*listening);
  close(*listening);
  return port;
}

inline TorchrunEnvironment RankOf(int rank, int size, int port) {
  TorchrunEnvironment environment;
  environment.rank = rank;
  environment.size = size;
  environment.local_rank = rank;
  environment.local_size = size;
  environment.address = "127.0.0.1";
  environment.port = port;
  return environment;
}

// Exit codes by rank: what `body(rank)` returned in a process of its own; 100 + n: signal n.
inline std::vector<int> RunProcesses(int ranks, const std::function<int(int)>& body) {
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t process = fork();
    if (process == 0) _exit(body(rank));
    processes.push_back(process);
  }
  std::vector<int> codes;
  for (const pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status));
  }
  return codes;
}

}  // namespace optimus::executor
