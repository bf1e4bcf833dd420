#pragma once
// Frames over a TCP connection that never blocks: what cannot be written yet is kept, what has
// arrived is handed out whole.
//
// A frame: 4 bytes of length (little endian, of what follows), 1 byte of kind, the text.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optimus::executor {

enum class FrameKind : std::uint8_t {
  kHello,      // "rank size job": who connects
  kAdmitted,   // rank 0 knows it, and waits for others
  kWelcome,    // rank 0 has all ranks
  kRefused,    // why rank 0 does not take it
  kPing,       // asks for rank 0's clock
  kPong,       // rank 0's clock, 8 bytes
  kBarrier,    // this rank is there
  kRelease,    // all ranks are there
  kGather,     // one rank's text
  kBroadcast,  // rank 0's text
  kNote,       // "from to text"
  kAbort,      // exit code
};

struct Frame {
  FrameKind kind = FrameKind::kHello;
  std::string text;
};

class Connection {
 public:
  // Takes over a connected socket, and makes it non-blocking.
  explicit Connection(int socket);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_; }
  bool open() const { return open_; }
  // Bytes that could not be written yet.
  std::size_t unsent() const { return out_.size() - written_; }

  // Longest text that is taken from the other side; more ends the connection. Small for strangers.
  void SetLargestFrame(std::size_t bytes) { largest_ = bytes; }

  void Send(FrameKind kind, const std::string& text);
  // Says that nothing more comes from this side. Closing at once would take back from the network
  // what the other side has not read yet.
  void FinishSending();
  // Writes and reads what can be now. Afterwards open() says whether the other side is still there;
  // frames that came before its end can be taken.
  void Pump();
  std::optional<Frame> Take();

 private:
  void Write();
  void Read();
  void Parse();

  int socket_;
  bool open_ = true;
  std::size_t largest_ = std::size_t{1} << 30;
  std::string out_;
  std::size_t written_ = 0;
  std::string in_;
  std::deque<Frame> frames_;
};

// A listening socket on all addresses of this host (port 0: any), or UNAVAILABLE.
absl::StatusOr<int> Listen(int port);
int PortOf(int listening_socket);
// One attempt to connect: the socket, NOT_FOUND where no such address is known, or UNAVAILABLE with
// what the system said.
absl::StatusOr<int> ConnectOnce(const std::string& address, int port);

}  // namespace optimus::executor
