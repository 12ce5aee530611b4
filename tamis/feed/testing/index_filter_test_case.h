// The fixture of tests of IndexFilter: filters of one index, and the feed that they belong to.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/feed/filter_feed.h"
#include "tamis/feed/index_filter.h"

namespace tamis {

// A rule under which removals that are ignored ask for no recount.
inline constexpr RecountRule kForSizeAlone = {.least = 1'000'000};

class IndexFilterTest : public ::testing::Test {
 protected:
  static IndexSpec Index() {
    return {.id = 1, .name = "i", .columns = {0}, .fpr = 0.01, .expected_values = 50, .seed = 9};
  }
  std::unique_ptr<IndexFilter> Make(const IndexSpec& index) {
    return std::make_unique<IndexFilter>(feed_.get(), index, 1, 1, Faults{});
  }
  static EntryKey Entry(int i) {
    const std::vector<std::string> prefixes = {"value " + std::to_string(i)};
    return MakeEntryKey(Index(), prefixes);
  }
  std::unique_ptr<IndexFilter> Filled(int entries) {
    auto filter = Make(Index());
    filter->BeginGeneration(false);
    for (int i = 0; i < entries; ++i) {
      const EntryKey entry = Entry(i);
      filter->CountExisting(std::span(&entry, 1));
    }
    filter->Publish();
    return filter;
  }
  // Counts the entries into a new generation, as a recount does.
  static void Recount(IndexFilter* filter, const std::vector<EntryKey>& entries) {
    filter->BeginGeneration(true);
    filter->CountExisting(entries);
    filter->Publish();
  }

  SimExecutor executor_{1, Duration(0)};
  std::shared_ptr<FilterFeed> feed_ =
      std::make_shared<FilterFeed>(&executor_, "rs1", 1, FilterFeed::Options{});
};

}  // namespace tamis
