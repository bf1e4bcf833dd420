#include "executor/numerics/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/numerics/reference.h"

namespace optimus::executor::numerics {
namespace {

// Numbers and texts one behind the other; all ranks are the same program on machines of one kind.
class Writer {
 public:
  template <class T>
  void Number(T value) {
    Raw(&value, sizeof(value));
  }
  void Text(const std::string& text) {
    Number<std::uint64_t>(text.size());
    Raw(text.data(), text.size());
  }
  template <class T>
  void Numbers(const std::vector<T>& values) {
    Number<std::uint64_t>(values.size());
    Raw(values.data(), values.size() * sizeof(T));
  }
  std::string Take() && { return std::move(out_); }

 private:
  void Raw(const void* data, std::size_t size) {
    out_.append(static_cast<const char*>(data), size);
  }
  std::string out_;
};

// Stops at the end of the text: `ok` then says so.
class Reader {
 public:
  explicit Reader(const std::string& in) : in_(in) {}
  bool ok() const { return ok_; }
  bool AtEnd() const { return next_ == in_.size(); }
  template <class T>
  T Number() {
    T value{};
    Raw(&value, sizeof(value));
    return value;
  }
  std::string Text() {
    std::string text(Size(1), '\0');
    Raw(text.data(), text.size());
    return text;
  }
  template <class T>
  std::vector<T> Numbers() {
    std::vector<T> values(Size(sizeof(T)));
    Raw(values.data(), values.size() * sizeof(T));
    return values;
  }

 private:
  std::size_t Size(std::size_t element) {
    const auto size = Number<std::uint64_t>();
    if (size <= (in_.size() - next_) / element) return size;
    ok_ = false;
    return 0;
  }
  void Raw(void* data, std::size_t size) {
    if (!ok_ || size > in_.size() - next_) {
      ok_ = false;
      return;
    }
    if (size > 0) std::memcpy(data, in_.data() + next_, size);
    next_ += size;
  }
  const std::string& in_;
  std::size_t next_ = 0;
  bool ok_ = true;
};

// A part of one tensor's gradient: elements [begin, begin + values) of a rectangle, row-major.
struct Piece {
  std::string tensor;
  std::int64_t row = 0, column = 0, columns = 0, begin = 0;
  std::vector<float> values;
};

std::vector<Piece> PiecesOf(Parameters& parameters) {
  std::vector<Piece> pieces;
  for (Parameter& parameter : parameters.all()) {
    const Holding& holding = parameter.holding;
    if (!holding.trained) continue;
    const Floats& gradient = parameter.final_gradient();
    pieces.push_back({holding.tensor, holding.row, holding.column, holding.columns,
                      holding.shard_begin(),
                      Floats(gradient.begin(), gradient.begin() + holding.shard_size())});
  }
  return pieces;
}

// One tensor while parts of it come in. Several ranks may hold the same element; the worst counts.
class Comparison {
 public:
  explicit Comparison(const ReferenceTensor& reference)
      : reference_(reference), seen_(reference.value.size()), worst_(reference.value.size()) {}

  absl::Status Add(const Piece& piece) {
    const std::int64_t width = reference_.shape.columns;
    for (std::size_t i = 0; i < piece.values.size(); ++i) {
      const std::int64_t at = piece.begin + static_cast<std::int64_t>(i);
      const std::int64_t index =
          (piece.row + at / piece.columns) * width + piece.column + at % piece.columns;
      if (index < 0 || index >= static_cast<std::int64_t>(seen_.size())) {
        return absl::InternalError(
            absl::StrCat("numerics: a part outside of tensor ", piece.tensor));
      }
      const double error = std::abs(piece.values[i] - reference_.gradient[index]);
      worst_[index] = std::isnan(error) ? error : std::max(worst_[index], error);
      seen_[index] = true;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<NumericsReport::Tensor> Finish() const {
    const auto missing = std::count(seen_.begin(), seen_.end(), false);
    if (missing > 0) {
      return absl::InternalError(absl::StrCat("numerics: no rank has the gradient of ", missing,
                                              " of ", seen_.size(), " elements of ",
                                              reference_.shape.name));
    }
    double error = 0;
    double norm = 0;
    for (std::size_t i = 0; i < worst_.size(); ++i) {
      error += worst_[i] * worst_[i];
      norm += reference_.gradient[i] * reference_.gradient[i];
    }
    // No gradient at all (an encoder without input): any other one is wrong by all that it is.
    const double relative = std::sqrt(error) / (norm > 0 ? std::sqrt(norm) : 1);
    return NumericsReport::Tensor{reference_.shape.name, static_cast<std::int64_t>(seen_.size()),
                                  relative};
  }

 private:
  const ReferenceTensor& reference_;
  std::vector<bool> seen_;
  std::vector<double> worst_;
};

std::vector<std::vector<bool>> SamplesWithoutInput(const ir::Schedule& schedule,
                                                   const NumericsModel& model) {
  std::vector<std::vector<bool>> without;
  for (std::size_t k = 0; k < model.encoders.size(); ++k) {
    std::vector<bool>& samples = without.emplace_back();
    const std::vector<std::int32_t>& skipped = schedule.modules[k + 1].skipped_micro_batches;
    for (std::int64_t g = 0; g < model.global_batch; ++g) {
      const std::int64_t micro_batch = g / model.micro_batch % schedule.micro_batches;
      samples.push_back(std::find(skipped.begin(), skipped.end(), micro_batch) != skipped.end());
    }
  }
  return without;
}

// Leaves the gradients of the last step.
std::vector<double> TrainReference(Reference& reference, std::size_t steps) {
  std::vector<double> losses;
  for (std::size_t step = 0; step < steps; ++step) {
    if (step > 0) reference.Update();
    losses.push_back(reference.Step());
  }
  return losses;
}

// All ranks' losses and pieces.
struct Gathered {
  std::vector<double> losses;
  std::vector<Piece> pieces;
  std::vector<NumericsReport::Memory> memory;
};

absl::Status AddRank(const std::string& result, std::size_t rank, Gathered& gathered) {
  Reader reader(result);
  if (const std::string error = reader.Text(); !error.empty()) {
    return absl::FailedPreconditionError(error);
  }
  const std::vector<double> losses = reader.Numbers<double>();
  gathered.losses.resize(std::max(gathered.losses.size(), losses.size()), 0);
  for (std::size_t i = 0; i < losses.size(); ++i) gathered.losses[i] += losses[i];
  gathered.memory.push_back(reader.Number<NumericsReport::Memory>());
  while (reader.ok() && !reader.AtEnd()) {
    Piece piece;
    piece.tensor = reader.Text();
    piece.row = reader.Number<std::int64_t>();
    piece.column = reader.Number<std::int64_t>();
    piece.columns = reader.Number<std::int64_t>();
    piece.begin = reader.Number<std::int64_t>();
    piece.values = reader.Numbers<float>();
    if (piece.columns < 1) break;
    gathered.pieces.push_back(std::move(piece));
  }
  if (reader.ok() && reader.AtEnd()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("numerics: the results of rank ", rank, " are not readable"));
}

double RelativeError(double value, double reference) {
  return std::abs(value - reference) / std::abs(reference);
}

// NaN counts as the worst.
double Worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

absl::Status CompareGradients(const Reference& reference, const std::vector<Piece>& pieces,
                              NumericsReport& report) {
  std::map<std::string, Comparison> comparisons;
  for (const auto& [name, tensor] : reference.tensors()) {
    if (tensor.shape.trained) comparisons.emplace(name, Comparison(tensor));
  }
  for (const Piece& piece : pieces) {
    const auto found = comparisons.find(piece.tensor);
    if (found == comparisons.end()) {
      return absl::InternalError(absl::StrCat("numerics: the model has no ", piece.tensor));
    }
    OPTIMUS_RETURN_IF_ERROR(found->second.Add(piece));
  }
  for (const auto& [name, comparison] : comparisons) {
    OPTIMUS_ASSIGN_OR_RETURN(NumericsReport::Tensor tensor, comparison.Finish());
    report.worst_gradient_error = Worse(tensor.relative_error, report.worst_gradient_error);
    report.gradients.push_back(std::move(tensor));
  }
  std::stable_sort(report.gradients.begin(), report.gradients.end(),
                   [](const NumericsReport::Tensor& a, const NumericsReport::Tensor& b) {
                     if (std::isnan(a.relative_error) != std::isnan(b.relative_error)) {
                       return std::isnan(a.relative_error);
                     }
                     return a.relative_error > b.relative_error;
                   });
  return absl::OkStatus();
}

}  // namespace

std::string EncodeResults(NumericsWorkload& workload) {
  Writer writer;
  if (const absl::Status status = workload.Finished(); !status.ok()) {
    writer.Text(std::string(status.message()));
    return std::move(writer).Take();
  }
  writer.Text("");
  writer.Numbers(workload.Losses());
  writer.Number(NumericsReport::Memory{workload.memory().peak(), workload.memory().peak_kept()});
  for (const Piece& piece : PiecesOf(workload.parameters())) {
    writer.Text(piece.tensor);
    writer.Number(piece.row);
    writer.Number(piece.column);
    writer.Number(piece.columns);
    writer.Number(piece.begin);
    writer.Numbers(piece.values);
  }
  return std::move(writer).Take();
}

absl::StatusOr<NumericsReport> CompareResults(const ir::Schedule& schedule,
                                              const NumericsModel& model,
                                              const std::vector<std::string>& results) {
  if (static_cast<std::int32_t>(results.size()) != schedule.world.gpus()) {
    return absl::InternalError(absl::StrCat("numerics: results of ", results.size(), " of ",
                                            schedule.world.gpus(), " ranks"));
  }
  Gathered gathered;
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    OPTIMUS_RETURN_IF_ERROR(AddRank(results[rank], rank, gathered));
  }
  if (gathered.losses.empty()) {
    return absl::FailedPreconditionError("numerics: no step has been run");
  }
  Reference reference(model, SamplesWithoutInput(schedule, model));
  NumericsReport report;
  report.losses = gathered.losses;
  report.memory = gathered.memory;
  report.reference_losses = TrainReference(reference, gathered.losses.size());
  for (std::size_t i = 0; i < report.losses.size(); ++i) {
    report.worst_loss_error =
        Worse(RelativeError(report.losses[i], report.reference_losses[i]), report.worst_loss_error);
  }
  OPTIMUS_RETURN_IF_ERROR(CompareGradients(reference, gathered.pieces, report));
  return report;
}

}  // namespace optimus::executor::numerics

namespace optimus::executor {

absl::StatusOr<NumericsReport> CompareWithReference(const ir::Schedule& schedule, World& world,
                                                    Workload& workload,
                                                    const NumericsModel& model) {
  auto* ours = dynamic_cast<numerics::NumericsWorkload*>(&workload);
  if (ours == nullptr) {
    return absl::InvalidArgumentError(
        "numerics: the workload is not one that MakeNumericsWorkload made");
  }
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<std::string> results,
                           world.Gather(numerics::EncodeResults(*ours)));
  if (world.rank() != 0) return NumericsReport();
  return numerics::CompareResults(schedule, model, results);
}

}  // namespace optimus::executor
