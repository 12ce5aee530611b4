// Tables that another HBase client creates and keeps writing: they are attached, queried in SQL,
// indexed during writes, detached, and attached again
// (docs/HBASE.md#attaching-an-existing-table).

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "tamis/base/thread_executor.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase_cluster/hbase_cluster.h"
#include "tamis/query/engine.h"
#include "tests/hbase/local_hbase.h"
#include "tests/hbase/program.h"

namespace tamis {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kCustomers = 7;
constexpr int kFirstRows = 300;

std::string Long(uint64_t number) {
  std::string bytes(8, '\0');
  for (int i = 7; i >= 0; --i, number >>= 8)
    bytes[static_cast<size_t>(i)] = static_cast<char>(number);
  return bytes;
}

std::string Int(uint32_t number) { return Long(number).substr(4); }

// A table and its owner, a client that does not know Tamis. Each row has a number as its key, two
// columns in two families, and a cell that the schema does not name.
class Owner {
 public:
  Owner(hbase::Client* client, std::string table) : client_(*client), table_(std::move(table)) {}

  Status Create(std::map<std::string, std::string> family = {},
                std::map<std::string, std::string> attributes = {}) {
    hbase::TableDescription description{.name = table_, .attributes = std::move(attributes)};
    description.families = {{.name = "d", .attributes = std::move(family)}, {.name = "m"}};
    return client_.CreateTable(description, {Long(100), Long(200), Long(1000)});
  }
  // Ok if the put was acknowledged.
  Status Put(uint64_t id) {
    const int customer = static_cast<int>(id * 31 % kCustomers);
    hbase::Mutation put = hbase::Mutation::Put(Long(id));
    put.Set("d", "Customer", "c" + std::to_string(customer));
    put.Set("m", "cents", Int(static_cast<uint32_t>(id * 10)));
    put.Set("d", "unknown", "stays");
    const auto done = client_.Mutate(table_, std::move(put));
    if (!done.ok()) return done.status();
    std::lock_guard lock(mutex_);
    customers_[id] = customer;
    return Status::Ok();
  }
  Status Fill(uint64_t from, uint64_t to) {
    for (uint64_t id = from; id < to; ++id) TAMIS_RETURN_IF_ERROR(Put(id));
    return Status::Ok();
  }
  // The ids of a customer, or of all rows, in the program's output format.
  std::string IdsOf(int customer) const {
    std::lock_guard lock(mutex_);
    std::string text = "id\n";
    for (const auto& [id, its] : customers_) {
      if (its == customer) text += std::to_string(id) + "\n";
    }
    return text;
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return customers_.size();
  }
  // Reads the table with the owner's client and counts the rows that are as they were written.
  Result<size_t> CountRight() {
    const auto rows = client_.Scan(table_, {});
    size_t right = 0;
    while (true) {
      TAMIS_ASSIGN_OR_RETURN(const auto some, rows->Next());
      if (some.empty()) return right;
      std::lock_guard lock(mutex_);
      for (const hbase::Row& row : some) {
        uint64_t id = 0;
        for (const char c : row.key()) id = id << 8 | static_cast<unsigned char>(c);
        const auto its = customers_.find(id);
        if (its == customers_.end() || row.cells().size() != 3) continue;
        right += row.Find("d", "Customer") == "c" + std::to_string(its->second) &&
                 row.Find("m", "cents") == Int(static_cast<uint32_t>(id * 10)) &&
                 row.Find("d", "unknown") == "stays";
      }
    }
  }
  const std::string& table() const { return table_; }

 private:
  hbase::Client& client_;
  const std::string table_;
  mutable std::mutex mutex_;
  std::map<uint64_t, int> customers_;  // the acknowledged rows
};

// Writes more rows until it is stopped.
class Writer {
 public:
  Writer(Owner* owner, uint64_t from)
      : thread_([this, owner, from] {
          for (uint64_t id = from; !stop_; ++id) {
            // A failed put may have been applied, so repeat it until it is acknowledged.
            while (!owner->Put(id).ok() && !stop_) {
            }
            ++written_;
          }
        }) {}
  ~Writer() { Stop(); }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int written() const { return written_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> written_ = 0;
  std::thread thread_;
};

class AttachOnHBaseTest : public testing::Test {
 protected:
  AttachOnHBaseTest() {
    static int number = 0;
    name_space_ = "attach" + std::to_string(++number);
    auto opened = hbase::Client::Open({.addresses = LocalHBase::Get().addresses()});
    EXPECT_TRUE(opened.ok()) << opened.status();
    client_ = *std::move(opened);
    EXPECT_EQ(client_->CreateNamespace(name_space_), Status());
    program_ = std::make_unique<Program>(
        TAMIS_PROGRAM, "hbase://" + LocalHBase::Get().addresses() + "/" + name_space_);
  }
  ~AttachOnHBaseTest() override {
    const auto tables = client_->Tables(name_space_);
    if (!tables.ok()) return;
    for (const auto& table : *tables) {
      (void)client_->DisableTable(table.name);
      (void)client_->DeleteTable(table.name);
    }
    (void)client_->DeleteNamespace(name_space_);
  }

  Owner NewOwner(const std::string& name) { return Owner(client_.get(), name_space_ + ":" + name); }
  static std::vector<std::string> Attach(const std::string& name, const std::string& hbase_name) {
    return {"table",
            "attach",
            name,
            "--hbase-table",
            hbase_name,
            "--key",
            "id:int64",
            "--column",
            "customer=d:Customer:text",
            "--column",
            "cents=m:cents:int64:int"};
  }
  // Starts the program, and kills it as soon as the description of the table is as expected.
  void Interrupt(const std::vector<std::string>& words, const std::string& hbase_table,
                 bool indexed) {
    const int child = program_->Start(words);
    while (true) {
      int status = 0;
      const bool ended = waitpid(child, &status, WNOHANG) == child;
      const auto table = client_->Table(hbase_table);
      ASSERT_TRUE(table.ok()) << table.status();
      if (table->attributes.contains("tamis.schema") == indexed) {
        if (ended) return;
        break;
      }
      ASSERT_FALSE(ended) << "it ended with " << status;
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  void Complete(const std::string& table) {
    while (program_->Do({"index", "list", table}).find("being built") != std::string::npos) {
    }
  }
  void ExpectEveryCustomer(const std::string& table, const Owner& owner) {
    for (int customer = 0; customer < kCustomers; ++customer) {
      EXPECT_EQ(program_->Do({"sql", "--format", "csv",
                              "SELECT id FROM " + table + " WHERE customer = 'c" +
                                  std::to_string(customer) + "' ORDER BY id"}),
                owner.IdsOf(customer));
    }
  }

  std::string name_space_;
  std::unique_ptr<hbase::Client> client_;
  std::unique_ptr<Program> program_;
};

TEST_F(AttachOnHBaseTest, ForeignTableIsQueriedIndexedAndDetachedDuringWrites) {
  Owner owner = NewOwner("Orders.2024");
  ASSERT_EQ(owner.Create(), Status());
  ASSERT_EQ(owner.Fill(0, kFirstRows), Status());
  {
    Writer writer(&owner, 1000);
    program_->Do(Attach("orders", "Orders.2024"));
    // Immediately after attaching, the existing rows are found.
    EXPECT_EQ(program_->Do(
                  {"sql", "--format", "csv", "SELECT count(*) AS n FROM orders WHERE id < 1000"}),
              "n\n" + std::to_string(kFirstRows) + "\n");
    program_->Do({"index", "create", "orders", "customer", "customer"});
    program_->Do({"index", "create", "orders", "money", "cents,customer"});
    Complete("orders");
    writer.Stop();
    EXPECT_GT(writer.written(), 0);
  }
  ExpectEveryCustomer("orders", owner);
  EXPECT_THAT(program_->Do({"explain", "SELECT id FROM orders WHERE customer = 'c1'"}),
              HasSubstr("customer"));
  EXPECT_EQ(program_->Do({"sql", "--format", "csv", "SELECT id FROM orders WHERE cents = 2990"}),
            "id\n299\n");
  program_->Do({"check", "orders"});
  // The owner's next put is found by index once it is acknowledged. The owner reads what SQL
  // writes, and SQL keeps cells that the schema does not name.
  ASSERT_EQ(owner.Put(500), Status());
  ExpectEveryCustomer("orders", owner);
  program_->Do({"sql", "UPDATE orders SET cents = 5 WHERE id = 3"});
  auto row = client_->Get(owner.table(), {.row = Long(3)});
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->Find("m", "cents"), Int(5));
  EXPECT_EQ(row->Find("d", "unknown"), "stays");
  EXPECT_EQ(row->cells().size(), 3u);  // no marker
  ASSERT_EQ(owner.Put(3), Status());

  {
    Writer writer(&owner, 100'000);
    program_->Do({"table", "detach", "orders"});
    writer.Stop();
  }
  const auto plain = client_->Table(owner.table());
  ASSERT_TRUE(plain.ok()) << plain.status();
  for (const auto& [name, value] : plain->attributes) {
    EXPECT_THAT(name + value, Not(HasSubstr("tamis")));
  }
  EXPECT_EQ(plain->families.size(), 2u);
  const auto right = owner.CountRight();
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_EQ(*right, owner.size());
  EXPECT_THAT(program_->Fail({"sql", "SELECT * FROM orders"}), HasSubstr("orders"));
  EXPECT_THAT(program_->Fail({"table", "detach", "orders"}), HasSubstr("no table \"orders\""));

  // Tamis does not see these writes; after the table is attached again, they are indexed all the
  // same.
  ASSERT_EQ(owner.Fill(2'000'000, 2'000'050), Status());
  auto again = Attach("sales", name_space_ + ":Orders.2024");
  again.insert(again.end(), {"--index", "customer"});
  program_->Do(again);
  Complete("sales");
  ExpectEveryCustomer("sales", owner);
  program_->Do({"check", "sales"});
}

TEST_F(AttachOnHBaseTest, InterruptedAttachAndDetachCanBeRepeated) {
  Owner owner = NewOwner("t");
  ASSERT_EQ(owner.Create(), Status());
  ASSERT_EQ(owner.Fill(0, 50), Status());
  Interrupt(Attach("t", "t"), owner.table(), true);
  program_->Do(Attach("t", "t"));
  program_->Do({"index", "create", "t", "customer", "customer"});
  Complete("t");
  ExpectEveryCustomer("t", owner);

  Interrupt({"table", "detach", "t"}, owner.table(), false);
  program_->Do(Attach("t", "t"));  // waits for the detaching in progress
  ExpectEveryCustomer("t", owner);
}

TEST_F(AttachOnHBaseTest, DoctorReportsProblems) {
  Owner owner = NewOwner("t");
  ASSERT_EQ(owner.Create(), Status());
  program_->Do(Attach("t", "t"));
  const std::string well = program_->Do({"doctor"});
  EXPECT_THAT(well, AllOf(HasSubstr("each of master"), HasSubstr("has the jar of version"),
                          HasSubstr("indexed as \"t\""), HasSubstr("LocalFileSystem"),
                          Not(HasSubstr("to do"))));

  // Simulates a table whose schema was removed while other attributes stayed, before the guard was
  // loaded.
  auto table = client_->Table(owner.table());
  ASSERT_TRUE(table.ok()) << table.status();
  program_->Do({"table", "detach", "t"});
  ASSERT_EQ(client_->DisableTable(owner.table()), Status());
  ASSERT_EQ(client_->DeleteTable(owner.table()), Status());
  table->attributes.erase("tamis.schema");
  ASSERT_EQ(client_->CreateTable(*table), Status());
  const auto amiss = nlohmann::json::parse(program_->Fail({"doctor", "--json"}));
  EXPECT_FALSE(amiss["fine"]);
  int to_do = 0;
  for (const auto& finding : amiss["findings"]) {
    if (finding["kind"] != "to do") continue;
    ++to_do;
    EXPECT_EQ(finding["subjects"], nlohmann::json::array({"table " + owner.table()}));
    EXPECT_THAT(finding["text"].get<std::string>(), HasSubstr("no schema of Tamis"));
  }
  EXPECT_EQ(to_do, 1);
  EXPECT_THAT(program_->Fail(Attach("t", "t")), HasSubstr("table detach --hbase-table"));
  program_->Do({"table", "detach", "--hbase-table", "t"});
  program_->Do(Attach("t", "t"));
}

TEST_F(AttachOnHBaseTest, GuardRefusesToRemoveTheSchemaAlone) {
  Owner owner = NewOwner("t");
  ASSERT_EQ(owner.Create(), Status());
  program_->Do(Attach("t", "t"));
  const auto table = client_->Table(owner.table());
  ASSERT_TRUE(table.ok()) << table.status();
  for (const char* attribute : {"tamis.schema", "tamis.table", "SPLIT_POLICY", "coprocessor$1"}) {
    hbase::TableDescription less = *table;
    ASSERT_EQ(less.attributes.erase(attribute), 1u) << attribute;
    EXPECT_EQ(client_->ModifyTable(less).code(), StatusCode::kInvalidArgument) << attribute;
  }
  hbase::TableDescription less = *table;
  std::erase_if(less.families, [](const auto& family) { return family.name == "tamis"; });
  EXPECT_EQ(client_->ModifyTable(less).code(), StatusCode::kInvalidArgument);
  program_->Do({"table", "detach", "t"});
}

TEST_F(AttachOnHBaseTest, CopyHasNoNameUntilItIsAttached) {
  Owner owner = NewOwner("Rates");
  ASSERT_EQ(owner.Create(), Status());
  ASSERT_EQ(owner.Fill(0, 20), Status());
  auto attach = Attach("rates", "Rates");
  attach.insert(attach.end(), {"--index", "customer"});
  program_->Do(attach);
  // Copies all attributes, as clone_snapshot and clone_table_schema do. The copy's name sorts
  // first.
  auto description = client_->Table(owner.table());
  ASSERT_TRUE(description.ok()) << description.status();
  Owner copy = NewOwner("Backup_Rates");
  description->name = copy.table();
  ASSERT_EQ(client_->CreateTable(*description), Status());
  ASSERT_EQ(copy.Fill(1000, 1003), Status());

  ExpectEveryCustomer("rates", owner);
  program_->Do({"sql", "UPDATE rates SET cents = 7 WHERE id = 3"});
  const auto row = client_->Get(owner.table(), {.row = Long(3)});
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->Find("m", "cents"), Int(7));
  ASSERT_EQ(owner.Put(3), Status());
  const std::string is_copy = "a copy of \"" + owner.table() + "\"";
  EXPECT_THAT(program_->Do({"table", "list"}), AllOf(HasSubstr("rates\n"), HasSubstr(is_copy)));
  EXPECT_THAT(program_->Do({"doctor"}), HasSubstr(is_copy));
  EXPECT_THAT(program_->Fail({"table", "attach", "rates", "--hbase-table", "Backup_Rates"}),
              AllOf(HasSubstr(owner.table()), HasSubstr("choose another name")));

  program_->Do({"table", "attach", "old_rates", "--hbase-table", "Backup_Rates"});
  Complete("old_rates");
  ExpectEveryCustomer("old_rates", copy);
  ExpectEveryCustomer("rates", owner);
  program_->Do({"check", "old_rates"});
  EXPECT_EQ(program_->Do({"table", "list"}), "old_rates\nrates\n");
  program_->Do({"table", "detach", "--hbase-table", "Backup_Rates"});
  ExpectEveryCustomer("rates", owner);
  const auto right = copy.CountRight();
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_EQ(*right, copy.size());
  EXPECT_THAT(program_->Fail({"table", "detach", "--hbase-table", "Backup_Rates"}),
              HasSubstr("it is not attached"));
  EXPECT_THAT(program_->Fail({"table", "attach", "again", "--hbase-table", "Backup_Rates"}),
              HasSubstr("it has no definition of its own"));
}

TEST_F(AttachOnHBaseTest, DropKeepsAForeignTableUnlessForced) {
  Owner owner = NewOwner("Orders");
  ASSERT_EQ(owner.Create(), Status());
  ASSERT_EQ(owner.Fill(0, 5), Status());
  program_->Do(Attach("orders", "Orders"));
  EXPECT_THAT(program_->Fail({"table", "drop", "orders"}),
              AllOf(HasSubstr("table detach orders"), HasSubstr("--delete-hbase-table"),
                    HasSubstr(owner.table())));
  EXPECT_THAT(program_->Fail({"sql", "DROP TABLE orders"}), HasSubstr("table detach orders"));
  ExpectEveryCustomer("orders", owner);
  program_->Do({"table", "drop", "orders", "--delete-hbase-table"});
  EXPECT_EQ(client_->Table(owner.table()).status().code(), StatusCode::kNotFound);
  // A table that Tamis created is dropped without the option.
  program_->Do({"table", "create", "made", "--column", "id:int64", "--key", "id"});
  program_->Do({"table", "drop", "made"});
  EXPECT_EQ(client_->Table(name_space_ + ":made").status().code(), StatusCode::kNotFound);
}

TEST_F(AttachOnHBaseTest, RunningCoordinatorFindsATableThatWasAttachedAgain) {
  Owner owner = NewOwner("t");
  ASSERT_EQ(owner.Create(), Status());
  ASSERT_EQ(owner.Fill(0, 20), Status());
  program_->Do(Attach("t", "t"));
  ThreadExecutor executor(2);
  auto cluster = HBaseCluster::Open(
      {.client = {.addresses = LocalHBase::Get().addresses()}, .name_space = name_space_},
      &executor);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Engine engine(cluster->get(), &executor, {});
  const auto count = [&]() -> Result<size_t> {
    TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, engine.Table("t"));
    RowStream rows = engine.Search(schema, {});
    size_t found = 0;
    while (true) {
      TAMIS_ASSIGN_OR_RETURN(const auto row, rows.Next());
      if (!row) return found;
      ++found;
    }
  };
  // One search may fail before the coordinator learns that the table it knows is gone.
  const auto expect_soon = [&](size_t rows, const std::string& when) {
    auto found = count();
    if (!found.ok()) found = count();
    ASSERT_TRUE(found.ok()) << when << ": " << found.status();
    EXPECT_EQ(*found, rows) << when;
  };
  expect_soon(20, "first");
  program_->Do({"table", "detach", "t"});
  program_->Do(Attach("t", "t"));
  expect_soon(20, "attached again");
  program_->Do({"table", "drop", "t", "--delete-hbase-table"});
  EXPECT_FALSE(count().ok());
  ASSERT_EQ(owner.Create(), Status());
  program_->Do(Attach("t", "t"));
  expect_soon(0, "created again");
}

TEST_F(AttachOnHBaseTest, StatusReportsRegionSizes) {
  Owner owner = NewOwner("t");
  ASSERT_EQ(owner.Create(), Status());
  constexpr int kMegabytes = 4;
  for (int i = 0; i < kMegabytes; ++i) {  // in the first region
    auto put = hbase::Mutation::Put(Long(static_cast<uint64_t>(i)));
    put.Set("m", "large", std::string(1 << 20, 'x'));
    const auto done = client_->Mutate(owner.table(), std::move(put));
    ASSERT_TRUE(done.ok()) << done.status();
  }
  program_->Do(Attach("t", "t"));
  uint64_t bytes = 0;
  while (bytes == 0) {  // servers report to the master every few seconds
    bytes = nlohmann::json::parse(program_->Do({"status", "--json"}))["tables"][0]["size_bytes"];
  }
  EXPECT_GE(bytes, (kMegabytes - 1) << 20);
  EXPECT_LE(bytes, (kMegabytes + 4) << 20);
}

TEST_F(AttachOnHBaseTest, RefusedAttachNamesTheRemedy) {
  Owner owner = NewOwner("t");
  ASSERT_EQ(owner.Create(), Status());
  ASSERT_EQ(owner.Fill(0, 20), Status());
  const auto refused = [&](const std::vector<std::string>& words) { return program_->Fail(words); };

  EXPECT_THAT(refused(Attach("t", "missing")),
              HasSubstr("HBase has no table \"" + name_space_ + ":missing\""));
  Owner elsewhere(client_.get(), "attach_elsewhere");
  ASSERT_EQ(elsewhere.Create(), Status());
  EXPECT_THAT(refused(Attach("t", "attach_elsewhere")),
              AllOf(HasSubstr("there is \"default:attach_elsewhere\""), HasSubstr("/default")));
  ASSERT_EQ(client_->DisableTable(elsewhere.table()), Status());
  ASSERT_EQ(client_->DeleteTable(elsewhere.table()), Status());
  EXPECT_THAT(refused(Attach("t", "elsewhere:t")), HasSubstr("/elsewhere"));
  EXPECT_THAT(refused({"table", "attach", "t", "--hbase-table", "t", "--key", "id:int64",
                       "--column", "customer=x:Customer:text"}),
              AllOf(HasSubstr("family \"x\""), HasSubstr("its families are \"d\", \"m\"")));
  EXPECT_THAT(refused({"table", "attach", "t", "--hbase-table", "t", "--key", "id:int64",
                       "--column", "cents=m:cents:int64"}),
              HasSubstr("they would be read as encoding int"));
  EXPECT_THAT(refused({"table", "attach", "t", "--hbase-table", "t", "--key", "id:int64:int",
                       "--column", "cents=m:cents:int64:int"}),
              AllOf(HasSubstr("none of the 20 rows"), HasSubstr("id int64 'int'")));
  EXPECT_THAT(refused({"table", "attach", "t", "--hbase-table", "t", "--key", "id:int64"}),
              HasSubstr("--marker FAMILY:QUALIFIER"));

  Owner kept = NewOwner("kept");
  ASSERT_EQ(kept.Create({{"KEEP_DELETED_CELLS", "TRUE"}}), Status());
  EXPECT_THAT(refused(Attach("kept", "kept")), HasSubstr("KEEP_DELETED_CELLS => 'FALSE'"));
  Owner expiring = NewOwner("expiring");
  ASSERT_EQ(expiring.Create({{"TTL", "86400"}}), Status());
  auto with_index = Attach("expiring", "expiring");
  with_index.insert(with_index.end(), {"--index", "customer"});
  EXPECT_THAT(refused(with_index), AllOf(HasSubstr("86400"), HasSubstr("--nulls skip")));
  program_->Do(Attach("expiring", "expiring"));
  EXPECT_THAT(refused({"index", "create", "expiring", "customer", "customer"}),
              HasSubstr("only sparse indexes"));
  program_->Do({"index", "create", "expiring", "customer", "customer", "--nulls", "skip"});
  EXPECT_THAT(refused(Attach("other", "expiring")), HasSubstr("attached already, as \"expiring\""));
  EXPECT_THAT(refused(Attach("expiring", "t")), HasSubstr("choose another name"));

  ASSERT_EQ(client_->DisableTable(owner.table()), Status());
  EXPECT_THAT(refused(Attach("t", "t")), HasSubstr("it is disabled"));
  // The refused commands have changed nothing.
  const auto table = client_->Table(owner.table());
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_FALSE(table->attributes.contains("tamis.schema"));
}

}  // namespace
}  // namespace tamis
