// Statements of SQL for which memory is short: each allocation of the thread that runs them fails
// in turn. The process goes on, a statement that says it went well did, and the next one is
// answered rightly.
//
// ShortMemoryTest runs the steps of the region servers on another thread, where nothing fails;
// ServerShortMemoryTest runs them on this one, so that the servers' allocations fail, too: those of
// writes, searches, filters, the feed and the coordinator that follows it. RocksDB's own do not
// fail: no exception can pass through it (patient_env.h).
#include <execinfo.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sqlite3.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tamis/base/testing/failing_allocations.h"
#include "tamis/base/thread_executor.h"
#include "tamis/feed/index_filter.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/sql/extension.h"

namespace {

// Where the code of RocksDB lies in memory.
std::pair<uintptr_t, uintptr_t> FindRocksDb() {
  std::pair<uintptr_t, uintptr_t> found{0, 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        if (std::strstr(info->dlpi_name, "librocksdb") == nullptr) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
          const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
          *static_cast<std::pair<uintptr_t, uintptr_t>*>(to) = {begin, begin + part.p_memsz};
        }
        return 1;
      },
      &found);
  return found;
}

bool IsInRocksDb() {
  static const std::pair<uintptr_t, uintptr_t> code = FindRocksDb();
  std::array<void*, 128> frames;
  const int depth = backtrace(frames.data(), frames.size());
  for (int i = 0; i < depth; ++i) {
    const auto at = reinterpret_cast<uintptr_t>(frames[static_cast<size_t>(i)]);
    if (at >= code.first && at < code.second) return true;
  }
  return false;
}

}  // namespace

namespace tamis {
namespace {

// SQLite hands its own functions only to an extension's entry point.
std::shared_ptr<Session> opening;

int Entry(sqlite3* db, const char**, const sqlite3_api_routines* api) {
  if (opening == nullptr) return SQLITE_OK;
  return Extend(db, api, std::exchange(opening, nullptr)).ok() ? SQLITE_OK : SQLITE_ERROR;
}

class ShortMemoryTest : public ::testing::Test {
 protected:
  explicit ShortMemoryTest(bool inline_steps = false) {
    directory_ = std::filesystem::temp_directory_path() /
                 ("tamis_short_memory_test." + std::to_string(::getpid()));
    std::filesystem::remove_all(directory_);
    FailingAllocations::Exempt(IsInRocksDb);
    executor_ = std::make_unique<ThreadExecutor>(1);
    RocksCluster::Options options;
    options.store.directory = directory_;
    options.servers = 2;
    options.server.inline_steps = inline_steps;
    auto cluster = RocksCluster::Open(options, executor_.get());
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = std::move(*cluster);
    engine_ = std::make_shared<Engine>(cluster_.get(), executor_.get(), Engine::Options{});
    Connect();
    Must("SELECT tamis_open('the store')");
    Must("CREATE VIRTUAL TABLE t USING tamis(k int64, s text, n int64, key (k), index s (s))");
    for (int i = 0; i < 20; ++i) {
      const std::string k = std::to_string(i);
      Must("INSERT INTO t VALUES (" + k + ", 'a value that is no short string', " + k + ")");
    }
    Must("CREATE TABLE own(x INTEGER)");
    Must("INSERT INTO own VALUES (1), (2), (3)");
  }
  ~ShortMemoryTest() override {
    sqlite3_close(db_);
    executor_->Stop();
    engine_.reset();
    cluster_.reset();
    executor_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Connect() {
    auto session = std::make_shared<Session>();
    session->open = [this](const std::string&) -> Result<SessionStore> {
      return SessionStore{.engine = engine_,
                          .admin = std::shared_ptr<ClusterAdmin>(engine_, cluster_.get())};
    };
    opening = session;
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(Entry));
    ASSERT_EQ(sqlite3_open(":memory:", &db_), SQLITE_OK);
  }

  struct Answer {
    int code = SQLITE_OK;
    std::string text;  // the rows' text, or that of the error
  };

  // Makes no allocation of C++ between the failures and their end.
  Answer Run(const std::string& sql, int64_t allocations = -1, bool stays_short = false) {
    Answer answer;
    answer.text.reserve(4096);
    const char* rest = sql.c_str();
    if (allocations >= 0) {
      FailingAllocations::Begin(static_cast<uint64_t>(allocations), !stays_short);
    }
    while (*rest != '\0' && answer.code == SQLITE_OK) {
      sqlite3_stmt* statement = nullptr;
      answer.code = sqlite3_prepare_v2(db_, rest, -1, &statement, &rest);
      while (answer.code == SQLITE_OK || answer.code == SQLITE_ROW) {
        if (statement == nullptr) break;
        answer.code = sqlite3_step(statement);
        if (answer.code != SQLITE_ROW) break;
        for (int i = 0; i < sqlite3_column_count(statement); ++i) {
          const unsigned char* text = sqlite3_column_text(statement, i);
          answer.text += text == nullptr ? "NULL" : reinterpret_cast<const char*>(text);
          answer.text += i + 1 < sqlite3_column_count(statement) ? "|" : "\n";
        }
      }
      const int end = sqlite3_finalize(statement);
      if (answer.code == SQLITE_DONE) answer.code = end;
    }
    reached_ = allocations >= 0 && FailingAllocations::failed() > 0;
    FailingAllocations::End();
    if (answer.code != SQLITE_OK) answer.text = sqlite3_errmsg(db_);
    return answer;
  }

  std::string Must(const std::string& sql) {
    const Answer answer = Run(sql);
    EXPECT_EQ(answer.code, SQLITE_OK) << sql << ": " << answer.text;
    return answer.text;
  }

  // Runs a statement with each allocation failing in turn, until none is reached; `after` looks at
  // what is left behind.
  template <class After>
  void FailEach(const std::string& sql, After after) {
    FailEach([&] { return sql; }, after);
  }
  template <class Statement, class After>
  requires std::is_invocable_v<Statement>
  void FailEach(Statement statement, After after) {
    int failed = 0;
    for (const bool stays_short : {false, true}) {
      for (int64_t n = 0;; ++n) {
        const std::string sql = statement();
        const Answer answer = Run(sql, n, stays_short);
        const bool reached = reached_;
        ASSERT_TRUE(answer.code == SQLITE_OK || reached) << sql << ": " << answer.text;
        failed += answer.code != SQLITE_OK;
        if (sqlite3_get_autocommit(db_) == 0) Must("ROLLBACK");
        ASSERT_NO_FATAL_FAILURE(after(answer)) << sql << " at allocation " << n;
        if (!reached) break;
      }
    }
    EXPECT_GT(failed, 5) << statement();
  }

  // A write that ended with "may stand" may be under way. The server's one thread takes a later one
  // of a new value after it, and the filter's flips are told in order: once that one is
  // acknowledged, the row of the first stands, in its index and in the filter here, or never will.
  void AwaitWritesThatMayStand() {
    Must("INSERT OR REPLACE INTO t VALUES (-1, 'barrier " + std::to_string(++barriers_) + "', 0)");
  }

  void ExpectIndexAgrees(const std::string& scan, const std::string& lookup) {
    AwaitWritesThatMayStand();
    ASSERT_EQ(Must(lookup), Must(scan));
  }

  std::filesystem::path directory_;
  std::unique_ptr<ThreadExecutor> executor_;
  std::unique_ptr<RocksCluster> cluster_;
  std::shared_ptr<Engine> engine_;
  sqlite3* db_ = nullptr;
  bool reached_ = false;  // an allocation failed
  int barriers_ = 0;
};

TEST_F(ShortMemoryTest, AQueryEndsWithItsRowsOrWithAnError) {
  for (const char* sql :
       {"SELECT k FROM t WHERE s = 'a value that is no short string' ORDER BY k LIMIT 3",
        "SELECT sum(n) FROM t WHERE k BETWEEN 3 AND 9 AND s LIKE 'a%'",
        "SELECT own.x, t.n FROM own LEFT JOIN t ON t.k = own.x + 18 ORDER BY 1",
        "SELECT k, s FROM t WHERE k IN (1, 2, '3', 99)",
        "SELECT count(*) FROM tamis_explain('SELECT n FROM t WHERE s = ''x''')",
        "SELECT count(*) FROM tamis_explain('UPDATE t SET n = 5 WHERE k = 3')",
        "SELECT name FROM tamis_indexes('t')", "SELECT count(*) FROM tamis_regions('t')",
        "SELECT count(*) FROM tamis_servers"}) {
    const std::string wanted = Must(sql);
    ASSERT_NO_FATAL_FAILURE(FailEach(sql, [&](const Answer& answer) {
      if (answer.code == SQLITE_OK) {
        EXPECT_EQ(answer.text, wanted);
      } else {
        EXPECT_EQ(answer.code & 0xff, SQLITE_NOMEM) << answer.text;
      }
      ASSERT_EQ(Must(sql), wanted);
    }));
  }
}

TEST_F(ShortMemoryTest, ARowThatWasAcknowledgedIsThereAndItsIndexAgrees) {
  int64_t k = 1000;
  const auto insert = [&](int64_t key) {
    return "INSERT INTO t VALUES (" + std::to_string(key) + ", 'put while memory is short', 1)";
  };
  for (const bool transaction : {false, true}) {
    const auto sql = [&] {
      k += 2;
      if (!transaction) return insert(k);
      return "BEGIN; " + insert(k) + "; SAVEPOINT a; " + insert(k + 1) + "; RELEASE a; COMMIT";
    };
    ASSERT_NO_FATAL_FAILURE(FailEach(sql, [&](const Answer& answer) {
      const std::string new_rows = " AND k >= " + std::to_string(k) + " ORDER BY k";
      ASSERT_NO_FATAL_FAILURE(
          ExpectIndexAgrees("SELECT k FROM t WHERE +s = 'put while memory is short'" + new_rows,
                            "SELECT k FROM t WHERE s = 'put while memory is short'" + new_rows));
      if (answer.code == SQLITE_OK) {
        EXPECT_EQ(Must("SELECT count(*) FROM t WHERE k >= " + std::to_string(k)),
                  transaction ? "2\n" : "1\n");
      }
    }));
  }
}

TEST_F(ShortMemoryTest, AnUpdateOrDeleteThatWasAcknowledgedIsDone) {
  ASSERT_NO_FATAL_FAILURE(
      FailEach("UPDATE t SET n = n + 1, s = 'changed' || n WHERE k = 3", [&](const Answer& answer) {
        ASSERT_NO_FATAL_FAILURE(
            ExpectIndexAgrees("SELECT s FROM t WHERE k = 3",
                              "SELECT s FROM t WHERE s = (SELECT s FROM t WHERE k = 3) AND k = 3"));
        if (answer.code == SQLITE_OK) {
          EXPECT_EQ(Must("SELECT s = 'changed' || (n - 1) FROM t WHERE k = 3"), "1\n");
        }
      }));
  ASSERT_NO_FATAL_FAILURE(FailEach("DELETE FROM t WHERE k = 5", [&](const Answer& answer) {
    if (answer.code == SQLITE_OK) {
      EXPECT_EQ(Must("SELECT count(*) FROM t WHERE k = 5"), "0\n");
    }
    Must("INSERT OR REPLACE INTO t VALUES (5, 'there again', 5)");
  }));
}

TEST_F(ShortMemoryTest, AStoreThatCouldNotBeOpenedCanBeOpenedLater) {
  bool opened = false;
  for (int64_t n = 0; !opened; ++n) {
    sqlite3_close(db_);
    Connect();
    const Answer answer = Run("SELECT tamis_open('the store')", n, true);
    opened = answer.code == SQLITE_OK;
    if (!opened) {
      EXPECT_EQ(answer.code & 0xff, SQLITE_NOMEM) << answer.text;
      EXPECT_NE(Run("SELECT count(*) FROM t").code, SQLITE_OK);
      Must("SELECT tamis_open('the store')");
    }
    ASSERT_EQ(Must("SELECT count(*) FROM t"), "20\n");
  }
}

TEST_F(ShortMemoryTest, ATableThatCouldNotBeMadeCanBeMadeLater) {
  const std::string sql = "CREATE VIRTUAL TABLE u USING tamis(k int64, v text, key (k))";
  ASSERT_NO_FATAL_FAILURE(FailEach(sql, [&](const Answer& answer) {
    if (answer.code != SQLITE_OK) Must(sql);
    Must("INSERT OR REPLACE INTO u VALUES (1, 'x'); DROP TABLE u");
  }));
}

// ---- The servers' side

class ServerShortMemoryTest : public ShortMemoryTest {
 protected:
  ServerShortMemoryTest() : ShortMemoryTest(true) {}
};

TEST_F(ServerShortMemoryTest, ASearchEndsWithItsRowsOrWithAnError) {
  for (const char* sql :
       {"SELECT k FROM t WHERE s = 'a value that is no short string' ORDER BY k LIMIT 3",
        "SELECT sum(n) FROM t WHERE k BETWEEN 3 AND 9 AND s LIKE 'a%'"}) {
    const std::string wanted = Must(sql);
    ASSERT_NO_FATAL_FAILURE(FailEach(sql, [&](const Answer& answer) {
      if (answer.code == SQLITE_OK) {
        EXPECT_EQ(answer.text, wanted);
      }
      ASSERT_EQ(Must(sql), wanted);
    }));
  }
}

// Each failed write is followed by one of the same row and value: it is not kept waiting by a lock
// or gate that was left held, and it is found, although the failed one may have set its bits.
TEST_F(ServerShortMemoryTest, AFailedWriteHoldsNothingAndHidesNoLaterOne) {
  int64_t k = 1000;
  const auto insert = [&] {
    const std::string key = std::to_string(k);
    return "INSERT OR REPLACE INTO t VALUES (" + key + ", 'only in row " + key + "', 1)";
  };
  const auto next = [&] {
    ++k;
    return insert();
  };
  ASSERT_NO_FATAL_FAILURE(FailEach(next, [&](const Answer& answer) {
    const std::string lookup = "SELECT k FROM t WHERE s = 'only in row " + std::to_string(k) + "'";
    if (answer.code == SQLITE_OK) {
      ASSERT_EQ(Must(lookup), std::to_string(k) + "\n");
    }
    Must(insert());
    ASSERT_EQ(Must(lookup), std::to_string(k) + "\n");
    ASSERT_EQ(Must("SELECT count(*) FROM t WHERE k = " + std::to_string(k)), "1\n");
  }));
}

TEST_F(ServerShortMemoryTest, AnUpdateOrDeleteThatWasAcknowledgedIsDoneAndTheIndexAgrees) {
  ASSERT_NO_FATAL_FAILURE(
      FailEach("UPDATE t SET n = n + 1, s = 'changed' || n WHERE k = 3", [&](const Answer& answer) {
        ASSERT_NO_FATAL_FAILURE(
            ExpectIndexAgrees("SELECT s FROM t WHERE k = 3",
                              "SELECT s FROM t WHERE s = (SELECT s FROM t WHERE k = 3) AND k = 3"));
        if (answer.code == SQLITE_OK) {
          EXPECT_EQ(Must("SELECT s = 'changed' || (n - 1) FROM t WHERE k = 3"), "1\n");
        }
      }));
  ASSERT_NO_FATAL_FAILURE(FailEach("DELETE FROM t WHERE k = 5", [&](const Answer& answer) {
    if (answer.code == SQLITE_OK) {
      EXPECT_EQ(Must("SELECT count(*) FROM t WHERE k = 5"), "0\n");
    }
    Must("INSERT OR REPLACE INTO t VALUES (5, 'there again', 5)");
    ASSERT_EQ(Must("SELECT k FROM t WHERE s = 'there again'"), "5\n");
  }));
}

// A published filter, and a coordinator with a lease that has acknowledged nothing: every event is
// to be waited for.
struct FollowedFilter {
  FollowedFilter(ThreadExecutor* executor, const Faults& faults)
      : feed(std::make_shared<FilterFeed>(executor, "rs1", 1, FilterFeed::Options{})),
        filter(feed.get(), {.id = 1, .name = "i", .columns = {0}}, 1, 1, faults) {
    pb::PollRequest poll;
    poll.set_coordinator(1);
    feed->Poll(
        poll, [executor] { return executor->Now() + std::chrono::hours(1); },
        [](const Result<pb::PollReply>&) {});
    filter.BeginGeneration(false);
    filter.Publish();
  }

  const std::shared_ptr<FilterFeed> feed;
  IndexFilter filter;
};

// Does `work`, in which the allocation of this number fails, and no other. Returns whether there
// was one.
template <class Work>
bool FailOne(int64_t number, Work work) {
  FailingAllocations::Begin(static_cast<uint64_t>(number), /*only_one=*/true);
  try {
    work();
  } catch (const std::bad_alloc&) {
  }
  const bool reached = FailingAllocations::failed() > 0;
  FailingAllocations::End();
  return reached;
}

// How many of the Adds that memory ran out in are followed by one of the same value that waits for
// no event, although coordinators may not know the value.
int SilentAdds(const Faults& faults) {
  ThreadExecutor executor(1);
  int silent = 0;
  bool reached = true;
  for (int64_t n = 0; reached; ++n) {
    FollowedFilter followed(&executor, faults);
    IndexFilter& filter = followed.filter;
    const EntryKey entry{.hashes = {42}, .first = "a value that is no short string"};
    const uint64_t before = followed.feed->Last();
    reached = FailOne(n, [&] { filter.Add(std::span(&entry, 1)); });
    filter.Add(std::span(&entry, 1));
    silent += filter.WaitFor(std::span(&entry, 1)) <= before;
  }
  executor.Stop();
  return silent;
}

// How many of the narrowings that memory ran out in are followed by an Add of a value outside of
// the narrow range that waits for no event.
int SilentAddsAfterNarrowing(const Faults& faults) {
  ThreadExecutor executor(1);
  int silent = 0;
  bool reached = true;
  for (int64_t n = 0; reached; ++n) {
    FollowedFilter followed(&executor, faults);
    IndexFilter& filter = followed.filter;
    // All have the same bits, so that a later one sets none.
    const auto entry = [](const char* first) { return EntryKey{.hashes = {42}, .first = first}; };
    const std::string low = "1: a value that is no short string", high = "9" + low.substr(1);
    for (const std::string& first : {low, high}) {
      const EntryKey one = entry(first.c_str());
      IndexFilter::Ticket ticket = 0;
      filter.Add(std::span(&one, 1), &ticket);
      filter.Leave(ticket);
    }
    const EntryKey gone = entry(high.c_str());
    filter.Remove(std::span(&gone, 1));
    const IndexFilter::Clearing clearing = filter.BeginClearing(1);
    const IndexFilter::Cleared cleared{.range_known = true, .range = std::pair(low, low)};
    const uint64_t told = followed.feed->Last();
    reached = FailOne(n, [&] { filter.EndClearing(clearing, cleared); });
    const uint64_t before = followed.feed->Last();
    const auto bits = filter.Project(pb::ColumnId(), 1 << 20);
    const bool narrow = before > told || (bits.has_value() && bits->max() == low);
    const EntryKey later = entry("5");
    filter.Add(std::span(&later, 1));
    silent += narrow && filter.WaitFor(std::span(&later, 1)) <= before;
  }
  executor.Stop();
  return silent;
}

TEST(IndexFilterShortMemoryTest, WritesWaitForAValueThatMayBeMissingInTheFeed) {
  EXPECT_EQ(SilentAdds({}), 0);
  EXPECT_EQ(SilentAddsAfterNarrowing({}), 0);
}

TEST(IndexFilterShortMemoryTest, KeepingAFilterThatRanOutOfMemoryIsNoticed) {
  EXPECT_GT(SilentAdds({.keep_spoilt_filter = true}), 0);
  EXPECT_GT(SilentAddsAfterNarrowing({.keep_spoilt_filter = true}), 0);
}

}  // namespace
}  // namespace tamis
