#include "tests/cluster/threaded_writes.h"

#include <utility>

#include "tests/cluster/random_batch.h"

namespace tamis {

std::vector<int64_t> ThreadedWrites::WriteSome(int client, Engine& engine, Random& random,
                                               RandomRows& rows) {
  const size_t wanted = random.OneIn(3) ? 1 + random.Uniform(8) : 1;
  const RandomBatch batch(
      &random, &rows, wanted, [&] { return run_.OwnKey(client, rows); },
      [this](int64_t key) { return Sure(key); });
  const SchemaPtr schema = run_.SchemaOf(engine);
  if (!schema) return {};
  std::vector<uint64_t> begun;
  for (const RandomBatch::OfRow& row : batch.rows()) {
    begun.push_back(run_.log().Begin(row.key, row.after()));
    for (const RandomWrite& write : row.writes) progress_.Count(write.kind);
    if (row.writes.size() > 1) progress_.Count("rows twice in a batch");
  }
  const std::vector<Status> statuses = engine.Apply(schema, batch.Writes());
  std::vector<int64_t> acknowledged;
  for (size_t i = 0; i < begun.size(); ++i) {
    const RandomBatch::OfRow& row = batch.rows()[i];
    const auto outcome = RandomBatch::OutcomeOf(row, statuses);
    if (!outcome.fault.empty()) {
      progress_.Fail(outcome.fault);
      return {};
    }
    if (outcome.status.code() == StatusCode::kDeadlineExceeded) {
      // HBase may have carried out the first of them only.
      for (const RandomWrite& write : row.writes) run_.log().Begin(row.key, write.after);
    }
    const RandomWrite all{.write = {},
                          .after = row.after(),
                          .answer = outcome.expected,
                          .kind = row.writes.back().kind};
    if (TakeAnswer(row.key, begun[i], all, outcome.status)) acknowledged.push_back(row.key);
  }
  return acknowledged;
}

// A put, sometimes of what another one is putting, or a delete: what comes of it does not depend on
// what was there.
void ThreadedWrites::WriteShared(Engine& engine, Random& random, RandomRows& rows) {
  const int64_t key = static_cast<int64_t>(random.Uniform(ThreadedRun::kShared));
  Row row = rows.RandomRow(key);
  if (random.OneIn(2)) {
    const std::vector<RowState> states = run_.log().Now(key);
    const RowState& state = states[random.Uniform(states.size())];
    if (state.has_value()) row = *state;
  }
  const bool is_delete = random.OneIn(4);
  RandomWrite drawn{.write = {.row = row}, .after = row, .kind = "writes of shared rows"};
  if (is_delete) {
    drawn.write.kind = Write::Kind::kDelete;
    drawn.after.reset();
  }
  const SchemaPtr schema = run_.SchemaOf(engine);
  if (!schema) return;
  progress_.Count(drawn.kind);
  const uint64_t begun = run_.log().Begin(key, drawn.after);
  const Status status = engine.Apply(schema, {drawn.write}).front();
  if (!TakeAnswer(key, begun, drawn, status) || is_delete) return;
  searches_.Check(run_.RandomEngine(random), {.predicate = rows.ProbeOf(row)});
}

void ThreadedWrites::WriteBySql(int client, SqlClient& sql, RandomRows& rows) {
  const int64_t key = run_.OwnKey(client, rows);
  const auto sure = Sure(key);
  if (!sure.has_value()) return;
  const RandomWrite drawn = rows.RandomWriteOf(key, *sure);
  const uint64_t begun = run_.log().Begin(key, drawn.after);
  progress_.Count("writes through SQL");
  TakeAnswer(key, begun, drawn, sql.Apply(*run_.table(), drawn.write));
}

std::optional<RowState> ThreadedWrites::Sure(int64_t key) const {
  const std::vector<RowState> states = run_.log().Now(key);
  if (states.size() != 1) return std::nullopt;
  return states.front();
}

bool ThreadedWrites::TakeAnswer(int64_t key, uint64_t begun, const RandomWrite& write,
                                const Status& status) {
  const StatusCode code = status.code();
  if (code == StatusCode::kDeadlineExceeded) {
    progress_.Count("writes unknown");
  } else if (code == StatusCode::kUnavailable || code == StatusCode::kBusy) {
    run_.log().Refuse(key, begun);
    progress_.Count("writes refused");
  } else if (code != write.answer) {
    progress_.Fail("a write of row " + std::to_string(key) + " (" + write.kind +
                   ") was answered with " + status.ToString());
  } else if (code == StatusCode::kOk) {
    run_.log().Acknowledge(key, begun);
    progress_.Count("writes acknowledged");
    return true;
  } else {
    run_.log().Refuse(key, begun);
    progress_.Count("writes not done by condition");
  }
  return false;
}

}  // namespace tamis
