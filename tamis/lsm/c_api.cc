// The structures of rocksdb/c.h are declared in RocksDB's sources only: each begins with the object
// of C++ that it stands for, in all versions from 7.8 to 11.8. The test of the C functions runs on
// each of them.
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "tamis/lsm.h"
#include "tamis/lsm/filtered_db.h"

struct rocksdb_t {
  rocksdb::DB* rep;
};
struct rocksdb_options_t {
  rocksdb::Options rep;
};
struct rocksdb_column_family_handle_t {
  rocksdb::ColumnFamilyHandle* rep;
};
struct tamis_lsm_t {
  std::shared_ptr<tamis::lsm::DatabaseFilter> filter;
};

namespace {

void Report(const char* message, char** errptr) { *errptr = strdup(message); }

std::string CompiledVersion() {
  return std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) + "." +
         std::to_string(ROCKSDB_PATCH);
}

}  // namespace

tamis_lsm_t* tamis_lsm_create(const rocksdb_options_t* options, const char* path, double fpr,
                              char** errptr) {
  try {
    if (const std::string version = rocksdb::GetRocksVersionAsString();
        version != CompiledVersion()) {
      const std::string message = "cannot make a filter: it was compiled for RocksDB " +
                                  CompiledVersion() + ", and the program has RocksDB " + version;
      Report(message.c_str(), errptr);
      return nullptr;
    }
    auto made = tamis::lsm::DatabaseFilter::Create(
        {.directory = std::string(path) + "/tamis.keys", .fpr = fpr, .env = options->rep.env});
    if (!made.ok()) {
      Report(std::string(made.status().message()).c_str(), errptr);
      return nullptr;
    }
    return new tamis_lsm_t{*std::move(made)};
  } catch (const std::bad_alloc&) {
    Report("cannot make a filter: memory does not suffice", errptr);
    return nullptr;
  }
}

void tamis_lsm_attach(tamis_lsm_t* filter, rocksdb_options_t* options) {
  filter->filter->Attach(&options->rep);
}

void tamis_lsm_start(tamis_lsm_t* filter, rocksdb_t* db,
                     rocksdb_column_family_handle_t* const* families, size_t count, char** errptr) {
  try {
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    for (size_t i = 0; i < count; ++i) handles.push_back(families[i]->rep);
    if (count == 0) handles.push_back(db->rep->DefaultColumnFamily());
    // rocksdb_close deletes it, and with it the database.
    db->rep = new tamis::lsm::FilteredDB(db->rep, filter->filter, handles);
  } catch (const tamis::lsm::CannotStart& error) {
    Report(error.what(), errptr);
  } catch (const std::exception&) {  // std::bad_alloc, or std::system_error: no thread
    Report(
        "cannot start the filter: memory or threads do not suffice; the database can be used "
        "without it",
        errptr);
  }
}

void tamis_lsm_wait(tamis_lsm_t* filter) { filter->filter->WaitUntilCounted(); }

unsigned char tamis_lsm_may_contain(const tamis_lsm_t* filter, const rocksdb_t* db,
                                    const rocksdb_column_family_handle_t* family, const char* key,
                                    size_t length) {
  rocksdb::ColumnFamilyHandle* const handle =
      family != nullptr ? family->rep : db->rep->DefaultColumnFamily();
  return filter->filter->MayContain(handle, {key, length});
}

void tamis_lsm_destroy(tamis_lsm_t* filter) { delete filter; }
