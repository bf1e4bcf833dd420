#pragma once
// What the property tests of whole experiments have in common: models of random size, and results
// that a property cannot do without.

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace optimus::testing {

inline void Require(const absl::Status& status) {
  if (!status.ok()) RC_FAIL(std::string(status.message()));
}

template <class T>
T Take(absl::StatusOr<T> result) {
  Require(result.status());
  return *std::move(result);
}

// Models are read from files: one file each, of this process.
inline std::string WriteModel(const std::string& name, int width, int layers, bool llm) {
  std::string path =
      absl::StrCat(::testing::TempDir(), "optimus-", getpid(), "-", name, ".textproto");
  std::ofstream(path) << "name: \"" << name << "\" hidden_size: " << width
                      << " num_layers: " << layers << " ffn_hidden_size: " << 4 * width
                      << " num_attention_heads: 8 activation: GELU norm: LAYER_NORM "
                      << "linear_bias: true source: \"random\" "
                      << (llm ? "attention: CAUSAL vocabulary_size: 1024 tied_embeddings: true"
                              : "attention: FULL");
  return path;
}

// One of the names of a proto enum; drawn before a text is put together, so that the order of draws
// is fixed.
inline std::string Any(const std::vector<std::string>& names, const std::string& what) {
  return *rc::gen::elementOf(names).as(what);
}

}  // namespace optimus::testing
