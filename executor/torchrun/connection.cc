#include "executor/torchrun/connection.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::executor {
namespace {

constexpr std::size_t kHeader = 5;
constexpr int kConnectMilliseconds = 2000;

std::string Head(FrameKind kind, std::size_t length) {
  std::string head;
  for (int byte = 0; byte < 4; ++byte) head.push_back(static_cast<char>(length >> (8 * byte)));
  head.push_back(static_cast<char>(kind));
  return head;
}

std::size_t LengthAt(const std::string& bytes, std::size_t at) {
  std::size_t length = 0;
  for (std::size_t byte = 0; byte < 4; ++byte) {
    length |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + byte])) << (8 * byte);
  }
  return length;
}

absl::Status SystemError(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// Closes it unless it is released.
class Socket {
 public:
  explicit Socket(int socket) : socket_(socket) {}
  ~Socket() {
    if (socket_ >= 0) close(socket_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return socket_; }
  int Release() {
    const int socket = socket_;
    socket_ = -1;
    return socket;
  }

 private:
  int socket_;
};

}  // namespace

Connection::Connection(int socket) : socket_(socket) {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
  const int on = 1;  // notes and barriers are small: none may wait for the next
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(socket_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

Connection::~Connection() { close(socket_); }

void Connection::Send(FrameKind kind, const std::string& text) {
  if (!open_) return;
  out_ += Head(kind, text.size());
  out_ += text;
}

void Connection::FinishSending() { shutdown(socket_, SHUT_WR); }

void Connection::Pump() {
  if (open_) Write();
  if (open_) Read();
  Parse();
}

void Connection::Write() {
  while (unsent() > 0) {
    const ssize_t sent =
        send(socket_, out_.data() + written_, unsent(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      written_ += static_cast<std::size_t>(sent);
    } else if (errno == EINTR) {
      continue;
    } else {
      // What the other side sent before it went away is still to be read.
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EPIPE) open_ = false;
      break;
    }
  }
  if (unsent() == 0) {
    out_.clear();
    written_ = 0;
  }
}

void Connection::Read() {
  std::array<char, 65536> buffer = {};
  while (true) {
    const ssize_t got = recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) {
      in_.append(buffer.data(), static_cast<std::size_t>(got));
      if (in_.size() > largest_ + kHeader) return;  // Parse takes them, or ends it
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    open_ = false;
    return;
  }
}

void Connection::Parse() {
  std::size_t at = 0;
  while (in_.size() - at >= kHeader) {
    const std::size_t length = LengthAt(in_, at);
    const auto kind = static_cast<std::uint8_t>(in_[at + 4]);
    if (length > largest_ || kind > static_cast<std::uint8_t>(FrameKind::kAbort)) {
      open_ = false;  // not one of ours
      at = in_.size();
      break;
    }
    if (in_.size() - at < kHeader + length) break;
    frames_.push_back({static_cast<FrameKind>(kind), in_.substr(at + kHeader, length)});
    at += kHeader + length;
  }
  in_.erase(0, at);
}

std::optional<Frame> Connection::Take() {
  if (frames_.empty()) return std::nullopt;
  Frame frame = std::move(frames_.front());
  frames_.pop_front();
  return frame;
}

absl::StatusOr<int> Listen(int port) {
  // IPv6 sockets take IPv4 connections as well; some hosts have no IPv6.
  for (const int family : {AF_INET6, AF_INET}) {
    Socket listening(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (listening.get() < 0) continue;
    const int on = 1;
    const int off = 0;
    setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_storage address = {};
    socklen_t size = 0;
    if (family == AF_INET6) {
      setsockopt(listening.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
      auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(static_cast<std::uint16_t>(port));
      size = sizeof(sockaddr_in6);
    } else {
      auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
      v4->sin_family = AF_INET;
      v4->sin_port = htons(static_cast<std::uint16_t>(port));
      size = sizeof(sockaddr_in);
    }
    if (bind(listening.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
        listen(listening.get(), SOMAXCONN) == 0) {
      return listening.Release();
    }
    if (errno == EADDRINUSE) break;
  }
  return SystemError(absl::StrCat("cannot listen on port ", port));
}

int PortOf(int listening_socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(listening_socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

namespace {

// Non-blocking connect: a host that swallows packets must not hold us for minutes.
absl::StatusOr<int> ConnectTo(const addrinfo& to) {
  Socket connecting(socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connecting.get() < 0) return SystemError("no socket");
  if (connect(connecting.get(), to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return SystemError("cannot connect");
    pollfd ready = {connecting.get(), POLLOUT, 0};
    int error = ETIMEDOUT;
    if (poll(&ready, 1, kConnectMilliseconds) > 0) {
      socklen_t size = sizeof(error);
      getsockopt(connecting.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    errno = error;
    if (error != 0) return SystemError("cannot connect");
  }
  return connecting.Release();
}

}  // namespace

absl::StatusOr<int> ConnectOnce(const std::string& address, int port) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::NotFoundError(absl::StrCat("cannot find ", address, ": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, freeaddrinfo);
  absl::StatusOr<int> result = absl::UnavailableError(absl::StrCat("no address of ", address));
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    result = ConnectTo(*to);
    if (result.ok()) break;
  }
  return result;
}

}  // namespace optimus::executor
