#include "tamis/table/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tamis/table/definition.h"
#include "tamis/table/table.pb.h"
#include "tamis/table/testing/random_values.h"

namespace tamis {
namespace {

using testing::HasSubstr;

TEST(SchemaTest, ReadsBack) {
  TableSchema schema = SchemaOfAllTypes();
  schema.id = 7;
  schema.version = 3;
  schema.indexes[1].fpr = 0.01;
  schema.indexes[1].expected_values = 77;
  schema.indexes[1].seed = ~uint64_t{0};
  const auto back = ParseSchema(SerializeSchema(schema));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(SerializeSchema(*back), SerializeSchema(schema));
  EXPECT_EQ(back->ToString(), schema.ToString());
  EXPECT_EQ(back->indexes[1].seed, ~uint64_t{0});
  EXPECT_EQ(back->version, 3u);
}

// A schema as it was stored while the cluster gave index ids, before tables had other formats.
TEST(SchemaTest, AnOlderSchemaGoesOnBehindItsIndexIds) {
  TableSchema schema = SchemaOfAllTypes();
  schema.next_index_id = 90;
  schema.indexes[0].id = 77;
  std::string bytes = SerializeSchema(schema);
  const std::string next("\x40\x5a", 2);  // next_index_id: field 8, varint 90
  const size_t at = bytes.find(next);
  ASSERT_NE(at, std::string::npos);
  bytes.erase(at, next.size());
  const auto old = ParseSchema(bytes);
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(old->next_index_id, 78u);
  EXPECT_FALSE(old->cells);
  EXPECT_TRUE(old->key_parts.empty());
  EXPECT_EQ(old->indexes[0].nulls, IndexNulls::kIndex);
}

TEST(SchemaTest, DescribesItself) {
  EXPECT_EQ(SchemaOfAllTypes().ToString(), R"(table t (
  c1 text not null,
  c2 bytes,
  c3 int64 not null,
  c4 double,
  c5 bool,
  c6 timestamp,
  c7 decimal,
  key (c1, c3),
  index by_four (c2, c4, c7, c3) fpr 0.001 expected_values 10000,
  index by_bool (c5) fpr 0.001 expected_values 10000
))");
}

TEST(SchemaTest, FindsColumnsAndIndexes) {
  const TableSchema schema = SchemaOfAllTypes();
  EXPECT_EQ(schema.FindColumn("c3"), 2u);
  EXPECT_EQ(schema.FindColumn("c9"), std::nullopt);
  EXPECT_EQ(schema.FindIndex("by_bool")->id, 2u);
  EXPECT_EQ(schema.FindIndex(1u)->name, "by_four");
  EXPECT_EQ(schema.FindIndex("other"), nullptr);
  EXPECT_TRUE(schema.IsKey(2));
  EXPECT_FALSE(schema.IsKey(1));
}

TEST(SchemaTest, RefusesWhatCannotBe) {
  const auto refusal = [](auto change) {
    TableSchema schema = SchemaOfAllTypes();
    EXPECT_TRUE(schema.Validate().ok());
    change(schema);
    const Status status = schema.Validate();
    EXPECT_FALSE(ParseSchema(SerializeSchema(schema)).ok());
    return status.message();
  };
  EXPECT_THAT(refusal([](auto& s) { s.name = "A"; }), HasSubstr("not usable"));
  EXPECT_THAT(refusal([](auto& s) { s.name = ""; }), HasSubstr("not usable"));
  EXPECT_THAT(refusal([](auto& s) { s.columns[0].name = "tamis_key"; }), HasSubstr("reserved"));
  EXPECT_THAT(refusal([](auto& s) { s.columns[1].name = "c1"; }), HasSubstr("two columns"));
  EXPECT_THAT(refusal([](auto& s) { s.columns[1].id = 1; }), HasSubstr("taken"));
  EXPECT_THAT(refusal([](auto& s) { s.next_column_id = 3; }), HasSubstr("not given out"));
  EXPECT_THAT(refusal([](auto& s) { s.columns[1].type = static_cast<Type>(99); }),
              HasSubstr("unknown type"));
  EXPECT_THAT(refusal([](auto& s) { s.key.clear(); }), HasSubstr("0 columns"));
  EXPECT_THAT(refusal([](auto& s) { s.key = {0, 0}; }), HasSubstr("twice"));
  EXPECT_THAT(refusal([](auto& s) { s.key = {1}; }), HasSubstr("nullable"));
  EXPECT_THAT(refusal([](auto& s) { s.key = {99}; }), HasSubstr("does not have"));
  EXPECT_THAT(refusal([](auto& s) { s.indexes[0].columns = {50}; }), HasSubstr("does not have"));
  EXPECT_THAT(refusal([](auto& s) { s.indexes[0].name = "by_bool"; }), HasSubstr("twice"));
  EXPECT_THAT(refusal([](auto& s) { s.indexes[0].fpr = 0; }), HasSubstr("false-positive"));
  EXPECT_THAT(refusal([](auto& s) { s.indexes[0].fpr = __builtin_nan(""); }),
              HasSubstr("false-positive"));
  EXPECT_THAT(refusal([](auto& s) { s.indexes[0].expected_values = 0; }), HasSubstr("expected"));
}

// Written by a later version, or damaged: no number is taken for one that it is not.
TEST(SchemaTest, NumbersThatNameNoEncodingFormOrNullsAreRefused) {
  const auto cells = ParseDefinition("t", {"k bytes not null", "n int64 cell 'd:n:long'",
                                           "key (k 'rest')", "index n (n) nulls skip"});
  ASSERT_TRUE(cells.ok()) << cells.status();
  pb::Schema good;
  ASSERT_TRUE(good.ParseFromString(SerializeSchema(*cells)));
  EXPECT_EQ(good.columns(1).encoding(), pb::Column::LONG);
  EXPECT_EQ(good.key_parts(0).form(), pb::KeyPart::REST);
  EXPECT_EQ(good.indexes(0).nulls(), pb::Index::SKIP);
  ASSERT_TRUE(ParseSchema(good.SerializeAsString()).ok());
  for (const int number : {20, 255, 256, 0x7fffffff, -1}) {
    for (int field = 0; field < 4; ++field) {
      pb::Schema bad = good;
      const auto encoding = static_cast<pb::Column::Encoding>(number);
      if (field == 0) bad.mutable_columns(1)->set_encoding(encoding);
      if (field == 1) bad.mutable_key_parts(0)->set_encoding(encoding);
      if (field == 2) bad.mutable_key_parts(0)->set_form(static_cast<pb::KeyPart::Form>(number));
      if (field == 3) bad.mutable_indexes(0)->set_nulls(static_cast<pb::Index::Nulls>(number));
      EXPECT_EQ(ParseSchema(bad.SerializeAsString()).status().code(), StatusCode::kDataLoss)
          << "field " << field << ", number " << number;
    }
  }
}

// Software from before extensions takes nulls = 0 and 1 only, and ignores the extension.
TEST(SchemaTest, AnIndexWithMoreThanColumnsIsRefusedByOlderSoftware) {
  TableSchema schema = SchemaOfAllTypes();
  const auto written = [&] {
    pb::Schema message;
    EXPECT_TRUE(message.ParseFromString(SerializeSchema(schema)));
    return message.indexes(1);
  };
  EXPECT_EQ(written().nulls(), pb::Index::INDEX);
  EXPECT_FALSE(written().has_extension());
  schema.indexes[1].nulls = IndexNulls::kSkip;
  EXPECT_EQ(written().nulls(), pb::Index::SKIP);
  EXPECT_FALSE(written().has_extension());
  schema.indexes[1].include = {1, 3};
  EXPECT_EQ(written().ShortDebugString(),
            "id: 2 name: \"by_bool\" columns: 4 fpr: 0.001 expected_values: 10000 nulls: EXTENDED "
            "extension { required: INCLUDE nulls: SKIP include: 1 include: 3 }");
  schema.indexes[1].include.clear();
  schema.indexes[1].where = Predicate::IsNull(1);
  EXPECT_EQ(written().ShortDebugString(),
            "id: 2 name: \"by_bool\" columns: 4 fpr: 0.001 expected_values: 10000 nulls: EXTENDED "
            "extension { required: WHERE nulls: SKIP where { kind: IS_NULL column: 1 } }");
}

TEST(SchemaTest, CellMapsOfIndexesAreWrittenAndRead) {
  TableSchema schema = SchemaOfAllTypes();
  schema.indexes[1].cell_map =
      std::make_shared<const CellMap>(*CellMap::Create({{"a", 1}, {"b", 7}}, 9));
  const std::string bytes = SerializeSchema(schema);
  pb::Schema written;
  ASSERT_TRUE(written.ParseFromString(bytes));
  EXPECT_EQ(written.indexes(1).nulls(), pb::Index::EXTENDED);
  const auto read = ParseSchema(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_NE(read->indexes[1].cell_map, nullptr);
  EXPECT_EQ(*read->indexes[1].cell_map, *schema.indexes[1].cell_map);
  EXPECT_EQ(read->indexes[0].cell_map, nullptr);
  EXPECT_EQ(SerializeSchema(*read), bytes);
  EXPECT_THAT(read->ToString(), HasSubstr("expected_values 10000 ranges\n"));
  written.mutable_indexes(1)->mutable_extension()->set_cell_map("damaged");
  EXPECT_FALSE(ParseSchema(written.SerializeAsString()).ok());
}

TEST(SchemaTest, FeaturesOfIndexesThatAreNotSupportedAreRefused) {
  using Extension = pb::Index::Extension;
  pb::Schema good;
  ASSERT_TRUE(good.ParseFromString(SerializeSchema(SchemaOfAllTypes())));
  const auto refusal = [&](auto change) {
    pb::Schema bad = good;
    pb::Index* index = bad.mutable_indexes(1);
    index->set_nulls(pb::Index::EXTENDED);
    change(index->mutable_extension());
    const Status status = ParseSchema(bad.SerializeAsString()).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
    return status.message();
  };
  EXPECT_EQ(refusal([](Extension* e) { e->add_required(static_cast<Extension::Feature>(99)); }),
            "cannot read a table schema: index \"by_bool\" requires feature number 99, which this "
            "version does not know; use the version that made the index");
  EXPECT_THAT(refusal([](Extension* e) { e->add_required(Extension::NO_FEATURE); }),
              HasSubstr("requires feature number 0"));
  EXPECT_THAT(refusal([](Extension* e) { e->add_required(Extension::COMPUTED); }),
              HasSubstr("requires COMPUTED, which this version does not support"));
  EXPECT_THAT(refusal([](Extension* e) { e->add_required(Extension::RANGES); }),
              HasSubstr("exactly the features"));
  EXPECT_THAT(refusal([](Extension*) {}), HasSubstr("exactly the features"));
  EXPECT_THAT(refusal([](Extension* e) { e->add_include(1); }), HasSubstr("exactly the features"));
  EXPECT_THAT(refusal([](Extension* e) { e->add_required(Extension::INCLUDE); }),
              HasSubstr("exactly the features"));
  EXPECT_THAT(refusal([](Extension* e) { e->add_required(Extension::WHERE); }),
              HasSubstr("exactly the features"));
}

TEST(SchemaTest, AnExtensionThatIsNotAnnouncedIsRefused) {
  pb::Schema bad;
  ASSERT_TRUE(bad.ParseFromString(SerializeSchema(SchemaOfAllTypes())));
  bad.mutable_indexes(0)->mutable_extension()->add_required(pb::Index::Extension::INCLUDE);
  bad.mutable_indexes(0)->mutable_extension()->add_include(4);
  EXPECT_EQ(ParseSchema(bad.SerializeAsString()).status().code(), StatusCode::kDataLoss);
}

TEST(SchemaTest, IncludedColumnsAndConditionsAreChecked) {
  TableSchema schema = SchemaOfAllTypes();
  IndexSpec& index = schema.indexes[1];
  const auto refusal = [&] { return schema.Validate().message(); };
  index.include = {99};
  EXPECT_THAT(refusal(), HasSubstr("column number 99, which the table does not have"));
  index.include = {1, 1};
  EXPECT_THAT(refusal(), HasSubstr("twice"));
  index.include = {4};
  EXPECT_THAT(refusal(), HasSubstr("which its entries have already because it is indexed"));
  index.include = {2};
  EXPECT_THAT(refusal(), HasSubstr("which its entries have already because it is in the key"));
  index.include = {1};
  EXPECT_EQ(refusal(), "");
  index.include.clear();
  index.where = Predicate::NotNull(50);
  EXPECT_THAT(refusal(), HasSubstr("names column number 50"));
  index.where = Predicate::NotNull(1);
  for (int i = 0; i < 20; ++i) index.where = Predicate::Not(index.where);
  EXPECT_THAT(refusal(), HasSubstr("nested more than 20 deep"));
  index.where = index.where.children[0];
  EXPECT_EQ(refusal(), "");
}

TEST(SchemaTest, DescribesIncludedColumnsAndConditions) {
  TableSchema schema = SchemaOfAllTypes();
  schema.indexes[0].include = {4, 5};
  schema.indexes[0].where = Predicate::IsNull(5);
  EXPECT_THAT(schema.ToString(), HasSubstr(" (c2, c4, c7, c3) fpr 0.001 expected_values 10000 "
                                           "include (c5, c6) where c6 IS NULL,\n"));
}

TEST(SchemaTest, DamagedBytesAreDataLoss) {
  EXPECT_EQ(ParseSchema("\xff\xff").status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(ParseSchema("").status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tamis
