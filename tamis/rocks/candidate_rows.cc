#include "tamis/rocks/candidate_rows.h"

#include <utility>

#include "tamis/rocks/store.h"
#include "tamis/table/stored_row.h"

namespace tamis {

Result<bool> CandidateRows::Take() {
  std::vector<Candidate> candidates = std::exchange(batch_, {});
  std::vector<std::string> keys;
  for (const Candidate& candidate : candidates) {
    if (!candidate.row.has_value()) keys.push_back(candidate.key);
  }
  std::vector<std::string> values;
  std::vector<rocksdb::Status> statuses;
  if (!keys.empty()) statuses = snapshot_.ReadRows(keys, &values);
  size_t read = 0;
  for (Candidate& candidate : candidates) {
    if (page_.HasAllRows()) return false;
    page_.CountCandidate();
    if (candidate.row.has_value()) {
      page_.CountRowFromEntry();
      TakeIfMatching(candidate.key, &*candidate.row);
    } else {
      page_.CountRowRead();
      if (statuses[read].ok()) {
        TAMIS_RETURN_IF_ERROR(TakeStored(candidate.key, values[read]));
      } else if (!statuses[read].IsNotFound()) {
        return FromRocks(statuses[read], "read a row");
      }
      ++read;
    }
    position_.last = candidate.last;
    page_.NoteProgress();
  }
  return true;
}

Status CandidateRows::TakeStored(std::string_view key, std::string_view stored) {
  TAMIS_ASSIGN_OR_RETURN(StoredRow read, ReadStoredRow(*plan_.schema(), key, stored));
  page_.CountUndecodable(read.undecodable);
  if (read.state == StoredRow::State::kForeignKey) page_.CountRowUnparsed();
  if (read.state != StoredRow::State::kRow) return Status::Ok();
  if (joins_ != nullptr) joins_->Sample(read.row, key);
  TakeIfMatching(key, &read.row);
  return Status::Ok();
}

void CandidateRows::TakeIfMatching(std::string_view key, Row* row) {
  if (plan_.Matches(position_.branch, *row)) page_.AddRow(key, plan_.Encode(row));
}

}  // namespace tamis
