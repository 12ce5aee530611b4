// FilteredReads: reads of keys of a database that ask its filter first. Keys that the filter denies
// are absent, and not read; a key that is absent although it was read counts as a false positive.
//
// A batch is read as of one moment. A key that the filter denies is absent as of the moment of the
// filter's answer, which precedes the read of the others. So if anything was written meanwhile, the
// filter is asked again, and if a denied key is not denied any more, all keys are read together.
//
// Threads: safe.
#pragma once

#include <rocksdb/db.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tamis/lsm/database_filter.h"

namespace tamis::lsm {

class FilteredReads {
 public:
  // Both outlive it.
  FilteredReads(rocksdb::DB* db, DatabaseFilter* filter) : db_(*db), filter_(*filter) {}

  // Reads one key by read(), which returns the status.
  template <class Read>
  rocksdb::Status One(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& key,
                      Read&& read) const {
    if (!filter_.MayContain(family, key)) return rocksdb::Status::NotFound();
    rocksdb::Status status = read();
    Note(family, status);
    return status;
  }
  // Reads a batch: read(places) reads the keys at these places of the batch, without those that the
  // filter denies; read_all() reads all keys; deny(place) reports a key as absent.
  template <class FamilyAt, class Read, class ReadAll, class Deny>
  void Many(size_t count, const rocksdb::Slice* keys, FamilyAt&& family_at, Read&& read,
            ReadAll&& read_all, Deny&& deny) const;
  // The same for the forms that take and fill arrays: read(count, families, keys, values,
  // statuses).
  template <class FamilyAt, class Value, class Read>
  void Arrays(size_t count, const rocksdb::Slice* keys, FamilyAt&& family_at, Value* values,
              rocksdb::Status* statuses, Read&& read) const;
  // Counts a false positive if the status is NotFound: the filter let the key pass.
  void Note(rocksdb::ColumnFamilyHandle* family, const rocksdb::Status& status) const;

 private:
  rocksdb::DB& db_;
  DatabaseFilter& filter_;
};

template <class FamilyAt, class Read, class ReadAll, class Deny>
void FilteredReads::Many(size_t count, const rocksdb::Slice* keys, FamilyAt&& family_at,
                         Read&& read, ReadAll&& read_all, Deny&& deny) const {
  // Most batches are small, and most of their keys absent: nothing is allocated for these.
  constexpr size_t kBatch = 64;
  bool few_answers[kBatch];
  std::unique_ptr<bool[]> many_answers;
  if (count > kBatch) many_answers = std::make_unique_for_overwrite<bool[]>(count);
  bool* const answers = count > kBatch ? many_answers.get() : few_answers;
  const auto ask = [&] {
    size_t denied = 0;
    for (size_t begin = 0; begin < count;) {
      rocksdb::ColumnFamilyHandle* const family = family_at(begin);
      std::string_view batch[kBatch];
      size_t n = 0;
      for (; n < kBatch && begin + n < count && family_at(begin + n) == family; ++n) {
        batch[n] = {keys[begin + n].data(), keys[begin + n].size()};
      }
      filter_.MayContain(family, {batch, n}, {answers + begin, n});
      denied += static_cast<size_t>(std::count(answers + begin, answers + begin + n, false));
      begin += n;
    }
    return denied;
  };
  const rocksdb::SequenceNumber before = db_.GetLatestSequenceNumber();
  const size_t denied = ask();
  if (denied == 0) {
    read_all();
    return;
  }
  if (denied < count) {
    std::vector<size_t> places;
    std::vector<size_t> others;
    for (size_t i = 0; i < count; ++i) (answers[i] ? places : others).push_back(i);
    read(places);
    if (db_.GetLatestSequenceNumber() != before) {
      ask();
      if (std::ranges::any_of(others, [&](size_t i) { return answers[i]; })) {
        read_all();
        return;
      }
    }
    for (const size_t i : others) deny(i);
    return;
  }
  for (size_t i = 0; i < count; ++i) deny(i);
}

template <class FamilyAt, class Value, class Read>
void FilteredReads::Arrays(size_t count, const rocksdb::Slice* keys, FamilyAt&& family_at,
                           Value* values, rocksdb::Status* statuses, Read&& read) const {
  const auto read_places = [&](const std::vector<size_t>& places) {
    std::vector<rocksdb::ColumnFamilyHandle*> some_families;
    std::vector<rocksdb::Slice> some_keys;
    for (const size_t i : places) {
      some_families.push_back(family_at(i));
      some_keys.push_back(keys[i]);
    }
    std::vector<Value> found(places.size());
    std::vector<rocksdb::Status> some(places.size());
    read(places.size(), some_families.data(), some_keys.data(), found.data(), some.data());
    for (size_t i = 0; i < places.size(); ++i) {
      Note(some_families[i], some[i]);
      statuses[places[i]] = std::move(some[i]);
      values[places[i]] = std::move(found[i]);
    }
  };
  const auto read_all = [&] {
    std::vector<rocksdb::ColumnFamilyHandle*> families(count);
    for (size_t i = 0; i < count; ++i) families[i] = family_at(i);
    read(count, families.data(), keys, values, statuses);
  };
  Many(count, keys, family_at, read_places, read_all, [&](size_t i) {
    statuses[i] = rocksdb::Status::NotFound();
    values[i].Reset();
  });
}

}  // namespace tamis::lsm
