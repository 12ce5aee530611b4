// A real HBase that accepts only TLS connections with a client certificate: the client and the
// program work over TLS, and refused clients get the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tamis/hbase/client.h"
#include "tamis/store/hbase_name.h"
#include "tests/hbase/local_hbase.h"
#include "tests/hbase/program.h"

namespace tamis {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class TlsOnHBaseTest : public testing::Test {
 protected:
  TlsOnHBaseTest() : addresses_(LocalHBase::Get().addresses()) {
    store_ = LocalHBase::Get().Run("store secret");
    store_.pop_back();  // the newline
    const auto name = ParseHBaseName(store_);
    EXPECT_TRUE(name.ok()) << name.status();
    EXPECT_TRUE(name.ok() && name->client.tls) << store_;
    if (name.ok() && name->client.tls) tls_ = *name->client.tls;
  }

  // Returns the error of a client with these TLS options.
  Status Refusal(std::optional<hbase::TlsOptions> tls) const {
    const auto client = hbase::Client::Open({.addresses = addresses_,
                                             .tls = std::move(tls),
                                             .operation_timeout = std::chrono::seconds(5)});
    EXPECT_TRUE(client.ok()) << client.status();
    return (*client)->Tables().status();
  }

  const std::string addresses_;
  std::string store_;
  hbase::TlsOptions tls_;
};

TEST_F(TlsOnHBaseTest, RowsAndRegionsWorkOverTls) {
  const auto opened = hbase::Client::Open({.addresses = addresses_, .tls = tls_});
  ASSERT_TRUE(opened.ok()) << opened.status();
  hbase::Client& client = **opened;
  ASSERT_EQ(client.CreateTable({.name = "t", .families = {{.name = "f"}}}, {"r0250", "r0500"}),
            Status());
  const auto regions = client.Regions("t");
  ASSERT_TRUE(regions.ok()) << regions.status();
  EXPECT_EQ(regions->size(), 3u);

  // Values of one megabyte in total: many TLS records in both directions.
  std::vector<hbase::Mutation> puts;
  std::vector<hbase::Get> gets;
  for (int i = 0; i < 1000; ++i) {
    const std::string row = "r" + std::to_string(10000 + i).substr(1);
    puts.push_back(hbase::Mutation::Put(row).Set("f", "q", row + std::string(1000, 'v')));
    gets.push_back({.row = row});
  }
  for (const auto& put : client.Mutate("t", puts, hbase::WriteOptions())) {
    ASSERT_TRUE(put.ok()) << put.status();
  }
  const auto rows = client.Get("t", gets);
  ASSERT_EQ(rows.size(), gets.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_TRUE(rows[i].ok()) << rows[i].status();
    EXPECT_EQ(rows[i]->Find("f", "q"), gets[i].row + std::string(1000, 'v'));
  }
  size_t scanned = 0;
  const auto stream = client.Scan("t", {});
  while (true) {
    const auto batch = stream->Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    if (batch->empty()) break;
    scanned += batch->size();
  }
  EXPECT_EQ(scanned, gets.size());
  ASSERT_EQ(client.DisableTable("t"), Status());
  ASSERT_EQ(client.DeleteTable("t"), Status());
}

TEST_F(TlsOnHBaseTest, TablesIndexesAndSqlWorkOverTls) {
  const Program program(TAMIS_PROGRAM, store_);
  program.Do({"table", "create", "orders", "--column", "id:int64", "--column", "customer:text",
              "--key", "id", "--index", "customer"});
  program.Do({"sql", "INSERT INTO orders VALUES (1, 'kim'), (2, 'lee'), (3, 'kim')"});
  EXPECT_EQ(program.Do({"sql", "--format", "csv",
                        "SELECT id FROM orders WHERE customer = 'kim' ORDER BY id"}),
            "id\n1\n3\n");
  EXPECT_THAT(program.Do({"explain", "SELECT * FROM orders WHERE customer = 'kim'"}),
              HasSubstr("looked up by index"));
  program.Do({"check", "orders"});
}

TEST_F(TlsOnHBaseTest, RefusedClientsGetTheReason) {
  const Status plain = Refusal({});
  EXPECT_THAT(plain.message(), HasSubstr("Does it require TLS or Kerberos?"));

  Status untrusted = Refusal(hbase::TlsOptions{.certificate_file = tls_.certificate_file});
  EXPECT_EQ(untrusted.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(untrusted.message(), AllOf(HasSubstr("its certificate is not trusted"),
                                         Not(HasSubstr("it does not speak TLS"))));

  const Status nobody = Refusal(hbase::TlsOptions{.ca_file = tls_.ca_file});
  EXPECT_EQ(nobody.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(nobody.message(), HasSubstr("it requires a client certificate"));

  const std::string without = store_.substr(0, store_.find('?'));
  const Program program(TAMIS_PROGRAM, without + "?tls=true");
  EXPECT_THAT(program.Fail({"table", "list"}),
              AllOf(HasSubstr("cannot open store"), HasSubstr("its certificate is not trusted")));
}

}  // namespace
}  // namespace tamis
