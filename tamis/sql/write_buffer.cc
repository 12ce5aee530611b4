#include "tamis/sql/write_buffer.h"

#include <algorithm>
#include <unordered_set>

namespace tamis {
namespace {

constexpr size_t kBatch = 1000;

// What a write's status means to the statement.
Status Outcome(const Status& status, bool ignore_existing, const std::string& conflict) {
  switch (status.code()) {
    case StatusCode::kAlreadyExists:
      return ignore_existing ? Status::Ok() : AlreadyExists(conflict);
    case StatusCode::kFailedPrecondition:
    case StatusCode::kNotFound:
      return Busy(
          "the row was changed by somebody else since it was read; run the statement again");
    default:
      return status;
  }
}

}  // namespace

void WriteBuffer::Add(std::string key, Write write, const Options& options) {
  keys_.insert(key);
  writes_.push_back({std::move(key), std::move(write), options});
}

Status WriteBuffer::Send(Engine* engine, const SchemaPtr& schema) {
  size_t failed = 0;
  Status first;
  const size_t total = writes_.size();
  for (size_t begin = 0; begin < total;) {
    std::unordered_set<std::string_view> rows;
    std::vector<Write> batch;
    size_t end = begin;
    while (end < total && batch.size() < kBatch && rows.insert(writes_[end].key).second) {
      batch.push_back(std::move(writes_[end++].write));
    }
    const std::vector<Status> results = engine->Apply(schema, std::move(batch));
    for (size_t i = 0; i < results.size(); ++i) {
      const Options& options = writes_[begin + i].options;
      Status outcome = Outcome(results[i], options.ignore_existing, options.conflict);
      if (outcome.ok()) continue;
      if (failed++ == 0) first = std::move(outcome);
    }
    begin = end;
  }
  Clear();
  if (failed == 0 || total == 1) return first;
  return Status(first.code(), first.message() + " (" + std::to_string(failed) + " of " +
                                  std::to_string(total) + " writes failed; the others stand)");
}

void WriteBuffer::Clear() {
  writes_.clear();
  keys_.clear();
  savepoints_.clear();
}

void WriteBuffer::Savepoint(int number) { savepoints_.emplace_back(number, writes_.size()); }

void WriteBuffer::RollbackTo(int number) {
  // The oldest mark from there on: between the two nothing was written here.
  const auto mark = std::find_if(savepoints_.begin(), savepoints_.end(),
                                 [&](const auto& savepoint) { return savepoint.first >= number; });
  if (mark == savepoints_.end()) return;
  while (writes_.size() > mark->second) {
    keys_.erase(keys_.find(writes_.back().key));
    writes_.pop_back();
  }
  savepoints_.erase(mark->first == number ? mark + 1 : mark, savepoints_.end());
}

void WriteBuffer::Release(int number) {
  while (!savepoints_.empty() && savepoints_.back().first >= number) savepoints_.pop_back();
}

}  // namespace tamis
