#include "tamis/hbase_cluster/attachment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tamis/hbase_cluster/indexed_table.h"
#include "tamis/table/definition.h"
#include "tamis/table/schema_change.h"

namespace tamis {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TableSchema Orders(const std::string& index = "index customer (customer) nulls skip") {
  auto schema = ParseDefinition(
      "orders", {"id int64", "customer text cell 'd:customer'", "cents int64 cell 'm:cents:int'",
                 "key (id long)", "marker 'none'", index});
  EXPECT_TRUE(schema.ok()) << schema.status();
  return *schema;
}

hbase::TableDescription Theirs() {
  return {.name = "shop:Orders", .families = {{.name = "d"}, {.name = "m"}, {.name = "other"}}};
}

hbase::TableDescription With(const std::string& family, const std::string& name,
                             const std::string& value) {
  hbase::TableDescription table = Theirs();
  for (hbase::FamilySchema& one : table.families) {
    if (one.name == family) one.attributes[name] = value;
  }
  return table;
}

hbase::TableDescription With(const std::string& name, const std::string& value) {
  hbase::TableDescription table = Theirs();
  table.attributes[name] = value;
  return table;
}

TEST(AttachmentTest, PlainTableHasNoObstacles) {
  EXPECT_THAT(ObstaclesToAttaching(Theirs(), Orders()), IsEmpty());
  EXPECT_THAT(ObstaclesToAttaching(With("d", "VERSIONS", "3"), Orders()), IsEmpty());
  EXPECT_THAT(ObstaclesToAttaching(With("d", "TTL", "2147483647"), Orders()), IsEmpty());
  EXPECT_THAT(ObstaclesToAttaching(With("DURABILITY", "ASYNC_WAL"), Orders()), IsEmpty());
  // No column is in this family.
  EXPECT_THAT(ObstaclesToAttaching(With("other", "KEEP_DELETED_CELLS", "TRUE"), Orders()),
              IsEmpty());
}

TEST(AttachmentTest, EachObstacleNamesItsRemedy) {
  const auto one = [](const hbase::TableDescription& table, const char* what, const char* remedy) {
    EXPECT_THAT(ObstaclesToAttaching(table, Orders()),
                ElementsAre(AllOf(HasSubstr(what), HasSubstr(remedy))))
        << what;
  };
  one(With("d", "KEEP_DELETED_CELLS", "TRUE"), "keeps deleted cells",
      "alter 'shop:Orders', {NAME => 'd', KEEP_DELETED_CELLS => 'FALSE'}");
  one(With("m", "KEEP_DELETED_CELLS", "ttl"), "family \"m\"", "alter");
  one(With("d", "IS_MOB", "true"), "MOB", "IS_MOB => false");
  one(With("d", "MIN_VERSIONS", "1"), "MIN_VERSIONS", "MIN_VERSIONS => 0");
  one(With("d", "NEW_VERSION_BEHAVIOR", "true"), "NEW_VERSION_BEHAVIOR", "'false'");
  one(With("DURABILITY", "SKIP_WAL"), "SKIP_WAL", "DURABILITY => 'USE_DEFAULT'");
  one(With("REGION_REPLICATION", "3"), "replicas", "REGION_REPLICATION => 1");
  one(With("READONLY", "true"), "read-only", "READONLY => false");
  one(With("SPLIT_POLICY", "org.example.KeyPrefix"), "org.example.KeyPrefix", "table_att_unset");
  one(With("coprocessor$1", "|org.example.Other|2147483647|"), "org.example.Other", "another one");
  EXPECT_THAT(ObstaclesToAttaching(With("coprocessor$1", "|org.example.Other|1000|"), Orders()),
              IsEmpty());
  hbase::TableDescription table = Theirs();
  table.families.push_back({.name = "tamis"});
  one(table, "family \"tamis\"", "METHOD => 'delete'");
  table = Theirs();
  std::erase_if(table.families, [](const auto& family) { return family.name == "m"; });
  one(table, "column \"cents\" is in family \"m\"", "its families are \"d\", \"other\"");
}

TEST(AttachmentTest, ExpiringCellsNeedIndexesWithoutNulls) {
  const auto expiring = With("d", "TTL", "86400");
  EXPECT_THAT(ObstaclesToAttaching(expiring, Orders()), IsEmpty());
  for (const char* index :
       {"index customer (customer) nulls index", "index customer (customer, cents) nulls skip"}) {
    EXPECT_THAT(ObstaclesToAttaching(expiring, Orders(index)),
                ElementsAre(AllOf(HasSubstr("86400 s"), HasSubstr("--nulls skip"))))
        << index;
  }
}

TEST(AttachmentTest, IndexesGetUnusedNumbers) {
  const auto table = NewTable(Orders(), 1);
  ASSERT_TRUE(table.ok()) << table.status();
  const TableSchema numbered = WithIndexesFrom(*table, 1u << 29);
  EXPECT_EQ(numbered.Validate(), Status());
  EXPECT_EQ(numbered.indexes[0].id, 1u << 29);
  const auto more = WithIndex(numbered, {.name = "cents", .columns = {2}});
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_EQ(more->indexes[1].id, (1u << 29) + 1);
}

hbase::Row RowOf(const std::string& key, const std::string& cents) {
  const auto bytes = std::make_shared<const std::string>(key + "mcents" + cents);
  const std::string_view all = *bytes;
  hbase::Cell cell;
  cell.family = all.substr(key.size(), 1);
  cell.qualifier = all.substr(key.size() + 1, 5);
  cell.value = all.substr(key.size() + 6);
  return {all.substr(0, key.size()), {cell}, bytes};
}

TEST(AttachmentTest, SampleFindsKeysAndCellsThatNeverFit) {
  const TableSchema schema = Orders();
  const std::string id(8, '\1');
  const std::string four(4, '\2');
  RowSample good(schema);
  EXPECT_THAT(good.Faults(), IsEmpty());  // an empty table proves nothing
  good.Add(RowOf(id, four));
  good.Add(RowOf("another key", "12"));  // searches skip keys that cannot be parsed
  good.Add(RowOf(id, "x"));              // cells that cannot be decoded are NULL
  EXPECT_THAT(good.Faults(), IsEmpty());

  RowSample keys(schema);
  keys.Add(RowOf("k\x01", four));
  keys.Add(RowOf("l", four));
  EXPECT_THAT(keys.Faults(), ElementsAre(AllOf(HasSubstr("none of the 2 rows"),
                                               HasSubstr("id int64 'long'"), HasSubstr("k\\x01"))));
  RowSample cells(schema);
  cells.Add(RowOf(id, "123"));
  cells.Add(RowOf(id, "4"));
  EXPECT_THAT(cells.Faults(),
              ElementsAre(AllOf(HasSubstr("none of the 2 cells m:cents"), HasSubstr("encoding int"),
                                HasSubstr("\"123\""), HasSubstr("as encoding text"))));
  RowSample worse(schema);
  worse.Add(RowOf(id, "x,y"));
  EXPECT_THAT(worse.Faults(), ElementsAre(HasSubstr("another type")));
}

}  // namespace
}  // namespace tamis
