// RandomBatch: the writes of one Engine::Apply call, drawn at random. One row may have several
// writes in it. A server carries them out in order and at once: each is judged by what those before
// it left, and no search sees a state between them. Some batches are INSERTs only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/cluster/random_rows.h"

namespace tamis {

class RandomBatch {
 public:
  struct OfRow {
    int64_t key = 0;
    std::vector<RandomWrite> writes;  // in order
    std::vector<size_t> places;       // the place of each, in the batch

    const RowState& after() const { return writes.back().after; }
    void Add(RandomWrite write, size_t place) {
      writes.push_back(std::move(write));
      places.push_back(place);
    }
  };
  // The outcome of the writes of one row.
  struct Outcome {
    StatusCode expected =
        StatusCode::kOk;  // `status` must be this, unless no server took the writes
    Status status;
    std::string fault;  // not empty: answers that contradict each other
  };

  // Draws up to `most` writes. `draw_key` draws the key of a row, `sure` says how the row stands;
  // nullopt leaves the row out.
  RandomBatch(Random* random, RandomRows* rows, uint64_t most,
              const std::function<int64_t()>& draw_key,
              const std::function<std::optional<RowState>(int64_t key)>& sure);

  std::vector<Write> Writes() const;
  const std::vector<OfRow>& rows() const { return rows_; }
  // Writes of a row that has several.
  size_t repeated() const { return size_ - rows_.size(); }

  // `answers`: one a write, as Engine::Apply returns them.
  static Outcome OutcomeOf(const OfRow& row, const std::vector<Status>& answers);

 private:
  std::vector<OfRow> rows_;
  size_t size_ = 0;
};

}  // namespace tamis
