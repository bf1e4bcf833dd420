// Token and position embedding, and where encoder outputs join the LLM.

#include <vector>

#include "executor/numerics/end_view.h"

namespace optimus::executor::numerics {
namespace {

class Embedding : public End {
 public:
  using End::End;

  absl::Status Kernel() {
    if (kernel() == "embedding") return Forward();
    if (kernel() == "embedding_dgrad") return Backward();
    return compiled_.Unknown();
  }
  absl::Status Collective() {
    if (collective() == "embedding_reduce_scatter" || collective() == "embedding_all_reduce") {
      return Reduce(At(What::kEmbeddingPartial), At(What::kHidden, 0));
    }
    if (collective() == "embedding_dgrad_all_gather") {
      return Move(At(What::kGradHidden, 0), At(What::kGradEmbeddingFull), local_tokens(), tokens());
    }
    return compiled_.Unknown();
  }

 private:
  // The part of an encoder's output that this rank exchanges, and where its rows go.
  struct Input {
    int module = 0;
    Slot* slot = nullptr;
    RowRange rows;
  };
  std::vector<Input> Inputs(What what) {
    std::vector<Input> inputs;
    for (int m = 1; m < anatomy().modules(); ++m) {
      const ModulePlan& encoder = anatomy().module(m);
      if (encoder.skipped.contains(tag_.micro_batch)) continue;
      const int piece = context_.place.lane % encoder.subgroups;
      const int u = EncoderRank(encoder);
      inputs.push_back({m, Piece(what, m, piece),
                        what == What::kProjected ? anatomy().ForwardRows(m, u, piece)
                                                 : anatomy().BackwardRows(m, u, piece)});
    }
    return inputs;
  }
  // The rank of the encoder's tensor-parallel group that serves this one: lane `lane` is served by
  // the encoder's lane `lane / subgroups`, rank by rank.
  int EncoderRank(const ModulePlan& encoder) const {
    const int width = ir::LaneWidth(context_.schedule());
    return context_.place.lane / encoder.subgroups * width + context_.place.t % width;
  }

  struct Target {
    std::int64_t row = 0;
    float weight = 0;
  };
  static Target TargetOf(const Context& context, int m, std::int64_t row) {
    const ModulePlan& encoder = context.anatomy.module(m);
    const std::int64_t per_sample = context.model().encoders[m - 1].sequences_per_sample;
    const std::int64_t position = row / encoder.sequences;
    const std::int64_t sequence = row % encoder.sequences;
    const Pooling pooling =
        PoolingOf(context.model(), m - 1, sequence % per_sample * encoder.length + position);
    return {pooling.position * context.model().micro_batch + sequence / per_sample,
            static_cast<float>(pooling.weight)};
  }

  // What the look-up works on: the rows of the table that this rank has, the positions (null:
  // none), the tokens of the micro-batch.
  struct Table {
    const Context* context = nullptr;
    Parameter* rows = nullptr;
    Parameter* positions = nullptr;
    std::int32_t micro_batch = 0;
    std::int64_t tokens = 0, width = 0, sequences = 1;
    // Row of `rows`; -1: another rank has it.
    std::int64_t RowOf(std::int64_t token) const {
      const std::int64_t first = context->anatomy.FirstSample(context->place.d, micro_batch);
      const std::int64_t row =
          TokenOf(context->model(), first + token % sequences, token / sequences) -
          rows->holding.row;
      return row >= 0 && row < rows->holding.rows ? row : -1;
    }
  };
  Table MakeTable() {
    Table table;
    table.context = &context_;
    table.micro_batch = tag_.micro_batch;
    table.tokens = tokens();
    table.width = dims().hidden;
    table.sequences = module_.sequences;
    for (Parameter* part : context_.parameters.PartsOf(ModuleTensor(dims(), "embedding weight"))) {
      if (part->holding.row == dims().vocabulary / module_.tp * u_) table.rows = part;
    }
    const auto positions = context_.parameters.PartsOf(ModuleTensor(dims(), "positions"));
    if (!positions.empty()) table.positions = positions.front();
    return table;
  }

  // Rows of this rank's part of the vocabulary, positions on one rank, encoder outputs by parts.
  absl::Status Forward() {
    const Table table = MakeTable();
    const std::vector<Input> inputs = Inputs(What::kProjected);
    Slot* out = reduces() ? At(What::kEmbeddingPartial) : At(What::kHidden, 0);
    task().reads = {table.rows};
    if (table.positions != nullptr) task().reads.push_back(table.positions);
    task().makes = {out};
    for (const Input& input : inputs) {
      task().needs.push_back(input.slot);
      task().drops.push_back(input.slot);
    }
    task().body = [=, adds_positions = table.positions != nullptr && u_ == 0] {
      Floats sum(table.tokens * table.width, 0.0F);
      LookUp(table, sum);
      if (adds_positions) AddPositions(table, sum);
      for (const Input& input : inputs) AddRows(*table.context, input, table.width, sum);
      out->Put(std::move(sum));
    };
    return absl::OkStatus();
  }

  static void LookUp(const Table& table, Floats& sum) {
    for (std::int64_t i = 0; i < table.tokens; ++i) {
      const std::int64_t row = table.RowOf(i);
      for (std::int64_t c = 0; c < table.width && row >= 0; ++c) {
        sum[i * table.width + c] += table.rows->value[row * table.width + c];
      }
    }
  }
  static void AddPositions(const Table& table, Floats& sum) {
    for (std::int64_t i = 0; i < table.tokens; ++i) {
      for (std::int64_t c = 0; c < table.width; ++c) {
        sum[i * table.width + c] += table.positions->value[i / table.sequences * table.width + c];
      }
    }
  }

  static void AddRows(const Context& context, const Input& input, std::int64_t width, Floats& sum) {
    for (std::int64_t r = 0; r < input.rows.size(); ++r) {
      const Target target = TargetOf(context, input.module, input.rows.begin + r);
      for (std::int64_t c = 0; c < width; ++c) {
        sum[target.row * width + c] += target.weight * input.slot->data[r * width + c];
      }
    }
  }

  absl::Status Backward() {
    const Table table = MakeTable();
    const std::vector<Input> outputs = Inputs(What::kGradProjected);
    Slot* dx = gathers() ? At(What::kGradEmbeddingFull) : At(What::kGradHidden, 0);
    task().needs = {dx};
    task().drops = {dx, At(What::kGradHidden, 0)};
    task().adds_to = {table.rows};
    if (table.positions != nullptr) task().adds_to.push_back(table.positions);
    for (const Input& output : outputs) task().makes.push_back(output.slot);
    task().body = [=] {
      AddGradients(table, dx->data);
      for (const Input& output : outputs) TakeRows(*table.context, output, table.width, dx->data);
    };
    return absl::OkStatus();
  }

  static void AddGradients(const Table& table, const Floats& dx) {
    for (std::int64_t i = 0; i < table.tokens; ++i) {
      const std::int64_t row = table.RowOf(i);
      for (std::int64_t c = 0; c < table.width; ++c) {
        const float g = dx[i * table.width + c];
        if (row >= 0) table.rows->gradient[row * table.width + c] += g;
        if (table.positions == nullptr) continue;
        table.positions->gradient[i / table.sequences * table.width + c] += g;
      }
    }
  }

  static void TakeRows(const Context& context, const Input& output, std::int64_t width,
                       const Floats& dx) {
    Floats rows(output.rows.size() * width);
    for (std::int64_t r = 0; r < output.rows.size(); ++r) {
      const Target target = TargetOf(context, output.module, output.rows.begin + r);
      for (std::int64_t c = 0; c < width; ++c) {
        rows[r * width + c] = target.weight * dx[target.row * width + c];
      }
    }
    output.slot->Put(std::move(rows));
  }
};

}  // namespace

absl::Status CompileEmbedding(Compiled& compiled) { return CompileBy<Embedding>(compiled); }

}  // namespace optimus::executor::numerics
