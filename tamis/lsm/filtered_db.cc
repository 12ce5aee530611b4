#include "tamis/lsm/filtered_db.h"

#include <algorithm>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "tamis/lsm/filtered_reads.h"
#include "tamis/lsm/tree_filter.h"

namespace tamis::lsm {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::PinnableSlice;
using rocksdb::ReadOptions;
using rocksdb::Slice;
using rocksdb::Status;

const Slice kProperty = "tamis.lsm";

}  // namespace

Result<std::unique_ptr<FilteredDB>> FilteredDB::Open(
    Options filter, rocksdb::DBOptions options, const std::string& path,
    std::vector<rocksdb::ColumnFamilyDescriptor> families,
    std::vector<ColumnFamilyHandle*>* handles) {
  if (filter.directory.empty()) filter.directory = path + "/tamis.keys";
  filter.env = options.env;
  TAMIS_ASSIGN_OR_RETURN(auto made, DatabaseFilter::Create(filter));
  made->Attach(&options, &families);
  std::unique_ptr<rocksdb::DB> db;
  if (const Status status = OpenDatabase(&db, options, path, families, handles); !status.ok()) {
    return Unavailable("cannot open the database in \"" + path + "\": " + status.ToString());
  }
  auto filtered = std::make_unique<FilteredDB>(db.get(), std::move(made), *handles);
  (void)db.release();  // its owner is `filtered`
  return filtered;
}

Result<std::unique_ptr<FilteredDB>> FilteredDB::Open(Options filter, rocksdb::Options options,
                                                     const std::string& path) {
  std::vector<ColumnFamilyHandle*> handles;
  TAMIS_ASSIGN_OR_RETURN(auto db, Open(std::move(filter), options, path,
                                       {{rocksdb::kDefaultColumnFamilyName, options}}, &handles));
  for (ColumnFamilyHandle* handle : handles) (void)db->DestroyColumnFamilyHandle(handle);
  return db;
}

FilteredDB::FilteredDB(rocksdb::DB* db, std::shared_ptr<DatabaseFilter> filter,
                       const std::vector<ColumnFamilyHandle*>& handles)
    : StackableDB(db), filter_(std::move(filter)) {
  try {
    filter_->Start(db_, handles);
  } catch (...) {
    db_ = nullptr;  // the caller's, so the base class must not delete it
    throw;
  }
}

FilteredDB::~FilteredDB() { filter_->Stop(); }

Status FilteredDB::Close() {
  filter_->Stop();
  return db_->Close();
}

FilteredReads FilteredDB::reads() const { return {db_, filter_.get()}; }

Status FilteredDB::GetFiltered(const ReadOptions& options, ColumnFamilyHandle* family,
                               const Slice& key, PinnableSlice* value) {
  return reads().One(family, key, [&] { return db_->Get(options, family, key, value); });
}

Status FilteredDB::GetEntity(const ReadOptions& options, ColumnFamilyHandle* family,
                             const Slice& key, rocksdb::PinnableWideColumns* columns) {
  return reads().One(family, key, [&] { return db_->GetEntity(options, family, key, columns); });
}

bool FilteredDB::KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* family,
                             const Slice& key, std::string* value, bool* value_found) {
  if (!filter_->MayContain(family, key)) {
    if (value_found != nullptr) *value_found = false;
    return false;
  }
  return db_->KeyMayExist(options, family, key, value, value_found);
}

#if TAMIS_ROCKSDB_HAS_ONE_GET

void FilteredDB::MultiGet(const ReadOptions& options, size_t count, ColumnFamilyHandle** families,
                          const Slice* keys, PinnableSlice* values, std::string* timestamps,
                          Status* statuses, bool sorted) {
  if (timestamps != nullptr) {
    db_->MultiGet(options, count, families, keys, values, timestamps, statuses, sorted);
    return;
  }
  reads().Arrays(
      count, keys, [&](size_t i) { return families[i]; }, values, statuses,
      [&](size_t n, ColumnFamilyHandle** of, const Slice* asked, PinnableSlice* found,
          Status* results) {
        db_->MultiGet(options, n, of, asked, found, nullptr, results, sorted);
      });
}

#else

std::vector<Status> FilteredDB::MultiGet(const ReadOptions& options,
                                         const std::vector<ColumnFamilyHandle*>& families,
                                         const std::vector<Slice>& keys,
                                         std::vector<std::string>* values) {
  std::vector<Status> statuses(keys.size());
  values->resize(keys.size());
  reads().Many(
      keys.size(), keys.data(), [&](size_t i) { return families[i]; },
      [&](const std::vector<size_t>& places) {
        std::vector<ColumnFamilyHandle*> some_families;
        std::vector<Slice> some_keys;
        for (const size_t i : places) {
          some_families.push_back(families[i]);
          some_keys.push_back(keys[i]);
        }
        std::vector<std::string> found;
        auto some = db_->MultiGet(options, some_families, some_keys, &found);
        for (size_t i = 0; i < places.size(); ++i) {
          reads().Note(families[places[i]], some[i]);
          statuses[places[i]] = std::move(some[i]);
          (*values)[places[i]] = std::move(found[i]);
        }
      },
      [&] { statuses = db_->MultiGet(options, families, keys, values); },
      [&](size_t i) {
        statuses[i] = Status::NotFound();
        (*values)[i].clear();
      });
  return statuses;
}

void FilteredDB::MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, size_t count,
                          const Slice* keys, PinnableSlice* values, Status* statuses, bool sorted) {
  reads().Arrays(
      count, keys, [&](size_t) { return family; }, values, statuses,
      [&](size_t n, ColumnFamilyHandle**, const Slice* asked, PinnableSlice* found,
          Status* results) { db_->MultiGet(options, family, n, asked, found, results, sorted); });
}

// StackableDB does not forward the form of several families that the database is asked by.
void FilteredDB::MultiGet(const ReadOptions& options, size_t count, ColumnFamilyHandle** families,
                          const Slice* keys, PinnableSlice* values, Status* statuses, bool sorted) {
  reads().Arrays(
      count, keys, [&](size_t i) { return families[i]; }, values, statuses,
      [&](size_t n, ColumnFamilyHandle** of, const Slice* asked, PinnableSlice* found,
          Status* results) { db_->MultiGet(options, n, of, asked, found, results, sorted); });
}

#endif

#if TAMIS_ROCKSDB_HAS_ENTITIES

void FilteredDB::MultiGetEntity(const ReadOptions& options, ColumnFamilyHandle* family,
                                size_t count, const Slice* keys,
                                rocksdb::PinnableWideColumns* columns, Status* statuses,
                                bool sorted) {
  reads().Arrays(
      count, keys, [&](size_t) { return family; }, columns, statuses,
      [&](size_t n, ColumnFamilyHandle**, const Slice* asked, rocksdb::PinnableWideColumns* found,
          Status* results) {
        db_->MultiGetEntity(options, family, n, asked, found, results, sorted);
      });
}

void FilteredDB::MultiGetEntity(const ReadOptions& options, size_t count,
                                ColumnFamilyHandle** families, const Slice* keys,
                                rocksdb::PinnableWideColumns* columns, Status* statuses,
                                bool sorted) {
  reads().Arrays(
      count, keys, [&](size_t i) { return families[i]; }, columns, statuses,
      [&](size_t n, ColumnFamilyHandle** of, const Slice* asked,
          rocksdb::PinnableWideColumns* found,
          Status* results) { db_->MultiGetEntity(options, n, of, asked, found, results, sorted); });
}

#endif

bool FilteredDB::GetProperty(ColumnFamilyHandle* family, const Slice& property,
                             std::string* value) {
  std::map<std::string, std::string> lines;
  if (property != kProperty || !GetMapProperty(family, property, &lines)) {
    return db_->GetProperty(family, property, value);
  }
  value->clear();
  for (const auto& [name, text] : lines) *value += name + ": " + text + "\n";
  return true;
}

bool FilteredDB::GetMapProperty(ColumnFamilyHandle* family, const Slice& property,
                                std::map<std::string, std::string>* value) {
  if (property != kProperty) return db_->GetMapProperty(family, property, value);
  value->clear();
  for (const auto& [name, number] : filter_->Metrics()) (*value)[name] = std::to_string(number);
  const std::string reasons = filter_->BypassReasonsOf(family);
  (*value)["state"] = reasons.empty() ? "answers" : "passes through: " + reasons;
  return true;
}

bool FilteredDB::GetIntProperty(ColumnFamilyHandle* family, const Slice& property,
                                uint64_t* value) {
  Slice name = property;
  if (!name.starts_with(kProperty)) return db_->GetIntProperty(family, property, value);
  name.remove_prefix(std::min(name.size(), kProperty.size() + 1));
  const auto numbers = filter_->Metrics();
  const auto at = numbers.find(name.ToString());
  if (at == numbers.end()) return false;
  *value = at->second;
  return true;
}

Status FilteredDB::CreateColumnFamily(const rocksdb::ColumnFamilyOptions& options,
                                      const std::string& name, ColumnFamilyHandle** handle) {
  rocksdb::ColumnFamilyOptions attached = options;
  filter_->Attach(&attached);
  Status status = db_->CreateColumnFamily(attached, name, handle);
  if (status.ok()) Show(*handle);
  return status;
}

Status FilteredDB::CreateColumnFamilies(const rocksdb::ColumnFamilyOptions& options,
                                        const std::vector<std::string>& names,
                                        std::vector<ColumnFamilyHandle*>* handles) {
  rocksdb::ColumnFamilyOptions attached = options;
  filter_->Attach(&attached);
  Status status = db_->CreateColumnFamilies(attached, names, handles);
  for (ColumnFamilyHandle* handle : *handles) Show(handle);
  return status;
}

Status FilteredDB::CreateColumnFamilies(
    const std::vector<rocksdb::ColumnFamilyDescriptor>& families,
    std::vector<ColumnFamilyHandle*>* handles) {
  std::vector<rocksdb::ColumnFamilyDescriptor> attached = families;
  for (rocksdb::ColumnFamilyDescriptor& family : attached) filter_->Attach(&family.options);
  Status status = db_->CreateColumnFamilies(attached, handles);
  for (ColumnFamilyHandle* handle : *handles) Show(handle);
  return status;
}

template <class Metadata>
Status FilteredDB::Import(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                          const rocksdb::ImportColumnFamilyOptions& import,
                          const Metadata& metadata, ColumnFamilyHandle** handle) {
  rocksdb::ColumnFamilyOptions attached = options;
  filter_->Attach(&attached);
  Status status = db_->CreateColumnFamilyWithImport(attached, name, import, metadata, handle);
  // It passes through until it is shown, and then because of its files, until they are counted.
  if (status.ok()) {
    filter_->tree().families().AddBypassReasons((*handle)->GetID(), kIngestion);
    Show(*handle);
    try {
      filter_->CountLater((*handle)->GetID());
    } catch (const std::bad_alloc&) {  // the family keeps passing through
    }
  }
  return status;
}

Status FilteredDB::CreateColumnFamilyWithImport(const rocksdb::ColumnFamilyOptions& options,
                                                const std::string& name,
                                                const rocksdb::ImportColumnFamilyOptions& import,
                                                const rocksdb::ExportImportFilesMetaData& metadata,
                                                ColumnFamilyHandle** handle) {
  return Import(options, name, import, metadata, handle);
}

#if TAMIS_ROCKSDB_IMPORTS_MANY
Status FilteredDB::CreateColumnFamilyWithImport(
    const rocksdb::ColumnFamilyOptions& options, const std::string& name,
    const rocksdb::ImportColumnFamilyOptions& import,
    const std::vector<const rocksdb::ExportImportFilesMetaData*>& metadata,
    ColumnFamilyHandle** handle) {
  return Import(options, name, import, metadata, handle);
}
#endif

void FilteredDB::Show(ColumnFamilyHandle* handle) const noexcept {
  try {
    filter_->Show(handle);
  } catch (const std::bad_alloc&) {
  }
}

Status FilteredDB::CountFiles(std::span<const rocksdb::IngestExternalFileArg> files,
                              Ingestions* ingestions) const noexcept {
  try {
    for (const rocksdb::IngestExternalFileArg& one : files) {
      ingestions->push_back(
          filter_->BeginIngestion(one.column_family->GetID(), one.external_files));
    }
    return Status::OK();
  } catch (const std::bad_alloc&) {
    return Status::MemoryLimit();
  }
}

Status FilteredDB::IngestExternalFile(ColumnFamilyHandle* family,
                                      const std::vector<std::string>& files,
                                      const rocksdb::IngestExternalFileOptions& options) {
  rocksdb::IngestExternalFileArg one;
  one.column_family = family;
  one.external_files = files;
  Ingestions ingestions;
  const Status counted = CountFiles({&one, 1}, &ingestions);
  return counted.ok() ? db_->IngestExternalFile(family, files, options) : counted;
}

Status FilteredDB::IngestExternalFiles(const std::vector<rocksdb::IngestExternalFileArg>& files) {
  Ingestions ingestions;
  const Status counted = CountFiles(files, &ingestions);
  return counted.ok() ? db_->IngestExternalFiles(files) : counted;
}

#if TAMIS_ROCKSDB_INGESTS_IN_TWO_STEPS
Status FilteredDB::PrepareFileIngestion(const std::vector<rocksdb::IngestExternalFileArg>&,
                                        std::unique_ptr<rocksdb::FileIngestionHandle>* handle) {
  handle->reset();
  return Status::NotSupported("FilteredDB ingests files in one step", "use IngestExternalFiles");
}
#endif

}  // namespace tamis::lsm
