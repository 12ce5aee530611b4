// An HBase cluster from C++, without Java and without ZooKeeper: makes a table, writes and reads
// rows, and tells where they are.
//
//   example_hbase_rows localhost:16000,localhost:16020      (tools/hbase-local addresses prints
//   them)
#include <cstdio>
#include <string>
#include <vector>

#include "tamis/hbase/client.h"

namespace hbase = tamis::hbase;

namespace {

constexpr const char* kTable = "example_of_tamis";

tamis::Status Run(hbase::Client& client) {
  const tamis::Status created = client.CreateTable(
      {.name = kTable, .families = {{.name = "fruit", .attributes = {{"BLOOMFILTER", "ROW"}}}}},
      {"f", "p"});  // three regions
  if (!created.ok() && created.code() != tamis::StatusCode::kAlreadyExists) return created;

  // A batch: one call for each server. Each row succeeds or fails for itself.
  std::vector<hbase::Mutation> puts;
  for (const std::string name : {"apple", "banana", "fig", "grape", "pear", "quince"}) {
    puts.push_back(hbase::Mutation::Put(name).Set("fruit", "letters", std::to_string(name.size())));
  }
  for (const auto& result : client.Mutate(kTable, std::move(puts), hbase::WriteOptions())) {
    TAMIS_RETURN_IF_ERROR(result.status());
  }

  TAMIS_ASSIGN_OR_RETURN(const hbase::Row fig, client.Get(kTable, {.row = "fig"}));
  std::printf("fig has %s letters\n", std::string(*fig.Find("fruit", "letters")).c_str());

  // Rows with five letters; the servers leave out the others.
  const auto five = client.Scan(
      kTable, {.filter = hbase::Filter::Value({.family = "fruit", .qualifier = "letters"},
                                              hbase::Compare::kEqual, "5")});
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(const auto rows, five->Next());
    if (rows.empty()) break;
    for (const hbase::Row& row : rows) std::printf("five: %s\n", std::string(row.key()).c_str());
  }

  TAMIS_ASSIGN_OR_RETURN(const auto regions, client.Regions(kTable));
  for (const auto& region : regions) {
    std::printf("[%s, %s) is on %s\n", region->start.c_str(), region->end.c_str(),
                region->server.address.ToString().c_str());
  }
  TAMIS_RETURN_IF_ERROR(client.DisableTable(kTable));
  return client.DeleteTable(kTable);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s HOST:PORT,...\n", argv[0]);
    return 2;
  }
  const auto client =
      hbase::Client::Open({.addresses = argv[1], .operation_timeout = std::chrono::seconds(20)});
  const tamis::Status status = client.ok() ? Run(**client) : client.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}
