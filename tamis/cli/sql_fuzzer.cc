// Any text is SQL that runs or is refused, on a store with a table; nothing crashes, and what has
// been written is found by key and by index alike.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tamis/cli/connection.h"

namespace tamis {
namespace {

constexpr int kStepsPerStatement = 200;  // each is a thousand instructions: ends endless recursion

Connection* MakeConnection() {
  std::string directory = std::filesystem::temp_directory_path() / "tamis_fuzz_XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) std::abort();
  static std::string made;
  made = directory;
  auto connection = Connection::Open({.store = directory + "/store", .servers = 2});
  if (!connection.ok()) std::abort();
  sqlite3* db = (*connection)->db();
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);  // no files but the store's
  static int steps;
  sqlite3_progress_handler(
      db, 1000,
      [](void* count) -> int { return ++*static_cast<int*>(count) % kStepsPerStatement == 0; },
      &steps);
  const Status status = (*connection)
                            ->Run(
                                "CREATE VIRTUAL TABLE t USING tamis(k, n int64, d decimal, "
                                "key (k), index n (n), index d (d))",
                                {});
  if (!status.ok()) std::abort();
  static std::unique_ptr<Connection> kept = *std::move(connection);
  std::atexit([] {
    kept.reset();
    std::filesystem::remove_all(made);
  });
  return kept.get();
}

int64_t Count(Connection* connection, const std::string& sql) {
  int64_t count = -1;
  const RowSink sink{.begin = [](const auto&) {},
                     .row = [&](sqlite3_stmt* row) { count = sqlite3_column_int64(row, 0); },
                     .end = [] {}};
  if (!connection->Run(sql, sink).ok()) return -1;
  return count;
}

}  // namespace
}  // namespace tamis

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tamis;  // NOLINT(google-build-using-namespace)
  static Connection* connection = MakeConnection();
  const std::string sql(reinterpret_cast<const char*>(data), size);
  const RowSink ignore{.begin = [](const auto&) {}, .row = [](sqlite3_stmt*) {}, .end = [] {}};
  (void)connection->Run(sql.c_str(), ignore);  // up to the first 0 byte
  if (sqlite3_get_autocommit(connection->db()) == 0) (void)connection->Run("ROLLBACK", {});
  const int64_t scanned = Count(connection, "SELECT count(*) FROM t WHERE +n = 1");
  const int64_t looked_up = Count(connection, "SELECT count(*) FROM t WHERE n = 1");
  if (scanned >= 0 && looked_up >= 0 && scanned != looked_up) std::abort();
  return 0;
}
