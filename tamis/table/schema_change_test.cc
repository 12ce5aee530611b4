#include "tamis/table/schema_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tamis/table/testing/random_values.h"

namespace tamis {
namespace {

using ::testing::HasSubstr;

TEST(SchemaChangeTest, IdsAreGivenWithinTheTableAndNeverAgain) {
  TableSchema schema = *NewTable(SchemaOfAllTypes(), 9);
  EXPECT_EQ(schema.id, 9u);
  EXPECT_EQ(schema.version, 1u);
  EXPECT_EQ(schema.indexes[1].id, 2u);
  schema = *WithoutIndex(schema, "by_bool");
  EXPECT_EQ(schema.version, 2u);
  schema = *WithIndex(schema, {.name = "other", .columns = {1}});
  EXPECT_EQ(schema.version, 3u);
  EXPECT_EQ(schema.FindIndex("other")->id, 3u);
  EXPECT_EQ(schema.next_index_id, 4u);
  schema = *WithColumn(schema, {.name = "c8", .type = Type::kText});
  EXPECT_EQ(schema.version, 4u);
  EXPECT_EQ(schema.columns.back().id, 8u);
  EXPECT_EQ(ParseSchema(SerializeSchema(schema))->next_index_id, 4u);
}

TEST(SchemaChangeTest, InvalidChangeIsRefused) {
  const TableSchema schema = *NewTable(SchemaOfAllTypes(), 9);
  EXPECT_EQ(WithoutIndex(schema, "none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(WithIndex(schema, {.name = "by_bool", .columns = {1}}).status().code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(WithIndex(schema, {.name = "x", .columns = {77}}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(WithColumn(schema, {.name = "c1"}).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(WithColumn(schema, {.name = "n", .nullable = false}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(WithColumn(schema, {.name = "Bad Name"}).status().code(), StatusCode::kInvalidArgument);
}

// A filter of a region cannot hold more; a table that exists may expect more.
TEST(SchemaChangeTest, MoreExpectedValuesThanAFilterHoldsAreRefused) {
  constexpr uint64_t kGreatest = uint64_t{1} << 31;
  TableSchema schema = *NewTable(SchemaOfAllTypes(), 9);
  EXPECT_TRUE(WithIndex(schema, {.name = "x", .columns = {1}, .expected_values = kGreatest}).ok());
  const auto index =
      WithIndex(schema, {.name = "x", .columns = {1}, .expected_values = kGreatest + 1});
  EXPECT_THAT(index.status().message(),
              HasSubstr("2147483649 expected values of a region are more than the 2147483648"));
  schema.indexes[0].expected_values = kGreatest + 1;
  EXPECT_EQ(NewTable(schema, 9).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(ParseSchema(SerializeSchema(schema)).ok());
}

}  // namespace
}  // namespace tamis
