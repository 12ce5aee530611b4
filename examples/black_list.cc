// A black list in front of a database: what the filter clears, and that is nearly everything, never
// reaches the database.
//
// Shows: BlockedBloomFilter, the choice where keys only come; Hash with the filter's seed; that the
// database has the last word, so a false positive costs a look-up and never an answer.
#include <sqlite3.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tamis/base/hash.h"
#include "tamis/filter/blocked_bloom_filter.h"

namespace {

constexpr int kListed = 50'000;
constexpr int kRequests = 200'000;

std::string Url(int i) { return "https://example.org/" + std::to_string(i); }

void Check(bool fine, sqlite3* db) {
  if (fine) return;
  std::fprintf(stderr, "black_list: %s\n", sqlite3_errmsg(db));
  std::exit(1);
}

}  // namespace

int main() {
  sqlite3* db = nullptr;
  Check(sqlite3_open(":memory:", &db) == SQLITE_OK, db);
  Check(sqlite3_exec(db, "CREATE TABLE listed (url TEXT PRIMARY KEY) WITHOUT ROWID; BEGIN", nullptr,
                     nullptr, nullptr) == SQLITE_OK,
        db);

  auto filter = tamis::BlockedBloomFilter::Create({.capacity = kListed, .fpr = 0.01, .seed = 1});
  if (!filter.ok()) {
    std::fprintf(stderr, "black_list: %s\n", filter.status().message().c_str());
    return 1;
  }
  sqlite3_stmt* insert = nullptr;
  Check(sqlite3_prepare_v2(db, "INSERT INTO listed VALUES (?)", -1, &insert, nullptr) == SQLITE_OK,
        db);
  for (int i = 0; i < kListed; ++i) {
    const std::string url = Url(i);
    sqlite3_bind_text(insert, 1, url.data(), static_cast<int>(url.size()), SQLITE_STATIC);
    Check(sqlite3_step(insert) == SQLITE_DONE, db);
    sqlite3_reset(insert);
    filter->Insert(tamis::Hash(url, filter->seed()));
  }
  sqlite3_finalize(insert);
  Check(sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK, db);

  // Every hundredth request is for something on the list.
  sqlite3_stmt* select = nullptr;
  Check(sqlite3_prepare_v2(db, "SELECT 1 FROM listed WHERE url = ?", -1, &select, nullptr) ==
            SQLITE_OK,
        db);
  int refused = 0;
  int asked = 0;
  for (int i = 0; i < kRequests; ++i) {
    const std::string url = Url(i % 100 == 0 ? i / 100 : kListed + i);
    if (!filter->MayContain(tamis::Hash(url, filter->seed()))) continue;  // certainly not listed
    ++asked;
    sqlite3_bind_text(select, 1, url.data(), static_cast<int>(url.size()), SQLITE_STATIC);
    const int found = sqlite3_step(select);
    Check(found == SQLITE_ROW || found == SQLITE_DONE, db);
    refused += found == SQLITE_ROW;
    sqlite3_reset(select);
  }
  sqlite3_finalize(select);
  sqlite3_close(db);

  std::printf("%d requests, %d refused, as many as are listed\n", kRequests, refused);
  std::printf("the database was asked %d times; the filter has %zu bytes\n", asked,
              filter->SizeBytes());
  return refused == kRequests / 100 && asked < kRequests / 25 ? 0 : 1;
}
