#include "tamis/rocks/entry_stream.h"

#include <algorithm>

namespace tamis {

EntryStream::EntryStream(const Store& store, const rocksdb::ReadOptions& read_options,
                         std::string index_prefix, const pb::IndexStream& stream, std::string last,
                         bool descending, ReadCounters* counters)
    : stream_(stream),
      last_(std::move(last)),
      descending_(descending),
      counters_(counters),
      entries_(store, std::move(index_prefix), read_options) {}

std::optional<std::string_view> EntryStream::Next() {
  if (!ahead_.empty()) {
    taken_ = ahead_.Pop();
    value_ = taken_.value;
    return taken_.entry;
  }
  if (!Advance()) return std::nullopt;
  value_ = entries_.value();
  return entries_.entry();
}

bool EntryStream::ReadAhead(size_t n) {
  while (ahead_.size() < n) {
    if (ahead_.bytes() >= EntryQueue::kMaxBytes) return false;
    if (!Advance()) return true;
    ahead_.Push(entries_.entry(), entries_.value());
  }
  return false;
}

const pb::IndexRange& EntryStream::Range() const {
  return stream_.ranges(descending_ ? stream_.ranges_size() - 1 - ranges_passed_ : ranges_passed_);
}

bool EntryStream::IsDone(const pb::IndexRange& range) const {
  if (last_.empty()) return false;
  return descending_ ? last_ <= range.low() : !range.high().empty() && last_ >= range.high();
}

void EntryStream::EnterRange(const pb::IndexRange& range) {
  if (descending_) {
    const bool from_last = !last_.empty() && (range.high().empty() || last_ < range.high());
    entries_.SeekBefore(from_last ? last_ : range.high());
  } else {
    entries_.Seek(std::max(range.low(), last_.empty() ? last_ : last_ + '\0'));
  }
  ++counters_->index_seeks;
}

bool EntryStream::IsWithin(const pb::IndexRange& range) const {
  return descending_ ? entries_.entry() >= range.low()
                     : range.high().empty() || entries_.entry() < range.high();
}

// Moves the cursor to the next entry; false when there is none.
bool EntryStream::Advance() {
  for (; ranges_passed_ < stream_.ranges_size(); ++ranges_passed_, in_range_ = false) {
    const pb::IndexRange& range = Range();
    if (IsDone(range)) continue;
    if (!in_range_) {
      EnterRange(range);
      in_range_ = true;
    } else if (descending_) {
      entries_.Prev();
    } else {
      entries_.Next();
    }
    if (!entries_.Valid()) {
      if (!entries_.status().ok()) ranges_passed_ = stream_.ranges_size();
      continue;
    }
    if (!IsWithin(range)) continue;
    ++counters_->entries_read;
    return true;
  }
  return false;
}

}  // namespace tamis
