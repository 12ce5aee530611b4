#include "tests/lsm/oracle_writer.h"

#include <rocksdb/utilities/transaction.h>
#include <rocksdb/wide_columns.h>
#include <rocksdb/write_batch.h>

#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/lsm/flush_window.h"

namespace tamis::lsm {
namespace {

using rocksdb::ColumnFamilyHandle;
using Kind = OracleConfig::Kind;

}  // namespace

void OracleWriter::Write(int thread, const std::atomic<bool>& stops) {
  Random random(database_.seed * 7 + 2 + static_cast<uint64_t>(thread));
  std::list<std::pair<ColumnFamilyHandle*, std::string>> once;  // keys that were put once
  uint64_t next_once = random.Uniform(OracleDatabase::kKeys);
  while (!stops) {
    rocksdb::WriteOptions write;
    write.disableWAL = !database_.config.logs;
    rocksdb::WriteBatch batch;
    std::unique_ptr<rocksdb::Transaction> transaction;
    if (database_.transactions != nullptr && random.OneIn(2)) {
      rocksdb::TransactionOptions options;
      transaction.reset(database_.transactions->BeginTransaction(write, options));
    }
    rocksdb::WriteBatchBase* const to_batch = transaction == nullptr ? &batch : nullptr;
    std::vector<std::pair<ColumnFamilyHandle*, std::string>> written;
    for (uint64_t i = 1 + random.Uniform(20); i > 0; --i) {
      ColumnFamilyHandle* const family = database_.fixed[random.Uniform(database_.fixed.size())];
      const uint64_t number = random.Uniform(OracleDatabase::kKeys / OracleDatabase::kWriters) *
                                  OracleDatabase::kWriters +
                              thread;
      const std::string key = OracleDatabase::Numbered('k', number);
      const std::string value(random.Uniform(80), static_cast<char>('a' + random.Uniform(26)));
      switch (random.Uniform(12)) {
        case 0:
        case 1:
        case 2:
          transaction ? transaction->Delete(family, key) : to_batch->Delete(family, key);
          break;
        case 3:
          transaction ? transaction->Merge(family, key, value)
                      : to_batch->Merge(family, key, value);
          break;
        case 4:
          if (database_.config.kind == Kind::kPlain && !database_.config.disk_fails &&
              random.OneIn(20)) {
            batch.DeleteRange(family, key,
                              OracleDatabase::Numbered('k', number + 1 + random.Uniform(30)));
          }
          break;
        case 5:
          if (database_.config.kind == Kind::kPlain && !database_.config.blobs) {
            batch.PutEntity(family, OracleDatabase::Numbered('e', number),
                            rocksdb::WideColumns{{"a", value}, {"b", value}});
          }
          break;
        case 6: {
          const std::string single = OracleDatabase::Numbered(
              's', next_once++ % 40000 * OracleDatabase::kWriters + static_cast<uint64_t>(thread));
          transaction ? transaction->Put(family, single, value)
                      : to_batch->Put(family, single, value);
          once.emplace_back(family, single);
          written.push_back(once.back());
          break;
        }
        case 7:
          if (once.size() > 200) {
            const auto& [of, single] = once.front();
            transaction ? transaction->SingleDelete(of, single)
                        : to_batch->SingleDelete(of, single);
            once.pop_front();
          }
          break;
        default:
          transaction ? transaction->Put(family, key, value) : to_batch->Put(family, key, value);
          written.emplace_back(family, key);
      }
    }
    if (transaction != nullptr) {
      ++database_.counts.transactions;
      if (database_.config.kind != Kind::kUnprepared && random.OneIn(3)) {
        (void)transaction->SetName(std::to_string(database_.seed) + "." + std::to_string(thread) +
                                   "." + std::to_string(database_.next_name++));
        if (transaction->Prepare().ok() && random.OneIn(4)) {
          // It stays prepared while others flush, compact and are killed.
          std::this_thread::sleep_for(std::chrono::milliseconds(random.Uniform(20)));
        }
      }
      if (random.OneIn(8) || !transaction->Commit().ok()) (void)transaction->Rollback();
    } else {
      (void)database_.db->Write(write, &batch);
    }
    ++database_.counts.writes;
    // Who changes a level waits until no flush is due.
    if (random.OneIn(2)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    // A range that the other one deletes, and what is dropped with its file, is gone before or
    // after both questions.
    for (const auto& [family, key] : written) {
      FlushWindow::Open(key[0] == 's' && random.OneIn(50));  // it is in a memtable only
      questions_.Ask(family, key, "who wrote it");
    }
  }
}

}  // namespace tamis::lsm
