#include "tamis/hbase/exception.h"

#include <gtest/gtest.h>

namespace tamis::hbase {
namespace {

TEST(ExceptionTest, RecognizesClassesWithoutPackages) {
  const Exception exception =
      ExceptionOf("org.apache.hadoop.hbase.NotServingRegionException",
                  "org.apache.hadoop.hbase.NotServingRegionException: t,,1 is not online\n\tat A");
  EXPECT_EQ(exception.ShortName(), "NotServingRegionException");
  EXPECT_EQ(exception.message, "t,,1 is not online");
  EXPECT_EQ(exception.retry_action(), RetryAction::kRelocate);
  EXPECT_EQ(exception.ToStatus(), Unavailable("NotServingRegionException: t,,1 is not online"));
  EXPECT_EQ(ExceptionOf("a.Outer$LeaseException", "").retry_action(), RetryAction::kReopenScanner);
}

TEST(ExceptionTest, ReopensALostScannerDespiteDoNotRetry) {
  Exception exception = ExceptionOf("a.b.UnknownScannerException", "");
  exception.do_not_retry = true;
  EXPECT_EQ(exception.retry_action(), RetryAction::kReopenScanner);
}

TEST(ExceptionTest, UnknownClassesFollowTheirFlag) {
  Exception exception = ExceptionOf("a.b.NewException", "a.b.NewException: what");
  EXPECT_EQ(exception.retry_action(), RetryAction::kUnknown);
  EXPECT_EQ(exception.ToStatus().code(), StatusCode::kInternal);
  exception.do_not_retry = true;
  EXPECT_EQ(exception.retry_action(), RetryAction::kFail);
}

// A server that shuts down closes files that running calls still read.
TEST(ExceptionTest, JavaExceptionLeavesTheOutcomeUnknown) {
  for (const char* name :
       {"java.lang.NullPointerException", "java.lang.IllegalStateException", "java.io.IOException",
        "java.nio.channels.ClosedChannelException", "java.lang.OutOfMemoryError",
        "java.util.concurrent.RejectedExecutionException"}) {
    const Exception exception = ExceptionOf(name, std::string(name) + ": \"this.in\" is null");
    EXPECT_EQ(exception.retry_action(), RetryAction::kElsewhere) << name;
    EXPECT_EQ(exception.ToStatus().code(), StatusCode::kUnavailable) << name;
    EXPECT_TRUE(exception.may_have_run()) << name;
  }
  for (const char* name : {"java.lang.NoSuchMethodError", "java.lang.ClassCastException",
                           "com.java.lang.NullPointerException"}) {
    EXPECT_EQ(ExceptionOf(name, "").retry_action(), RetryAction::kUnknown) << name;
    EXPECT_EQ(ExceptionOf(name, "").ToStatus().code(), StatusCode::kInternal) << name;
  }
  Exception final = ExceptionOf("java.lang.NullPointerException", "");
  final.do_not_retry = true;
  EXPECT_EQ(final.retry_action(), RetryAction::kFail);
}

TEST(ExceptionTest, RefusedArgumentIsNotRepeatedUntilTheDeadline) {
  const std::string trace = "Illegal character code:32\n\tat A\nCaused by: ";
  const auto thrown = [&](const std::string& cause) {
    return ExceptionOf("java.io.IOException", "java.io.IOException: " + trace + cause);
  };
  for (const char* rest : {": Illegal character code:32\n\tat B\n", "\n\tat B", ""}) {
    const Exception refusal = thrown("java.lang.IllegalArgumentException" + std::string(rest));
    EXPECT_EQ(refusal.retry_action(), RetryAction::kUnknown);
    EXPECT_TRUE(refusal.may_have_run());
    EXPECT_EQ(refusal.ToStatus(),
              InvalidArgument("IllegalArgumentException: Illegal character code:32"));
  }
  for (const char* cause : {"java.lang.NullPointerException: x\n", "java.io.EOFException", ""}) {
    EXPECT_EQ(thrown(cause).retry_action(), RetryAction::kElsewhere) << cause;
  }
}

TEST(ExceptionTest, RefusalsAreKnownByTheirClass) {
  const auto service = [](const char* name, const std::string& text) {
    return ExceptionOf(name, std::string(name) + ": " + text).tells_service_is_not_there();
  };
  EXPECT_TRUE(service("a.UnknownProtocolException", "No registered endpoint found"));
  EXPECT_FALSE(service("a.UnknownProtocolException", "No such method"));
  EXPECT_FALSE(service("a.OtherException", "No registered endpoint found"));
  EXPECT_TRUE(ExceptionOf("a.AccessDeniedException", "").tells_user_is_denied());
  EXPECT_FALSE(ExceptionOf("a.OtherException", "AccessDeniedException").tells_user_is_denied());
  const Status denied = ExceptionOf("a.AccessDeniedException", "").ToStatus();
  EXPECT_TRUE(IsAccessDenied(denied));
  EXPECT_TRUE(IsAccessDenied(denied.WithContext("master")));
  EXPECT_FALSE(IsAccessDenied(ExceptionOf("a.OtherException", "denied").ToStatus()));
  EXPECT_FALSE(IsAccessDenied(Status::Ok()));
  Exception merge = ExceptionOf("a.MergeRegionException", "");
  merge.do_not_retry = true;
  EXPECT_EQ(merge.retry_action(), RetryAction::kFail);
  EXPECT_EQ(merge.ToStatus().code(), StatusCode::kUnavailable);
}

TEST(ExceptionTest, InvalidHintIsIgnored) {
  const auto moved = [](const std::string& text) {
    return ExceptionOf("x.RegionMovedException", "x.RegionMovedException: " + text).moved;
  };
  const std::string good =
      "Region moved to: hostname=h port=16020 startCode=123. As of locationSeqNum=45.";
  ASSERT_TRUE(moved(good));
  EXPECT_EQ(moved(good)->server.ToString(), "h,16020,123");
  EXPECT_EQ(moved(good)->sequence, 45);
  for (const char* bad :
       {"", "hostname= port=1 startCode=1. As of locationSeqNum=1.",
        "hostname=h port=x startCode=1. As of locationSeqNum=1.",
        "hostname=h port=99999 startCode=1. As of locationSeqNum=1.",
        "hostname=h port=1 startCode=-1. As of locationSeqNum=1.", "hostname=h port=1",
        "hostname=h port=1 startCode=99999999999999999999. As of locationSeqNum=1."}) {
    EXPECT_FALSE(moved(bad)) << bad;
  }
  EXPECT_FALSE(ExceptionOf("x.OtherException", good).moved);
}

TEST(ExceptionTest, TextsAreTruncated) {
  const std::string long_text(1 << 20, 'x');
  const Exception exception = ExceptionOf(long_text, long_text);
  EXPECT_LE(exception.class_name.size() + exception.message.size(), 2000u);
}

}  // namespace
}  // namespace tamis::hbase
