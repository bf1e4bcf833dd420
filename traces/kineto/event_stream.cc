#include "traces/kineto/event_stream.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::traces {
namespace {

constexpr std::int64_t kDeepest = 500;
constexpr std::size_t kSmallestWindow = 256;

bool IsBlank(int c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

EventStream::EventStream(ByteSource& source, const KinetoLimits& limits)
    : source_(source), limits_(limits) {
  buffer_.resize(std::max(limits_.window, kSmallestWindow) + kBatchPadding);
}

absl::Status EventStream::Bad(absl::string_view what, std::size_t position) const {
  return absl::InvalidArgumentError(absl::StrCat("byte ", OffsetOf(position), ": ", what));
}

absl::Status EventStream::CutOff(absl::string_view where) const {
  if (!failure_.ok()) return failure_;
  return absl::InvalidArgumentError(
      absl::StrCat("byte ", OffsetOf(end_), ": the file is cut off ", where,
                   "; hint: it was not written or copied to its end"));
}

// Moves what is not taken to the front, makes room and reads. False: the end, or `failure_`.
bool EventStream::Refill() {
  if (at_end_ || !failure_.ok()) return false;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  base_ += static_cast<std::int64_t>(begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ + kBatchPadding >= buffer_.size()) buffer_.resize(2 * buffer_.size());
  const absl::StatusOr<std::size_t> got =
      source_.Read(buffer_.data() + end_, buffer_.size() - kBatchPadding - end_);
  if (!got.ok()) {
    failure_ = got.status();
    return false;
  }
  end_ += *got;
  at_end_ = *got == 0;
  return *got > 0;
}

int EventStream::Peek() {
  if (begin_ == end_ && !Refill()) return -1;
  return static_cast<unsigned char>(buffer_[begin_]);
}

int EventStream::Take() {
  const int c = Peek();
  if (c >= 0) ++begin_;
  return c;
}

int EventStream::PeekText() {
  int c = Peek();
  while (IsBlank(c)) {
    ++begin_;
    c = Peek();
  }
  return c;
}

absl::Status EventStream::Read(EventVisitor& visitor, bool whole) {
  OPTIMUS_RETURN_IF_ERROR(source_.Rewind());
  const int first = PeekText();
  if (first == '[') {
    OPTIMUS_RETURN_IF_ERROR(ReadEvents(visitor));
    return whole ? ExpectEnd() : absl::OkStatus();
  }
  if (first == '{') return ReadObject(visitor, whole);
  if (!failure_.ok()) return failure_;
  if (first < 0) return absl::InvalidArgumentError("the file is empty");
  return Bad("no JSON object or array; hint: a trace begins with { or [", begin_);
}

absl::Status EventStream::ReadObject(EventVisitor& visitor, bool whole) {
  Take();
  bool events_seen = false;
  for (bool first = true;; first = false) {
    if (first && PeekText() == '}') break;
    OPTIMUS_RETURN_IF_ERROR(ReadMember(visitor, events_seen));
    if (events_seen && !whole) return absl::OkStatus();
    const int next = PeekText();
    if (next == '}') break;
    if (next < 0) return CutOff("behind a header value");
    if (next != ',') return Bad("',' or '}' expected", begin_);
    Take();
  }
  Take();
  if (!events_seen) {
    return absl::InvalidArgumentError(
        "no \"traceEvents\"; hint: this is no trace of Kineto or Chrome");
  }
  return ExpectEnd();
}

absl::Status EventStream::ReadMember(EventVisitor& visitor, bool& events_seen) {
  std::string key;
  OPTIMUS_RETURN_IF_ERROR(ReadKey(key));
  if (key == "traceEvents") {
    if (PeekText() != '[') return Bad("\"traceEvents\" is no array", begin_);
    if (events_seen) return Bad("a second \"traceEvents\"", begin_);
    events_seen = true;
    return ReadEvents(visitor);
  }
  if (!visitor.WantsHeader(key)) return ReadValue(nullptr);
  std::string value;
  OPTIMUS_RETURN_IF_ERROR(ReadValue(&value));
  value.reserve(value.size() + kBatchPadding);
  return visitor.Header(key, value);
}

// Keys with escapes are none that we know; they are taken as they stand.
absl::Status EventStream::ReadKey(std::string& key) {
  if (PeekText() < 0) return CutOff("in its header");
  if (Peek() != '"') return Bad("a key in quotes expected", begin_);
  OPTIMUS_RETURN_IF_ERROR(ReadString(&key));
  key = key.substr(1, key.size() - 2);
  if (PeekText() != ':') {
    return Peek() < 0 ? CutOff("behind a key") : Bad("':' expected", begin_);
  }
  Take();
  return absl::OkStatus();
}

absl::Status EventStream::Append(std::string* copy, char c) const {
  if (copy == nullptr) return absl::OkStatus();
  if (copy->size() >= limits_.longest) {
    return Bad(absl::StrCat("a header value of more than ", limits_.longest, " bytes"), begin_);
  }
  copy->push_back(c);
  return absl::OkStatus();
}

absl::Status EventStream::ReadString(std::string* copy) {
  bool escaped = false;
  for (std::int64_t i = 0;; ++i) {
    const int c = Take();
    if (c < 0) return CutOff("in a string");
    OPTIMUS_RETURN_IF_ERROR(Append(copy, static_cast<char>(c)));
    if (i > 0 && c == '"' && !escaped) return absl::OkStatus();
    escaped = c == '\\' && !escaped;
  }
}

absl::Status EventStream::ReadValue(std::string* copy) {
  const int first = PeekText();
  if (first < 0) return CutOff("behind a key");
  if (first == '"') return ReadString(copy);
  if (first == '{' || first == '[') return ReadNested(copy);
  const std::int64_t at = OffsetOf(begin_);
  for (int c = first; c >= 0 && c != ',' && c != '}' && c != ']' && !IsBlank(c); c = Peek()) {
    if (c < 0x20 || c > 0x7e || c == '"' || c == '{' || c == '[') {
      return absl::InvalidArgumentError(absl::StrCat("byte ", at, ": no JSON value"));
    }
    OPTIMUS_RETURN_IF_ERROR(Append(copy, static_cast<char>(Take())));
  }
  return OffsetOf(begin_) == at ? Bad("a value expected", begin_) : absl::OkStatus();
}

absl::Status EventStream::ReadNested(std::string* copy) {
  std::string open;
  do {
    const int c = PeekText();
    if (c < 0) return CutOff("in its header");
    if (c == '"') {
      OPTIMUS_RETURN_IF_ERROR(ReadString(copy));
      continue;
    }
    if (c == '{' || c == '[') {
      if (open.size() >= static_cast<std::size_t>(kDeepest))
        return Bad("nested too deeply", begin_);
      open.push_back(c == '{' ? '}' : ']');
    } else if (c == '}' || c == ']') {
      if (open.back() != c) return Bad("brackets that do not match", begin_);
      open.pop_back();
    }
    OPTIMUS_RETURN_IF_ERROR(Append(copy, static_cast<char>(Take())));
  } while (!open.empty());
  return absl::OkStatus();
}

absl::Status EventStream::ExpectEnd() {
  const int next = PeekText();
  if (!failure_.ok()) return failure_;
  return next < 0 ? absl::OkStatus() : Bad("something behind the end of the trace", begin_);
}

absl::Status EventStream::ReadEvents(EventVisitor& visitor) {
  blocks_ = JsonBlocks();
  scanned_ = begin_ + 1;
  last_event_ = 0;
  depth_ = 0;
  for (;;) {
    OPTIMUS_ASSIGN_OR_RETURN(const Next next, ScanBlocks());
    OPTIMUS_RETURN_IF_ERROR(Deliver(visitor));
    if (next == Next::kArrayEnd) break;
    OPTIMUS_RETURN_IF_ERROR(MoreEvents());
  }
  // `begin_` is the '[', or the end of the last event.
  const std::size_t from = begin_ + (buffer_[begin_] == '[' ? 1 : 0);
  OPTIMUS_RETURN_IF_ERROR(CheckTail(from, array_end_));
  begin_ = array_end_ + 1;
  return absl::OkStatus();
}

absl::Status EventStream::CheckTail(std::size_t from, std::size_t to) const {
  for (std::size_t i = from; i < to; ++i) {
    if (!IsBlank(buffer_[i])) return Bad("an event expected", i);
  }
  return absl::OkStatus();
}

absl::StatusOr<EventStream::Next> EventStream::ScanBlocks() {
  while (scanned_ + kBlock <= end_) {
    OPTIMUS_ASSIGN_OR_RETURN(const Next next, ScanBlock(buffer_.data() + scanned_, kBlock));
    if (next == Next::kArrayEnd) return next;
  }
  if (!at_end_ || scanned_ == end_) return Next::kMore;
  char last[kBlock];
  std::memset(last, ' ', sizeof(last));
  std::memcpy(last, buffer_.data() + scanned_, end_ - scanned_);
  return ScanBlock(last, end_ - scanned_);
}

absl::StatusOr<EventStream::Next> EventStream::ScanBlock(const char* block, std::size_t size) {
  const Brackets brackets = blocks_.Next(block);
  std::uint64_t marks = brackets.open | brackets.close;
  for (; marks != 0; marks &= marks - 1) {
    const auto bit = static_cast<std::size_t>(std::countr_zero(marks));
    const std::size_t position = scanned_ + bit;
    if ((brackets.open >> bit & 1) != 0) {
      if (depth_ == 0) {
        if (block[bit] != '{') return Bad("an event that is no object", position);
        event_ = position;
      }
      if (++depth_ > kDeepest) return Bad("nested too deeply", position);
    } else if (depth_ == 0) {
      if (block[bit] != ']') return Bad("'}' without a '{'", position);
      array_end_ = position;
      return Next::kArrayEnd;
    } else if (--depth_ == 0) {
      if (block[bit] != '}') return Bad("brackets that do not match", position);
      last_event_ = position + 1;
    }
  }
  scanned_ += size;
  return Next::kMore;
}

// The whole events that were found, as an array of their own: the byte before the first is its '['
// already or a comma, the byte behind the last is lent.
absl::Status EventStream::Deliver(EventVisitor& visitor) {
  if (last_event_ == 0) return absl::OkStatus();
  std::size_t first = begin_;
  while (IsBlank(buffer_[first])) ++first;
  if (buffer_[first] != '[' && buffer_[first] != ',') return Bad("',' or ']' expected", first);
  buffer_[first] = '[';
  const char lent = buffer_[last_event_];
  buffer_[last_event_] = ']';
  absl::Status status = visitor.Batch(
      absl::string_view(buffer_.data() + first, last_event_ + 1 - first), OffsetOf(first));
  buffer_[last_event_] = lent;
  begin_ = last_event_;
  last_event_ = 0;
  return status;
}

absl::Status EventStream::MoreEvents() {
  if (at_end_) {
    return CutOff(depth_ > 0 ? absl::StrCat("in the event that begins at byte ", OffsetOf(event_))
                             : "before the end of its events");
  }
  if (end_ - begin_ > limits_.longest) {
    return Bad(absl::StrCat("an event of more than ", limits_.longest, " bytes"),
               depth_ > 0 ? event_ : begin_);
  }
  const std::size_t moved = begin_;
  Refill();
  if (!failure_.ok()) return failure_;
  scanned_ -= moved;
  event_ = depth_ > 0 ? event_ - moved : 0;
  return absl::OkStatus();
}

}  // namespace optimus::traces
