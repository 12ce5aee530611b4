#include "tamis/rocks/entry_stream.h"

#include <algorithm>

namespace tamis {

EntryStream::EntryStream(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                         const rocksdb::ReadOptions& read_options, std::string index_prefix,
                         const pb::IndexStream& stream, std::string last, ReadCounters* counters)
    : prefix_(std::move(index_prefix)),
      stream_(stream),
      last_(std::move(last)),
      counters_(counters),
      iterator_(db->NewIterator(read_options, family)) {}

std::optional<std::string> EntryStream::Next() {
  if (ahead_.empty()) Read();
  if (ahead_.empty()) return std::nullopt;
  std::string entry = std::move(ahead_.front());
  ahead_.pop_front();
  return entry;
}

bool EntryStream::ReadAhead(size_t n) {
  while (ahead_.size() < n) {
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
      iterator_->Next();
    } else {
      iterator_->Seek(prefix_ + std::max(range.low(), last_.empty() ? last_ : last_ + '\0'));
      ++counters_->index_seeks;
      in_range_ = true;
    }
    if (!iterator_->Valid()) {
      if (!iterator_->status().ok()) range_ = stream_.ranges_size();
      continue;
    }
    ++counters_->entries_read;
    if (!iterator_->key().starts_with(prefix_)) continue;
    std::string entry = iterator_->key().ToString().substr(prefix_.size());
    if (!range.high().empty() && entry >= range.high()) continue;
    ahead_.push_back(std::move(entry));
    return;
  }
}

}  // namespace tamis
