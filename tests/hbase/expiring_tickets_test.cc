// Coordinators that run for longer than their users' tickets live, on a real HBase with a real KDC.
// A writer with a ticket of its own goes on all the time: a search that gets an answer misses no
// row that was acknowledged to it.
//
// A connection outlives the ticket that opened it, so the tests break connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "tamis/base/thread_executor.h"
#include "tamis/hbase_cluster/hbase_cluster.h"
#include "tamis/query/engine.h"
#include "tests/hbase/kerberos_users.h"
#include "tests/hbase/local_hbase.h"
#include "tests/hbase/program.h"
#include "tests/hbase/wires.h"

namespace tamis {
namespace {

using testing::HasSubstr;

constexpr char kNamespace[] = "tickets";
constexpr char kTable[] = "orders";
constexpr uint32_t kCustomer = 1;

// A coordinator of one user, whose connections can be broken.
class UsersCoordinator {
 public:
  explicit UsersCoordinator(hbase::ClientOptions options) {
    options.way = [this](const hbase::Address& server) { return wires_.WayTo(server); };
    auto cluster =
        HBaseCluster::Open({.client = std::move(options), .name_space = kNamespace}, &executor_);
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    engine_ = std::make_unique<Engine>(cluster_.get(), &executor_, Engine::Options{});
    // A right that was just granted reaches each server a little later.
    Result<SchemaPtr> table = engine_->Table(kTable);
    while (table.status().message().find("lacks the right") != std::string::npos) {
      table = engine_->Table(kTable);
    }
    EXPECT_TRUE(table.ok()) << table.status();
    table_ = *table;
  }
  ~UsersCoordinator() {
    engine_.reset();
    executor_.Stop();
  }

  bool IsRouted() { return engine_->WaitUntilRouted(*table_, std::chrono::seconds(60)); }
  void BreakConnections() { wires_.Break(); }
  uint64_t polls() const { return engine_->totals().polls; }

  Status Write(int64_t id) {
    Row row{Value::Int64(id), Value::Text(CustomerOf(id))};
    return engine_->Apply(table_, {{.row = std::move(row)}}).front();
  }
  // The number of rows that the index on the customer finds: 1.
  Result<int> Count(int64_t id) {
    RowStream rows =
        engine_->Search(table_, {.predicate = Predicate::Compare(kCustomer, Predicate::Op::kEq,
                                                                 Value::Text(CustomerOf(id)))});
    int count = 0;
    while (true) {
      TAMIS_ASSIGN_OR_RETURN(const auto row, rows.Next());
      if (!row) return count;
      ++count;
    }
  }

 private:
  static std::string CustomerOf(int64_t id) { return "customer " + std::to_string(id); }

  Wires wires_;
  ThreadExecutor executor_{4};
  std::unique_ptr<HBaseCluster> cluster_;
  std::unique_ptr<Engine> engine_;
  SchemaPtr table_;
};

class ExpiringTicketsTest : public testing::Test {
 protected:
  ExpiringTicketsTest() { LocalHBase::Get(); }

  // A table that `user` may read, and a writer.
  void Open(const std::string& user) {
    const std::string store = std::string("hbase:///") + kNamespace + "?site=" + Site();
    const Program program(TAMIS_PROGRAM, store);
    (void)program.Run({"table", "drop", kTable});  // an earlier test's
    program.Do({"table", "create", kTable, "--column", "id:int64", "--column", "customer:text",
                "--key", "id", "--index", "customer"});
    Grant(user, std::string(kNamespace) + ":" + kTable, "XR");
    writer_ = std::make_unique<UsersCoordinator>(UserOptions());
  }
  // Writes a row and has it found.
  void WriteAndFind(UsersCoordinator* reader) {
    ASSERT_EQ(writer_->Write(rows_), Status());
    const auto found = reader->Count(rows_);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, 1) << "row " << rows_;
    ++rows_;
  }
  void ExpectAllRows(UsersCoordinator* reader) {
    for (int64_t id = 0; id < rows_; ++id) {
      const auto found = reader->Count(id);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(*found, 1) << "row " << id;
    }
  }

  std::unique_ptr<UsersCoordinator> writer_;
  int64_t rows_ = 0;  // acknowledged ones
};

TEST_F(ExpiringTicketsTest, CoordinatorWithAKeytabPollsThroughManyLivesOfItsTicket) {
  hbase::ClientOptions options = UserOptions();
  options.kerberos->keytab_file = BriefUser("poller");
  ASSERT_NO_FATAL_FAILURE(Open("poller"));
  const auto begin = std::chrono::steady_clock::now();
  UsersCoordinator reader(options);
  ASSERT_TRUE(reader.IsRouted());
  while (std::chrono::steady_clock::now() < begin + 2 * kBriefLife) {
    ASSERT_NO_FATAL_FAILURE(WriteAndFind(&reader));
    reader.BreakConnections();
  }
  EXPECT_GE(TicketsOf("poller"), 2);
  ASSERT_TRUE(reader.IsRouted());
  const uint64_t polls = reader.polls();
  while (reader.polls() == polls) ASSERT_NO_FATAL_FAILURE(WriteAndFind(&reader));
  ExpectAllRows(&reader);
}

TEST_F(ExpiringTicketsTest, CoordinatorWithATicketCacheSaysKinitAndGoesOnAfterIt) {
  const std::string cache = "FILE:" + Kdc("clerk");
  const std::string keytab = BriefUser("clerk");
  const auto kinit = [&] {
    const std::string command = "kinit -k -t " + keytab + " -c " + cache + " clerk";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  };
  ASSERT_NO_FATAL_FAILURE(Open("clerk"));
  hbase::ClientOptions options = UserOptions();
  options.kerberos->ticket_cache = cache;
  kinit();
  UsersCoordinator reader(options);
  ASSERT_TRUE(reader.IsRouted());
  const auto expired = [&] { return std::system(("klist -s -c " + cache).c_str()) != 0; };
  while (!expired()) ASSERT_NO_FATAL_FAILURE(WriteAndFind(&reader));
  // The connections that there are remain good.
  for (int i = 0; i < 10; ++i) ASSERT_NO_FATAL_FAILURE(WriteAndFind(&reader));

  // Writes are acknowledged though the reader has stopped polling, after its lease has ended. In
  // the second in which the ticket ends a connection may still be opened.
  for (int refusals = 0; refusals < 20;) {
    if (refusals == 0) reader.BreakConnections();
    ASSERT_EQ(writer_->Write(rows_), Status());
    const auto found = reader.Count(rows_++);
    if (refusals == 0 && found.ok()) {
      EXPECT_EQ(*found, 1);
      continue;
    }
    ++refusals;
    EXPECT_THAT(found.status().message(),
                HasSubstr("the Kerberos ticket of clerk@TAMIS.TEST has expired: run kinit again"));
  }

  LocalHBase::Get().Run("kadmin modprinc -maxlife 1hour clerk");
  kinit();
  // A failed connection is not opened again for a second at the most.
  while (!reader.Count(0).ok()) {
  }
  ExpectAllRows(&reader);
  ASSERT_TRUE(reader.IsRouted());
  for (int i = 0; i < 10; ++i) ASSERT_NO_FATAL_FAILURE(WriteAndFind(&reader));
  ExpectAllRows(&reader);
}

}  // namespace
}  // namespace tamis
