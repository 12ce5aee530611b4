// The instruction sets that vector code is compiled for, one after the other in a test.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace tamis {

// Calls check() once for every one that this processor can run; what is chosen by the processor, a
// filter's functions for example, is to be made inside.
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
  EXPECT_GE(targets.size(), 2u) << "one target has nothing to be compared with";
}

}  // namespace tamis
