// RowCursor: the rows of a table whose keys lie in a range, in their order, as they stand in the
// store.
//
//   RowCursor rows(store, table_id, {start, end});
//   for (; rows.Valid(); rows.Next()) { ... rows.key() ... rows.value() ... }
//   TAMIS_RETURN_IF_ERROR(rows.status("count rows"));
//
// From::kLast begins at the last one, for Prev().
//
// Threads: exclusive access.
#pragma once

#include <rocksdb/db.h>

#include <memory>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/rocks/store.h"
#include "tamis/table/key_range.h"

namespace tamis {

class RowCursor {
 public:
  enum class From { kFirst, kLast };

  RowCursor(const Store& store, uint32_t table_id, const KeyRange& keys,
            rocksdb::ReadOptions read_options = {}, From from = From::kFirst)
      : lower_(RowStoreKey(table_id, keys.start)),
        upper_(keys.end.empty() ? RowPrefix(table_id + 1) : RowStoreKey(table_id, keys.end)),
        lower_slice_(lower_),
        upper_slice_(upper_) {
    read_options.iterate_lower_bound = &lower_slice_;
    read_options.iterate_upper_bound = &upper_slice_;
    iterator_.reset(store.db()->NewIterator(read_options, store.rows()));
    if (from == From::kFirst) {
      iterator_->Seek(lower_);
    } else if (lower_ < upper_) {
      iterator_->SeekToLast();
    }
  }
  // The iterator holds pointers into it.
  RowCursor(const RowCursor&) = delete;
  RowCursor& operator=(const RowCursor&) = delete;

  bool Valid() const { return iterator_->Valid(); }
  void Next() { iterator_->Next(); }
  void Prev() { iterator_->Prev(); }

  // Until the next step. REQUIRES: Valid().
  std::string_view key() const { return View(iterator_->key()).substr(kRowPrefixSize); }
  std::string_view value() const { return View(iterator_->value()); }
  // Size of the key and the value as stored.
  uint64_t SizeBytes() const { return iterator_->key().size() + iterator_->value().size(); }

  // An error ends the rows, too.
  Status status(const std::string& doing) const { return FromRocks(iterator_->status(), doing); }

 private:
  static std::string_view View(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

  const std::string lower_;
  const std::string upper_;
  const rocksdb::Slice lower_slice_;
  const rocksdb::Slice upper_slice_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

}  // namespace tamis
