#include "tests/cluster/random_batch.h"

#include <algorithm>

namespace tamis {
namespace {

constexpr uint64_t kOneInInsertsOnly = 4;  // one batch in so many
constexpr uint64_t kOneInSameRow = 2;      // one in so many of the writes after the first

// Nothing was done, or it is unknown whether it was.
bool IsUnanswered(StatusCode code) {
  return code == StatusCode::kUnavailable || code == StatusCode::kBusy ||
         code == StatusCode::kDeadlineExceeded;
}

}  // namespace

RandomBatch::RandomBatch(Random* random, RandomRows* rows, uint64_t most,
                         const std::function<int64_t()>& draw_key,
                         const std::function<std::optional<RowState>(int64_t key)>& sure) {
  const bool inserts_only = random->OneIn(kOneInInsertsOnly);
  for (uint64_t i = 0; i < most; ++i) {
    const bool again = !rows_.empty() && random->OneIn(kOneInSameRow);
    const int64_t key = again ? rows_[random->Uniform(rows_.size())].key : draw_key();
    auto row = std::ranges::find(rows_, key, &OfRow::key);
    RowState before;
    if (row != rows_.end()) {
      before = row->after();
    } else {
      const auto stands = sure(key);
      if (!stands.has_value()) continue;
      before = *stands;
      row = rows_.insert(rows_.end(), {.key = key, .writes = {}, .places = {}});
    }
    row->Add(inserts_only ? rows->RandomInsertOf(key, before) : rows->RandomWriteOf(key, before),
             size_++);
  }
}

std::vector<Write> RandomBatch::Writes() const {
  std::vector<Write> writes(size_);
  for (const OfRow& row : rows_) {
    for (size_t i = 0; i < row.writes.size(); ++i) writes[row.places[i]] = row.writes[i].write;
  }
  return writes;
}

RandomBatch::Outcome RandomBatch::OutcomeOf(const OfRow& row, const std::vector<Status>& answers) {
  const Status& last = answers[row.places.back()];
  Outcome outcome{.expected = row.writes.back().answer, .status = last, .fault = {}};
  for (size_t i = 0; i < row.writes.size(); ++i) {
    const Status& answer = answers[row.places[i]];
    if (IsUnanswered(last.code()) != IsUnanswered(answer.code())) {
      outcome.fault =
          "of two writes of one row in a batch only one was answered: " + answer.ToString() + "; " +
          last.ToString();
      return outcome;
    }
    if (IsUnanswered(last.code())) continue;
    if (answer.code() != row.writes[i].answer) {
      return {.expected = row.writes[i].answer, .status = answer, .fault = {}};
    }
    if (answer.ok()) outcome = {.expected = StatusCode::kOk, .status = answer, .fault = {}};
  }
  return outcome;
}

}  // namespace tamis
