#include "executor/watch/board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "executor/watch/processes.h"

namespace optimus::executor {
namespace {

constexpr std::size_t kWords = Board::kTextBytes / sizeof(std::uint64_t);
constexpr std::size_t kCacheLine = 64;
using Words = std::array<std::uint64_t, kWords>;

std::string SharedFolder() {
  if (access("/dev/shm", W_OK | X_OK) == 0) return "/dev/shm";
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

// Cut where a character ends, without anything that could break a line.
std::string Fitted(const std::string& text) {
  std::string fitted = text;
  if (fitted.size() > Board::kTextBytes) {
    std::size_t end = Board::kTextBytes - 3;
    while (end > 0 && (static_cast<unsigned char>(fitted[end]) & 0xc0U) == 0x80U) --end;
    fitted.resize(end);
    fitted += "...";
  }
  return fitted;
}

std::string Printable(const Words& words) {
  std::string text(reinterpret_cast<const char*>(words.data()), Board::kTextBytes);
  text.resize(std::min(text.find('\0'), text.size()));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text;
}

absl::Status SystemError(const std::string& path) {
  return absl::UnavailableError(absl::StrCat(
      "status board ", path, ": ", std::strerror(errno),
      "; hint: ranks of a node share a file in /dev/shm, or in TMPDIR where that cannot "
      "be written"));
}

}  // namespace

// One writer, who makes `sequence` odd, writes, and makes it even again; a reader whose two looks
// at it differ, or that found it odd, reads again. Release stores and acquire loads of the words
// keep the order on both sides.
struct Board::Slot {
  alignas(kCacheLine) std::atomic<std::uint32_t> sequence;
  std::atomic<RankState> state;
  std::atomic<std::int32_t> rank, pid;
  std::atomic<std::int64_t> start_time;
  std::atomic<std::int32_t> speaker;  // of the node, in slot 0: 1 + slot, 0: nobody yet
  std::array<std::atomic<std::uint64_t>, kWords> text;
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
};

absl::StatusOr<std::unique_ptr<Board>> Board::Open(const std::string& name, int slots) {
  const std::string path = absl::StrCat(SharedFolder(), "/", name);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return SystemError(path);
  // New bytes are zero: kAbsent. Memory that is not there would end a writer with SIGBUS later.
  const std::size_t bytes = static_cast<std::size_t>(slots) * sizeof(Slot);
  errno = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  void* memory =
      errno != 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const absl::Status error = memory == MAP_FAILED ? SystemError(path) : absl::OkStatus();
  close(file);
  if (!error.ok()) {
    unlink(path.c_str());
    return error;
  }
  return std::unique_ptr<Board>(new Board(path, static_cast<Slot*>(memory), slots));
}

Board::Board(std::string path, Slot* memory, int slots)
    : path_(std::move(path)), memory_(memory), slots_(slots) {}

Board::~Board() { munmap(memory_, static_cast<std::size_t>(slots_) * sizeof(Slot)); }

void Board::Unlink() { unlink(path_.c_str()); }

void Board::Join(int slot, std::int32_t rank) {
  Slot& mine = memory_[slot];
  const std::int32_t pid = getpid();
  mine.rank = rank;
  mine.pid = pid;
  mine.start_time = StartTimeOf(pid).value_or(0);
  Write(slot, "starts");
  mine.state = RankState::kRunning;
}

void Board::Write(int slot, const std::string& text) {
  const std::string fitted = Fitted(text);
  Words words{};
  std::memcpy(words.data(), fitted.data(), fitted.size());
  Slot& mine = memory_[slot];
  const std::uint32_t sequence = mine.sequence.load(std::memory_order_relaxed);
  mine.sequence.store(sequence + 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kWords; ++i) {
    mine.text[i].store(words[i], std::memory_order_release);
  }
  mine.sequence.store(sequence + 2, std::memory_order_release);
}

void Board::SetState(int slot, RankState state) { memory_[slot].state = state; }

int Board::ClaimToSpeak(int slot) {
  std::int32_t speaker = 0;
  return memory_[0].speaker.compare_exchange_strong(speaker, slot + 1) ? slot : speaker - 1;
}

RankState Board::state(int slot) const { return memory_[slot].state; }

BoardEntry Board::Read(int slot) const {
  constexpr int kTries = 200;  // then its writer stands still in the middle
  constexpr int kAtOnce = 20;  // then its writer may need this core to go on
  const Slot& its = memory_[slot];
  Words words{};
  for (int i = 0; i < kTries; ++i) {
    const std::uint32_t before = its.sequence.load(std::memory_order_acquire);
    for (std::size_t w = 0; w < kWords; ++w) {
      words[w] = its.text[w].load(std::memory_order_acquire);
    }
    if (before % 2 == 0 && its.sequence.load(std::memory_order_relaxed) == before) break;
    if (i >= kAtOnce) usleep(50);
  }
  return {its.rank, its.pid, its.start_time, its.state, Printable(words)};
}

}  // namespace optimus::executor
