#pragma once
// A kind of published measurements: its columns, and how a row becomes experiments. A data set is
// recognised by its columns; rows may be added without a change here.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "validation/published/figure.h"
#include "validation/published/row.h"
#include "validation/published/simulator.h"

namespace optimus::validation {

struct DataSet {
  std::string name;    // also of its file, validation/data/NAME.csv
  std::string title;   // what was measured
  std::string source;  // who published it
  std::vector<Column> columns;
  std::vector<std::string> conditions;   // columns that tell one row from another
  std::vector<std::string> assumptions;  // what the source does not say; they hold for every row
  // Errors name fields of the experiment; the caller puts file and line before them.
  absl::StatusOr<RowResult> (*evaluate)(const Row& row, Simulator& simulator) = nullptr;
};

// One file each.
DataSet ZeroBubble();
DataSet Korthikanti();
DataSet KorthikantiLayer();
DataSet MegatronSc21();
DataSet MegatronCoreH100();
DataSet MegaScale();
DataSet VTrainMultiNode();
DataSet NcclBusBandwidth();

const std::vector<DataSet>& DataSets();
// nullptr for an unknown name.
const DataSet* FindDataSet(const std::string& name);
// The data set whose columns the table has. Where several have the same columns, the one whose name
// alone is in the file's. INVALID_ARGUMENT "path:line: ..." says what differs from the nearest data
// set, or which data sets it could be.
absl::StatusOr<const DataSet*> RecognizeDataSet(const CsvTable& table);

}  // namespace optimus::validation
