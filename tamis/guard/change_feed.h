// ChangeFeed: reads what changed in a table, one line each, in the order of the commits:
//
//   +KEY    a row came          -KEY    a row went
//   =MARK   what stands before it, up to the last mark, is one or more whole transactions
//   !       all that was committed before the feed began has been told
//
// In a key, \\ is a backslash, \n a line's end and \r a carriage return.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/guard/key_reader.h"

namespace tamis {

// Whole transactions.
struct FeedChanges {
  std::vector<std::string> added;
  std::vector<std::string> erased;
  std::string mark;        // behind them; empty: there are none
  bool caught_up = false;  // "!" came behind them

  size_t size() const { return added.size() + erased.size(); }
};

class ChangeFeed {
 public:
  static constexpr size_t kGreatestBatch = 1000;             // several transactions together
  static constexpr size_t kGreatestBytes = size_t{1} << 30;  // one transaction

  ChangeFeed(int file, const std::atomic<bool>* cancelled)
      : lines_(file, KeyReader::Format::kLines, false, cancelled), file_(file) {}

  // The changes that are there, up to a batch; waits for the first mark. nullopt at the end of the
  // input, which may be anywhere: changes without a mark behind them are left out.
  Result<std::optional<FeedChanges>> Next();

 private:
  KeyReader lines_;
  int file_;
};

}  // namespace tamis
