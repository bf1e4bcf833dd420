#pragma once
// Where the virtual stages of a model are: which chunk of which pipeline stage holds each of them.

#include <cstdint>
#include <optional>

namespace optimus::pipeline {

// With p stages and V chunks on each of them:
enum class Placement : std::uint8_t {
  // Chunk c of stage s is virtual stage c p + s (interleaved 1F1B; one chunk: plain pipelines).
  kLoop,
  // Down the stages and back: even chunks c are virtual stage c p + s, odd ones c p + p - 1 - s.
  // With two chunks stage s holds virtual stages s and 2p - 1 - s (ZB-V, Qi et al., arXiv
  // 2405.15362; DualPipeV).
  kV,
  // Two copies of the model, one in each direction: chunk 0 of stage s is virtual stage s, chunk 1
  // is virtual stage p - 1 - s; each micro-batch passes one of them (DualPipe, DeepSeek-V3,
  // arXiv 2412.19437, section 3.2.1).
  kBidirectional,
};

const char* ToString(Placement placement);  // "loop", "V", "bidirectional"

struct Place {
  std::int32_t stage = 0;
  std::int32_t chunk = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

// `stages` and `chunks` as in Order. kBidirectional has two chunks and p virtual stages, the others
// stages * chunks.
int VirtualStageCount(Placement placement, int stages, int chunks);
int VirtualStageOf(Placement placement, int stages, Place place);

// Who holds the virtual stage before or behind that of `place`, for the same micro-batch; nullopt
// at the ends of the model.
std::optional<Place> PreviousPlace(Placement placement, int stages, Place place);
std::optional<Place> NextPlace(Placement placement, int stages, int chunks, Place place);

}  // namespace optimus::pipeline
