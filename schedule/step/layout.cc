#include "schedule/step/layout.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/partition/partition.h"
#include "schedule/step/check_schedule.h"

namespace optimus::step {
namespace {

absl::Status InField(const std::string& field, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(field, ": ", std::string(status.message())));
}

absl::StatusOr<partition::Boundaries> EncoderInStage0(const Stack& stack, int virtual_stages,
                                                      bool allow_uneven) {
  OPTIMUS_ASSIGN_OR_RETURN(
      partition::Boundaries boundaries,
      partition::EqualLayers(stack.modules[0].config.num_layers(), virtual_stages, allow_uneven));
  for (std::size_t i = 1; i < boundaries.size(); ++i) boundaries[i] += stack.encoder_layers;
  return boundaries;
}

// Takes items off the front of the stack as the stages of a layout string ask for them.
class LayoutReader {
 public:
  LayoutReader(const Stack& stack, int stage) : stack_(stack), stage_(stage) {}
  void StartStage(int stage) { stage_ = stage; }
  int next() const { return next_; }

  // A layout has one p, behind all v's: it places the last encoder's projector. Those of the others
  // ride along with their encoder's last layer.
  absl::Status TakeEncoderLayers(int count) {
    for (int i = 0; i < count; ++i) {
      OPTIMUS_RETURN_IF_ERROR(Take(ItemKind::kLayer, /*encoder=*/true));
      const int last_encoder = static_cast<int>(stack_.modules.size()) - 1;
      if (At(ItemKind::kProjector) && stack_.items[next_].module < last_encoder) ++next_;
    }
    return absl::OkStatus();
  }

  absl::Status Take(ItemKind kind, bool encoder) {
    if (!At(kind) || (stack_.items[next_].module > 0) != encoder) {
      return absl::InvalidArgumentError(
          absl::StrCat("plan.layout_string: stage ", stage_, " asks for ", Name(kind, encoder),
                       ", but the next item of the model is ", NextName(),
                       "; the order is v..vp (every encoder), E, t..t, L"));
    }
    ++next_;
    return absl::OkStatus();
  }

  std::string NextName() const {
    const int size = static_cast<int>(stack_.items.size());
    return next_ < size ? DescribeItems(stack_, next_, next_ + 1) : "its end";
  }

 private:
  bool At(ItemKind kind) const {
    return next_ < static_cast<int>(stack_.items.size()) && stack_.items[next_].kind == kind;
  }
  static std::string Name(ItemKind kind, bool encoder) {
    switch (kind) {
      case ItemKind::kLayer:
        return encoder ? "an encoder layer (v)" : "an LLM layer (t)";
      case ItemKind::kProjector:
        return "a projector (p)";
      case ItemKind::kEmbedding:
        return "the embedding (E)";
      case ItemKind::kHead:
        return "the loss (L)";
    }
    return "";
  }

  const Stack& stack_;
  int stage_ = 0;
  int next_ = 0;
};

absl::Status TakeStage(const partition::LayoutStage& stage, LayoutReader& reader) {
  OPTIMUS_RETURN_IF_ERROR(reader.TakeEncoderLayers(stage.encoder_layers));
  if (stage.projector) {
    OPTIMUS_RETURN_IF_ERROR(reader.Take(ItemKind::kProjector, /*encoder=*/true));
  }
  if (stage.embedding) {
    OPTIMUS_RETURN_IF_ERROR(reader.Take(ItemKind::kEmbedding, /*encoder=*/false));
  }
  for (int i = 0; i < stage.decoder_layers; ++i) {
    OPTIMUS_RETURN_IF_ERROR(reader.Take(ItemKind::kLayer, /*encoder=*/false));
  }
  return stage.loss ? reader.Take(ItemKind::kHead, /*encoder=*/false) : absl::OkStatus();
}

absl::StatusOr<ItemRanges> FromLayoutString(const std::string& text, const Stack& stack,
                                            int virtual_stages) {
  absl::StatusOr<std::vector<partition::LayoutStage>> stages = partition::ParseLayout(text);
  if (!stages.ok()) return InField("plan.layout_string", stages.status());
  if (static_cast<int>(stages->size()) != virtual_stages) {
    return absl::InvalidArgumentError(absl::StrCat(
        "plan.layout_string: ", stages->size(), " stages, but pipeline_parallel * model_chunks is ",
        virtual_stages, "; separate virtual stages by '|'"));
  }
  ItemRanges ranges = {0};
  LayoutReader reader(stack, 0);
  for (int i = 0; i < virtual_stages; ++i) {
    reader.StartStage(i);
    OPTIMUS_RETURN_IF_ERROR(TakeStage((*stages)[i], reader));
    ranges.push_back(reader.next());
  }
  // Complete: the parser insists on L at the end, and the head is the stack's last item.
  return ranges;
}

}  // namespace

std::vector<LayerItems> ItemsByLayer(const Stack& stack) {
  std::vector<LayerItems> result;
  int pending = 0;  // first item that has no layer yet
  for (int i = 0; i < static_cast<int>(stack.items.size()); ++i) {
    switch (stack.items[i].kind) {
      case ItemKind::kLayer:
        result.push_back({pending, i + 1});
        pending = i + 1;
        break;
      case ItemKind::kProjector:
      case ItemKind::kHead:
        result.back().last = i + 1;
        pending = i + 1;
        break;
      case ItemKind::kEmbedding:
        break;
    }
  }
  return result;
}

ItemRanges FromLayerBoundaries(const Stack& stack, const partition::Boundaries& boundaries) {
  const std::vector<LayerItems> by_layer = ItemsByLayer(stack);
  ItemRanges ranges;
  for (const int layer : boundaries) {
    ranges.push_back(layer < stack.layers() ? by_layer[layer].first
                                            : static_cast<int>(stack.items.size()));
  }
  return ranges;
}

absl::StatusOr<ItemRanges> LayOut(const Plan& plan, const Stack& stack,
                                  const std::vector<Picoseconds>& layer_times) {
  const int virtual_stages = VirtualStages(plan);
  if (plan.layout() == Plan::EXPLICIT) {
    return FromLayoutString(plan.layout_string(), stack, virtual_stages);
  }
  absl::StatusOr<partition::Boundaries> boundaries;
  std::string field = "plan.layout";
  switch (plan.layout()) {
    case Plan::EQUAL_LAYERS:
      boundaries = partition::EqualLayers(stack.layers(), virtual_stages, plan.allow_uneven());
      break;
    case Plan::BALANCED:
      boundaries = partition::Balanced(layer_times, virtual_stages);
      break;
    case Plan::INTER_OPERATOR:
      boundaries = partition::EqualLayers(stack.layers(), virtual_stages, /*allow_uneven=*/true);
      break;
    case Plan::ENCODER_IN_STAGE_0:
      boundaries = EncoderInStage0(stack, virtual_stages, plan.allow_uneven());
      break;
    case Plan::LAYER_COUNTS: {
      field = "plan.layer_counts";
      if (plan.layer_counts_size() != virtual_stages) {
        return absl::InvalidArgumentError(
            absl::StrCat(field, ": ", plan.layer_counts_size(),
                         " counts, but pipeline_parallel * model_chunks is ", virtual_stages,
                         "; give one count per virtual stage"));
      }
      boundaries = partition::FromCounts({plan.layer_counts().begin(), plan.layer_counts().end()},
                                         stack.layers());
      break;
    }
    default:
      return absl::InvalidArgumentError("plan.layout: is missing; see Plan.Layout");
  }
  if (!boundaries.ok()) return InField(field, boundaries.status());
  return FromLayerBoundaries(stack, *boundaries);
}

}  // namespace optimus::step
