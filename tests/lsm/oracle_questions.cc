#include "tests/lsm/oracle_questions.h"

#include <rocksdb/wide_columns.h>

#include <cstdio>
#include <iterator>
#include <list>
#include <memory>
#include <utility>
#include <vector>

namespace tamis::lsm {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;

enum How { kGet, kGetString, kGetEntity, kMayExist, kMultiGet, kOfFamily, kOfFamilies, kHows };

struct Batch {
  How how;
  std::vector<std::string> texts;
  std::vector<Slice> keys;
  std::vector<ColumnFamilyHandle*> families;
};
struct Answers {
  std::vector<Status> statuses;
  std::vector<std::string> values;
};

struct Held {
  const rocksdb::Snapshot* snapshot;
  std::unique_ptr<rocksdb::Iterator> keys;
  ColumnFamilyHandle* family;
  uint64_t turns;
};

std::string RandomKey(Random* random) {
  static constexpr char kKinds[] = "kkkkizzse";
  const char kind = kKinds[random->Uniform(sizeof kKinds - 1)];
  return OracleDatabase::Numbered(kind,
                                  random->Uniform(kind == 'z' ? 90000 : OracleDatabase::kKeys));
}

Answers Read(rocksdb::DB* db, const rocksdb::ReadOptions& read, Batch& batch) {
  const size_t count = batch.keys.size();
  Answers answers{std::vector<Status>(count), std::vector<std::string>(count)};
  std::vector<rocksdb::PinnableSlice> found(count);
  switch (batch.how) {
    case kGet:
      answers.statuses[0] = db->Get(read, batch.families[0], batch.keys[0], &found[0]);
      break;
    case kGetString:
      answers.statuses[0] = db->Get(read, batch.families[0], batch.keys[0], &answers.values[0]);
      break;
    case kGetEntity: {
      rocksdb::PinnableWideColumns columns;
      answers.statuses[0] = db->GetEntity(read, batch.families[0], batch.keys[0], &columns);
      for (const auto& column : columns.columns()) {
        answers.values[0] += column.value().ToString() + ",";
      }
      break;
    }
    case kMayExist: {  // with false positives, of which the base has others than we
      std::string value;
      if (!db->KeyMayExist(read, batch.families[0], batch.keys[0], &value)) {
        answers.statuses[0] = Status::NotFound();
      } else {
        answers.statuses[0] = db->Get(read, batch.families[0], batch.keys[0], &found[0]);
      }
      break;
    }
    case kMultiGet:
      answers.statuses = db->MultiGet(read, batch.families, batch.keys, &answers.values);
      break;
    case kOfFamily:
      db->MultiGet(read, batch.families[0], count, batch.keys.data(), found.data(),
                   answers.statuses.data());
      break;
    case kOfFamilies:
    case kHows:
      db->MultiGet(read, count, batch.families.data(), batch.keys.data(), found.data(),
                   answers.statuses.data());
      break;
  }
  for (size_t i = 0; i < count; ++i) {
    if (answers.values[i].empty()) answers.values[i] = found[i].ToString();
  }
  return answers;
}

}  // namespace

void OracleQuestions::Missed(ColumnFamilyHandle* family, const std::string& key, const char* how) {
  if (database_.counts.missed.fetch_add(1) < 5) {
    std::fprintf(stderr, "MISSED %s: key \"%s\" of family \"%s\" is there, by %s\n",
                 database_.config.Text().c_str(), key.c_str(), family->GetName().c_str(), how);
  }
}

void OracleQuestions::Different(const std::string& key, const char* how, const Status& ours,
                                const Status& base) {
  if (database_.counts.different.fetch_add(1) < 5) {
    std::fprintf(stderr, "DIFFERENT %s: key \"%s\", by %s: %s, the base says %s\n",
                 database_.config.Text().c_str(), key.c_str(), how, ours.ToString().c_str(),
                 base.ToString().c_str());
  }
}

void OracleQuestions::Ask(ColumnFamilyHandle* family, const std::string& key, const char* how,
                          const rocksdb::Snapshot* snapshot) {
  const bool may = database_.filter->MayContain(family, key);
  ++database_.counts.checks;
  if (may) return;
  ++database_.counts.denied;
  rocksdb::ReadOptions read;
  read.snapshot = snapshot;
  std::string value;
  if (database_.base->Get(read, family, key, &value).ok()) Missed(family, key, how);
}

void OracleQuestions::AskAll(ColumnFamilyHandle* family, const rocksdb::Snapshot* snapshot,
                             const char* how) {
  rocksdb::ReadOptions read;
  read.snapshot = snapshot;
  const std::unique_ptr<rocksdb::Iterator> keys(database_.base->NewIterator(read, family));
  for (keys->SeekToFirst(); keys->Valid(); keys->Next()) {
    ++database_.counts.checks;
    if (!database_.filter->MayContain(family, keys->key()))
      Missed(family, keys->key().ToString(), how);
  }
}

void OracleQuestions::AskModelFor(char kind, const OracleCounts::Model& model,
                                  const ModelKeys& keys, const char* how) {
  std::vector<ColumnFamilyHandle*> families;
  std::vector<std::string> texts;
  for (const auto& [family, number] : keys) {
    families.push_back(database_.fixed[family]);
    texts.push_back(OracleDatabase::Numbered(kind, number));
  }
  const std::vector<Slice> slices(texts.begin(), texts.end());
  std::vector<std::string> values;
  const auto statuses = database_.db->MultiGet({}, families, slices, &values);
  database_.counts.checks += keys.size();
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto known = model[keys[i].first][keys[i].second].load();
    if (!statuses[i].IsNotFound() || known != OracleCounts::kThere) {
      database_.counts.denied += statuses[i].IsNotFound();
      continue;
    }
    std::string value;
    const Status base = database_.base->Get({}, families[i], slices[i], &value);
    if (base.ok()) Missed(families[i], texts[i], how);
    if (base.IsNotFound() && database_.counts.lost.fetch_add(1) < 5) {
      std::fprintf(stderr, "LOST by RocksDB, %s: key \"%s\" of family \"%s\"; the filter says %s\n",
                   database_.config.Text().c_str(), texts[i].c_str(),
                   families[i]->GetName().c_str(),
                   database_.filter->MayContain(families[i], slices[i]) ? "perhaps" : "no");
    }
  }
}

void OracleQuestions::AskModel(Random* random, int thread) {
  ModelKeys keys(1 + random->Uniform(40));
  for (auto& [family, number] : keys) {
    family = random->Uniform(database_.fixed.size());
    number = random->Uniform(OracleDatabase::kKeys / OracleDatabase::kWriters) *
                 OracleDatabase::kWriters +
             static_cast<uint64_t>(thread);
  }
  AskModelFor('k', database_.counts.written, keys, "what was acknowledged");
}

void OracleQuestions::AskWholeModel() {
  for (size_t family = 0; family < database_.fixed.size(); ++family) {
    for (uint64_t first = 0; first < OracleDatabase::kKeys; first += 100) {
      ModelKeys keys;
      for (uint64_t number = first; number < first + 100; ++number) {
        keys.emplace_back(family, number);
      }
      AskModelFor('k', database_.counts.written, keys, "what was acknowledged in all lives");
      AskModelFor('i', database_.counts.ingested, keys, "what was ingested in all lives");
    }
  }
}

void OracleQuestions::Compare(Random* random, const rocksdb::Snapshot* snapshot) {
  static constexpr const char* kHow[] = {
      "Get",      "Get into a string",    "GetEntity",           "KeyMayExist",
      "MultiGet", "MultiGet of a family", "MultiGet of families"};
  rocksdb::ReadOptions read;
  read.snapshot = snapshot;
  Batch batch{.how = static_cast<How>(random->Uniform(kHows))};
  const size_t count = batch.how < kMultiGet ? 1 : 1 + random->Uniform(40);
  ColumnFamilyHandle* family = database_.fixed[random->Uniform(database_.fixed.size())];
  // Nor do this and the next one bear blobs.
  const bool is_limited = batch.how == kGetEntity || batch.how == kMayExist;
  if (is_limited && database_.config.blobs) family = database_.fixed[0];
  for (size_t i = 0; i < count; ++i) {
    batch.texts.push_back(RandomKey(random));
    // Stock GetEntity crashes where it has to merge.
    if (batch.how == kGetEntity && batch.texts[i][0] == 'k') batch.texts[i][0] = 'e';
    if (batch.how != kOfFamily && !is_limited)
      family = database_.fixed[random->Uniform(database_.fixed.size())];
    batch.families.push_back(family);
  }
  batch.keys.assign(batch.texts.begin(), batch.texts.end());
  const Answers ours = Read(database_.db.get(), read, batch);
  const Answers base = Read(database_.base, read, batch);
  database_.counts.checks += count;
  for (size_t i = 0; i < count; ++i) {
    const Status& status = ours.statuses[i];
    if (status.IsNotFound()) {
      database_.counts.denied += !base.statuses[i].ok();
      if (base.statuses[i].ok()) Missed(batch.families[i], batch.texts[i], kHow[batch.how]);
    } else if (status.ok() && !(base.statuses[i].IsNotFound() && database_.drops_files)) {
      if (!base.statuses[i].ok() || ours.values[i] != base.values[i]) {
        Different(batch.texts[i], kHow[batch.how], status, base.statuses[i]);
      }
    }
  }
}

void OracleQuestions::ReadAlong(const std::atomic<bool>& stops) {
  Random random(database_.seed * 7 + 1);
  std::list<Held> held;
  const auto let_go = [&](std::list<Held>::iterator at) {
    at->keys.reset();
    database_.base->ReleaseSnapshot(at->snapshot);
    return held.erase(at);
  };
  if (database_.config.fault.empty()) database_.filter->WaitUntilCounted();
  while (!stops) {
    if (held.size() < 4 && random.OneIn(20)) {
      Held one{database_.base->GetSnapshot(), nullptr,
               database_.fixed[random.Uniform(database_.fixed.size())], random.Uniform(2000)};
      rocksdb::ReadOptions read;
      read.snapshot = one.snapshot;
      one.keys.reset(database_.base->NewIterator(read, one.family));
      one.keys->SeekToFirst();
      held.push_back(std::move(one));
      ++database_.counts.snapshots;
      ++database_.counts.iterators;
    }
    const rocksdb::Snapshot* const fresh = database_.base->GetSnapshot();
    for (int i = 0; i < 8; ++i) Compare(&random, fresh);
    database_.base->ReleaseSnapshot(fresh);
    for (auto at = held.begin(); at != held.end();) {
      Compare(&random, at->snapshot);
      for (int i = 0; i < 5 && at->keys->Valid() && !database_.drops_files; ++i, at->keys->Next()) {
        ++database_.counts.checks;
        if (!database_.filter->MayContain(at->family, at->keys->key())) {
          Missed(at->family, at->keys->key().ToString(), "an iterator");
        }
      }
      at = at->turns-- == 0 ? let_go(at) : std::next(at);
    }
  }
  while (!held.empty()) let_go(held.begin());
}
}  // namespace tamis::lsm
