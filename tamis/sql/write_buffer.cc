#include "tamis/sql/write_buffer.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace tamis {
namespace {

constexpr size_t kBatch = 1000;

// Translates a write's status into the result of the statement.
Status Outcome(const Status& status, bool ignore_existing, const std::string& conflict) {
  switch (status.code()) {
    case StatusCode::kAlreadyExists:
      return ignore_existing ? Status::Ok() : AlreadyExists(conflict);
    case StatusCode::kFailedPrecondition:
    case StatusCode::kNotFound:
      return Busy(
          "the row was changed by another client since it was read; run the statement again");
    default:
      return status;
  }
}

}  // namespace

void WriteBuffer::Add(std::string key, Write write, const Options& options) {
  // Steps that can fail come first: nothing is added then.
  Entry entry{key, std::move(write), options};
  if (writes_.size() == writes_.capacity()) {
    writes_.reserve(std::max<size_t>(16, 2 * writes_.size()));
  }
  const auto last = last_.try_emplace(std::move(key), kNone).first;
  entry.previous = std::exchange(last->second, writes_.size());
  writes_.push_back(std::move(entry));
}

std::optional<Write::Kind> WriteBuffer::LastKind(const std::string& key) const {
  const auto last = last_.find(key);
  if (last == last_.end()) return std::nullopt;
  return writes_[last->second].write.kind;
}

Status WriteBuffer::Send(Engine* engine, const SchemaPtr& schema,
                         const std::atomic<bool>& cancelled) {
  // An exception does not leave writes behind that were handed over in part.
  struct Emptied {
    WriteBuffer* buffer;
    ~Emptied() { buffer->Clear(); }
  };
  const Emptied at_end{this};
  size_t failed = 0;
  size_t left_out = 0;
  Status first;
  bool done = true;  // the write before the batch
  const size_t total = writes_.size();
  for (size_t begin = 0; begin < total;) {
    if (cancelled) {
      failed += total - begin;
      if (first.ok()) first = Cancelled("cancelled before everything was written");
      break;
    }
    if (writes_[begin].options.only_after_previous && !done) {
      ++begin;
      ++left_out;
      continue;
    }
    std::unordered_set<std::string_view> rows;
    std::vector<Write> batch;
    size_t end = begin;
    while (end < total && batch.size() < kBatch &&
           (end == begin || !writes_[end].options.only_after_previous) &&
           rows.insert(writes_[end].key).second) {
      batch.push_back(std::move(writes_[end++].write));
    }
    const std::vector<Status> results = engine->Apply(schema, std::move(batch), &cancelled);
    for (size_t i = 0; i < results.size(); ++i) {
      const Options& options = writes_[begin + i].options;
      Status outcome = Outcome(results[i], options.ignore_existing, options.conflict);
      if (outcome.ok()) continue;
      // That something may stand is worth more to know than that something was not done.
      const bool unknown = outcome.code() == StatusCode::kDeadlineExceeded;
      if (failed++ == 0 || (unknown && first.code() != StatusCode::kDeadlineExceeded)) {
        first = std::move(outcome);
      }
    }
    done = results.back().ok();
    begin = end;
  }
  const size_t sent = total - left_out;
  if (failed == 0 || sent == 1) return first;
  return Status(first.code(), first.message() + " (" + std::to_string(failed) + " of " +
                                  std::to_string(sent) +
                                  " writes failed; the others were carried out)");
}

void WriteBuffer::Clear() {
  writes_.clear();
  last_.clear();
  marks_.clear();
}

void WriteBuffer::Savepoint(int number) {
  const auto n = static_cast<size_t>(number);
  marks_.resize(n + 1, writes_.size());
  marks_[n] = writes_.size();
}

void WriteBuffer::RollbackTo(int number) {
  const auto kept = static_cast<size_t>(number + 1);
  if (kept > marks_.size()) return;
  const size_t mark = kept == 0 ? 0 : marks_[kept - 1];
  while (writes_.size() > mark) {
    const Entry& entry = writes_.back();
    if (entry.previous == kNone) {
      last_.erase(entry.key);
    } else {
      last_[entry.key] = entry.previous;
    }
    writes_.pop_back();
  }
  marks_.resize(kept);
}

void WriteBuffer::Release(int number) {
  marks_.resize(std::min(marks_.size(), static_cast<size_t>(std::max(number, 0))));
}

}  // namespace tamis
