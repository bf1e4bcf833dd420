#pragma once
// Small notes between ranks that nobody waits for.

#include <mpi.h>

#include <list>
#include <optional>
#include <string>

#include "executor/runtime/world.h"

namespace optimus::executor {

class Notes {
 public:
  // `comm` is used for nothing else.
  Notes(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}
  void Post(int to, const std::string& text);
  std::optional<World::Note> Poll();

 private:
  struct OnTheWay {
    World::Note note;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  void DropSent();
  void TakeAnnounced();

  MPI_Comm comm_;
  int rank_, size_;
  // Lists: MPI holds pointers into their elements.
  std::list<OnTheWay> sent_, coming_;
};

}  // namespace optimus::executor
