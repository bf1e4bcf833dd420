#pragma once
// Aligned plain-text tables with header lines and a unit row.

#include <string>
#include <vector>

namespace optimus::tools {

struct Column {
  std::vector<std::string> header;  // one text a header line; the unit last
  bool left = false;                // aligned to the left; numbers are aligned to the right
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // One cell a column. Cells are made Printable: a newline in a name would break the table.
  void AddRow(std::vector<std::string> cells);
  // Header lines, a line of dashes, rows; two spaces between columns, none at the end of a line.
  std::string Render() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Breaks `text` between words so that no line is longer than `width` where that is possible; lines
// after the first start with `indent` spaces. Words are made Printable. No newline at the end.
std::string Wrap(const std::string& text, int indent, int width = 100);

}  // namespace optimus::tools
