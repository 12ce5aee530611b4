#include "tests/cluster/plain_client.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

TableSchema Schema() {
  TableSchema schema;
  schema.name = "t";
  schema.cells = true;
  schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                    {.name = "grp", .type = Type::kText},
                    {.name = "number", .type = Type::kInt64}};
  for (uint32_t i : {1, 2}) {
    schema.columns[i].cell = {"d", schema.columns[i].name};
    schema.columns[i].encoding = DefaultEncoding(schema.columns[i].type);
  }
  schema.key = {0};
  return schema;
}

const Row kRow = {Value::Int64(5), Value::Text("ab"), Value()};

// Begins as a client does, and answers every order with what `answer` says in the shell, where
// $order is the order.
std::unique_ptr<PlainClient> Answering(const std::string& answer) {
  auto started = PlainClient::Start(
      {"/bin/sh", "-c", "echo ready; while read -r order; do echo \"" + answer + "\"; done"});
  EXPECT_TRUE(started.ok()) << started.status();
  return std::move(*started);
}

TEST(PlainClientTest, OrdersNameKeysAndCellsAsTheTableHasThem) {
  const auto client = Answering("may stand <$order>");
  const Status put = client->Put(Schema(), kRow);
  EXPECT_EQ(put.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(put.message(), "<put 028000000000000005 d:grp=6162>");
  EXPECT_EQ(client->Delete(Schema(), kRow).message(), "<delete 028000000000000005>");
  EXPECT_EQ(client->Get(Schema(), kRow).status().message(), "<get 028000000000000005>");
}

TEST(PlainClientTest, ReportsTheOutcomeOfAWrite) {
  EXPECT_TRUE(Answering("done")->Put(Schema(), kRow).ok());
  EXPECT_EQ(Answering("refused why")->Put(Schema(), kRow).code(), StatusCode::kUnavailable);
  EXPECT_EQ(Answering("may stand why")->Put(Schema(), kRow).code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Answering("cells")->Put(Schema(), kRow).code(), StatusCode::kInternal);
}

TEST(PlainClientTest, ReadsCellsAsARow) {
  const auto read = Answering("cells d:grp=6162")->Get(Schema(), kRow);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, RowState(kRow));
  const auto none = Answering("cells")->Get(Schema(), kRow);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(*none, RowState());
}

TEST(PlainClientTest, ClientThatHasEndedIsNotTakenForAServerThatDoesNotAnswer) {
  auto started = PlainClient::Start({"/bin/sh", "-c", "echo ready"});
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_EQ((*started)->Put(Schema(), kRow).code(), StatusCode::kInternal);
  EXPECT_FALSE(PlainClient::Start({"/bin/false"}).ok());
}

}  // namespace
}  // namespace tamis
