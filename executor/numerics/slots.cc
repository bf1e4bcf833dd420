#include "executor/numerics/slots.h"

#include <cstddef>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace optimus::executor::numerics {

namespace {

struct Name {
  What what;
  const char* text;
};
constexpr Name kNames[] = {
    {What::kHidden, "hidden"},
    {What::kNorm1, "norm1"},
    {What::kNorm1Full, "norm1 full"},
    {What::kQkv, "qkv"},
    {What::kScores, "scores"},
    {What::kProbabilities, "probabilities"},
    {What::kHeads, "heads"},
    {What::kProjPartial, "proj partial"},
    {What::kProjOutput, "proj output"},
    {What::kMiddle, "middle"},
    {What::kNorm2, "norm2"},
    {What::kNorm2Full, "norm2 full"},
    {What::kFc1, "fc1"},
    {What::kActivation, "activation"},
    {What::kFc2Partial, "fc2 partial"},
    {What::kFc2Output, "fc2 output"},
    {What::kGradHidden, "gradient of hidden"},
    {What::kGradHiddenFull, "gradient of hidden full"},
    {What::kGradActivation, "gradient of activation"},
    {What::kGradFc1, "gradient of fc1"},
    {What::kGradNorm2Partial, "gradient of norm2 partial"},
    {What::kGradNorm2, "gradient of norm2"},
    {What::kGradMiddleNorm, "gradient of middle norm"},
    {What::kGradMiddle, "gradient of middle"},
    {What::kGradMiddleFull, "gradient of middle full"},
    {What::kGradHeads, "gradient of heads"},
    {What::kGradProbabilities, "gradient of probabilities"},
    {What::kGradScores, "gradient of scores"},
    {What::kGradQkv, "gradient of qkv"},
    {What::kGradNorm1Partial, "gradient of norm1 partial"},
    {What::kGradNorm1, "gradient of norm1"},
    {What::kGradHiddenNorm, "gradient of hidden norm"},
    {What::kProjected, "projected"},
    {What::kGradProjected, "gradient of projected"},
    {What::kEmbeddingPartial, "embedding partial"},
    {What::kGradEmbeddingFull, "gradient of embedding full"},
    {What::kFinalNorm, "final norm"},
    {What::kFinalNormFull, "final norm full"},
    {What::kLogits, "logits"},
    {What::kLogSums, "log sums"},
    {What::kGradLogits, "gradient of logits"},
    {What::kGradFinalNormPartial, "gradient of final norm partial"},
    {What::kGradFinalNorm, "gradient of final norm"},
    {What::kGradientNorm, "gradient norm"},
};

// In the order of the enum, all of them.
constexpr bool InOrder() {
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (static_cast<std::size_t>(kNames[i].what) != i) return false;
  }
  return std::size(kNames) == static_cast<std::size_t>(What::kGradientNorm) + 1;
}
static_assert(InOrder());

}  // namespace

const char* ToString(What what) { return kNames[static_cast<std::size_t>(what)].text; }

std::string Describe(const SlotKey& key) {
  std::string text = absl::StrCat(ToString(key.what), " of module ", key.module);
  if (key.layer >= 0) absl::StrAppend(&text, " layer ", key.layer);
  if (key.micro_batch >= 0) absl::StrAppend(&text, " micro-batch ", key.micro_batch);
  if (key.slice > 0) absl::StrAppend(&text, " slice ", key.slice);
  return text;
}

}  // namespace optimus::executor::numerics
