#include "tests/cluster/threaded_plain_client.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace tamis {
namespace {

constexpr std::chrono::seconds kSearchAtRest{180};

// A put of some columns of the row, which stands as `sure` says.
RandomWrite PlainPutOf(int64_t key, const RowState& sure, Random& random, RandomRows& rows) {
  Row row = rows.RandomRow(key);
  if (row[RandomRows::kNumber].is_null()) row[RandomRows::kNumber] = Value::Int64(0);
  Row after = sure.value_or(RandomRows::KeyRow(key));
  for (const uint32_t column : {RandomRows::kNumber, RandomRows::kGroup, RandomRows::kName}) {
    if (column != RandomRows::kNumber && random.OneIn(3)) row[column] = Value();
    if (!row[column].is_null()) after[column] = row[column];
  }
  RandomRows::Compute(&after);
  return {.write = {.row = std::move(row)}, .after = std::move(after), .kind = "plain puts"};
}

bool IsRefused(const Status& status) { return status.code() == StatusCode::kUnavailable; }

}  // namespace

// The other clients pace it: while no server answers, each of its calls fails at once.
void ThreadedPlainClient::Run() {
  if (run_.plain() == nullptr) return;
  Random random = run_.RandomOf(107);
  RandomRows rows(&random);
  uint64_t seen = 0;
  do {
    for (uint64_t i = 1 + random.Uniform(RunProgress::kEventEvery); i > 0 && !progress_.failed();
         --i) {
      const int64_t key = run_.OwnKey(run_.options().clients, rows);
      if (random.OneIn(4)) {
        ReadRow(key);
      } else if (WriteRow(key, random, rows)) {
        searches_.SearchFor(key, run_.RandomEngine(random), rows);
        if (!run_.options().coordinator.empty() && random.OneIn(8)) {
          searches_.SearchByProcess({.predicate = searches_.ProbeFor(key, rows)});
        }
      }
    }
  } while (progress_.AwaitOperations(&seen, 1));
}

bool ThreadedPlainClient::WriteRow(int64_t key, Random& random, RandomRows& rows) {
  const auto sure = writes_.Sure(key);
  if (!sure.has_value()) return false;
  RandomWrite drawn = PlainPutOf(key, *sure, random, rows);
  if (random.OneIn(4)) {
    drawn = {.write = {.kind = Write::Kind::kDelete, .row = RandomRows::KeyRow(key)},
             .kind = "plain deletes"};
  }
  const bool deletes = drawn.write.kind == Write::Kind::kDelete;
  history_[key].push_back(drawn.after);
  const uint64_t begun = run_.log().Begin(key, drawn.after);
  const Status status = deletes ? run_.plain()->Delete(*run_.table(), drawn.write.row)
                                : run_.plain()->Put(*run_.table(), drawn.write.row);
  progress_.Count(std::string(deletes ? "deletes" : "puts") + " by a plain client" +
                  (status.ok()         ? ""
                   : IsRefused(status) ? " refused"
                                       : " unknown"));
  return writes_.TakeAnswer(key, begun, drawn, status);
}

// HBase's own reads may be old: a server that has lost the region, and does not know, goes on
// answering them.
void ThreadedPlainClient::ReadRow(int64_t key) {
  const WriteLog::Mark mark(&run_.log());
  auto read = run_.plain()->Get(*run_.table(), RandomRows::KeyRow(key));
  if (!read.ok()) {
    if (!run_.at_rest() && ThreadedRun::IsAbsence(read.status())) {
      return progress_.Count("reads by a plain client not answered");
    }
    return progress_.Fail("a plain client cannot read: " + read.status().ToString());
  }
  progress_.Count("reads by a plain client");
  Answer answer{.predicate = searches_.IdIs(key)};
  if (read->has_value()) answer.rows.push_back(**read);
  const auto fault = answer.FindFault(*run_.table(), run_.log().Since(mark));
  if (!fault.has_value()) return;
  if (!run_.at_rest() && HasStoodAs(key, *read))
    return progress_.Count("old reads by a plain client");
  progress_.Fail(fault->what + "\nby a plain client");
}

bool ThreadedPlainClient::HasStoodAs(int64_t key, const RowState& read) const {
  if (!read.has_value()) return true;  // at first
  const auto past = history_.find(key);
  return past != history_.end() && std::ranges::any_of(past->second, [&](const RowState& state) {
           return state.has_value() && std::equal(read->begin(), read->end(), state->begin());
         });
}

void ThreadedPlainClient::FindItsRows() {
  if (run_.plain() == nullptr) return;
  // Its connections and its cached locations may still be those of servers that are gone.
  if (const Status set = run_.plain()->SetReadTimeout(kSearchAtRest); !set.ok()) {
    return progress_.Fail("a plain client cannot wait longer: " + set.ToString());
  }
  for (int64_t key = 0; key < run_.EndOfKeys() && !progress_.failed(); ++key) {
    if (!run_.IsOfPlainClient(key)) continue;
    ReadRow(key);
    std::vector<Predicate> probes = {searches_.IdIs(key)};
    if (const RowState row = searches_.Near(key); row.has_value()) {
      for (const uint32_t column :
           {RandomRows::kGroup, RandomRows::kNumber, RandomRows::kName, RandomRows::kStart}) {
        probes.push_back(RandomRows::EqualTo(*row, column));
      }
    }
    for (const Predicate& probe : probes) {
      for (auto& engine : run_.engines()) searches_.Check(*engine, {.predicate = probe});
      if (run_.far_engine() != nullptr) searches_.Check(*run_.far_engine(), {.predicate = probe});
      if (run_.process() != nullptr) searches_.SearchByProcess({.predicate = probe});
      progress_.Count("searches for what a plain client left");
    }
  }
}

}  // namespace tamis
