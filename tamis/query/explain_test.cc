#include "tamis/query/explain.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

Explain OneSearch() {
  Explain search;
  search.index = "section";
  search.servers_total = 8;
  search.servers_asked = 7;
  search.requests = 9;
  search.server_time = std::chrono::microseconds(5);
  return search;
}

TEST(ExplainTest, SumsAreCalledSums) {
  Explain sum;
  sum.Add(OneSearch());
  EXPECT_TRUE(sum.ToLine().starts_with("index section: 7 of 8 servers")) << sum.ToLine();
  EXPECT_EQ(sum.ToText().find("sums"), std::string::npos);
  sum.Add(OneSearch());
  EXPECT_TRUE(sum.ToLine().starts_with("2 searches, sums: index section: 14 of 16 servers"))
      << sum.ToLine();
  EXPECT_NE(sum.ToText().find("2; the numbers are sums"), std::string::npos) << sum.ToText();
  Explain total;
  total.Add(sum);
  total.Add(sum);
  EXPECT_EQ(total.searches, 4u);
}

TEST(ExplainTest, RegionsThatReadAllRowsAreNamed) {
  Explain search = OneSearch();
  EXPECT_EQ(search.ToLine().find("all rows"), std::string::npos);
  search.uses.push_back({.index = std::string(Explain::kRows), .led = 17});
  EXPECT_TRUE(search.ToLine().ends_with("; 17 regions read all rows, the cheaper way there"))
      << search.ToLine();
  EXPECT_NE(search.ToText().find("17 regions read all rows"), std::string::npos);
}

TEST(ExplainTest, NoServerTimeIsShownIfNoServerWasAsked) {
  Explain search = OneSearch();
  EXPECT_NE(search.ToText().find("5 us servers"), std::string::npos) << search.ToText();
  search.requests = 0;
  EXPECT_NE(search.ToText().find("no server was asked"), std::string::npos) << search.ToText();
}

}  // namespace
}  // namespace tamis
