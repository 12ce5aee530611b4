#include "tamis/hbase_cluster/installation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tamis/table/definition.h"
#include "tamis/table/schema_change.h"
#include "tamis/table/table.pb.h"

namespace tamis {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

using Kind = Finding::Kind;

pb::DescribeReply Said() {
  pb::DescribeReply said;
  said.set_jar_version("1.2");
  said.set_hbase_version("2.6.4");
  said.set_user("admin");
  said.set_log_file_system("org.apache.hadoop.hdfs.DistributedFileSystem");
  said.set_logs_have_leases(true);
  said.set_handlers(30);
  said.set_close_threads(3);
  said.set_fail_fast_limit(5);
  said.set_abort_on_error(true);
  said.set_user_coprocessors(true);
  said.set_indexed_regions(10);
  said.set_heap_bytes(uint64_t{8} << 30);
  said.set_heap_taken_percent(80);
  said.set_filter_bytes(uint64_t{1} << 30);
  said.add_index_features(pb::Index::Extension::INCLUDE);
  return said;
}

IndexedTable Orders() {
  const auto schema = NewTable(
      InCells(*ParseDefinition(
          "orders", {"id int64", "customer text", "key (id)", "index customer (customer)"})),
      1);
  EXPECT_TRUE(schema.ok()) << schema.status();
  return {.description = DescribeIndexed({.name = "shop:orders"}, *schema), .stored = *schema};
}

Installation::Table TableOf(hbase::TableDescription description) {
  auto indexed = ReadIndexedTable(description);
  return {.description = std::move(description), .indexed = std::move(indexed)};
}

Installation Healthy() {
  return {.program_version = "1.2",
          .hbase_version = "2.6.4",
          .master = {"m:1", {"SchemaGuard"}, Said()},
          .servers = {{"a:1", {"IndexObserver"}, Said()}, {"b:1", {}, Said()}},
          .tables = {TableOf(Orders().description), TableOf({.name = "plain"})}};
}

std::vector<Finding> Of(Kind kind, const Installation& installation) {
  std::vector<Finding> found = Examine(installation);
  std::erase_if(found, [&](const Finding& finding) { return finding.kind != kind; });
  return found;
}

// Expects exactly one finding that is not fine, and returns it.
Finding Only(Kind kind, const Installation& installation) {
  const std::vector<Finding> found = Of(kind, installation);
  EXPECT_EQ(found.size(), 1u);
  for (const Finding& one : found) {
    EXPECT_FALSE(one.subjects.empty());
    if (found.size() > 1) ADD_FAILURE() << one.subjects[0] << " " << one.text;
  }
  const Kind other = kind == Kind::kToDo ? Kind::kNote : Kind::kToDo;
  for (const Finding& one : Of(other, installation)) ADD_FAILURE() << one.text;
  return found.empty() ? Finding() : found[0];
}

TEST(InstallationTest, ReportsWhatIsInOrder) {
  const std::vector<Finding> found = Examine(Healthy());
  EXPECT_THAT(found, Each(Field(&Finding::kind, Kind::kFine)));
  EXPECT_THAT(found, Contains(Field(&Finding::text, HasSubstr("indexed as \"orders\""))));
  // One finding covers both servers.
  EXPECT_THAT(found, Contains(AllOf(Field(&Finding::subjects,
                                          ElementsAre("region server a:1", "region server b:1")),
                                    Field(&Finding::text, HasSubstr("logs")))));
}

Installation::Server WithoutJar(const std::string& address) {
  return {.address = address,
          .coprocessors = {},
          .described = FailedPrecondition("UnknownProtocolException: No registered endpoint"),
          .silence = Installation::Server::Silence::kNoJar};
}

Installation::Server Denying(const std::string& address) {
  return {.address = address,
          .coprocessors = {},
          .described = FailedPrecondition("AccessDeniedException: Insufficient permissions"),
          .silence = Installation::Server::Silence::kDenied};
}

TEST(InstallationTest, NamesTheRightToCallCoprocessorsIfItIsChecked) {
  Installation asked = Healthy();
  asked.servers[0].described->set_exec_checks(true);
  const Finding found = Only(Kind::kNote, asked);
  EXPECT_THAT(found.subjects, ElementsAre("region server a:1"));
  EXPECT_THAT(found.text, HasSubstr("grant 'USER', 'RWX', 'TABLE'"));
}

TEST(InstallationTest, ListsThePrograms) {
  Installation asked = Healthy();
  pb::ListeningCoordinator* one = asked.servers[0].described->add_coordinators();
  one->set_user("ada");
  one->set_host("10.0.0.7");
  one->set_events_behind(3);
  const auto fine = Of(Kind::kFine, asked);
  EXPECT_THAT(fine,
              Contains(Field(&Finding::text,
                             "is polled by ada from 10.0.0.7, 3 events behind, without a lease")));
}

TEST(InstallationTest, RefusesAnHBaseThatLacksMethodsTheJarNeeds) {
  Installation old = Healthy();
  old.servers[1].described->set_hbase_version("2.6.0");
  for (int i = 0; i < 7; ++i) {
    old.servers[1].described->add_missing("HStore.getScanners" + std::to_string(i));
  }
  std::vector<Finding> to_do = Of(Kind::kToDo, old);
  ASSERT_EQ(to_do.size(), 1u);
  EXPECT_THAT(to_do[0].subjects, ElementsAre("region server b:1"));
  EXPECT_THAT(to_do[0].text, AllOf(HasSubstr("HBase 2.6.0"), HasSubstr("HStore.getScanners4"),
                                   HasSubstr("and 2 more"), HasSubstr("takes no write")));
  EXPECT_THAT(MissingJar(old, /*strict=*/false, Orders().stored),
              ElementsAre(AllOf(HasSubstr("region server b:1"), HasSubstr("HStore.getScanners0"))));
  old.master.described->add_missing("class Gone");
  EXPECT_THAT(MissingJar(old, /*strict=*/true, Orders().stored),
              ElementsAre(AllOf(HasSubstr("master m:1"), HasSubstr("class Gone")),
                          HasSubstr("region server b:1")));
}

TEST(InstallationTest, NamesJarsThatDoNotSupportAnIndex) {
  TableSchema schema = Orders().stored;
  schema.indexes[0].where = Predicate::NotNull(1);
  Installation mixed = Healthy();
  mixed.servers[0].described->add_index_features(pb::Index::Extension::WHERE);
  mixed.master.described->add_index_features(pb::Index::Extension::WHERE);
  EXPECT_THAT(
      MissingJar(mixed, /*strict=*/false, schema),
      ElementsAre("region server b:1 has the jar of version 1.2, which does not support WHERE "
                  "of index \"customer\" of table \"orders\": install "
                  "tamis-coprocessor-1.2.jar there and restart it"));
  EXPECT_TRUE(MissingJar(mixed, false, Orders().stored).empty());
  EXPECT_TRUE(Of(Kind::kToDo, mixed).empty());
  mixed.tables[0] = TableOf(DescribeIndexed({.name = "shop:orders"}, schema));
  const Finding found = Only(Kind::kToDo, mixed);
  EXPECT_THAT(found.subjects, ElementsAre("region server b:1"));
  EXPECT_THAT(found.text, HasSubstr("does not support WHERE of index \"customer\""));
  // The same where the index gets cells.
  schema.indexes[0] = Orders().stored.indexes[0];
  schema.indexes[0].cell_map = std::make_shared<const CellMap>();
  const auto without_ranges = MissingJar(mixed, /*strict=*/false, schema);
  ASSERT_EQ(without_ranges.size(), 3u);  // all servers of this test lack it
  for (const std::string& why : without_ranges) EXPECT_THAT(why, HasSubstr("support RANGES of"));
}

TEST(InstallationTest, SaysHowToInstallAMissingJar) {
  Installation bare = Healthy();
  EXPECT_TRUE(MissingJar(bare, true, Orders().stored).empty());
  bare.master = WithoutJar("m:1");
  bare.servers[1] = WithoutJar("b:1");
  const auto found = Of(Kind::kToDo, bare);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].text, HasSubstr("tamis.hbase.SchemaGuard"));
  EXPECT_THAT(found[1].subjects, ElementsAre("region server b:1"));
  EXPECT_THAT(found[1].text, HasSubstr("tamis.hbase.ServerReport"));
  EXPECT_THAT(MissingJar(bare, false, Orders().stored),
              ElementsAre(HasSubstr("master m:1"), HasSubstr("region server b:1")));
  EXPECT_THAT(found[1].text, HasSubstr("put tamis-coprocessor-1.2.jar on its class path"));
  bare.hbase_version = "3.0.0";
  EXPECT_THAT(Of(Kind::kToDo, bare)[1].text, HasSubstr("put tamis-coprocessor-hbase3-1.2.jar on"));
}

TEST(InstallationTest, ReportsDifferentVersions) {
  Installation mixed = Healthy();
  mixed.servers[0].described->set_jar_version("1.1");
  Finding found = Only(Kind::kToDo, mixed);
  EXPECT_THAT(found.subjects, ElementsAre("region server a:1"));
  EXPECT_THAT(found.text, AllOf(HasSubstr("1.1"), HasSubstr("1.2")));

  mixed = Healthy();
  mixed.servers[0].described->set_hbase_version("2.5.1");
  EXPECT_THAT(Only(Kind::kNote, mixed).text, HasSubstr("2.5.1"));
  mixed = Healthy();
  mixed.hbase_version = "3.0.0";
  for (auto* one : {&mixed.master, &mixed.servers[0], &mixed.servers[1]}) {
    one->described->set_hbase_version("3.0.0");
  }
  EXPECT_THAT(Only(Kind::kNote, mixed).text, HasSubstr("tested with 2.5.13, 2.6"));
  mixed.hbase_version = "2.6.3-hadoop3";
  EXPECT_THAT(Of(Kind::kNote, mixed),
              Contains(Field(&Finding::text, HasSubstr("runs HBase 2.6.3"))));
  mixed.hbase_version = "2.6.4-hadoop3";
  EXPECT_THAT(Of(Kind::kFine, mixed), Contains(Field(&Finding::text, "runs HBase 2.6.4-hadoop3")));
}

TEST(InstallationTest, ReportsThatTheUserLacksTheRight) {
  Installation secured = Healthy();
  secured.servers[0] = Denying("a:1");
  EXPECT_THAT(Only(Kind::kToDo, secured).text, HasSubstr("grant 'USER', 'A'"));
  EXPECT_EQ(MissingJar(secured, true, Orders().stored).size(), 1u);
  EXPECT_TRUE(MissingJar(secured, false, Orders().stored).empty());
  secured.master = Denying("m:1");
  const auto notes = Of(Kind::kNote, secured);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0].text, HasSubstr("this report does not cover them"));
  secured = Healthy();
  secured.servers[0].described = DeadlineExceeded("no answer");
  EXPECT_THAT(Only(Kind::kToDo, secured).text, HasSubstr("no answer"));
  EXPECT_EQ(MissingJar(secured, false, Orders().stored).size(), 1u);
}

TEST(InstallationTest, ChecksServerSettings) {
  const auto with = [](auto change) {
    Installation one = Healthy();
    change(&*one.servers[0].described);
    return one;
  };
  EXPECT_THAT(Only(Kind::kToDo, with([](auto* said) { said->set_user_coprocessors(false); })).text,
              HasSubstr("hbase.coprocessor.user.enabled"));
  EXPECT_THAT(Only(Kind::kToDo, with([](auto* said) { said->set_handlers(2); })).text,
              HasSubstr("hbase.regionserver.handler.count"));
  EXPECT_THAT(Only(Kind::kNote, with([](auto* said) { said->set_abort_on_error(false); })).text,
              HasSubstr("abortonerror"));
  EXPECT_THAT(Only(Kind::kNote, with([](auto* said) { said->set_indexed_regions(500); })).text,
              HasSubstr("closeregion.threads"));
  EXPECT_THAT(Only(Kind::kNote, with([](auto* said) {
                     said->set_heap_bytes(uint64_t{400} << 20);
                     said->set_filter_bytes(uint64_t{50} << 20);
                   }))
                  .text,
              HasSubstr("hfile.block.cache.size"));
  EXPECT_THAT(Of(Kind::kNote, with([](auto* said) { said->clear_heap_bytes(); })), IsEmpty());
  const Finding region = Only(Kind::kToDo, with([](auto* said) {
                                auto* problem = said->add_problems();
                                problem->set_table("shop:orders");
                                problem->set_region("abc");
                                problem->set_problem("it takes writes without entries");
                              }));
  EXPECT_THAT(region.subjects, ElementsAre("table shop:orders"));
  EXPECT_THAT(region.text, HasSubstr("region abc"));
}

TEST(InstallationTest, LogsWithoutAFenceNeedAPatientMaster) {
  Installation local = Healthy();
  for (auto& server : local.servers) {
    server.described->set_logs_have_leases(false);
    server.described->set_log_file_system("org.apache.hadoop.fs.LocalFileSystem");
  }
  const auto to_do = Of(Kind::kToDo, local);
  ASSERT_EQ(to_do.size(), 1u);
  EXPECT_THAT(to_do[0].subjects, ElementsAre("master m:1"));
  EXPECT_THAT(to_do[0].text, HasSubstr("fail.fast.limit to 100000"));
  const auto notes = Of(Kind::kNote, local);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0].text, HasSubstr("LocalFileSystem"));
  EXPECT_EQ(notes[0].subjects.size(), 2u);
  local.master.described->set_fail_fast_limit(100000);
  EXPECT_TRUE(Of(Kind::kToDo, local).empty());
}

TEST(InstallationTest, ChecksTableSettings) {
  const auto with = [](auto change) {
    Installation one = Healthy();
    hbase::TableDescription description = Orders().description;
    change(&description);
    one.tables[0] = TableOf(std::move(description));
    return one;
  };
  const auto family = [](hbase::TableDescription* table, std::string_view name) {
    return std::ranges::find(table->families, name, &hbase::FamilySchema::name);
  };
  EXPECT_THAT(Only(Kind::kToDo, with([](auto* t) { t->attributes.erase("SPLIT_POLICY"); })).text,
              HasSubstr("IndexSplitPolicy"));
  EXPECT_THAT(Only(Kind::kToDo, with([](auto* t) { t->attributes.erase("coprocessor$1"); })).text,
              HasSubstr("IndexObserver"));
  EXPECT_THAT(Only(Kind::kToDo, with([&](auto* t) { t->families.erase(family(t, "tamis")); })).text,
              HasSubstr("family tamis"));
  EXPECT_THAT(
      Only(Kind::kToDo, with([&](auto* t) { family(t, "tamis")->attributes["VERSIONS"] = "1"; }))
          .text,
      HasSubstr("VERSIONS => '2147483647'"));
  EXPECT_THAT(
      Only(Kind::kToDo, with([&](auto* t) { family(t, "d")->attributes["TTL"] = "60"; })).text,
      HasSubstr("60 s"));
  EXPECT_THAT(Only(Kind::kToDo, with([](auto* t) { t->attributes["tamis.schema"] = "\xff"; })).text,
              HasSubstr("cannot read the schema"));
  EXPECT_THAT(Only(Kind::kToDo, with([](auto* t) { t->attributes.erase("tamis.schema"); })).text,
              AllOf(HasSubstr("no schema of Tamis"), HasSubstr("coprocessor$1")));
  EXPECT_THAT(
      Only(Kind::kNote, with([](auto* t) { t->attributes["DURABILITY"] = "ASYNC_WAL"; })).text,
      HasSubstr("ASYNC_WAL"));
  EXPECT_THAT(Only(Kind::kNote, with([](auto* t) {
                     t->attributes["coprocessor$2"] = "|org.example.Other|1000|";
                   }))
                  .text,
              HasSubstr("org.example.Other"));
  EXPECT_THAT(Only(Kind::kNote, with([](auto* t) { t->attributes.erase("tamis.table"); })).text,
              HasSubstr("table attach orders --hbase-table shop:orders records it"));
  Installation other = Healthy();
  other.servers[1].coprocessors.push_back("Stranger");
  EXPECT_THAT(Only(Kind::kNote, other).text, HasSubstr("Stranger"));
}

TEST(InstallationTest, CopyIsANoteUntilItsOriginalIsGone) {
  Installation one = Healthy();
  hbase::TableDescription copy = Orders().description;
  copy.name = "backup:orders";
  one.tables.push_back(TableOf(copy));
  EXPECT_EQ(Only(Kind::kNote, one).subjects, std::vector<std::string>{"table backup:orders"});
  EXPECT_THAT(Only(Kind::kNote, one).text, HasSubstr("a copy of \"shop:orders\""));
  one.tables.erase(one.tables.begin());
  EXPECT_THAT(Only(Kind::kToDo, one).text, HasSubstr("--hbase-table backup:orders"));
}

TEST(InstallationTest, TablesThatShareANameAreReported) {
  Installation one = Healthy();
  IndexedTable second = Orders();
  second.description.name = "shop:Sales";
  one.tables.push_back(TableOf(DescribeIndexed(second.description, second.stored)));
  const Finding found = Only(Kind::kToDo, one);
  EXPECT_EQ(found.subjects.size(), 2u);
  EXPECT_THAT(found.text, HasSubstr("\"shop:orders\" and \"shop:Sales\""));
}

}  // namespace
}  // namespace tamis
