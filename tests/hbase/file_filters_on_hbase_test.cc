// HBase's own Bloom filters in the files of an indexed table: the number of files that a look-up
// skips, by HBase's counters, with and without the filters.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tamis/base/answers.h"
#include "tamis/base/thread_executor.h"
#include "tamis/hbase_cluster/hbase_cluster.h"
#include "tests/hbase/local_hbase.h"
#include "tests/hbase/program.h"

namespace tamis {
namespace {

constexpr int kFiles = 5;
constexpr int kRowsOfAFile = 400;
constexpr int kLookups = 50;

struct Counted {
  double asked = 0;
  double said_no = 0;
  double missing = 0;

  friend Counted operator-(const Counted& a, const Counted& b) {
    return {a.asked - b.asked, a.said_no - b.said_no, a.missing - b.missing};
  }
};

class FileFiltersTest : public testing::Test {
 protected:
  FileFiltersTest() : executor_(4) {
    auto opened = HBaseCluster::Open(
        {.client = {.addresses = LocalHBase::Get().addresses()}, .name_space = "files"},
        &executor_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    cluster_ = *std::move(opened);
    auto client = hbase::Client::Open({.addresses = LocalHBase::Get().addresses()});
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    program_ = std::make_unique<Program>(TAMIS_PROGRAM,
                                         "hbase://" + LocalHBase::Get().addresses() + "/files");
  }
  ~FileFiltersTest() override { executor_.Stop(); }

  static std::string KeyOf(int row) { return "k" + std::to_string(100'000 + row); }

  // Writes files that each hold keys from the whole range, as flushes do.
  void Fill(const std::string& table) {
    for (int file = 0; file < kFiles; ++file) {
      std::vector<hbase::Mutation> puts;
      for (int i = 0; i < kRowsOfAFile; ++i) {
        const int row = i * kFiles + file;
        puts.push_back(hbase::Mutation::Put(KeyOf(row)).Set("d", "v", "v" + std::to_string(row)));
      }
      for (const auto& put : client_->Mutate(table, std::move(puts))) {
        ASSERT_TRUE(put.ok()) << put.status();
      }
      const auto regions = client_->Regions(table);
      ASSERT_TRUE(regions.ok()) << regions.status();
      for (const auto& region : *regions) ASSERT_EQ(client_->FlushRegion(*region), Status());
    }
  }
  Counted Count(const std::string& name) {
    const auto wait = [&] { return Wait{.deadline = executor_.Now() + std::chrono::seconds(60)}; };
    const auto table = cluster_->tables().Find(name);
    EXPECT_TRUE(table.ok()) << table.status();
    const auto regions = AwaitResult<std::vector<RegionInfo>>(
        &executor_, wait(), [&](auto done) { cluster_->ListRegions(name, {}, done); });
    EXPECT_TRUE(regions.ok()) << regions.status();
    Counted counted;
    for (const RegionInfo& region : *regions) {
      pb::StatusRequest request;
      request.set_table_id(table->schema().id);
      const auto status = AwaitResult<pb::StatusReply>(&executor_, wait(), [&](auto done) {
        cluster_->Stub(region.server)->GetStatus(request, done);
      });
      EXPECT_TRUE(status.ok()) << status.status();
      for (const pb::RegionStatus& one : status->regions()) {
        if (one.region_id() != region.id.number()) continue;
        counted.asked += static_cast<double>(one.file_filters_asked());
        counted.said_no += static_cast<double>(one.file_filters_said_no());
        counted.missing += static_cast<double>(one.file_filters_missing());
      }
    }
    return counted;
  }
  // Returns the average counts of one look-up, by key or by the index on the value. The index does
  // not have w, so that rows are read.
  Counted Look(const std::string& table, bool by_index) {
    const Counted before = Count(table);
    std::string sql;
    for (int i = 0; i < kLookups; ++i) {
      const int row = i * 37;
      const std::string condition =
          by_index ? "v = 'v" + std::to_string(row) + "'" : "id = '" + KeyOf(row) + "'";
      sql += "SELECT id, w FROM " + table + " WHERE " + condition + ";";
    }
    const std::string found = program_->Do({"sql", "--format", "csv", sql});
    EXPECT_THAT(found, testing::HasSubstr(KeyOf(37)));
    EXPECT_THAT(found, testing::HasSubstr(KeyOf(37 * (kLookups - 1))));
    const Counted counted = Count(table) - before;
    return {counted.asked / kLookups, counted.said_no / kLookups, counted.missing / kLookups};
  }

  ThreadExecutor executor_;
  std::unique_ptr<HBaseCluster> cluster_;
  std::unique_ptr<hbase::Client> client_;
  std::unique_ptr<Program> program_;
};

TEST_F(FileFiltersTest, LookupReadsOneFileOfMany) {
  for (const char* table : {"with", "without"}) {
    program_->Do({"table", "create", table, "--column", "id", "--column", "v=d:v:text", "--column",
                  "w=d:w:text", "--key", "id:rest", "--index", "v"});
    auto description = client_->Table(std::string("files:") + table);
    ASSERT_TRUE(description.ok()) << description.status();
    // Disable compactions, so that all files remain.
    description->configuration["hbase.hstore.compactionThreshold"] = "100";
    description->attributes["COMPACTION_ENABLED"] = "false";
    for (hbase::FamilySchema& family : description->families) {
      if (family.name != "d") continue;
      EXPECT_EQ(family.attributes["BLOOMFILTER"], "ROW");
      if (std::string_view(table) == "without") family.attributes["BLOOMFILTER"] = "NONE";
    }
    ASSERT_EQ(client_->ModifyTable(*description), Status());
    Fill(description->name);
    if (HasFatalFailure()) return;
  }
  std::printf("%d files a region; of a lookup:\n%-10s %-10s %12s %18s %16s\n", kFiles, "lookup",
              "filters", "files asked", "need no reading", "without filter");
  for (const bool by_index : {false, true}) {
    for (const char* table : {"with", "without"}) {
      const Counted counted = Look(table, by_index);
      std::printf("%-10s %-10s %12.2f %18.2f %16.2f\n", by_index ? "by index" : "by key",
                  std::string_view(table) == "with" ? "ROW" : "NONE", counted.asked,
                  counted.said_no, counted.missing);
      if (std::string_view(table) == "with") {
        // HBase skips a file by its first and last key without a filter probe.
        EXPECT_GE(counted.asked, kFiles - 0.5);
        EXPECT_GE(counted.said_no, 0.9 * (counted.asked - 1));
      } else {
        EXPECT_EQ(counted.said_no, 0);
        EXPECT_GE(counted.missing, kFiles - 0.5);
      }
    }
  }
  // The program's status reports the same counts per server.
  const Counted with = Count("with"), without = Count("without");
  Counted told;
  const auto status = nlohmann::json::parse(program_->Do({"status", "--json"}));
  for (const auto& server : status["servers"]) {
    told.asked += server["file_filters_asked"].get<double>();
    told.said_no += server["file_filters_said_no"].get<double>();
    told.missing += server["file_filters_missing"].get<double>();
  }
  EXPECT_EQ(told.asked, with.asked + without.asked);
  EXPECT_EQ(told.said_no, with.said_no + without.said_no);
  EXPECT_EQ(told.missing, with.missing + without.missing);
  EXPECT_THAT(program_->Do({"status"}), testing::HasSubstr(" file reads avoided"));
  program_->Do({"table", "drop", "with"});
  program_->Do({"table", "drop", "without"});
}

}  // namespace
}  // namespace tamis
