// FilteredDB: a rocksdb::DB with a filter in memory that says which keys the database lacks. Reads
// of keys ask the filter first; all other calls go to the database unchanged. Opened without Tamis,
// the database is a plain RocksDB.
//
//   std::vector<rocksdb::ColumnFamilyHandle*> handles;
//   auto opened = FilteredDB::Open({.fpr = 0.003}, options, path, families, &handles);
//   if (!opened.ok()) return Fail(opened.status());
//   FilteredDB* db = opened->get();  // a rocksdb::DB
//
//   db->GetProperty("tamis.lsm", &text);        "asked: 7\nexcluded: 3\n...state: answers\n"
//   db->GetIntProperty("tamis.lsm.excluded", &number);
//
// The base class StackableDB forwards almost all calls to the database. It does not forward Resume,
// GetStatsHistory, GetAllColumnFamilyMetaData, attribute groups in some versions and the calls with
// timestamps, so this class does.
//
// Threads: as rocksdb::DB; Close and the destructor need it for themselves.
#pragma once

#include <rocksdb/utilities/stackable_db.h>

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tamis/lsm/database_filter.h"
#include "tamis/lsm/rocksdb_version.h"

namespace tamis::lsm {

class FilteredReads;

class FilteredDB : public rocksdb::StackableDB {
 public:
  // Open replaces an empty `directory` with the directory tamis.keys in that of the database, and
  // `env` with that of the database's options.
  using Options = DatabaseFilter::Options;

  static Result<std::unique_ptr<FilteredDB>> Open(
      Options filter, rocksdb::DBOptions options, const std::string& path,
      std::vector<rocksdb::ColumnFamilyDescriptor> families,
      std::vector<rocksdb::ColumnFamilyHandle*>* handles);
  // Opens a database that has only the default column family.
  static Result<std::unique_ptr<FilteredDB>> Open(Options filter, rocksdb::Options options,
                                                  const std::string& path);
  // Takes ownership of the database and starts the filter. The database must have been opened with
  // options to which `filter` was attached. If it throws (DatabaseFilter::Start), the database is
  // still the caller's.
  FilteredDB(rocksdb::DB* db, std::shared_ptr<DatabaseFilter> filter,
             const std::vector<rocksdb::ColumnFamilyHandle*>& handles);
  ~FilteredDB() override;

  DatabaseFilter& filter() { return *filter_; }

  rocksdb::Status Close() override;
  rocksdb::Status Resume() override { return db_->Resume(); }
  void GetAllColumnFamilyMetaData(std::vector<rocksdb::ColumnFamilyMetaData>* metadata) override {
    db_->GetAllColumnFamilyMetaData(metadata);
  }

  rocksdb::Status GetStatsHistory(
      uint64_t start, uint64_t end,
      std::unique_ptr<rocksdb::StatsHistoryIterator>* history) override {
    return db_->GetStatsHistory(start, end, history);
  }
  using StackableDB::DeleteRange;
  rocksdb::Status DeleteRange(const rocksdb::WriteOptions& options,
                              rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& begin,
                              const rocksdb::Slice& end, const rocksdb::Slice& timestamp) override {
    return db_->DeleteRange(options, family, begin, end, timestamp);
  }
  using StackableDB::Merge;
  rocksdb::Status Merge(const rocksdb::WriteOptions& options, rocksdb::ColumnFamilyHandle* family,
                        const rocksdb::Slice& key, const rocksdb::Slice& timestamp,
                        const rocksdb::Slice& value) override {
    return db_->Merge(options, family, key, timestamp, value);
  }

  using StackableDB::Get;
#if TAMIS_ROCKSDB_HAS_ONE_GET
  rocksdb::Status Get(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                      const rocksdb::Slice& key, rocksdb::PinnableSlice* value,
                      std::string* timestamp) override {
    return timestamp != nullptr ? db_->Get(options, family, key, value, timestamp)
                                : GetFiltered(options, family, key, value);
  }
#else
  rocksdb::Status Get(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                      const rocksdb::Slice& key, rocksdb::PinnableSlice* value) override {
    return GetFiltered(options, family, key, value);
  }
  rocksdb::Status Get(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                      const rocksdb::Slice& key, rocksdb::PinnableSlice* value,
                      std::string* timestamp) override {
    return db_->Get(options, family, key, value, timestamp);
  }
#endif
  using StackableDB::GetEntity;
  rocksdb::Status GetEntity(const rocksdb::ReadOptions& options,
                            rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& key,
                            rocksdb::PinnableWideColumns* columns) override;
  using StackableDB::KeyMayExist;
  bool KeyMayExist(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                   const rocksdb::Slice& key, std::string* value,
                   bool* value_found = nullptr) override;

  using StackableDB::MultiGet;
#if TAMIS_ROCKSDB_HAS_ONE_GET
  void MultiGet(const rocksdb::ReadOptions& options, size_t count,
                rocksdb::ColumnFamilyHandle** families, const rocksdb::Slice* keys,
                rocksdb::PinnableSlice* values, std::string* timestamps, rocksdb::Status* statuses,
                bool sorted) override;
#else
  std::vector<rocksdb::Status> MultiGet(const rocksdb::ReadOptions& options,
                                        const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                                        const std::vector<rocksdb::Slice>& keys,
                                        std::vector<std::string>* values) override;
  std::vector<rocksdb::Status> MultiGet(const rocksdb::ReadOptions& options,
                                        const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                                        const std::vector<rocksdb::Slice>& keys,
                                        std::vector<std::string>* values,
                                        std::vector<std::string>* timestamps) override {
    return db_->MultiGet(options, families, keys, values, timestamps);
  }
  void MultiGet(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                size_t count, const rocksdb::Slice* keys, rocksdb::PinnableSlice* values,
                rocksdb::Status* statuses, bool sorted = false) override;
  void MultiGet(const rocksdb::ReadOptions& options, size_t count,
                rocksdb::ColumnFamilyHandle** families, const rocksdb::Slice* keys,
                rocksdb::PinnableSlice* values, rocksdb::Status* statuses,
                bool sorted = false) override;
#endif
#if TAMIS_ROCKSDB_HAS_ATTRIBUTE_GROUPS
  // These go to the database unfiltered. StackableDB of 8.10 does not forward them.
  rocksdb::Status GetEntity(const rocksdb::ReadOptions& options, const rocksdb::Slice& key,
                            rocksdb::PinnableAttributeGroups* groups) override {
    return db_->GetEntity(options, key, groups);
  }
  void MultiGetEntity(const rocksdb::ReadOptions& options, size_t count, const rocksdb::Slice* keys,
                      rocksdb::PinnableAttributeGroups* groups) override {
    db_->MultiGetEntity(options, count, keys, groups);
  }
#endif
#if TAMIS_ROCKSDB_HAS_ENTITIES
  using StackableDB::MultiGetEntity;
  void MultiGetEntity(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                      size_t count, const rocksdb::Slice* keys,
                      rocksdb::PinnableWideColumns* columns, rocksdb::Status* statuses,
                      bool sorted = false) override;
  void MultiGetEntity(const rocksdb::ReadOptions& options, size_t count,
                      rocksdb::ColumnFamilyHandle** families, const rocksdb::Slice* keys,
                      rocksdb::PinnableWideColumns* columns, rocksdb::Status* statuses,
                      bool sorted = false) override;
#endif

  // In addition to RocksDB's own properties there is tamis.lsm, the figures of the filter. Its
  // "state" is "answers" if the filter answers for the family, else "passes through: " and the
  // reason.
  using StackableDB::GetProperty;
  bool GetProperty(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& property,
                   std::string* value) override;
  using StackableDB::GetMapProperty;
  bool GetMapProperty(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& property,
                      std::map<std::string, std::string>* value) override;
  using StackableDB::GetIntProperty;
  bool GetIntProperty(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& property,
                      uint64_t* value) override;

  using StackableDB::CreateColumnFamily;
  rocksdb::Status CreateColumnFamily(const rocksdb::ColumnFamilyOptions& options,
                                     const std::string& name,
                                     rocksdb::ColumnFamilyHandle** handle) override;
  using StackableDB::CreateColumnFamilies;
  rocksdb::Status CreateColumnFamilies(const rocksdb::ColumnFamilyOptions& options,
                                       const std::vector<std::string>& names,
                                       std::vector<rocksdb::ColumnFamilyHandle*>* handles) override;
  rocksdb::Status CreateColumnFamilies(const std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                                       std::vector<rocksdb::ColumnFamilyHandle*>* handles) override;
  using StackableDB::CreateColumnFamilyWithImport;
  rocksdb::Status CreateColumnFamilyWithImport(const rocksdb::ColumnFamilyOptions& options,
                                               const std::string& name,
                                               const rocksdb::ImportColumnFamilyOptions& import,
                                               const rocksdb::ExportImportFilesMetaData& metadata,
                                               rocksdb::ColumnFamilyHandle** handle) override;
#if TAMIS_ROCKSDB_IMPORTS_MANY
  rocksdb::Status CreateColumnFamilyWithImport(
      const rocksdb::ColumnFamilyOptions& options, const std::string& name,
      const rocksdb::ImportColumnFamilyOptions& import,
      const std::vector<const rocksdb::ExportImportFilesMetaData*>& metadata,
      rocksdb::ColumnFamilyHandle** handle) override;
#endif
  using StackableDB::IngestExternalFile;
  // Status MemoryLimit: memory does not suffice to count the files, and nothing was ingested.
  rocksdb::Status IngestExternalFile(rocksdb::ColumnFamilyHandle* family,
                                     const std::vector<std::string>& files,
                                     const rocksdb::IngestExternalFileOptions& options) override;
  using StackableDB::IngestExternalFiles;
  rocksdb::Status IngestExternalFiles(
      const std::vector<rocksdb::IngestExternalFileArg>& files) override;
#if TAMIS_ROCKSDB_INGESTS_IN_TWO_STEPS
  // Not supported: the filter could not count the files that the handle ingests later.
  using StackableDB::PrepareFileIngestion;
  rocksdb::Status PrepareFileIngestion(
      const std::vector<rocksdb::IngestExternalFileArg>& files,
      std::unique_ptr<rocksdb::FileIngestionHandle>* handle) override;
#endif

 private:
  FilteredReads reads() const;
  rocksdb::Status GetFiltered(const rocksdb::ReadOptions& options,
                              rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& key,
                              rocksdb::PinnableSlice* value);
  // Each element keeps the keys of one argument's files counted until the ingestion has ended.
  using Ingestions = std::vector<std::unique_ptr<Ingestion>>;
  rocksdb::Status CountFiles(std::span<const rocksdb::IngestExternalFileArg> files,
                             Ingestions* ingestions) const noexcept;
  // Makes the family's handle known to the filter. If memory does not suffice, the filter does not
  // answer for the family.
  void Show(rocksdb::ColumnFamilyHandle* handle) const noexcept;
  template <class Metadata>
  rocksdb::Status Import(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                         const rocksdb::ImportColumnFamilyOptions& import, const Metadata& metadata,
                         rocksdb::ColumnFamilyHandle** handle);

  const std::shared_ptr<DatabaseFilter> filter_;
};

}  // namespace tamis::lsm
