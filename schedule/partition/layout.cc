// The layout string: first its repetitions are written out, then the letters are dealt to stages.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/partition/partition.h"

namespace optimus::partition {
namespace {

// More letters than any model has layers: a typing error, not a layout.
constexpr std::size_t kMaxLetters = 100'000;

// A letter or '|' with the place it was written at, for messages.
struct Letter {
  char kind = 0;
  std::size_t column = 0;  // from 1
};

bool IsCosmetic(char c) { return c == ',' || std::isspace(static_cast<unsigned char>(c)) != 0; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

class Expander {
 public:
  explicit Expander(const std::string& text) : text_(text) {}

  absl::StatusOr<std::vector<Letter>> Run() {
    for (SkipCosmetic(); at_ < text_.size(); SkipCosmetic()) {
      OPTIMUS_RETURN_IF_ERROR(text_[at_] == '(' ? Group() : Single(letters_));
    }
    return std::move(letters_);
  }

 private:
  absl::Status Error(std::size_t at, const std::string& what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("layout \"", text_, "\", column ", at + 1, ": ", what));
  }

  void SkipCosmetic() {
    while (at_ < text_.size() && IsCosmetic(text_[at_])) {
      ++at_;
    }
  }

  // x or x*n, appended to `out`.
  absl::Status Single(std::vector<Letter>& out) {
    const char c = text_[at_];
    switch (c) {
      case 'E':
      case 'L':
      case 't':
      case 'v':
      case 'p':
      case '|':
        break;
      case 'm':
        return absl::UnimplementedError(
            absl::StrCat("layout \"", text_, "\", column ", at_ + 1,
                         ": 'm', multi-token prediction (MTP) layers are not modelled"));
      case ')':
        return Error(at_, "')' without '('");
      case '*':
        return Error(at_, "'*' must follow one letter or a group in parentheses");
      default:
        return Error(at_, absl::StrCat("unknown character '", std::string(1, c),
                                       "'; known are E t L v p | ( ) * and digits after '*'"));
    }
    const Letter letter{c, at_ + 1};
    ++at_;
    return Repeat({letter}, /*required=*/false, out);
  }

  // (...)*n. As in Megatron-LM, groups do not nest.
  absl::Status Group() {
    const std::size_t open = at_++;
    std::vector<Letter> inner;
    for (SkipCosmetic(); at_ < text_.size() && text_[at_] != ')'; SkipCosmetic()) {
      if (text_[at_] == '(') {
        return Error(at_, "groups do not nest; write the inner one out");
      }
      OPTIMUS_RETURN_IF_ERROR(Single(inner));
    }
    if (at_ == text_.size()) {
      return Error(open, "'(' is never closed");
    }
    if (inner.empty()) {
      return Error(open, "empty group");
    }
    ++at_;
    return Repeat(inner, /*required=*/true, letters_);
  }

  // Reads "*n" and appends `what` n times; once where there is no "*n" and none is required.
  absl::Status Repeat(const std::vector<Letter>& what, bool required, std::vector<Letter>& out) {
    SkipCosmetic();
    std::size_t times = 1;
    if (at_ < text_.size() && text_[at_] == '*') {
      OPTIMUS_ASSIGN_OR_RETURN(times, Times());
    } else if (required) {
      return Error(at_, "a group must be followed by '*' and a number");
    }
    if (out.size() + times * what.size() > kMaxLetters) {
      return Error(at_, absl::StrCat("more than ", kMaxLetters, " letters when written out"));
    }
    for (std::size_t i = 0; i < times; ++i) {
      out.insert(out.end(), what.begin(), what.end());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::size_t> Times() {
    const std::size_t star = at_++;
    SkipCosmetic();
    const std::size_t first_digit = at_;
    std::size_t times = 0;
    while (at_ < text_.size() && IsDigit(text_[at_])) {
      // Capped, so that a long number overflows nothing and is refused by its size.
      times = std::min(times * 10 + static_cast<std::size_t>(text_[at_++] - '0'), kMaxLetters + 1);
    }
    if (at_ == first_digit) {
      return Error(star, "'*' must be followed by a number");
    }
    if (times == 0) {
      return Error(first_digit, "repeated 0 times; a repetition is at least 1");
    }
    return times;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::vector<Letter> letters_;
};

// Deals letters to stages and checks their order: v.. p and E before every t, L last.
class Dealer {
 public:
  explicit Dealer(const std::string& text) : text_(text) {}

  absl::StatusOr<std::vector<LayoutStage>> Run(const std::vector<Letter>& letters) {
    std::size_t held = 0;  // letters in the current stage
    for (const Letter& letter : letters) {
      if (letter.kind == '|') {
        OPTIMUS_RETURN_IF_ERROR(CheckNotEmpty(held, letter.column));
        stages_.emplace_back();
        held = 0;
      } else {
        OPTIMUS_RETURN_IF_ERROR(Deal(letter));
        ++held;
      }
    }
    OPTIMUS_RETURN_IF_ERROR(CheckNotEmpty(held, text_.size() + 1));
    OPTIMUS_RETURN_IF_ERROR(CheckComplete());
    return std::move(stages_);
  }

 private:
  std::string Where(std::size_t column) const {
    return absl::StrCat("layout \"", text_, "\", column ", column, ": ");
  }

  absl::Status CheckNotEmpty(std::size_t held, std::size_t column) const {
    if (held > 0) {
      return absl::OkStatus();
    }
    return absl::UnimplementedError(absl::StrCat(
        Where(column), "virtual stage ", stages_.size() - 1,
        " is empty; Megatron-LM allows that, here every stage holds something (a '|' too many?)"));
  }

  absl::Status Refuse(const Letter& letter, const std::string& rule) const {
    return absl::InvalidArgumentError(
        absl::StrCat(Where(letter.column), "'", std::string(1, letter.kind), "' ", rule));
  }

  absl::Status Deal(const Letter& letter) {
    LayoutStage& stage = stages_.back();
    if (loss_) {
      return Refuse(letter, "after L; the loss is last");
    }
    switch (letter.kind) {
      case 'v':
        if (projector_ || decoder_) {
          return Refuse(letter, "after p or t; encoder layers come before the projector");
        }
        encoder_ = true;
        ++stage.encoder_layers;
        break;
      case 'p':
        if (!encoder_ || projector_ || decoder_) {
          return Refuse(letter, "must stand once, after the encoder's v and before t");
        }
        stage.projector = projector_ = true;
        break;
      case 'E':
        if (embedding_ || decoder_) {
          return Refuse(letter, "must stand once, before the first t");
        }
        stage.embedding = embedding_ = true;
        break;
      case 't':
        if (!embedding_ || encoder_ != projector_) {
          return Refuse(letter, embedding_ ? "before the encoder's projector p" : "before E");
        }
        decoder_ = true;
        ++stage.decoder_layers;
        break;
      default:
        if (!decoder_) {
          return Refuse(letter, "before any t");
        }
        stage.loss = loss_ = true;
    }
    return absl::OkStatus();
  }

  absl::Status CheckComplete() const {
    if (loss_) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        Where(text_.size() + 1), "no L; the last stage must end with the loss, the first letter ",
        "of the language model must be E"));
  }

  const std::string& text_;
  std::vector<LayoutStage> stages_{1};
  bool encoder_ = false, projector_ = false, embedding_ = false, decoder_ = false, loss_ = false;
};

}  // namespace

absl::StatusOr<std::vector<LayoutStage>> ParseLayout(const std::string& layout) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<Letter> letters, Expander(layout).Run());
  if (letters.empty()) {
    return absl::InvalidArgumentError("layout: empty string");
  }
  return Dealer(layout).Run(letters);
}

}  // namespace optimus::partition
