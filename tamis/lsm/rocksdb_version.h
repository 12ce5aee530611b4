// Differences between the versions of RocksDB that this library compiles with, 7.8 to 11.8.
// Everything else is the same source for each of them. The version is that of the headers that are
// found first (TAMIS_ROCKSDB_ROOT, docs/LSM.md#versions-of-rocksdb).
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/version.h>

#include <functional>
#include <memory>
#include <utility>

#define TAMIS_ROCKSDB_SINCE(major, minor) \
  (ROCKSDB_MAJOR > (major) || (ROCKSDB_MAJOR == (major) && ROCKSDB_MINOR >= (minor)))

// All forms of Get end in one virtual function, all forms of MultiGet in another one, and the
// others are final.
#define TAMIS_ROCKSDB_HAS_ONE_GET TAMIS_ROCKSDB_SINCE(9, 0)
// MultiGetEntity.
#define TAMIS_ROCKSDB_HAS_ENTITIES TAMIS_ROCKSDB_SINCE(8, 0)
// GetEntity and MultiGetEntity with attribute groups. The version is the first one tried.
#define TAMIS_ROCKSDB_HAS_ATTRIBUTE_GROUPS TAMIS_ROCKSDB_SINCE(8, 10)
// CreateColumnFamilyWithImport takes the files of several column families.
#define TAMIS_ROCKSDB_IMPORTS_MANY TAMIS_ROCKSDB_SINCE(8, 4)
// A batch can become a memtable as it is, without the memtables that a factory makes:
// DB::IngestWriteBatchWithIndex, TransactionOptions::commit_bypass_memtable.
#define TAMIS_ROCKSDB_BYPASSES_MEMTABLES TAMIS_ROCKSDB_SINCE(10, 0)
// PrepareFileIngestion.
#define TAMIS_ROCKSDB_INGESTS_IN_TWO_STEPS TAMIS_ROCKSDB_SINCE(11, 5)

namespace tamis::lsm {

// Db::Open(arguments..., db): since 9.11 the last argument is a std::unique_ptr<DB>*, and the one
// with a DB** has gone since.
template <class Db, class... Arguments>
rocksdb::Status OpenDatabase(std::unique_ptr<Db>* db, const Arguments&... arguments) {
  if constexpr (requires { Db::Open(arguments..., db); }) {
    return Db::Open(arguments..., db);
  } else {
    Db* opened = nullptr;
    rocksdb::Status status = Db::Open(arguments..., &opened);
    db->reset(opened);
    return status;
  }
}

// The same for DB::OpenForReadOnly.
template <class... Arguments>
rocksdb::Status OpenDatabaseForReadOnly(std::unique_ptr<rocksdb::DB>* db,
                                        const Arguments&... arguments) {
  if constexpr (requires { rocksdb::DB::OpenForReadOnly(arguments..., db); }) {
    return rocksdb::DB::OpenForReadOnly(arguments..., db);
  } else {
    rocksdb::DB* opened = nullptr;
    rocksdb::Status status = rocksdb::DB::OpenForReadOnly(arguments..., &opened);
    db->reset(opened);
    return status;
  }
}

// A memtable that forwards to another one what some versions of RocksDB ask of a memtable. Each of
// these functions overrides the base's where the base has it; elsewhere nothing calls it. The
// lambdas are generic so that what the base lacks is not compiled.
class VersionedMemtable : public rocksdb::MemTableRep {
 public:
  using Visit = bool (*)(void*, const char*);
  using Validate = std::function<rocksdb::Status(const char*, bool)>;

  using MemTableRep::MemTableRep;

  virtual void BatchPostProcess() {
    [](auto& rep) {
      if constexpr (requires { rep.BatchPostProcess(); }) rep.BatchPostProcess();
    }(*memtable_);
  }
  virtual rocksdb::Status GetAndValidate(const rocksdb::LookupKey& key, void* arguments,
                                         Visit visit, bool allow_data_in_errors) {
    return [&](auto& rep) -> rocksdb::Status {
      if constexpr (requires { rep.GetAndValidate(key, arguments, visit, allow_data_in_errors); }) {
        return rep.GetAndValidate(key, arguments, visit, allow_data_in_errors);
      } else {
        return rocksdb::Status::NotSupported();
      }
    }(*memtable_);
  }
  virtual rocksdb::Status GetAndValidate(const rocksdb::LookupKey& key, void* arguments,
                                         Visit visit, bool allow_data_in_errors, bool detect_order,
                                         const Validate& validate) {
    return [&](auto& rep) -> rocksdb::Status {
      if constexpr (requires {
                      rep.GetAndValidate(key, arguments, visit, allow_data_in_errors, detect_order,
                                         validate);
                    }) {
        return rep.GetAndValidate(key, arguments, visit, allow_data_in_errors, detect_order,
                                  validate);
      } else {
        return rocksdb::Status::NotSupported();
      }
    }(*memtable_);
  }
  virtual rocksdb::Status MultiGet(size_t count, const char* const* keys, void** arguments,
                                   Visit visit, bool allow_data_in_errors, bool detect_order,
                                   const Validate& validate) {
    return [&](auto& rep) -> rocksdb::Status {
      if constexpr (requires {
                      rep.MultiGet(count, keys, arguments, visit, allow_data_in_errors,
                                   detect_order, validate);
                    }) {
        return rep.MultiGet(count, keys, arguments, visit, allow_data_in_errors, detect_order,
                            validate);
      } else {
        return rocksdb::Status::NotSupported();
      }
    }(*memtable_);
  }

 protected:
  std::unique_ptr<rocksdb::MemTableRep> memtable_;
};

// The flag that deletions were to be enabled even if they are disabled several times has gone.
template <class Db>
rocksdb::Status EnableFileDeletions(Db* db) {
  if constexpr (requires { db->EnableFileDeletions(); }) {
    return db->EnableFileDeletions();
  } else {
    return db->EnableFileDeletions(/*force=*/false);
  }
}

}  // namespace tamis::lsm
