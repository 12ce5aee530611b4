// ChangeFeed: reads what changed in a table, one line each, in the order of the commits:
//
//   +KEY    a row was inserted        -KEY    a row was deleted
//   =MARK   the lines since the mark before are one or more whole transactions; MARK is the
//           position in the feed behind them
//   !       the lines before it hold all transactions that were committed before the feed began
//
// In a key, \\ is a backslash, \n a line's end and \r a carriage return.
//
// Threads: exclusive access.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/guard/key_reader.h"

namespace tamis {

// The changes of whole transactions.
struct FeedChanges {
  std::vector<std::string> added;
  std::vector<std::string> erased;
  std::string mark;        // the mark behind them; empty: there are no changes
  bool caught_up = false;  // the line "!" came behind them

  size_t size() const { return added.size() + erased.size(); }
};

class ChangeFeed {
 public:
  static constexpr size_t kGreatestBatch = 1000;             // several transactions together
  static constexpr size_t kGreatestBytes = size_t{1} << 30;  // one transaction

  ChangeFeed(int file, const std::atomic<bool>* cancelled)
      : lines_(file, KeyReader::Format::kLines, false, cancelled), file_(file) {}

  // The changes that can be read without waiting, up to about kGreatestBatch; waits for the first
  // mark or "!". nullopt at the end of the input; changes without a mark behind them are left out.
  Result<std::optional<FeedChanges>> Next();

 private:
  KeyReader lines_;
  int file_;
};

}  // namespace tamis
