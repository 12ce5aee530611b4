// A real HBase that checks rights (AccessController): the program's messages for a user without
// rights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/hbase/local_hbase.h"
#include "tests/hbase/program.h"

namespace tamis {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class RightsOnHBaseTest : public testing::Test {
 protected:
  // The user who started HBase has all rights.
  static Program AsOwner() {
    unsetenv("HADOOP_USER_NAME");
    return Program(TAMIS_PROGRAM, Store());
  }
  static Program AsMallory() {
    setenv("HADOOP_USER_NAME", "mallory", 1);
    return Program(TAMIS_PROGRAM, Store());
  }
  static void SetUpTestSuite() {
    const Program owner = AsOwner();
    owner.Do({"table", "create", "t", "--column", "id:int64", "--column", "v:text", "--key", "id",
              "--index", "v"});
    owner.Do({"sql", "INSERT INTO t VALUES (1, 'secret')"});
  }
  static std::string Store() { return "hbase://" + LocalHBase::Get().addresses() + "/rights"; }
};

TEST_F(RightsOnHBaseTest, DoctorNamesTheMissingRight) {
  EXPECT_THAT(AsOwner().Do({"doctor"}),
              AllOf(HasSubstr("has the jar of version"), HasSubstr("is indexed as \"t\""),
                    Not(HasSubstr("to do"))));
  const std::string told = AsMallory().Fail({"doctor"});
  EXPECT_THAT(told,
              AllOf(HasSubstr("does not tell this user what it loads"),
                    HasSubstr("the right to administrate all of HBase"),
                    HasSubstr("grant 'USER', 'A'"), HasSubstr("this report does not cover them"),
                    // The doctor makes no claim about a server that it could not query.
                    Not(HasSubstr("does not load the jar")), Not(HasSubstr("has the jar"))));
  // One sentence for each process.
  EXPECT_THAT(told, HasSubstr("master "));
  EXPECT_THAT(told, HasSubstr("region server "));
}

TEST_F(RightsOnHBaseTest, RefusedCommandsNameTheMissingRight) {
  const std::vector<std::vector<std::string>> commands = {
      {"table", "create", "u", "--column", "id:int64", "--key", "id"},
      {"table", "attach", "u", "--hbase-table", "rights:t", "--key", "id", "--column",
       "v=d:v:text"},
      {"table", "drop", "t"},
      {"index", "create", "t", "w", "v"}};
  for (const auto& command : commands) {
    SCOPED_TRACE(command[0] + " " + command[1]);
    EXPECT_THAT(AsMallory().Fail(command),
                AllOf(HasSubstr("Insufficient permissions"),
                      AnyOf(HasSubstr("user mallory lacks the right CREATE"),
                            HasSubstr("user mallory lacks the right READ"),
                            HasSubstr("user mallory lacks the right ADMIN"))));
  }
  // HBase hides the table's description from this user.
  for (const char* sql : {"SELECT * FROM t WHERE v = 'secret'", "SELECT * FROM T",
                          "INSERT INTO t VALUES (2, 'mine')"}) {
    EXPECT_THAT(
        AsMallory().Fail({"sql", sql}),
        AllOf(HasSubstr("user mallory lacks the right READ on "),
              HasSubstr("an administrator grants it in HBase's shell: grant 'mallory', 'R', "
                        "'rights:t'")));
  }
  // The hidden table might be the one that the statement means, attached under that name.
  EXPECT_THAT(AsMallory().Fail({"sql", "SELECT * FROM absent"}),
              AllOf(HasSubstr("no such table: absent"),
                    HasSubstr("HBase hides \"t\" of namespace \"rights\"")));
  EXPECT_THAT(AsMallory().Fail({"check", "absent"}),
              HasSubstr("HBase hides \"t\" of namespace \"rights\""));
  // The refused commands have changed nothing.
  const std::string rows = AsOwner().Do({"sql", "--format", "csv", "SELECT * FROM t"});
  EXPECT_THAT(rows, AllOf(HasSubstr("1,secret"), Not(HasSubstr("mine"))));
  AsOwner().Do({"table", "drop", "t"});
}

}  // namespace
}  // namespace tamis
