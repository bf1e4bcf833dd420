#include "schedule/pipeline/compute_schedule_cells.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace optimus::pipeline {
namespace {

constexpr char kOverlap[] = "OVERLAP_F_B";
constexpr char kExpected[] =
    "expected a stage, an action and a micro-batch: 0F0 (forward), 0B0 (whole backward), 0I0 "
    "(input gradient), 0W0 (weight gradient), (0F4;7B0)OVERLAP_F_B, or nothing";

struct ComputeName {
  char letter;
  SlotKind kind;
};
constexpr ComputeName kComputeNames[] = {{'F', SlotKind::kForward},
                                         {'B', SlotKind::kBackward},
                                         {'I', SlotKind::kBackwardData},
                                         {'W', SlotKind::kBackwardWeight}};

struct CommunicationName {
  const char* name;
  bool of_micro_batch;
};
constexpr CommunicationName kCommunicationNames[] = {
    {"SEND_F", true},   {"RECV_F", true},   {"SEND_B", true},      {"RECV_B", true},
    {"UNSHARD", false}, {"RESHARD", false}, {"REDUCE_GRAD", false}};

// "12F3" in its parts; digits may be missing.
struct Parts {
  absl::string_view stage, name, micro_batch;
};
Parts SplitAction(absl::string_view text) {
  const auto is_digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
  std::size_t begin = 0, end = text.size();
  while (begin < text.size() && is_digit(text[begin])) ++begin;
  while (end > begin && is_digit(text[end - 1])) --end;
  return {text.substr(0, begin), text.substr(begin, end - begin), text.substr(end)};
}

absl::StatusOr<std::int32_t> ParseNumber(const char* what, absl::string_view digits) {
  std::int32_t value = 0;
  if (digits.empty()) return absl::InvalidArgumentError(absl::StrCat("has no ", what));
  // SimpleAtoi fails only for what does not fit: these are digits.
  if (!absl::SimpleAtoi(digits, &value) || value == std::numeric_limits<std::int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(what, " ", digits, " is too large"));
  }
  return value;
}

const SlotKind* FindCompute(absl::string_view name) {
  for (const ComputeName& known : kComputeNames) {
    if (name.size() == 1 && name[0] == known.letter) return &known.kind;
  }
  return nullptr;
}

const CommunicationName* FindCommunication(absl::string_view name) {
  const auto* found =
      std::find_if(std::begin(kCommunicationNames), std::end(kCommunicationNames),
                   [&](const CommunicationName& known) { return name == known.name; });
  return found == std::end(kCommunicationNames) ? nullptr : found;
}

absl::StatusOr<CsvCell> ParseSingle(absl::string_view text) {
  const Parts parts = SplitAction(text);
  const SlotKind* kind = FindCompute(parts.name);
  const CommunicationName* communication = FindCommunication(parts.name);
  if (parts.name == "BW") {
    return absl::InvalidArgumentError(
        "BW is a whole backward in files of older PyTorch, and B there an input gradient; write B "
        "and I");
  }
  if (kind == nullptr && communication == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("is no action; ", kExpected));
  }
  CsvAction action;
  OPTIMUS_ASSIGN_OR_RETURN(action.stage, ParseNumber("stage", parts.stage));
  if (kind == nullptr && !communication->of_micro_batch) {
    if (parts.micro_batch.empty()) {
      return CsvCell{{}, CsvCommunication{communication->name, action.stage, std::nullopt}};
    }
    return absl::InvalidArgumentError(absl::StrCat("is of a stage, not of a micro-batch; write ",
                                                   action.stage, communication->name));
  }
  OPTIMUS_ASSIGN_OR_RETURN(action.micro_batch, ParseNumber("micro-batch", parts.micro_batch));
  if (kind == nullptr) {
    return CsvCell{{}, CsvCommunication{communication->name, action.stage, action.micro_batch}};
  }
  action.kind = *kind;
  return CsvCell{{action}, std::nullopt};
}

// "(0F4;7B0)OVERLAP_F_B".
absl::StatusOr<CsvCell> ParseOverlap(absl::string_view text) {
  const std::size_t close = text.find(')');
  if (close == absl::string_view::npos ||
      absl::StripAsciiWhitespace(text.substr(close + 1)) != kOverlap) {
    return absl::InvalidArgumentError(
        absl::StrCat("is no pair of actions; expected (0F4;7B0)", kOverlap));
  }
  CsvCell pair;
  for (const absl::string_view part : absl::StrSplit(text.substr(1, close - 1), ';')) {
    OPTIMUS_ASSIGN_OR_RETURN(const CsvCell cell, ParseSingle(absl::StripAsciiWhitespace(part)));
    pair.actions.insert(pair.actions.end(), cell.actions.begin(), cell.actions.end());
    if (cell.communication.has_value()) pair.communication = cell.communication;
  }
  if (pair.actions.size() != 2 || pair.communication.has_value() ||
      pair.actions[0].kind != SlotKind::kForward || pair.actions[1].kind != SlotKind::kBackward) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a pair that overlaps is one forward and then one whole backward: (0F4;7B0)", kOverlap));
  }
  pair.actions[0].with_next = true;
  return pair;
}

// The next cell of `line` from `at`, which is moved behind its comma, or to npos at the last one.
absl::StatusOr<std::string> TakeCell(absl::string_view line, std::size_t& at) {
  const absl::string_view rest = line.substr(at);
  const absl::string_view stripped = absl::StripLeadingAsciiWhitespace(rest);
  std::size_t close = 0;  // behind the closing quote, in `rest`
  absl::string_view text = rest;
  if (absl::StartsWith(stripped, "\"")) {
    const std::size_t open = rest.size() - stripped.size() + 1;
    const std::size_t quote = rest.find('"', open);
    if (quote == absl::string_view::npos) {
      return absl::InvalidArgumentError("a quote does not end on its line");
    }
    text = rest.substr(open, quote - open);
    close = quote + 1;
  }
  const std::size_t comma = rest.find(',', close);
  const absl::string_view tail = rest.substr(close, comma == rest.npos ? comma : comma - close);
  if (close > 0 && !absl::StripAsciiWhitespace(tail).empty()) {
    return absl::InvalidArgumentError("text behind a closing quote; expected a comma");
  }
  if (close == 0) text = tail;
  at = comma == rest.npos ? comma : at + comma + 1;
  return std::string(absl::StripAsciiWhitespace(text));
}

}  // namespace

absl::StatusOr<std::vector<std::vector<std::string>>> SplitCells(absl::string_view text) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // a byte-order mark, as spreadsheets write it
  std::vector<std::vector<std::string>> rows;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (std::size_t at = 0; at != absl::string_view::npos;) {
      absl::StatusOr<std::string> cell = TakeCell(line, at);
      if (!cell.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("line ", rows.size(), ": ", cell.status().message()));
      }
      cells.push_back(*std::move(cell));
    }
  }
  const auto is_empty = [](const std::vector<std::string>& cells) {
    return std::all_of(cells.begin(), cells.end(),
                       [](const std::string& cell) { return cell.empty(); });
  };
  while (!rows.empty() && is_empty(rows.back())) rows.pop_back();
  return rows;
}

absl::StatusOr<CsvCell> ParseCell(absl::string_view text) {
  if (text.empty()) return CsvCell{};
  return absl::StartsWith(text, "(") ? ParseOverlap(text) : ParseSingle(text);
}

std::string CellText(const CsvAction& action) {
  const auto* found = std::find_if(std::begin(kComputeNames), std::end(kComputeNames),
                                   [&](const ComputeName& n) { return n.kind == action.kind; });
  const absl::string_view letter(&found->letter, 1);
  return absl::StrCat(action.stage, letter, action.micro_batch);
}

std::string CellText(const CsvAction& forward, const CsvAction& next) {
  return absl::StrCat("(", CellText(forward), ";", CellText(next), ")", kOverlap);
}

}  // namespace optimus::pipeline
