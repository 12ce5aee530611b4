#include "tamis/hbase/missing_right.h"

#include <gtest/gtest.h>

#include "tamis/hbase/exception.h"

namespace tamis::hbase {
namespace {

// The sentence before the refusal itself.
std::string Explained(const std::string& context) {
  const std::string refusal = "Insufficient permissions (" + context + ")";
  const std::string text = ExplainMissingRight(refusal);
  EXPECT_TRUE(text.ends_with(" (" + refusal + ")")) << text;
  return text.substr(0, text.size() - refusal.size() - 3);
}

TEST(MissingRightTest, SentenceNamesUserRightPlaceAndGrant) {
  EXPECT_EQ(Explained("user=ada@EXAMPLE.COM, scope=shop:orders, params=[table=shop:orders,],"
                      "action=CREATE"),
            "user ada@EXAMPLE.COM lacks the right CREATE on table shop:orders; an administrator "
            "grants it in HBase's shell: grant 'ada', 'C', 'shop:orders'");
  EXPECT_EQ(Explained("user=job/host@R, scope=default:t, family=d:v|d:w, "
                      "params=[table=default:t,family=d:v|d:w],action=READ"),
            "user job/host@R lacks the right READ on column d:v|d:w of table default:t; an "
            "administrator grants it in HBase's shell: grant 'job', 'R', 't'");
  EXPECT_EQ(Explained("user=ada, scope=shop, params=[namespace=shop],action=ADMIN"),
            "user ada lacks the right ADMIN on namespace shop; an administrator grants it in "
            "HBase's shell: grant 'ada', 'A', '@shop'");
  EXPECT_EQ(Explained("user=ada, scope=GLOBAL, action=EXEC"),
            "user ada lacks the right EXEC on all of HBase; an administrator grants it in HBase's "
            "shell: grant 'ada', 'X'");
}

TEST(MissingRightTest, RefusalOfAScanIsReadAsWell) {
  const std::string table = "Insufficient permissions for user 'ada' (table=orders, action=READ)";
  EXPECT_EQ(ExplainMissingRight(table),
            "user ada lacks the right READ on table orders; an administrator grants it in HBase's "
            "shell: grant 'ada', 'R', 'orders' (" +
                table + ")");
  const std::string global = "Insufficient permissions for user 'ada' (global, action=ADMIN)";
  EXPECT_EQ(ExplainMissingRight(global),
            "user ada lacks the right ADMIN on all of HBase; an administrator grants it in HBase's "
            "shell: grant 'ada', 'A' (" +
                global + ")");
}

TEST(MissingRightTest, OtherTextsStayAsTheyAre) {
  for (const char* text : {"", "Authentication is required", "Insufficient permissions",
                           "Insufficient permissions (user=ada, scope=t:t, action=FLY)",
                           "Insufficient permissions (user=ada, action=READ)",
                           "Insufficient permissions for user 'ada' (action=READ)",
                           "Insufficient permissions (user=ada, scope=t:t, action=READ"}) {
    EXPECT_EQ(ExplainMissingRight(text), text);
  }
}

TEST(MissingRightTest, StatusOfTheExceptionHasTheSentence) {
  const Status status =
      ExceptionOf("org.apache.hadoop.hbase.security.AccessDeniedException",
                  "Insufficient permissions (user=ada, scope=GLOBAL, action=ADMIN)")
          .ToStatus();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(status.message().starts_with(
      "AccessDeniedException: user ada lacks the right ADMIN on all of HBase"))
      << status;
}

}  // namespace
}  // namespace tamis::hbase
