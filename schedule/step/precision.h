#pragma once
// Bytes a parameter, in what is held and in what travels.

namespace optimus::step {

inline constexpr int kParameterBytes = 2;  // bf16
inline constexpr int kGradientBytes = 4;   // fp32

}  // namespace optimus::step
