#include "tests/golden/scenario_table.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tamis/base/answers.h"
#include "tamis/rocks/entry_cursor.h"
#include "tamis/rocks/row_cursor.h"
#include "tamis/table/codec.h"
#include "tamis/table/stored_row.h"

namespace tamis {
namespace {

void Check(const Status& status, const char* doing) {
  if (status.ok()) return;
  std::fprintf(stderr, "golden_writer: cannot %s: %s\n", doing, status.ToString().c_str());
  std::exit(1);
}

template <class T>
T Checked(Result<T> result, const char* doing) {
  Check(result.status(), doing);
  return std::move(*result);
}

}  // namespace

ScenarioTable::ScenarioTable(const TableSchema& schema)
    : directory_(std::filesystem::temp_directory_path() /
                 ("golden_writer." + std::to_string(getpid()))) {
  std::filesystem::remove_all(directory_);
  RocksCluster::Options options;
  options.store.directory = directory_;
  options.store.background_compactions = false;
  options.servers = 1;
  options.seed = 1;
  options.session_timeout = std::chrono::hours(1);
  options.server.proof_term = std::chrono::hours(1);
  options.server.split_bytes = 0;
  cluster_ = Checked(RocksCluster::Open(options, &executor_), "open a cluster");
  schema_ = std::make_shared<const TableSchema>(
      Checked(AwaitResult<TableSchema>(&executor_, {},
                                       [&](auto done) { cluster_->CreateTable(schema, done); }),
              "create a table"));
  executor_.RunFor(std::chrono::seconds(5));
}

ScenarioTable::~ScenarioTable() {
  executor_.Clear();
  cluster_.reset();
  std::filesystem::remove_all(directory_);
}

std::string ScenarioTable::SchemaOfCells() const {
  TableSchema cells = *schema_;
  cells.cells = true;
  cells.marker = CellName{.family = "f", .qualifier = ""};
  for (uint32_t i = 0; i < cells.columns.size(); ++i) {
    Column& column = cells.columns[i];
    if (cells.IsKey(i) || column.is_computed()) continue;
    column.cell = {.family = i % 2 == 0 ? "f" : "g", .qualifier = column.name};
    column.encoding = DefaultEncoding(column.type);
  }
  Check(cells.Validate(), "describe a table of cells");
  return SerializeSchema(cells);
}

RegionInfo ScenarioTable::Region() {
  auto regions = Checked(
      AwaitResult<std::vector<RegionInfo>>(
          &executor_, {}, [&](auto done) { cluster_->ListRegions(schema_->name, {}, done); }),
      "list the regions");
  return regions.front();
}

pb::RegionMutateResult ScenarioTable::Mutate(const std::vector<pb::Mutation>& mutations) {
  const RegionInfo region = Region();
  pb::MutateRequest request;
  request.set_table_id(schema_->id);
  request.set_schema_version(schema_->version);
  pb::RegionMutations* of_region = request.add_regions();
  of_region->set_region_id(region.id.number());
  of_region->set_epoch(region.epoch);
  for (const pb::Mutation& mutation : mutations) *of_region->add_mutations() = mutation;
  const auto server = cluster_->Server(region.server);
  const auto reply =
      Checked(AwaitResult<pb::MutateReply>(
                  &executor_, {}, [&](auto done) { server->Mutate(request, std::move(done)); }),
              "write rows");
  return reply.regions(0);
}

pb::RangeResult ScenarioTable::Search(pb::SearchRequest request, uint64_t limit,
                                      const KeyRange& keys, const std::string& resume) {
  const RegionInfo region = Region();
  request.set_table_id(schema_->id);
  request.set_schema_version(schema_->version);
  request.set_limit(limit);
  pb::SearchRange* range = request.add_ranges();
  range->set_region_id(region.id.number());
  range->set_epoch(region.epoch);
  range->set_start(keys.start);
  range->set_end(keys.end);
  range->set_resume(resume);
  const auto server = cluster_->Server(region.server);
  const auto reply =
      Checked(AwaitResult<pb::SearchReply>(
                  &executor_, {}, [&](auto done) { server->Search(request, std::move(done)); }),
              "search");
  return reply.results(0);
}

std::vector<Row> ScenarioTable::Rows() {
  std::vector<Row> rows;
  RowCursor cursor(cluster_->store(), schema_->id, {});
  for (; cursor.Valid(); cursor.Next()) {
    rows.push_back(
        Checked(ReadStoredRow(*schema_, cursor.key(), cursor.value()), "read a row").row);
  }
  return rows;
}

std::vector<std::pair<std::string, std::string>> ScenarioTable::Entries(uint32_t index_id) {
  std::vector<std::pair<std::string, std::string>> entries;
  const uint64_t region = Region().id.number();
  EntryCursor cursor(cluster_->store(), IndexPrefix(region, index_id));
  for (cursor.Seek(""); cursor.Valid(); cursor.Next()) {
    entries.emplace_back(cursor.entry(), cursor.value());
  }
  Check(cursor.status(), "read entries");
  return entries;
}

pb::Mutation PutOf(const TableSchema& schema, const Row& row) {
  pb::Mutation put;
  put.set_kind(pb::Mutation::PUT);
  put.set_key(EncodeKey(schema, row));
  put.set_row(EncodeRow(schema, row));
  return put;
}

}  // namespace tamis
