// OneRegionTest: for tests of what works on one region. A region of a table with two indexes on a
// store in memory, its writes, and what stands in the store.
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/rocks/catalog.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/mutate_operation.h"
#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"
#include "tamis/table/stored_row.h"

namespace tamis {

// A file system in memory whose logs take nothing, or whose tables are not read, while it is told
// so.
class FaultyEnv : public rocksdb::EnvWrapper {
 public:
  FaultyEnv() : FaultyEnv(std::unique_ptr<rocksdb::Env>(NewMemEnv(rocksdb::Env::Default()))) {}

  void set_failing(bool failing) { failing_ = failing; }
  // One read of a file fails, after so many others; -1: none.
  void FailReadAfter(int64_t reads) { reads_left_ = reads; }
  bool has_failed_read() const { return reads_left_ < 0; }

  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    const rocksdb::Status status = rocksdb::EnvWrapper::NewWritableFile(name, file, options);
    if (status.ok() && name.ends_with(".log")) {
      *file = std::make_unique<File>(std::move(*file), this);
    }
    return status;
  }

  rocksdb::Status NewRandomAccessFile(const std::string& name,
                                      std::unique_ptr<rocksdb::RandomAccessFile>* file,
                                      const rocksdb::EnvOptions& options) override {
    const rocksdb::Status status = rocksdb::EnvWrapper::NewRandomAccessFile(name, file, options);
    if (status.ok()) *file = std::make_unique<ReadFile>(std::move(*file), this);
    return status;
  }

 private:
  class ReadFile : public rocksdb::RandomAccessFileWrapper {
   public:
    ReadFile(std::unique_ptr<rocksdb::RandomAccessFile> file, FaultyEnv* env)
        : RandomAccessFileWrapper(file.get()), file_(std::move(file)), env_(*env) {}
    rocksdb::Status Read(uint64_t offset, size_t n, rocksdb::Slice* result,
                         char* scratch) const override {
      if (env_.IsReadFailing()) return rocksdb::Status::IOError("the disk is not read");
      return RandomAccessFileWrapper::Read(offset, n, result, scratch);
    }
    rocksdb::Status MultiRead(rocksdb::ReadRequest* requests, size_t count) override {
      if (env_.IsReadFailing()) return rocksdb::Status::IOError("the disk is not read");
      return RandomAccessFileWrapper::MultiRead(requests, count);
    }

   private:
    const std::unique_ptr<rocksdb::RandomAccessFile> file_;
    FaultyEnv& env_;
  };

  class File : public rocksdb::WritableFileWrapper {
   public:
    File(std::unique_ptr<rocksdb::WritableFile> file, FaultyEnv* env)
        : WritableFileWrapper(file.get()), file_(std::move(file)), env_(*env) {}
    using rocksdb::WritableFileWrapper::Append;
    rocksdb::Status Append(const rocksdb::Slice& data) override {
      if (env_.failing_) return rocksdb::Status::IOError("the disk takes no more bytes");
      return WritableFileWrapper::Append(data);
    }

   private:
    const std::unique_ptr<rocksdb::WritableFile> file_;
    FaultyEnv& env_;
  };

  explicit FaultyEnv(std::unique_ptr<rocksdb::Env> memory)
      : rocksdb::EnvWrapper(memory.get()), memory_(std::move(memory)) {}

  bool IsReadFailing() { return reads_left_ >= 0 && reads_left_-- == 0; }

  const std::unique_ptr<rocksdb::Env> memory_;
  std::atomic<bool> failing_ = false;
  std::atomic<int64_t> reads_left_ = -1;
};

class OneRegionTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kTable = 4;
  static constexpr uint64_t kRegion = 9, kEpoch = 3;

  using Result = std::optional<pb::RegionMutateResult>;

  // Columns n (never NULL), k (the key), v; indexes on v (sparse, with n), on (n, v), and on n of
  // some rows.
  static TableSchema Schema() {
    TableSchema schema;
    schema.id = kTable;
    schema.name = "t";
    schema.version = 7;
    schema.columns = {{.id = 12, .name = "n", .type = Type::kInt64, .nullable = false},
                      {.id = 11, .name = "k", .nullable = false},
                      {.id = 13, .name = "v"}};
    schema.key = {1};
    schema.indexes = {
        {.id = 1, .name = "v", .columns = {2}, .nulls = IndexNulls::kSkip, .include = {0}},
        {.id = 2, .name = "nv", .columns = {0, 2}},
        {.id = 3,
         .name = "some_n",
         .columns = {0},
         .where = Predicate::Compare(2, Predicate::Op::kNe, Value::Text("v3"))}};
    schema.next_column_id = 14;
    schema.next_index_id = 4;
    return schema;
  }

  OneRegionTest() { Open({}); }

  void Open(FilterFeed::Options feed, bool read_only = false) {
    Store::Options options;
    options.directory = "/one_region_test";
    options.env = &env_;
    options.read_only = read_only;
    catalog_.reset();
    store_.reset();
    auto store = Store::Open(options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = std::move(*store);
    auto catalog = Catalog::Load(store_.get());
    ASSERT_TRUE(catalog.ok()) << catalog.status();
    catalog_ = std::move(*catalog);
    pb::RegionRecord record;
    record.set_id(kRegion);
    record.set_epoch(kEpoch);
    record.set_table_id(kTable);
    record.set_end(KeyOf("x"));
    ASSERT_EQ(catalog_->Commit({.put_tables = {schema_}, .put_regions = {record}}), Status::Ok());
    feed_ = std::make_shared<FilterFeed>(&executor_, "rs", 1, feed);
    context_ = std::make_shared<ServerContext>();
    context_->name = "rs";
    context_->store = store_.get();
    context_->catalog = catalog_.get();
    context_->executor = std::make_shared<ServerExecutor>(&executor_, /*inline_steps=*/false);
    context_->feed = feed_;
    context_->after_write = [this](const std::shared_ptr<Region>&) { ++written_; };
    fence_ = std::make_shared<Fence>();
    fence_->Advance(kEpoch);
    region_ = std::make_shared<Region>(RegionInfo{.id = RegionId(kRegion),
                                                  .epoch = kEpoch,
                                                  .table_id = kTable,
                                                  .start = "",
                                                  .end = KeyOf("x")},
                                       std::make_shared<const TableSchema>(schema_), fence_,
                                       context_->executor.get());
    Region::Indexes indexes;
    for (const IndexSpec& spec : schema_.indexes) {
      auto filter = std::make_shared<IndexFilter>(feed_.get(), spec, kRegion, kEpoch, Faults{});
      filter->BeginGeneration(false);
      filter->Publish();
      indexes[spec.id] = {.filter = filter, .entries_complete = true};
    }
    region_->SetSchema(std::make_shared<const TableSchema>(schema_), std::move(indexes));
  }

  std::string KeyOf(const std::string& key) const {
    return *KeyFormat(schema_).Encode({Value(), Value::Text(key), Value()});
  }
  static Row RowOf(const std::string& key, std::optional<int64_t> n, std::optional<std::string> v) {
    return {n.has_value() ? Value::Int64(*n) : Value(), Value::Text(key),
            v.has_value() ? Value::Text(*v) : Value()};
  }
  pb::Mutation Mutation(pb::Mutation::Kind kind, const Row& row,
                        std::vector<uint32_t> columns = {}) const {
    pb::Mutation mutation;
    mutation.set_kind(kind);
    mutation.set_key(*KeyFormat(schema_).Encode(row));
    if (kind != pb::Mutation::DELETE) mutation.set_row(EncodeRow(schema_, row));
    for (const uint32_t column : columns) mutation.add_columns(column);
    return mutation;
  }

  std::shared_ptr<Result> Start(const std::vector<pb::Mutation>& mutations,
                                uint64_t schema_version = 7) {
    pb::RegionMutations group;
    group.set_region_id(kRegion);
    for (const pb::Mutation& mutation : mutations) *group.add_mutations() = mutation;
    auto result = std::make_shared<Result>();
    std::make_shared<MutateOperation>(context_, region_, group, schema_version,
                                      executor_.Now() + std::chrono::seconds(10),
                                      [result](pb::RegionMutateResult answer) {
                                        ASSERT_FALSE(result->has_value()) << "answered twice";
                                        result->emplace(std::move(answer));
                                      })
        ->Start();
    return result;
  }
  pb::RegionMutateResult Run(const std::vector<pb::Mutation>& mutations,
                             uint64_t schema_version = 7) {
    const auto result = Start(mutations, schema_version);
    executor_.RunFor(std::chrono::seconds(1));
    EXPECT_TRUE(result->has_value());
    EXPECT_TRUE(region_->IsQuiet());
    return result->value_or(pb::RegionMutateResult());
  }
  pb::Error::Code CodeOf(const std::vector<pb::Mutation>& mutations, uint64_t version = 7) {
    const pb::RegionMutateResult result = Run(mutations, version);
    EXPECT_EQ(result.region_id(), 0u + kRegion);
    return result.error().code();
  }

  // By key, and entries of the indexes.
  std::map<std::string, Row> Rows() const {
    std::map<std::string, Row> rows;
    std::unique_ptr<rocksdb::Iterator> it(
        store_->db()->NewIterator(rocksdb::ReadOptions(), store_->rows()));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      std::string key = it->key().ToString();
      EXPECT_TRUE(key.starts_with(RowPrefix(kTable)));
      key.erase(0, kRowPrefixSize);
      const auto row = ReadStoredRow(schema_, key, it->value().ToStringView());
      EXPECT_TRUE(row.ok() && row->state == StoredRow::State::kRow);
      rows[key] = row->row;
    }
    return rows;
  }
  std::set<std::string> Entries() const {
    std::set<std::string> entries;
    for (const auto& [key, value] : EntriesAndValues()) entries.insert(key);
    return entries;
  }
  std::map<std::string, std::string> EntriesAndValues() const {
    std::map<std::string, std::string> entries;
    std::unique_ptr<rocksdb::Iterator> it(
        store_->db()->NewIterator(rocksdb::ReadOptions(), store_->index()));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      entries[it->key().ToString()] = it->value().ToString();
    }
    return entries;
  }
  // The rows' entries stand with their included columns, no others, and are counted.
  void CheckIndexes(const std::map<std::string, Row>& rows) const {
    std::map<std::string, std::string> wanted;
    for (const IndexSpec& spec : schema_.indexes) {
      const auto filter = region_->filter(spec.id);
      uint64_t count = 0;
      for (const auto& [key, row] : rows) {
        const auto entry = IndexEntry::Of(schema_, spec, row);
        if (!entry.has_value()) continue;
        ++count;
        wanted[entry->StoreKey(kRegion, spec.id, key)] = entry->included;
        EXPECT_TRUE(filter->MayContain(entry->filter_key));
      }
      EXPECT_EQ(filter->entries(), count) << spec.name;
    }
    EXPECT_EQ(EntriesAndValues(), wanted);
  }

  // A coordinator with a lease that has applied all events up to a number.
  void Applied(uint64_t number) {
    pb::PollRequest poll;
    poll.set_coordinator(7);
    poll.set_start_code(1);
    poll.set_applied(number);
    feed_->Poll(
        poll, [] { return Time::max() / 2; }, [](const tamis::Result<pb::PollReply>&) {});
  }

  TableSchema schema_ = Schema();
  FaultyEnv env_;
  SimExecutor executor_{1, std::chrono::milliseconds(1)};
  std::unique_ptr<Store> store_;
  std::unique_ptr<Catalog> catalog_;
  std::shared_ptr<FilterFeed> feed_;
  std::shared_ptr<ServerContext> context_;
  std::shared_ptr<Fence> fence_;
  std::shared_ptr<Region> region_;
  uint64_t written_ = 0;
};

}  // namespace tamis
