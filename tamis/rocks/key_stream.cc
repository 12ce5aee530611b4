#include "tamis/rocks/key_stream.h"

namespace tamis {

KeyStream::KeyStream(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                     const rocksdb::ReadOptions& read_options, const std::string& index_prefix,
                     const pb::IndexStream& stream, ReadCounters* counters)
    : counters_(counters) {
  for (const pb::IndexRange& range : stream.ranges()) {
    Cursor cursor;
    cursor.prefix = index_prefix + range.low();
    cursor.iterator.reset(db->NewIterator(read_options, family));
    cursors_.push_back(std::move(cursor));
  }
}

std::optional<std::string> KeyStream::Seek(const std::string& target) {
  std::optional<std::string> least;
  for (Cursor& cursor : cursors_) {
    if (!cursor.ended && (!cursor.at.has_value() || *cursor.at < target)) Advance(&cursor, target);
    if (cursor.at.has_value() && (!least.has_value() || *cursor.at < *least)) least = cursor.at;
  }
  return least;
}

void KeyStream::Advance(Cursor* cursor, const std::string& target) {
  const std::string wanted = cursor->prefix + target;
  const auto reached = [&] {
    return !cursor->iterator->Valid() || cursor->iterator->key().compare(wanted) >= 0;
  };
  // The next entry is often the wanted one, and a step costs less than a seek.
  if (cursor->started) {
    cursor->iterator->Next();
    ++counters_->entries_read;
  }
  if (!cursor->started || !reached()) {
    cursor->iterator->Seek(wanted);
    ++counters_->index_seeks;
    ++counters_->entries_read;
  }
  cursor->started = true;
  if (!cursor->iterator->Valid() || !cursor->iterator->key().starts_with(cursor->prefix)) {
    cursor->ended = true;
    cursor->at.reset();
    return;
  }
  cursor->at = cursor->iterator->key().ToString().substr(cursor->prefix.size());
}

rocksdb::Status KeyStream::status() const {
  for (const Cursor& cursor : cursors_) {
    if (!cursor.iterator->status().ok()) return cursor.iterator->status();
  }
  return rocksdb::Status::OK();
}

}  // namespace tamis
