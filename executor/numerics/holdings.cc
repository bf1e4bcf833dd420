#include "executor/numerics/holdings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/group_members.h"

namespace optimus::executor::numerics {
namespace {

class Lister {
 public:
  Lister(const Anatomy& anatomy, const Place& place) : anatomy_(anatomy), place_(place) {}

  std::vector<Holding> List() {
    for (const Item& item : anatomy_.ItemsOf(*place_.program)) {
      item_ = item;
      module_ = &anatomy_.module(item.module);
      u_ = place_.t % module_->tp;
      if (item.layer >= 0) ListLayer();
      if (item.layer == ir::kProjectorLayer) ListProjector();
      if (item.layer == ir::kEmbeddingLayer) ListEmbedding();
      if (item.layer == ir::kHeadLayer) ListHead();
    }
    return std::move(holdings_);
  }

 private:
  const Dims& dims() const { return module_->dims; }
  bool parallel() const { return module_->tp > 1; }
  bool sharded_tokens() const { return parallel() && anatomy_.sequence_parallel(); }

  void Add(const std::string& tensor, RowRange rows, RowRange columns, bool partial) {
    if (!anatomy_.HasTensor(tensor)) return;  // no biases
    const auto same = [&](const Holding& other) {
      return other.tensor == tensor && other.row == rows.begin && other.column == columns.begin;
    };
    const auto found = std::find_if(holdings_.begin(), holdings_.end(), same);
    if (found != holdings_.end()) {  // tied embedding and head on one rank
      // It is needed with the embedding's chunk first, and has its gradient with it last.
      if (item_.layer == ir::kEmbeddingLayer) found->item = item_;
      return;
    }
    Holding holding;
    holding.tensor = tensor;
    holding.row = rows.begin;
    holding.rows = rows.size();
    holding.column = columns.begin;
    holding.columns = columns.size();
    holding.item = item_;
    holding.trained = anatomy_.tensor(tensor).trained;
    holding.partial = partial;
    holdings_.push_back(std::move(holding));
  }

  // Weight rows and the bias' elements of one block of a column-parallel layer's outputs.
  void AddOutputs(const std::string& name, std::int64_t first, RowRange part, bool partial) {
    const RowRange outputs = {first + part.begin, first + part.end};
    Add(name + " weight", outputs, {0, dims().hidden}, partial);
    if (dims().bias) Add(name + " bias", {0, 1}, outputs, partial);
  }
  void AddWhole(const std::string& tensor, bool partial) {
    if (!anatomy_.HasTensor(tensor)) return;
    const TensorShape& shape = anatomy_.tensor(tensor);
    Add(tensor, {0, shape.rows}, {0, shape.columns}, partial);
  }
  void AddNorm(const std::string& name) {
    AddWhole(name + " weight", sharded_tokens());
    AddWhole(name + " bias", sharded_tokens());
  }

  std::string Name(const char* what) const { return LayerTensor(dims(), item_.layer, what); }

  void ListLayer() {
    const int tp = module_->tp;
    const RowRange heads = PartOf({0, dims().attention_width()}, u_, tp);
    // Fewer key/value heads than ranks: several ranks hold the same one.
    const bool replicated = dims().kv_heads < tp;
    const RowRange kv =
        replicated ? PartOf({0, dims().kv_width()}, u_ * dims().kv_heads / tp, dims().kv_heads)
                   : PartOf({0, dims().kv_width()}, u_, tp);
    AddNorm(Name("norm1"));
    AddOutputs(Name("qkv"), 0, heads, false);
    AddOutputs(Name("qkv"), dims().attention_width(), kv, replicated);
    AddOutputs(Name("qkv"), dims().attention_width() + dims().kv_width(), kv, replicated);
    Add(Name("proj weight"), {0, dims().hidden}, heads, false);
    AddWhole(Name("proj bias"), false);
    AddNorm(Name("norm2"));
    const RowRange ffn = PartOf({0, dims().ffn}, u_, tp);
    AddOutputs(Name("fc1"), 0, ffn, false);
    if (dims().swiglu) AddOutputs(Name("fc1"), dims().ffn, ffn, false);
    Add(Name("fc2 weight"), {0, dims().hidden}, ffn, false);
    AddWhole(Name("fc2 bias"), false);
  }

  void ListProjector() {
    AddWhole(ModuleTensor(dims(), "projector weight"), sharded_tokens());
    AddWhole(ModuleTensor(dims(), "projector bias"), sharded_tokens());
  }

  void AddVocabulary(const std::string& tensor, int part, bool partial) {
    Add(tensor, PartOf({0, dims().vocabulary}, part, module_->tp), {0, dims().hidden}, partial);
  }

  void ListEmbedding() {
    AddVocabulary(ModuleTensor(dims(), "embedding weight"), u_, dims().tied);
    AddWhole(ModuleTensor(dims(), "positions"), false);
  }

  void ListHead() {
    AddNorm(ModuleTensor(dims(), "final_norm"));
    const std::string weight = dims().tied ? "embedding weight" : "lm_head weight";
    for (int part = 0; part < module_->tp; ++part) {
      AddVocabulary(ModuleTensor(dims(), weight), part, dims().tied || parallel());
    }
  }

  const Anatomy& anatomy_;
  const Place& place_;
  Item item_;
  const ModulePlan* module_ = nullptr;
  int u_ = 0;
  std::vector<Holding> holdings_;
};

absl::Status SetSync(const Anatomy& anatomy, const Place& place, Holding& holding) {
  const ir::Schedule& schedule = anatomy.schedule();
  bool reduced = false;
  for (const ir::Operation& op : place.program->operations) {
    const bool gather = op.tag.phase == Phase::kParameterSync;
    if (op.kind != ir::OperationKind::kCollective) continue;
    if (!gather && op.tag.phase != Phase::kGradientSync) continue;
    const ir::Collective& collective = schedule.collectives[op.work];
    if (collective.work.name == "grad_norm" || IsTiedSum(collective.work)) continue;
    if (!Covers(anatomy, op.tag, holding)) continue;
    const std::vector<std::int32_t> ranks = ir::RanksOf(
        schedule,
        ir::MembersOf(schedule, schedule.groups[collective.group], place.stage, place.d, place.t));
    holding.members = static_cast<int>(ranks.size());
    holding.position =
        static_cast<int>(std::find(ranks.begin(), ranks.end(), place.rank) - ranks.begin());
    holding.sharded |= gather || collective.work.kind == CollectiveKind::kReduceScatter;
    holding.gathered |= gather;
    reduced |= !gather;
  }
  const int copies = anatomy.module(holding.item.module).data_parallel;
  if (!holding.trained || reduced || copies == 1) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "numerics: nothing in the schedule reduces the gradient of ", holding.tensor, " over its ",
      copies, " copies; schedules without data-parallel communication train nothing together"));
}

}  // namespace

std::int64_t Holding::shard_size() const {
  return std::clamp<std::int64_t>(elements() - shard_begin(), 0, shard_elements());
}

bool IsTiedSum(const CollectiveWork& work) {
  return work.kind == CollectiveKind::kAllReduce && work.name == "tied_embedding_all_reduce";
}

bool Covers(const Anatomy& anatomy, const ir::Tag& tag, const Holding& holding) {
  const Item& item = holding.item;
  if (tag.micro_batch >= 0) {  // FSDP: a layer, or everything that is none
    if (tag.layer >= 0) return item.module == tag.module && item.layer == tag.layer;
    return item.layer < 0;
  }
  if (!holding.trained) return false;
  if (tag.module > ir::kLlmModule) {  // of an encoder with pipelines of its own
    if (item.module != tag.module) return false;
    if (tag.layer == -1 || item.layer == tag.layer) return true;
    // The projector goes with the last layer.
    return item.layer == ir::kProjectorLayer &&
           tag.layer == anatomy.module(item.module).dims.layers - 1;
  }
  if (anatomy.module(item.module).own_pipelines) return false;
  return tag.chunk < 0 || item.chunk == tag.chunk;
}

absl::StatusOr<std::vector<Holding>> HoldingsOf(const Anatomy& anatomy, int rank) {
  const Place place = anatomy.PlaceOf(rank);
  std::vector<Holding> holdings = Lister(anatomy, place).List();
  for (Holding& holding : holdings) {
    OPTIMUS_RETURN_IF_ERROR(SetSync(anatomy, place, holding));
  }
  return holdings;
}

absl::Status Parameters::Init(const Anatomy& anatomy, int rank) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<Holding> holdings, HoldingsOf(anatomy, rank));
  for (const Holding& holding : holdings) {
    Parameter& parameter = all_.emplace_back();
    parameter.holding = holding;
    const TensorShape& tensor = anatomy.tensor(holding.tensor);
    for (std::int64_t r = holding.row; r < holding.row + holding.rows; ++r) {
      for (std::int64_t c = holding.column; c < holding.column + holding.columns; ++c) {
        parameter.value.push_back(FirstValue(anatomy.model().seed, tensor, r * tensor.columns + c));
      }
    }
    parameter.gradient.assign(parameter.value.size(), 0.0F);
    if (!holding.sharded) continue;
    const auto begin =
        parameter.value.begin() + std::min(holding.shard_begin(), holding.elements());
    parameter.shard_value.assign(begin, begin + holding.shard_size());
    parameter.shard_value.resize(holding.shard_elements(), 0.0F);
    parameter.shard_gradient.assign(holding.shard_elements(), 0.0F);
    // What the all-gather does not bring must not be there by luck.
    if (holding.gathered) std::fill(parameter.value.begin(), parameter.value.end(), 0.0F);
  }
  return absl::OkStatus();
}

std::vector<Parameter*> Parameters::PartsOf(const std::string& tensor) {
  std::vector<Parameter*> parts;
  for (Parameter& parameter : all_) {
    if (parameter.holding.tensor == tensor) parts.push_back(&parameter);
  }
  std::sort(parts.begin(), parts.end(), [](const Parameter* a, const Parameter* b) {
    return std::pair(a->holding.row, a->holding.column) <
           std::pair(b->holding.row, b->holding.column);
  });
  return parts;
}

}  // namespace optimus::executor::numerics
