#include "schedule/step/buckets.h"

#include <utility>

#include "absl/container/flat_hash_map.h"

namespace optimus::step {

std::vector<Bucket> BucketsOf(const VirtualStage& stage, std::int64_t least) {
  std::vector<Bucket> buckets;
  bool full = true;
  for (int item = static_cast<int>(stage.items.size()) - 1; item >= 0; --item) {
    const std::int64_t trained = stage.items[item].trained_parameters;
    if (trained == 0) continue;
    if (full) buckets.push_back({0, item, item + 1});
    Bucket& bucket = buckets.back();
    bucket.parameters += trained;
    bucket.first_item = item;
    full = bucket.parameters >= least;
  }
  return buckets;
}

std::vector<int> BucketOfPieces(const VirtualStage& stage, const std::vector<Bucket>& buckets,
                                const std::vector<Piece>& pieces) {
  absl::flat_hash_map<std::pair<std::int16_t, std::int16_t>, int> by_item;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    for (int item = buckets[b].first_item; item < buckets[b].last_item; ++item) {
      const ir::Tag& tag = stage.items[item].tag;
      by_item[{tag.module, tag.layer}] = static_cast<int>(b);
    }
  }
  std::vector<int> result;
  result.reserve(pieces.size());
  for (const Piece& piece : pieces) {
    const auto found = by_item.find({piece.tag.module, piece.tag.layer});
    result.push_back(found == by_item.end() ? -1 : found->second);
  }
  return result;
}

}  // namespace optimus::step
