// EntryCursor: the keys of index entries that begin with a prefix, in their order, as they stand in
// the store: those of one index of one region, or of one of its values.
//
//   EntryCursor entries(store, IndexPrefix(region_id, index_id));
//   for (entries.Seek(""); entries.Valid(); entries.Next()) { ... entries.entry() ... }
//   TAMIS_RETURN_IF_ERROR(entries.status());
//
// Threads: exclusive access.
#pragma once

#include <rocksdb/db.h>

#include <memory>
#include <string>
#include <string_view>

#include "tamis/base/coding.h"
#include "tamis/base/status.h"
#include "tamis/rocks/store.h"

namespace tamis {

class EntryCursor {
 public:
  // At no entry before the first Seek.
  EntryCursor(const Store& store, std::string prefix, rocksdb::ReadOptions read_options = {})
      : prefix_(std::move(prefix)),
        upper_(PrefixEnd(prefix_)),
        lower_slice_(prefix_),
        upper_slice_(upper_) {
    read_options.iterate_lower_bound = &lower_slice_;
    if (!upper_.empty()) read_options.iterate_upper_bound = &upper_slice_;
    iterator_.reset(store.db()->NewIterator(read_options, store.index()));
  }
  // The iterator holds pointers into it.
  EntryCursor(const EntryCursor&) = delete;
  EntryCursor& operator=(const EntryCursor&) = delete;

  // To the first entry that is not before this one.
  void Seek(std::string_view entry) { iterator_->Seek(prefix_ + std::string(entry)); }
  // To the first one behind `last`; to the first of all when it is empty.
  void SeekBehind(const std::string& last) { Seek(last.empty() ? last : last + '\0'); }
  // To the last one before `end`; to the last of all when it is empty.
  void SeekBefore(const std::string& end) {
    if (end.empty()) return iterator_->SeekToLast();
    iterator_->SeekForPrev(prefix_ + end);
    if (Valid() && entry() == end) Prev();
  }
  bool Valid() const { return iterator_->Valid(); }
  void Next() { iterator_->Next(); }
  void Prev() { iterator_->Prev(); }

  // The entry without the prefix; valid until the next step. REQUIRES: Valid().
  std::string_view entry() const {
    const rocksdb::Slice key = iterator_->key();
    return std::string_view(key.data(), key.size()).substr(prefix_.size());
  }
  // The included columns of the entry; valid until the next step. REQUIRES: Valid().
  std::string_view value() const {
    const rocksdb::Slice value = iterator_->value();
    return {value.data(), value.size()};
  }

  // An error ends the entries, too.
  Status status() const { return FromRocks(iterator_->status(), "read index entries"); }

 private:
  const std::string prefix_;
  const std::string upper_;
  const rocksdb::Slice lower_slice_;
  const rocksdb::Slice upper_slice_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

}  // namespace tamis
