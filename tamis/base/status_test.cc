#include "tamis/base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace tamis {
namespace {

Result<std::unique_ptr<int>> Half(int n) {
  if (n % 2 != 0) return InvalidArgument("cannot halve " + std::to_string(n));
  return std::make_unique<int>(n / 2);
}

Result<int> Quarter(int n) {
  TAMIS_ASSIGN_OR_RETURN(std::unique_ptr<int> half, Half(n));
  TAMIS_ASSIGN_OR_RETURN(std::unique_ptr<int> quarter, Half(*half));
  return *quarter;
}

TEST(StatusTest, AssignOrReturnPassesValuesAndErrorsOn) {
  ASSERT_TRUE(Quarter(8).ok());
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status(), InvalidArgument("cannot halve 3"));
}

TEST(StatusTest, ContextPrecedesTheMessageAndOkStaysOk) {
  EXPECT_EQ(NotFound("no table \"t\"").WithContext("cannot import"),
            NotFound("cannot import: no table \"t\""));
  EXPECT_TRUE(Status::Ok().WithContext("cannot import").ok());
  EXPECT_EQ(NotFound("x").ToString(), "not found: x");
}

}  // namespace
}  // namespace tamis
