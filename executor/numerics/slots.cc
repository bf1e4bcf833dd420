#include "executor/numerics/slots.h"

#include "absl/strings/str_cat.h"

namespace optimus::executor::numerics {

const char* ToString(What what) {
  switch (what) {
    case What::kHidden:
      return "hidden";
    case What::kNorm1:
      return "norm1";
    case What::kNorm1Full:
      return "norm1 full";
    case What::kQkv:
      return "qkv";
    case What::kScores:
      return "scores";
    case What::kProbabilities:
      return "probabilities";
    case What::kHeads:
      return "heads";
    case What::kProjPartial:
      return "proj partial";
    case What::kProjOutput:
      return "proj output";
    case What::kMiddle:
      return "middle";
    case What::kNorm2:
      return "norm2";
    case What::kNorm2Full:
      return "norm2 full";
    case What::kFc1:
      return "fc1";
    case What::kActivation:
      return "activation";
    case What::kFc2Partial:
      return "fc2 partial";
    case What::kFc2Output:
      return "fc2 output";
    case What::kGradHidden:
      return "gradient of hidden";
    case What::kGradHiddenFull:
      return "gradient of hidden full";
    case What::kGradActivation:
      return "gradient of activation";
    case What::kGradFc1:
      return "gradient of fc1";
    case What::kGradNorm2Partial:
      return "gradient of norm2 partial";
    case What::kGradNorm2:
      return "gradient of norm2";
    case What::kGradMiddleNorm:
      return "gradient of middle norm";
    case What::kGradMiddle:
      return "gradient of middle";
    case What::kGradMiddleFull:
      return "gradient of middle full";
    case What::kGradHeads:
      return "gradient of heads";
    case What::kGradProbabilities:
      return "gradient of probabilities";
    case What::kGradScores:
      return "gradient of scores";
    case What::kGradQkv:
      return "gradient of qkv";
    case What::kGradNorm1Partial:
      return "gradient of norm1 partial";
    case What::kGradNorm1:
      return "gradient of norm1";
    case What::kGradHiddenNorm:
      return "gradient of hidden norm";
    case What::kProjected:
      return "projected";
    case What::kGradProjected:
      return "gradient of projected";
    case What::kEmbeddingPartial:
      return "embedding partial";
    case What::kGradEmbeddingFull:
      return "gradient of embedding full";
    case What::kFinalNorm:
      return "final norm";
    case What::kFinalNormFull:
      return "final norm full";
    case What::kLogits:
      return "logits";
    case What::kLogSums:
      return "log sums";
    case What::kGradLogits:
      return "gradient of logits";
    case What::kGradFinalNormPartial:
      return "gradient of final norm partial";
    case What::kGradFinalNorm:
      return "gradient of final norm";
    case What::kGradientNorm:
      return "gradient norm";
  }
  return "?";
}

std::string Describe(const SlotKey& key) {
  std::string text = absl::StrCat(ToString(key.what), " of module ", key.module);
  if (key.layer >= 0) absl::StrAppend(&text, " layer ", key.layer);
  if (key.micro_batch >= 0) absl::StrAppend(&text, " micro-batch ", key.micro_batch);
  if (key.slice > 0) absl::StrAppend(&text, " slice ", key.slice);
  return text;
}

}  // namespace optimus::executor::numerics
