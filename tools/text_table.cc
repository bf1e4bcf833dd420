#include "tools/text_table.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tools/printable.h"

namespace optimus::tools {
namespace {

void AppendLine(const std::vector<std::string>& cells, const std::vector<Column>& columns,
                const std::vector<std::size_t>& widths, std::string& out) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - std::min(widths[i], cells[i].size()), ' ');
    absl::StrAppend(&line, i == 0 ? "" : "  ");
    absl::StrAppend(&line, columns[i].left ? cells[i] + padding : padding + cells[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  absl::StrAppend(&out, line, "\n");
}

}  // namespace

void TextTable::AddRow(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::string TextTable::Render() const {
  std::vector<std::size_t> widths(columns_.size(), 0);
  std::size_t header_lines = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    header_lines = std::max(header_lines, columns_[i].header.size());
    for (const std::string& text : columns_[i].header) widths[i] = std::max(widths[i], text.size());
    for (const auto& row : rows_) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (std::size_t line = 0; line < header_lines; ++line) {
    std::vector<std::string> cells;
    cells.reserve(columns_.size());
    for (const Column& column : columns_) {
      cells.push_back(line < column.header.size() ? column.header[line] : "");
    }
    AppendLine(cells, columns_, widths, out);
  }
  std::vector<std::string> dashes;
  dashes.reserve(widths.size());
  for (const std::size_t width : widths) dashes.emplace_back(width, '-');
  AppendLine(dashes, columns_, widths, out);
  for (const auto& row : rows_) AppendLine(row, columns_, widths, out);
  return out;
}

std::string Wrap(const std::string& text, int indent, int width) {
  std::istringstream words(text);
  std::string out, word;
  int column = indent;
  while (words >> word) {
    word = Printable(word);
    const int length = static_cast<int>(word.size());
    if (column > indent && column + 1 + length > width) {
      absl::StrAppend(&out, "\n", std::string(static_cast<std::size_t>(indent), ' '));
      column = indent;
    } else if (column > indent) {
      absl::StrAppend(&out, " ");
      ++column;
    }
    absl::StrAppend(&out, word);
    column += length;
  }
  return out;
}

}  // namespace optimus::tools
