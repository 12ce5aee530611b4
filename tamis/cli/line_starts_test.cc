#include "tamis/cli/line_starts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/filter/testing/targets.h"

namespace tamis {
namespace {

TEST(LineStartsTest, FindsTheSameLinesAsALoop) {
  ForEachTarget([] {
    Random random(1);
    for (size_t round = 0; round < 2000; ++round) {
      // From no delimiter at all to nothing else; in the slack, where none counts, too.
      std::string text(random.Uniform(300) + kLineStartsSlack, 0);
      const uint64_t one_in = 1 + random.Uniform(40);
      for (char& c : text) c = random.OneIn(one_in) ? '\n' : static_cast<char>(random());
      const size_t end = text.size() - kLineStartsSlack;
      const size_t begin = random.Uniform(end + 1);
      std::vector<uint32_t> expected;
      for (size_t i = begin; i < end; ++i) {
        if (text[i] == '\n') expected.push_back(static_cast<uint32_t>(i + 1));
      }
      std::vector<uint32_t> found(expected.size() + kLineStartsSlack);
      found.resize(FindLineStarts(text.data(), begin, end, '\n', found.data()));
      ASSERT_EQ(found, expected);
    }
  });
}

}  // namespace
}  // namespace tamis
