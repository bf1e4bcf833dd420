#include "executor/mpi/notes.h"

#include <utility>

namespace optimus::executor {
namespace {

constexpr int kTag = 0;

bool IsDone(MPI_Request& request) {
  int done = 0;
  return MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
}

}  // namespace

void Notes::DropSent() {
  sent_.remove_if([](OnTheWay& each) { return IsDone(each.request); });
}

void Notes::Post(int to, const std::string& text) {
  DropSent();
  if (to < 0 || to >= size_) {
    return;
  }
  if (to == rank_) {
    coming_.push_back({{rank_, text}, MPI_REQUEST_NULL});
    return;
  }
  OnTheWay& note = sent_.emplace_back(OnTheWay{{rank_, text}, MPI_REQUEST_NULL});
  if (MPI_Isend(note.note.text.data(), static_cast<int>(note.note.text.size()), MPI_BYTE, to, kTag,
                comm_, &note.request) != MPI_SUCCESS) {
    sent_.pop_back();
  }
}

// Matched probes: the receive is started without waiting for a sender that may be gone.
void Notes::TakeAnnounced() {
  for (;;) {
    int there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    if (MPI_Improbe(MPI_ANY_SOURCE, kTag, comm_, &there, &message, &status) != MPI_SUCCESS ||
        there == 0) {
      return;
    }
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    OnTheWay& note = coming_.emplace_back();
    note.note.from = status.MPI_SOURCE;
    note.note.text.resize(static_cast<std::size_t>(bytes));
    if (MPI_Imrecv(note.note.text.data(), bytes, MPI_BYTE, &message, &note.request) !=
        MPI_SUCCESS) {
      coming_.pop_back();
    }
  }
}

std::optional<World::Note> Notes::Poll() {
  DropSent();
  TakeAnnounced();
  for (auto it = coming_.begin(); it != coming_.end(); ++it) {
    if (IsDone(it->request)) {
      World::Note note = std::move(it->note);
      coming_.erase(it);
      return note;
    }
  }
  return std::nullopt;
}

}  // namespace optimus::executor
