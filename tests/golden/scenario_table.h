// ScenarioTable: one table of one region in an embedded cluster whose files are in a temporary
// directory. Every step ends the process with a message when it fails, since the golden files are
// then worthless.
//
// Threads: exclusive access.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/cluster/cluster.pb.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/table/schema.h"

namespace tamis {

class ScenarioTable {
 public:
  explicit ScenarioTable(const TableSchema& schema);
  ~ScenarioTable();

  const TableSchema& schema() const { return *schema_; }  // with its ids
  // The schema of the same table in HBase: each column outside of the key is a cell, and a marker
  // cell stands for a row whose columns are all NULL.
  std::string SchemaOfCells() const;

  pb::RegionMutateResult Mutate(const std::vector<pb::Mutation>& mutations);
  // One page of the row keys in the range. `limit` is at least 1.
  pb::RangeResult Search(pb::SearchRequest request, uint64_t limit, const KeyRange& keys,
                         const std::string& resume);
  std::vector<Row> Rows();  // in key order
  // The entries of the index in their order: encoded values and row key, and the included columns.
  std::vector<std::pair<std::string, std::string>> Entries(uint32_t index_id);

 private:
  RegionInfo Region();

  const std::filesystem::path directory_;
  SimExecutor executor_{1, std::chrono::milliseconds(0)};
  std::unique_ptr<RocksCluster> cluster_;
  SchemaPtr schema_;
};

// A PUT of the whole row.
pb::Mutation PutOf(const TableSchema& schema, const Row& row);

}  // namespace tamis
