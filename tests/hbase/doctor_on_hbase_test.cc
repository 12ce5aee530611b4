// An HBase without the jar, set up in a way that Tamis cannot use: the report of the doctor, and
// the refusal to create or attach tables.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tamis/hbase/client.h"
#include "tests/hbase/local_hbase.h"
#include "tests/hbase/program.h"

namespace tamis {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(DoctorOnHBaseTest, RefusesToIndexWithoutTheJar) {
  const std::string addresses = LocalHBase::Get().addresses();
  const Program program(TAMIS_PROGRAM, "hbase://" + addresses);
  EXPECT_THAT(program.Fail({"doctor"}),
              AllOf(HasSubstr("set hbase.coprocessor.master.classes to tamis.hbase.SchemaGuard"),
                    HasSubstr("set hbase.coprocessor.regionserver.classes to "
                              "tamis.hbase.ServerReport")));
  const auto client = hbase::Client::Open({.addresses = addresses});
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_EQ((*client)->CreateTable({.name = "t", .families = {{.name = "d"}}}), Status());
  EXPECT_THAT(program.Fail({"table", "attach", "t", "--hbase-table", "t", "--key", "id", "--column",
                            "a=d:a:text"}),
              AllOf(HasSubstr("region server "), HasSubstr("does not load the jar")));
  EXPECT_THAT(program.Fail({"table", "create", "u", "--column", "id", "--key", "id"}),
              HasSubstr("does not load the jar"));
  // No table was created or changed, and all servers are alive.
  const auto tables = (*client)->Tables();
  ASSERT_TRUE(tables.ok()) << tables.status();
  ASSERT_EQ(tables->size(), 1u);
  EXPECT_TRUE((*tables)[0].attributes.contains("tamis.schema") == false);
  const auto state = (*client)->Cluster();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->servers.size(), 3u);
  EXPECT_TRUE(state->dead_servers.empty());
}

TEST(DoctorOnHBaseTest, ListsServerNamesWithoutLoads) {
  const auto client = hbase::Client::Open({.addresses = LocalHBase::Get().addresses()});
  ASSERT_TRUE(client.ok()) << client.status();
  const auto all = (*client)->Cluster();
  const auto names = (*client)->Cluster(hbase::ClusterDetail::kServers);
  ASSERT_TRUE(all.ok() && names.ok()) << all.status() << names.status();
  EXPECT_EQ(names->master, all->master);
  const auto sorted = [](const hbase::ClusterState& state) {
    std::vector<std::string> text;
    for (const auto& server : state.servers) text.push_back(server.name.ToString());
    std::ranges::sort(text);
    return text;
  };
  EXPECT_EQ(sorted(*names), sorted(*all));
  EXPECT_GT(all->servers[0].max_heap_mb, 0u);
  EXPECT_EQ(names->servers[0].max_heap_mb, 0u);
}

}  // namespace
}  // namespace tamis
