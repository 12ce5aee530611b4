#include "tamis/cluster/error.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

TEST(ErrorTest, EveryCodeSurvivesARoundTrip) {
  for (int code = 1; code <= static_cast<int>(StatusCode::kInternal); ++code) {
    pb::Error error;
    const Status sent(static_cast<StatusCode>(code), "what it was");
    SetError(sent, &error);
    EXPECT_EQ(ToStatus(error), sent);
  }
  pb::Error ok;
  SetError(Status::Ok(), &ok);
  EXPECT_EQ(ToStatus(ok), Status::Ok());
}

TEST(ErrorTest, AnUnknownCodeIsAnInternalError) {
  pb::Error error;
  error.set_code(static_cast<pb::Error::Code>(4711));
  error.set_message("what it was");
  const Status status = ToStatus(error);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(), "error 4711 of a newer region server: what it was");
}

TEST(ErrorTest, ErrorMessageWithCodeOkIsAnError) {
  pb::Error error;
  EXPECT_EQ(FailureOf(error).code(), StatusCode::kDataLoss);
  SetError(Unavailable("what it was"), &error);
  EXPECT_EQ(FailureOf(error), Unavailable("what it was"));
}

}  // namespace
}  // namespace tamis
