#include "tests/cluster/threaded_searches.h"

#include <cstdio>
#include <utility>

namespace tamis {

void ThreadedSearches::Check(Engine& engine, SearchOptions options) {
  const SchemaPtr schema = run_.SchemaOf(engine);
  if (!schema) return;
  Answer answer{
      .predicate = options.predicate, .limit = options.limit, .key_order = options.key_order};
  const WriteLog::Mark mark(&run_.log());
  RowStream stream = engine.Search(schema, std::move(options));
  while (true) {
    auto row = stream.Next();
    if (!row.ok()) {
      if (row.status().code() == StatusCode::kDeadlineExceeded && !run_.at_rest()) {
        std::printf("%s\n", row.status().ToString().c_str());
        return progress_.Count("searches out of time");
      }
      // The index was dropped while the search ran: the search must fail with this code.
      if (row.status().code() == StatusCode::kFailedPrecondition) {
        return progress_.Count("searches by a dropped index");
      }
      return progress_.Fail("a search failed: " + row.status().ToString());
    }
    if (!row->has_value()) break;
    answer.rows.push_back(std::move(**row));
  }
  const Explain& explain = stream.explain();
  progress_.Count("searches");
  if (explain.regions_asked < explain.regions_total)
    progress_.Count("searches that left regions out");
  const auto fault = answer.FindFault(*run_.table(), run_.log().Since(mark));
  if (!fault.has_value()) {
    for (const Row& row : answer.rows)
      run_.log().NoteShown(mark, row[RandomRows::kId].int64(), row);
    return;
  }
  const RowState row = fault->missed.has_value() ? Near(*fault->missed) : RowState();
  progress_.Fail(fault->what + run_.cluster().Describe(*run_.table(), row) + "\n" +
                 explain.ToText());
}

void ThreadedSearches::SearchAny(Engine& engine, Random& random, RandomRows& rows) {
  SearchOptions options;
  options.predicate = rows.RandomPredicate(Near(rows.RandomKey()));
  options.key_order = random.OneIn(10);
  options.use_indexes = !random.OneIn(30);
  if (random.OneIn(25)) options.limit = 1 + random.Uniform(5);
  Check(engine, std::move(options));
}

void ThreadedSearches::SearchFor(int64_t key, Engine& engine, RandomRows& rows) {
  progress_.Count("searches for a row just acknowledged");
  Check(engine, {.predicate = ProbeFor(key, rows)});
}

void ThreadedSearches::SearchBySql(SqlClient& sql, Random& random, RandomRows& rows) {
  SearchOptions options;
  options.predicate = rows.RandomPredicate(Near(rows.RandomKey()));
  options.key_order = random.OneIn(10);
  const WriteLog::Mark mark(&run_.log());
  auto found = sql.Search(*run_.table(), options);
  if (!found.ok()) {
    if (run_.TakeAbsence("searches through SQL", found.status())) return;
    return progress_.Fail("a search through SQL failed: " + found.status().ToString());
  }
  progress_.Count("searches through SQL");
  const Answer answer{.predicate = options.predicate,
                      .key_order = options.key_order,
                      .one_instant = sql.searches().size() == 1,
                      .rows = std::move(*found)};
  JudgeSql(answer, mark, "by SQL", options);
}

void ThreadedSearches::SearchByProcess(const SearchOptions& options) {
  const std::shared_ptr<SqlProcess> process = run_.process();
  const WriteLog::Mark mark(&run_.log());
  auto found = process->Search(*run_.table(), options);
  if (!found.ok()) {
    const StatusCode code = found.status().code();
    if (code == StatusCode::kBusy && !run_.at_rest()) return;
    if (code == StatusCode::kUnavailable && !run_.at_rest()) {
      return progress_.Count("searches by the process not answered");
    }
    return progress_.Fail("a search by another process failed: " + found.status().ToString());
  }
  progress_.Count("searches by the process");
  // It does not tell of how many searches it made its answer.
  const Answer answer{
      .predicate = options.predicate, .one_instant = false, .rows = std::move(*found)};
  JudgeSql(answer, mark, "by another process", options);
}

void ThreadedSearches::SearchFromAfar(const SchemaPtr& schema, RandomRows& rows, Duration timeout) {
  Answer answer{.predicate = ProbeFor(rows.RandomKey(), rows)};
  const WriteLog::Mark mark(&run_.log());
  RowStream stream =
      run_.far_engine()->Search(schema, {.predicate = answer.predicate, .timeout = timeout});
  while (true) {
    auto row = stream.Next();
    if (!row.ok()) {
      if (ThreadedRun::IsAbsence(row.status())) {
        if (run_.at_rest())
          return progress_.Fail("healed, but nothing comes from afar: " + row.status().ToString());
        return progress_.Count("searches from afar not answered");
      }
      if (row.status().code() == StatusCode::kFailedPrecondition) return;  // its index was dropped
      return progress_.Fail("a search from afar failed: " + row.status().ToString());
    }
    if (!row->has_value()) break;
    answer.rows.push_back(std::move(**row));
  }
  progress_.Count("searches from afar");
  const auto fault = answer.FindFault(*run_.table(), run_.log().Since(mark));
  if (fault.has_value()) progress_.Fail(fault->what + "\nfrom afar\n" + stream.explain().ToText());
}

Predicate ThreadedSearches::ProbeFor(int64_t key, RandomRows& rows) const {
  const RowState near = Near(key);
  if (near.has_value()) return rows.ProbeOf(*near);
  return IdIs(key);
}

Predicate ThreadedSearches::IdIs(int64_t key) {
  return Predicate::Compare(RandomRows::kId, Predicate::Op::kEq, Value::Int64(key));
}

void ThreadedSearches::JudgeSql(const Answer& answer, const WriteLog::Mark& mark, const char* how,
                                const SearchOptions& options) {
  const auto fault = answer.FindFault(*run_.table(), run_.log().Since(mark));
  if (fault.has_value())
    progress_.Fail(fault->what + "\n" + how + ": " + SqlOf(*run_.table(), options));
}

}  // namespace tamis
