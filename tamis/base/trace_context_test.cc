#include "tamis/base/trace_context.h"

#include <gtest/gtest.h>

#include <thread>

namespace tamis {
namespace {

constexpr char kParent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContextTest, ValidHeadersAreKeptUnchanged) {
  EXPECT_EQ(ParseTraceContext(kParent, "a=1,b=2"), (TraceContext{kParent, "a=1,b=2"}));
  EXPECT_EQ(ParseTraceContext(kParent, ""), (TraceContext{kParent, ""}));
}

TEST(TraceContextTest, LaterVersionsMayHaveMoreFields) {
  const std::string later = "01" + std::string(kParent).substr(2);
  EXPECT_EQ(ParseTraceContext(later, "").parent, later);
  EXPECT_EQ(ParseTraceContext(later + "-more", "").parent, later + "-more");
  EXPECT_TRUE(ParseTraceContext(later + "more", "").empty());
  EXPECT_TRUE(ParseTraceContext(later + "-\xff", "").empty());
}

TEST(TraceContextTest, MalformedParentIsNoContext) {
  for (const char* parent :
       {"", "00",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",      // too short
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",    // more than version 00 has
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",     // no version
        "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",     //
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",     // upper case
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",     // no trace
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",     // no parent
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",     //
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",     //
        "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",     //
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01"}) {  //
    EXPECT_TRUE(ParseTraceContext(parent, "a=1").empty()) << parent;
  }
}

TEST(TraceContextTest, MalformedStateIsLeftOut) {
  EXPECT_EQ(ParseTraceContext(kParent, std::string(513, 'a')).state, "");
  EXPECT_EQ(ParseTraceContext(kParent, std::string(512, 'a')).state.size(), 512u);
  EXPECT_EQ(ParseTraceContext(kParent, "a=\n").state, "");
}

TEST(TraceContextTest, ScopesNestAndBelongToOneThread) {
  EXPECT_TRUE(CurrentTrace().empty());
  {
    const TraceScope outer({.parent = "outer"});
    {
      const TraceScope inner({.parent = "inner"});
      EXPECT_EQ(CurrentTrace().parent, "inner");
      std::thread([] { EXPECT_TRUE(CurrentTrace().empty()); }).join();
    }
    EXPECT_EQ(CurrentTrace().parent, "outer");
  }
  EXPECT_TRUE(CurrentTrace().empty());
}

}  // namespace
}  // namespace tamis
