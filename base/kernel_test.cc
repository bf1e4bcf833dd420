#include "base/kernel.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/phase.h"

namespace optimus {
namespace {

// Names go into traces and files: distinct, and none "invalid".
template <class Enum>
std::set<std::string> NamesUpTo(Enum last) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) names.insert(ToString(static_cast<Enum>(i)));
  EXPECT_EQ(names.count("invalid"), 0U);
  return names;
}

TEST(Names, EveryEnumeratorHasItsOwn) {
  EXPECT_EQ(NamesUpTo(KernelKind::kFixed).size(), 4U);
  EXPECT_EQ(NamesUpTo(CollectiveKind::kAllToAll).size(), 5U);
  EXPECT_EQ(NamesUpTo(Phase::kOptimizer).size(), 7U);
}

TEST(Names, AreTheFieldsTerms) {
  EXPECT_STREQ(ToString(CollectiveKind::kReduceScatter), "reduce_scatter");
  EXPECT_STREQ(ToString(Phase::kWeightGradient), "weight_gradient");
  EXPECT_STREQ(ToString(KernelKind::kMemoryBound), "memory_bound");
}

TEST(Kernel, EqualityLooksAtTheShape) {
  Kernel a;
  a.kind = KernelKind::kGemm;
  a.gemm = {1, 2, 3};
  Kernel b = a;
  EXPECT_EQ(a, b);
  b.gemm.k = 4;
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace optimus
