#include "tamis/rocks/key_stream.h"

#include <algorithm>

namespace tamis {

KeyStream::KeyStream(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                     const rocksdb::ReadOptions& read_options, const std::string& index_prefix,
                     const pb::IndexStream& stream, KeyRange keys, ReadCounters* counters)
    : keys_(std::move(keys)), counters_(counters) {
  for (const pb::IndexRange& range : stream.ranges()) {
    Cursor cursor;
    cursor.prefix = index_prefix + range.low();
    cursor.iterator.reset(db->NewIterator(read_options, family));
    cursors_.push_back(std::move(cursor));
  }
}

std::optional<std::string> KeyStream::Seek(const std::string& target) {
  const std::string* least = nullptr;
  for (Cursor& cursor : cursors_) {
    Advance(&cursor, target);
    if (!cursor.ahead.empty() && (least == nullptr || cursor.ahead.front() < *least)) {
      least = &cursor.ahead.front();
    }
  }
  return least == nullptr ? std::nullopt : std::optional(*least);
}

void KeyStream::Advance(Cursor* cursor, const std::string& target) {
  while (!cursor->ahead.empty() && cursor->ahead.front() < target) cursor->ahead.pop_front();
  if (!cursor->ahead.empty() || cursor->ended) return;
  const std::string wanted = cursor->prefix + std::max(target, keys_.start);
  // The next entry is often the wanted one, and a step costs less than a seek.
  if (cursor->started) {
    cursor->iterator->Next();
    ++counters_->entries_read;
    if (cursor->iterator->Valid() && cursor->iterator->key().compare(wanted) < 0) {
      SeekTo(cursor, wanted);
    }
  } else {
    SeekTo(cursor, wanted);
  }
  Take(cursor);
}

void KeyStream::SeekTo(Cursor* cursor, const std::string& entry) {
  cursor->iterator->Seek(entry);
  cursor->started = true;
  ++counters_->index_seeks;
  ++counters_->entries_read;
}

// Takes the key that the cursor has come to.
void KeyStream::Take(Cursor* cursor) {
  if (!cursor->iterator->Valid() || !cursor->iterator->key().starts_with(cursor->prefix)) {
    cursor->ended = true;
    return;
  }
  std::string key = cursor->iterator->key().ToString().substr(cursor->prefix.size());
  if (!keys_.end.empty() && key >= keys_.end) {
    cursor->ended = true;
    return;
  }
  cursor->ahead.push_back(std::move(key));
}

bool KeyStream::ReadAhead(size_t n) {
  size_t held = ahead();
  bool all = true;
  for (Cursor& cursor : cursors_) {
    while (!cursor.ended && held < n) {
      const size_t before = cursor.ahead.size();
      if (cursor.started) {
        cursor.iterator->Next();
        ++counters_->entries_read;
      } else {
        SeekTo(&cursor, cursor.prefix + keys_.start);
      }
      Take(&cursor);
      held += cursor.ahead.size() - before;
    }
    all &= cursor.ended;
  }
  return all;
}

size_t KeyStream::ahead() const {
  size_t sum = 0;
  for (const Cursor& cursor : cursors_) sum += cursor.ahead.size();
  return sum;
}

rocksdb::Status KeyStream::status() const {
  for (const Cursor& cursor : cursors_) {
    if (!cursor.iterator->status().ok()) return cursor.iterator->status();
  }
  return rocksdb::Status::OK();
}

}  // namespace tamis
