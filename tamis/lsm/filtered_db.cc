#include "tamis/lsm/filtered_db.h"

#include <algorithm>
#include <string_view>
#include <utility>

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
  TAMIS_ASSIGN_OR_RETURN(auto made, DatabaseFilter::Create(filter));
  made->Attach(&options, &families);
  rocksdb::DB* db = nullptr;
  if (const Status status = rocksdb::DB::Open(options, path, families, handles, &db);
      !status.ok()) {
    return Unavailable("cannot open the database in \"" + path + "\": " + status.ToString());
  }
  return std::make_unique<FilteredDB>(db, std::move(made), *handles);
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
  filter_->Start(db_, handles);
}

FilteredDB::~FilteredDB() { filter_->Stop(); }

Status FilteredDB::Close() {
  filter_->Stop();
  return db_->Close();
}

Status FilteredDB::Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                       PinnableSlice* value) {
  if (!filter_->MayContain(family, key)) return Status::NotFound();
  Status status = db_->Get(options, family, key, value);
  Note(family, status);
  return status;
}

Status FilteredDB::GetEntity(const ReadOptions& options, ColumnFamilyHandle* family,
                             const Slice& key, rocksdb::PinnableWideColumns* columns) {
  if (!filter_->MayContain(family, key)) return Status::NotFound();
  Status status = db_->GetEntity(options, family, key, columns);
  Note(family, status);
  return status;
}

bool FilteredDB::KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* family,
                             const Slice& key, std::string* value, bool* value_found) {
  if (!filter_->MayContain(family, key)) {
    if (value_found != nullptr) *value_found = false;
    return false;
  }
  return db_->KeyMayExist(options, family, key, value, value_found);
}

// A batch is read as of one moment. What the filter denies is absent as of the moment when it was
// asked, which is before the others are read; so if something was written meanwhile, it is asked
// again, and if it denies something no more, all are read together.
template <class FamilyAt, class Read, class ReadAll, class Deny>
void FilteredDB::ReadMany(size_t count, const Slice* keys, FamilyAt&& family_at, Read&& read,
                          ReadAll&& read_all, Deny&& deny) {
  const rocksdb::SequenceNumber before = db_->GetLatestSequenceNumber();
  std::vector<size_t> denied;
  std::vector<size_t> asked;
  const auto ask = [&](const std::vector<size_t>* places, size_t size, auto&& take) {
    constexpr size_t kBatch = 64;
    std::string_view batch[kBatch];
    bool answers[kBatch];
    const auto place = [&](size_t i) { return places == nullptr ? i : (*places)[i]; };
    for (size_t begin = 0; begin < size;) {
      ColumnFamilyHandle* const family = family_at(place(begin));
      size_t n = 0;
      for (; n < kBatch && begin + n < size && family_at(place(begin + n)) == family; ++n) {
        const Slice& key = keys[place(begin + n)];
        batch[n] = {key.data(), key.size()};
      }
      filter_->MayContain(family, std::span<const std::string_view>(batch, n),
                          std::span<bool>(answers, n));
      for (size_t i = 0; i < n; ++i) take(place(begin + i), answers[i]);
      begin += n;
    }
  };
  ask(nullptr, count, [&](size_t i, bool may) { (may ? asked : denied).push_back(i); });
  if (denied.empty()) {
    read_all();
    return;
  }
  if (!asked.empty()) {
    read(asked);
    bool moved = false;
    if (db_->GetLatestSequenceNumber() != before) {
      ask(&denied, denied.size(), [&](size_t, bool may) { moved = moved || may; });
    }
    if (moved) {
      read_all();
      return;
    }
  }
  for (const size_t i : denied) deny(i);
}

std::vector<Status> FilteredDB::MultiGet(const ReadOptions& options,
                                         const std::vector<ColumnFamilyHandle*>& families,
                                         const std::vector<Slice>& keys,
                                         std::vector<std::string>* values) {
  std::vector<Status> statuses(keys.size());
  values->resize(keys.size());
  ReadMany(
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
          Note(families[places[i]], some[i]);
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
  ReadMany(
      count, keys, [&](size_t) { return family; },
      [&](const std::vector<size_t>& places) {
        std::vector<Slice> some_keys;
        for (const size_t i : places) some_keys.push_back(keys[i]);
        std::vector<PinnableSlice> found(places.size());
        std::vector<Status> some(places.size());
        db_->MultiGet(options, family, places.size(), some_keys.data(), found.data(), some.data(),
                      sorted);
        for (size_t i = 0; i < places.size(); ++i) {
          Note(family, some[i]);
          statuses[places[i]] = std::move(some[i]);
          values[places[i]] = std::move(found[i]);
        }
      },
      [&] { db_->MultiGet(options, family, count, keys, values, statuses, sorted); },
      [&](size_t i) {
        statuses[i] = Status::NotFound();
        values[i].Reset();
      });
}

void FilteredDB::MultiGet(const ReadOptions& options, size_t count, ColumnFamilyHandle** families,
                          const Slice* keys, PinnableSlice* values, Status* statuses, bool sorted) {
  ReadMany(
      count, keys, [&](size_t i) { return families[i]; },
      [&](const std::vector<size_t>& places) {
        std::vector<ColumnFamilyHandle*> some_families;
        std::vector<Slice> some_keys;
        for (const size_t i : places) {
          some_families.push_back(families[i]);
          some_keys.push_back(keys[i]);
        }
        std::vector<PinnableSlice> found(places.size());
        std::vector<Status> some(places.size());
        // Not the form of several families, which StackableDB does not forward.
        db_->MultiGet(options, places.size(), some_families.data(), some_keys.data(), found.data(),
                      some.data(), sorted);
        for (size_t i = 0; i < places.size(); ++i) {
          Note(families[places[i]], some[i]);
          statuses[places[i]] = std::move(some[i]);
          values[places[i]] = std::move(found[i]);
        }
      },
      [&] { db_->MultiGet(options, count, families, keys, values, statuses, sorted); },
      [&](size_t i) {
        statuses[i] = Status::NotFound();
        values[i].Reset();
      });
}

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
  const std::string doubts = filter_->DoubtsOf(family);
  (*value)["state"] = doubts.empty() ? "answers" : "passes through: " + doubts;
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
  if (status.ok()) filter_->Show(*handle);
  return status;
}

Status FilteredDB::CreateColumnFamilies(const rocksdb::ColumnFamilyOptions& options,
                                        const std::vector<std::string>& names,
                                        std::vector<ColumnFamilyHandle*>* handles) {
  rocksdb::ColumnFamilyOptions attached = options;
  filter_->Attach(&attached);
  Status status = db_->CreateColumnFamilies(attached, names, handles);
  for (ColumnFamilyHandle* handle : *handles) filter_->Show(handle);
  return status;
}

Status FilteredDB::CreateColumnFamilies(
    const std::vector<rocksdb::ColumnFamilyDescriptor>& families,
    std::vector<ColumnFamilyHandle*>* handles) {
  std::vector<rocksdb::ColumnFamilyDescriptor> attached = families;
  for (rocksdb::ColumnFamilyDescriptor& family : attached) filter_->Attach(&family.options);
  Status status = db_->CreateColumnFamilies(attached, handles);
  for (ColumnFamilyHandle* handle : *handles) filter_->Show(handle);
  return status;
}

Status FilteredDB::CreateColumnFamilyWithImport(const rocksdb::ColumnFamilyOptions& options,
                                                const std::string& name,
                                                const rocksdb::ImportColumnFamilyOptions& import,
                                                const rocksdb::ExportImportFilesMetaData& metadata,
                                                ColumnFamilyHandle** handle) {
  rocksdb::ColumnFamilyOptions attached = options;
  filter_->Attach(&attached);
  Status status = db_->CreateColumnFamilyWithImport(attached, name, import, metadata, handle);
  // It passes through until it is shown, and then because of its files, until they are counted.
  if (status.ok()) {
    filter_->tree().AddDoubts((*handle)->GetID(), kIngestion);
    filter_->Show(*handle);
    filter_->CountLater((*handle)->GetID());
  }
  return status;
}

Status FilteredDB::IngestExternalFile(ColumnFamilyHandle* family,
                                      const std::vector<std::string>& files,
                                      const rocksdb::IngestExternalFileOptions& options) {
  const DatabaseFilter::Ingestion ingestion(filter_.get(), family->GetID(), files);
  return db_->IngestExternalFile(family, files, options);
}

Status FilteredDB::IngestExternalFiles(const std::vector<rocksdb::IngestExternalFileArg>& files) {
  std::vector<std::unique_ptr<DatabaseFilter::Ingestion>> ingestions;
  for (const rocksdb::IngestExternalFileArg& one : files) {
    ingestions.push_back(std::make_unique<DatabaseFilter::Ingestion>(
        filter_.get(), one.column_family->GetID(), one.external_files));
  }
  return db_->IngestExternalFiles(files);
}

}  // namespace tamis::lsm
