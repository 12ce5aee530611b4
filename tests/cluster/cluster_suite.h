// ClusterSuite: the fixture of the scenarios that every kind of cluster must pass: a cluster of one
// kind with one table, and an engine on it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tamis/table/key_format.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/find_rows.h"

namespace tamis {

class ClusterSuite : public ::testing::TestWithParam<ClusterKind> {
 protected:
  enum Column : uint32_t { kName, kSection, kSize };

  void SetUp() override { Open({}); }
  void TearDown() override {
    engine_.reset();
    kind_.reset();
  }

  void Open(const ClusterWishes& wishes) {
    engine_.reset();
    kind_.reset();
    auto opened = GetParam().open(wishes);
    ASSERT_TRUE(opened.ok()) << opened.status();
    kind_ = std::move(*opened);
    engine_ = StartEngine();
    TableSchema schema;
    schema.name = "packages";
    schema.columns = {{.name = "name", .type = Type::kText, .nullable = false},
                      {.name = "section", .type = Type::kText},
                      {.name = "size", .type = Type::kInt64}};
    schema.key = {kName};
    schema.indexes = {{.name = "section", .columns = {kSection}, .expected_values = 100},
                      {.name = "size", .columns = {kSize}, .expected_values = 1000}};
    const auto made = kind_->CreateTable(schema);
    ASSERT_TRUE(made.ok()) << made.status();
    table_ = *made;
  }
  std::unique_ptr<Engine> StartEngine() {
    return std::make_unique<Engine>(&kind_->cluster(), &kind_->executor(),
                                    Engine::Options{.seed = ++engines_});
  }
  bool Can(Capability capability) { return kind_->admin().Can(capability); }

  static std::string NameOf(int i) {
    char name[16];
    std::snprintf(name, sizeof name, "p%06d", i);
    return name;
  }
  static Row RowOf(int i) {
    return {Value::Text(NameOf(i)), Value::Text("s" + std::to_string(i / 100)), Value::Int64(i)};
  }
  std::string KeyOf(int i) const { return *KeyFormat(*table_).Encode(RowOf(i)); }

  void Fill(int rows) {
    for (int i = 0; i < rows; i += 500) {
      std::vector<Write> writes;
      for (int j = i; j < std::min(rows, i + 500); ++j) writes.push_back({.row = RowOf(j)});
      for (const Status& status : engine_->Apply(table_, std::move(writes)))
        ASSERT_TRUE(status.ok()) << status;
    }
  }
  Status Put(Engine& engine, Row row) {
    return engine.Apply(table_, {{.row = std::move(row)}}).front();
  }
  std::vector<RegionInfo> Regions(std::vector<KeyRange> stale = {}) {
    auto regions = kind_->Regions("packages", std::move(stale));
    EXPECT_TRUE(regions.ok()) << regions.status();
    return regions.ok() ? *regions : std::vector<RegionInfo>();
  }
  void SplitAll(int times) {
    for (int i = 0; i < times; ++i) {
      const Status status = kind_->SplitAll("packages");
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  // Spreads the regions over the servers.
  void Spread() {
    const auto servers = kind_->Servers();
    ASSERT_TRUE(servers.ok()) << servers.status();
    size_t i = 0;
    for (const RegionInfo& region : Regions()) {
      const std::string& target = (*servers)[i++ % servers->size()];
      if (region.server == target) continue;
      const Status moved = kind_->Move(region.id, target);
      ASSERT_TRUE(moved.ok()) << moved;
    }
  }

  std::vector<Row> Find(Engine& engine, SearchOptions options, Explain* explain = nullptr) {
    return FindRows(engine, table_, std::move(options), explain);
  }
  std::vector<Row> Find(Predicate predicate, Explain* explain = nullptr) {
    return Find(*engine_, {.predicate = std::move(predicate)}, explain);
  }
  // With the filters of all regions known: where time is real, a lease may end at any moment, and
  // its regions are asked then, whatever the value.
  std::vector<Row> FindRouted(Predicate predicate, Explain* explain) {
    const Time end = kind_->Soon().deadline;
    while (true) {
      EXPECT_TRUE(engine_->WaitUntilRouted(*table_, std::chrono::seconds(60)));
      std::vector<Row> rows = Find(predicate, explain);
      if (explain->regions_unknown == 0) return rows;
      EXPECT_FALSE(kind_->has_virtual_clock()) << explain->ToText();
      if (HasFailure() || kind_->executor().Now() >= end) {
        ADD_FAILURE() << "the filters are never known: " << explain->ToText();
        return rows;
      }
    }
  }
  static Predicate Section(const std::string& section) {
    return Predicate::Compare(kSection, Predicate::Op::kEq, Value::Text(section));
  }
  static Predicate Size(int64_t size) {
    return Predicate::Compare(kSize, Predicate::Op::kEq, Value::Int64(size));
  }
  // The rows of RowOf up to `rows`, and no other, by key, by each index and all at once.
  void ExpectAll(int rows) {
    EXPECT_EQ(Find(Predicate::True()).size(), static_cast<size_t>(rows));
    for (int i = 0; i < rows; i += std::max(1, rows / 20)) {
      EXPECT_EQ(Find(Size(i)), std::vector<Row>{RowOf(i)});
      EXPECT_EQ(Find(Predicate::Compare(kName, Predicate::Op::kEq, Value::Text(NameOf(i)))),
                std::vector<Row>{RowOf(i)});
      EXPECT_EQ(Find(Section("s" + std::to_string(i / 100))).size(),
                static_cast<size_t>(std::min(100, rows - i / 100 * 100)));
    }
  }
  void ExpectClean(uint64_t rows) {
    const auto report = kind_->Reconcile("packages");
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->rows, rows);
    EXPECT_EQ(report->entries, rows * table_->indexes.size());
  }

  std::unique_ptr<ClusterUnderTest> kind_;
  std::unique_ptr<Engine> engine_;
  SchemaPtr table_;
  uint64_t engines_ = 0;
};

inline std::string NameOfKind(const ::testing::TestParamInfo<ClusterKind>& info) {
  return info.param.name;
}

}  // namespace tamis
