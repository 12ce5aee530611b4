#include "tamis/cluster/region_id.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

TEST(RegionIdTest, ANumberHas63BitsAndIsNotZero) {
  for (const uint64_t number : {uint64_t{1}, uint64_t{17}, (uint64_t{1} << 63) - 1}) {
    const auto id = RegionId::Of(number);
    ASSERT_TRUE(id.ok());
    EXPECT_EQ(id->number(), number);
    EXPECT_EQ(id->ToString(), std::to_string(number));
    EXPECT_NE(*id, RegionId());
  }
  for (const uint64_t number : {uint64_t{0}, uint64_t{1} << 63, ~uint64_t{0}}) {
    EXPECT_EQ(RegionId::Of(number).status().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace tamis
