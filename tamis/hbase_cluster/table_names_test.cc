#include "tamis/hbase_cluster/table_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tamis {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Standing = TableNames::Standing;

IndexedTable Indexed(const std::string& hbase_name, const std::string& name) {
  TableSchema schema;
  schema.id = 7;
  schema.name = name;
  schema.columns = {{.id = 1, .name = "id", .type = Type::kInt64, .nullable = false}};
  schema.key = {0};
  schema = InCells(schema);
  return {.description = DescribeIndexed({.name = hbase_name}, schema), .stored = schema};
}

// Copies a table as clone_snapshot does: with all attributes.
IndexedTable CopyOf(IndexedTable table, const std::string& hbase_name) {
  table.description.name = hbase_name;
  return table;
}

// The description that an older program wrote, without the recorded HBase name.
IndexedTable ByAnOlderProgram(IndexedTable table) {
  table.description.attributes.erase("tamis.table");
  return table;
}

std::string Found(const TableNames& names, const std::string& name) {
  const auto found = names.Find(name);
  return found.ok() ? found->full_name() : found.status().message();
}

TEST(TableNamesTest, NameBelongsToTheOriginalAndNotToTheCopy) {
  const IndexedTable rates = Indexed("shop:Rates", "rates");
  // The copy comes first in the list.
  const TableNames names({CopyOf(rates, "shop:Backup_Rates"), rates});
  EXPECT_EQ(Found(names, "rates"), "shop:Rates");
  EXPECT_EQ(names.Named().size(), 1u);
  EXPECT_EQ(names.StandingOf("shop:Backup_Rates"), Standing::kCopy);
  ASSERT_EQ(names.ListUnnamed().size(), 1u);
  EXPECT_THAT(names.ListUnnamed()[0].text,
              AllOf(HasSubstr("a copy of \"shop:Rates\""),
                    HasSubstr("table attach NAME --hbase-table shop:Backup_Rates"),
                    HasSubstr("table detach --hbase-table shop:Backup_Rates")));
}

TEST(TableNamesTest, CopyInAnotherNamespaceHasNoName) {
  const TableNames names({CopyOf(Indexed("orders", "orders"), "backup:orders")});
  EXPECT_EQ(names.Find("orders").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Indexed("orders", "orders").indexed_as(), "default:orders");
}

TEST(TableNamesTest, RenamedTableIsFoundAfterItIsAttachedAgain) {
  const IndexedTable renamed = CopyOf(Indexed("shop:Rates", "rates"), "shop:NewRates");
  const auto found = TableNames({renamed}).Find("rates");
  EXPECT_EQ(found.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(found.status().message(),
              HasSubstr("table attach rates --hbase-table shop:NewRates"));
  IndexedTable attached = renamed;
  attached.description = DescribeIndexed(attached.description, attached.stored);
  EXPECT_EQ(Found(TableNames({attached}), "rates"), "shop:NewRates");
}

TEST(TableNamesTest, AmbiguousNameErrorListsBothTables) {
  const TableNames names(
      {Indexed("shop:A", "rates"), Indexed("shop:B", "rates"), Indexed("shop:other", "other")});
  const auto found = names.Find("rates");
  EXPECT_EQ(found.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(found.status().message(), AllOf(HasSubstr("\"shop:A\" and \"shop:B\""),
                                              HasSubstr("table detach --hbase-table shop:B")));
  EXPECT_EQ(names.ListUnnamed().size(), 2u);
  EXPECT_EQ(Found(names, "other"), "shop:other");
}

TEST(TableNamesTest, TablesOfAnOlderProgramHaveUnambiguousNames) {
  const IndexedTable old = ByAnOlderProgram(Indexed("shop:Rates", "rates"));
  const IndexedTable copy = CopyOf(old, "shop:Backup");
  EXPECT_EQ(Found(TableNames({old}), "rates"), "shop:Rates");
  // Neither table records its name, so the name is ambiguous.
  const auto found = TableNames({copy, old}).Find("rates");
  EXPECT_EQ(found.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(found.status().message(),
              AllOf(HasSubstr("\"shop:Backup\" and \"shop:Rates\""),
                    HasSubstr("table attach rates --hbase-table"), Not(HasSubstr("detach"))));
  // A table that Tamis created has the same name in HBase; a table that was attached again records
  // its name.
  const IndexedTable made = ByAnOlderProgram(Indexed("shop:rates", "rates"));
  EXPECT_EQ(Found(TableNames({CopyOf(made, "shop:Backup"), made}), "rates"), "shop:rates");
  EXPECT_EQ(Found(TableNames({copy, Indexed("shop:Rates", "rates")}), "rates"), "shop:Rates");
}

}  // namespace
}  // namespace tamis
