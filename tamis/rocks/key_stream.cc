#include "tamis/rocks/key_stream.h"

#include <algorithm>

namespace tamis {

KeyStream::KeyStream(const Store& store, const rocksdb::ReadOptions& read_options,
                     const std::string& index_prefix, const pb::IndexStream& stream, KeyRange keys,
                     ReadCounters* counters)
    : keys_(std::move(keys)), counters_(counters) {
  for (const pb::IndexRange& range : stream.ranges()) {
    values_.emplace_back(store, index_prefix, range.low(), read_options);
  }
}

std::optional<std::string> KeyStream::Seek(const std::string& target) {
  const std::string* least = nullptr;
  for (KeysOfValue& keys : values_) {
    Advance(&keys, target);
    if (!keys.ahead.empty() && (least == nullptr || keys.ahead.front().entry < *least)) {
      least = &keys.ahead.front().entry;
      found_ = &keys;
    }
  }
  return least == nullptr ? std::nullopt : std::optional(*least);
}

void KeyStream::Advance(KeysOfValue* keys, const std::string& target) {
  while (!keys->ahead.empty() && keys->ahead.front().entry < target) keys->ahead.Pop();
  if (!keys->ahead.empty() || keys->ended) return;
  const std::string& wanted = std::max(target, keys_.start);
  // The next entry is often the wanted one, and a step costs less than a seek.
  if (keys->started) {
    keys->entries.Next();
    if (keys->entries.Valid() && keys->entries.entry() < wanted) {
      ++counters_->entries_read;
      SeekTo(keys, wanted);
    }
  } else {
    SeekTo(keys, wanted);
  }
  Take(keys);
}

void KeyStream::SeekTo(KeysOfValue* keys, const std::string& target) {
  keys->entries.Seek(target);
  keys->started = true;
  ++counters_->index_seeks;
}

// Takes the key that the cursor has come to.
void KeyStream::Take(KeysOfValue* keys) {
  if (!keys->entries.Valid() || (!keys_.end.empty() && keys->entries.entry() >= keys_.end)) {
    keys->ended = true;
    return;
  }
  ++counters_->entries_read;
  keys->ahead.Push(keys->entries.entry(), keys->entries.value());
}

bool KeyStream::ReadAhead(size_t n) {
  size_t held = ahead();
  size_t bytes = 0;
  for (const KeysOfValue& keys : values_) bytes += keys.ahead.bytes();
  bool all = true;
  for (KeysOfValue& keys : values_) {
    while (!keys.ended && held < n && bytes < EntryQueue::kMaxBytes) {
      const size_t before = keys.ahead.size();
      const size_t bytes_before = keys.ahead.bytes();
      if (keys.started) {
        keys.entries.Next();
      } else {
        SeekTo(&keys, keys_.start);
      }
      Take(&keys);
      held += keys.ahead.size() - before;
      bytes += keys.ahead.bytes() - bytes_before;
    }
    all &= keys.ended;
  }
  return all;
}

size_t KeyStream::ahead() const {
  size_t sum = 0;
  for (const KeysOfValue& keys : values_) sum += keys.ahead.size();
  return sum;
}

Status KeyStream::status() const {
  for (const KeysOfValue& keys : values_) TAMIS_RETURN_IF_ERROR(keys.entries.status());
  return Status::Ok();
}

}  // namespace tamis
