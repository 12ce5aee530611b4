// The instruction sets that vector code is compiled for, one after the other in a test.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace tamis {

// Calls check() once for every one that this processor can run, which may be a single one; what is
// chosen by the processor, a filter's functions for example, is to be made inside. check() holds
// the answers against something that does not depend on the target.
template <class Check>
void ForEachTarget(Check&& check) {
  const auto targets = hwy::SupportedAndGeneratedTargets();
  for (const int64_t target : targets) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    check();
    if (testing::Test::HasFatalFailure()) break;
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
  EXPECT_GE(targets.size(), 1u);
}

}  // namespace tamis
