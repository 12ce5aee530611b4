#include "tests/lsm/oracle_writer.h"

#include <rocksdb/utilities/transaction.h>
#include <rocksdb/wide_columns.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/lsm/flush_window.h"

namespace tamis::lsm {
namespace {

using rocksdb::ColumnFamilyHandle;
using Kind = OracleConfig::Kind;

// The effect of a batch on the keys of the model, which are not known from its first change to its
// acknowledgement.
class Acknowledged {
 public:
  using Known = OracleCounts::Known;

  explicit Acknowledged(OracleDatabase* database) : database_(*database) {}

  void Note(size_t family, uint64_t number, Known known) {
    if (!database_.config.has_model) return;
    auto& place = database_.counts.written[family][number];
    changes_.push_back({&place, place.exchange(OracleCounts::kUnknown), known});
  }
  // The last change, which was refused.
  void Forget() {
    if (changes_.empty()) return;
    *changes_.back().place = changes_.back().before;
    changes_.pop_back();
  }
  size_t count() const { return changes_.size(); }
  // All but the first so many.
  void RollBackTo(size_t count) {
    while (changes_.size() > count) Forget();
  }
  void Committed() {
    for (const Change& change : changes_) *change.place = change.after;
  }

 private:
  struct Change {
    std::atomic<Known>* place;
    Known before;
    Known after;
  };
  OracleDatabase& database_;
  std::vector<Change> changes_;
};

// The save points of one transaction.
class SavePoints {
 public:
  SavePoints(rocksdb::Transaction* transaction, Acknowledged* acknowledged)
      : transaction_(*transaction), acknowledged_(*acknowledged) {}

  // Sets one, goes back to the last one, or forgets it; or does nothing.
  void Move(Random* random) {
    const uint64_t choice = random->Uniform(12);
    if (choice < 2) {
      transaction_.SetSavePoint();
      counts_.push_back(acknowledged_.count());
    } else if (choice == 2 && !counts_.empty()) {
      if (transaction_.RollbackToSavePoint().ok()) acknowledged_.RollBackTo(counts_.back());
      counts_.pop_back();
    } else if (choice == 3 && !counts_.empty()) {
      (void)transaction_.PopSavePoint();
      counts_.pop_back();
    }
  }

 private:
  rocksdb::Transaction& transaction_;
  Acknowledged& acknowledged_;
  std::vector<size_t> counts_;  // the number of changes before each
};

}  // namespace

std::string OracleWriter::NewName(int thread) {
  return std::to_string(database_.seed) + "." + std::to_string(thread) + "." +
         std::to_string(database_.next_name++);
}

void OracleWriter::Write(int thread, const std::atomic<bool>& stops) {
  Random random(database_.seed * 7 + 2 + static_cast<uint64_t>(thread));
  std::list<std::pair<ColumnFamilyHandle*, std::string>> once;  // keys that were put once
  const bool is_modelled = database_.config.has_model;
  uint64_t next_once = random.Uniform(OracleDatabase::kKeys);
  while (!stops) {
    rocksdb::WriteOptions write;
    write.disableWAL = !database_.config.logs;
    rocksdb::WriteBatch batch;
    std::unique_ptr<rocksdb::Transaction> transaction;
    if (random.OneIn(2)) {
      transaction = database_.BeginTransaction(write, random.OneIn(2) ? 0 : 100);
    }
    // Only under a name can it be prepared, and parts of it be written before that.
    const bool prepares =
        (is_modelled || database_.config.kind != Kind::kUnprepared) && random.OneIn(3);
    if (transaction != nullptr &&
        (prepares || (is_modelled && database_.config.kind == Kind::kUnprepared))) {
      (void)transaction->SetName(NewName(thread));
    }
    Acknowledged acknowledged(&database_);
    std::optional<SavePoints> save_points;
    if (transaction != nullptr && is_modelled) {
      save_points.emplace(transaction.get(), &acknowledged);
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
      const auto choice = random.Uniform(12);
      const size_t place =
          static_cast<size_t>(std::ranges::find(database_.fixed, family) - database_.fixed.begin());
      if (choice < 3) acknowledged.Note(place, number, OracleCounts::kNotThere);
      if (choice == 3 || choice > 7) acknowledged.Note(place, number, OracleCounts::kThere);
      rocksdb::Status done;
      switch (choice) {
        case 0:
        case 1:
        case 2:
          done = transaction ? transaction->Delete(family, key) : to_batch->Delete(family, key);
          break;
        case 3:
          done = transaction ? transaction->Merge(family, key, value)
                             : to_batch->Merge(family, key, value);
          break;
        case 4:
          if (transaction != nullptr) {
            std::string old;
            (void)transaction->GetForUpdate({}, family, key, &old);
          } else if (database_.config.kind == Kind::kPlain && !database_.config.disk_fails &&
                     !is_modelled && random.OneIn(20)) {
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
          done = transaction ? transaction->Put(family, key, value)
                             : to_batch->Put(family, key, value);
          written.emplace_back(family, key);
      }
      // The lock of the key may have been waited for too long.
      if (!done.ok()) acknowledged.Forget();
      if (save_points.has_value()) save_points->Move(&random);
    }
    if (transaction != nullptr) {
      ++database_.counts.transactions;
      if (prepares && transaction->Prepare().ok()) {
        ++database_.counts.prepared;
        // It stays prepared while others flush and compact, and often until the process is killed.
        if (random.OneIn(4)) {
          const uint64_t longest_ms = random.OneIn(4) ? 400 : 20;
          std::this_thread::sleep_for(std::chrono::milliseconds(random.Uniform(longest_ms)));
        }
      }
      if (random.OneIn(8)) {
        if (transaction->Rollback().ok()) acknowledged.RollBackTo(0);
      } else if (const auto committed = transaction->Commit(); committed.ok()) {
        acknowledged.Committed();
      } else {
        if (database_.counts.refused.fetch_add(1) < 3) {
          std::fprintf(stderr, "%s: a commit was refused: %s\n", database_.config.Text().c_str(),
                       committed.ToString().c_str());
        }
        (void)transaction->Rollback();
      }
    } else if (database_.db->Write(write, &batch).ok()) {
      acknowledged.Committed();
    }
    ++database_.counts.writes;
    // A thread that changes a level waits until no flush is due.
    if (random.OneIn(2)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    // A range that the other one deletes, and what is dropped with its file, is gone before or
    // after both questions.
    for (const auto& [family, key] : written) {
      FlushWindow::Open(key[0] == 's' && random.OneIn(50));  // it is in a memtable only
      questions_.Ask(family, key, "who wrote it");
    }
    if (is_modelled) questions_.AskModel(&random, thread);
  }
}

}  // namespace tamis::lsm
