#include "tamis/rocks/entry_stream.h"

#include <algorithm>

namespace tamis {

EntryStream::EntryStream(const Store& store, const rocksdb::ReadOptions& read_options,
                         std::string index_prefix, const pb::IndexStream& stream, std::string last,
                         ReadCounters* counters)
    : stream_(stream),
      last_(std::move(last)),
      counters_(counters),
      entries_(store, std::move(index_prefix), read_options) {}

std::optional<std::string> EntryStream::Next() {
  if (ahead_.empty()) Read();
  if (ahead_.empty()) return std::nullopt;
  return ahead_.Pop();
}

bool EntryStream::ReadAhead(size_t n) {
  while (ahead_.size() < n) {
    if (ahead_.bytes() >= EntryQueue::kMaxBytes) return false;
    const size_t before = ahead_.size();
    Read();
    if (ahead_.size() == before) return true;
  }
  return false;
}

// Adds the next entry, if there is one.
void EntryStream::Read() {
  for (; range_ < stream_.ranges_size(); ++range_, in_range_ = false) {
    const pb::IndexRange& range = stream_.ranges(range_);
    if (!range.high().empty() && last_ >= range.high()) continue;
    if (in_range_) {
      entries_.Next();
    } else {
      entries_.Seek(std::max(range.low(), last_.empty() ? last_ : last_ + '\0'));
      ++counters_->index_seeks;
      in_range_ = true;
    }
    if (!entries_.Valid()) {
      if (!entries_.status().ok()) range_ = stream_.ranges_size();
      continue;
    }
    if (!range.high().empty() && entries_.entry() >= range.high()) continue;
    ++counters_->entries_read;
    ahead_.Push(entries_.entry());
    return;
  }
}

}  // namespace tamis
