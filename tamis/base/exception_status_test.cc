#include "tamis/base/exception_status.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <system_error>

namespace tamis {
namespace {

Status Throwing(const auto& exception) {
  return WithoutExceptions([&]() -> Status { throw exception; });
}

TEST(ExceptionStatusTest, MemoryThatIsShortIsKnownBehindAContext) {
  const Status status = Throwing(std::bad_alloc());
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(IsOutOfMemory(status));
  EXPECT_TRUE(IsOutOfMemory(status.WithContext("cannot search table \"t\"")));
  EXPECT_FALSE(IsOutOfMemory(ResourceExhausted("the disk is full")));
  EXPECT_FALSE(IsOutOfMemory(Status::Ok()));
}

TEST(ExceptionStatusTest, OtherExceptionsKeepTheirText) {
  EXPECT_EQ(Throwing(std::runtime_error("broken")), Internal("broken"));
  EXPECT_EQ(Throwing(1).code(), StatusCode::kInternal);
  const auto again = std::make_error_code(std::errc::resource_unavailable_try_again);
  EXPECT_EQ(Throwing(std::system_error(again)).code(), StatusCode::kResourceExhausted);
}

TEST(ExceptionStatusTest, ValueIsReturnedUnchanged) {
  EXPECT_EQ(*WithoutExceptions([]() -> Result<int> { return 5; }), 5);
}

}  // namespace
}  // namespace tamis
