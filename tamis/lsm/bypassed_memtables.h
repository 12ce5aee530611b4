// BypassedMemtables: finds immutable memtables that no factory of ours has made.
//
// Since RocksDB 10 a batch can become an immutable memtable as it is, which no factory makes and
// whose keys no hook is told of until it is flushed (DB::IngestWriteBatchWithIndex,
// TransactionOptions::commit_bypass_memtable). It comes with a seal of the family's memtable,
// which is announced before the keys of the batch can be read. So at each seal the immutable
// memtables that RocksDB has are compared with those that our factory has made: if there is one
// more, the family passes through until no immutable memtable is left.
//
// RocksDB is asked from Show on, until ForgetAll; a handle that is deleted is forgotten before.
//
// Threads: safe; not to be called by a thread that holds RocksDB's mutex, since RocksDB is asked
// under the lock of this class.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "tamis/lsm/column_families.h"

namespace tamis::lsm {

class BypassedMemtables {
 public:
  // `ignore`: a fault, for tests: nothing is compared.
  BypassedMemtables(ColumnFamilies* families, bool ignore)
      : families_(*families), ignore_(ignore) {}

  void Show(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle);
  void Forget(rocksdb::ColumnFamilyHandle* handle);
  void ForgetAll();

  void OnSealed(uint32_t family);
  void OnFlushed(uint32_t family);

 private:
  // REQUIRES of both: mutex_ is held.
  // The number of the family's immutable memtables; nullopt: RocksDB cannot be asked.
  std::optional<uint64_t> ImmutableMemtables(uint32_t family) const;
  void Check(uint32_t family);

  ColumnFamilies& families_;
  const bool ignore_;
  std::mutex mutex_;  // held while RocksDB is asked
  rocksdb::DB* db_ = nullptr;
  std::multimap<uint32_t, rocksdb::ColumnFamilyHandle*> handles_;
};

}  // namespace tamis::lsm
