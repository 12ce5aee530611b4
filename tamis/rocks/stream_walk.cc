#include "tamis/rocks/stream_walk.h"

#include <algorithm>
#include <utility>

#include "tamis/rocks/index_entry.h"

namespace tamis {

Result<bool> StreamWalk::WalkKeys() {
  KeyStream& keys = *driving_.by_key;
  std::string target = snapshot_.StartAfter(position_.last);
  std::string passed;              // no key up to it is in all streams, but for the candidates
  constexpr int kLeastMoves = 16;  // so that a request comes some way
  int moves = 0;
  bool ended = false;
  const auto go_to = [&](std::string next) {
    passed = std::exchange(target, std::move(next));
    ++moves;
  };
  while (!ended) {
    std::optional<std::string> key = keys.Seek(target);
    const bool found = key.has_value() && !snapshot_.IsOutside(*key);
    if (found && *key > target) go_to(*key);
    ended = !found;
    bool everywhere = found;
    for (BranchStreams::Stream* stream : joins_.zigzag()) {
      if (!everywhere) break;
      const auto other = stream->by_key->Seek(target);
      if (other == target) continue;
      everywhere = false;
      if (other.has_value()) {
        go_to(*other);
      } else {
        ended = true;
      }
    }
    if (everywhere && !joins_.Contains(target)) {
      everywhere = false;
      go_to(target + '\0');
    }
    if (everywhere) {
      if (candidates_.empty() && driving_.groups.has_value()) {
        if (page_.HasAllRows()) return false;
        TAMIS_ASSIGN_OR_RETURN(const bool counted, CountKey(keys.values(), target));
        if (counted) {
          if (page_.IsFull()) return false;
          target.push_back('\0');
          continue;
        }
      }
      candidates_.Add(target, target, RowOf(keys.values(), target, keys.included()));
      target.push_back('\0');  // the least key after it
    }
    const bool stop = !ended && moves >= kLeastMoves && !passed.empty() &&
                      page_.IsOutOfTime(/*even_without_progress=*/true);
    if (candidates_.size() >= CandidateRows::kBatch || ended || stop) {
      TAMIS_RETURN_IF_ERROR(CheckStreams());
      TAMIS_ASSIGN_OR_RETURN(const bool all, candidates_.Take());
      if (all && stop && passed > position_.last) position_.last = passed;
      if (!all || stop || (page_.IsFull() && !ended)) return false;
      TAMIS_RETURN_IF_ERROR(joins_.Join());
    }
  }
  return true;
}

Status StreamWalk::CheckStreams() const {
  for (const BranchStreams::Stream& stream : streams_.all()) {
    TAMIS_RETURN_IF_ERROR(stream.status());
  }
  return Status::Ok();
}

Result<bool> StreamWalk::WalkEntries() {
  uint64_t batch_size = BatchSize(0);
  uint64_t considered = 0;
  uint64_t left_out = 0;
  while (const std::optional<std::string_view> entry = driving_.by_entry->Next()) {
    if (candidates_.empty() && driving_.groups.has_value()) {
      if (page_.HasAllRows()) return false;
      TAMIS_ASSIGN_OR_RETURN(const bool counted, CountEntry(*entry));
      if (counted && page_.IsFull()) return false;
      if (counted) continue;
    }
    TAMIS_ASSIGN_OR_RETURN(const auto split,
                           SplitIndexEntry(*plan_.schema(), *driving_.index, *entry));
    std::string key(split.second);
    const bool garbage = snapshot_.IsOutside(key);
    if (garbage || !joins_.Contains(key)) {
      // Many of them must not hold up a reply, and the next one begins after them.
      if (garbage || ++left_out % SearchCost::kRow == 0) page_.CountCandidate();
      if (candidates_.empty()) {
        position_.last = *entry;
        page_.NoteProgress();
      }
      if (!page_.IsFull()) continue;
      TAMIS_ASSIGN_OR_RETURN(const bool all, candidates_.Take());
      if (all) position_.last = *entry;
      return false;
    }
    std::optional<Row> row = RowOf(split.first, key, driving_.by_entry->value());
    candidates_.Add(std::move(key), std::string(*entry), std::move(row));
    if (candidates_.size() < batch_size) continue;
    considered += candidates_.size();
    TAMIS_ASSIGN_OR_RETURN(const bool all, candidates_.Take());
    if (!all || page_.IsFull()) return false;
    batch_size = BatchSize(considered);
    TAMIS_RETURN_IF_ERROR(joins_.Join());
  }
  TAMIS_RETURN_IF_ERROR(driving_.status());
  return candidates_.Take();
}

// A search in an order is often one for its first rows: no more are read than the page needs if
// they match as often as those before.
uint64_t StreamWalk::BatchSize(uint64_t considered) const {
  if (!page_.in_order()) return CandidateRows::kBatch;
  const uint64_t missing = page_.max_rows() - std::min(page_.max_rows(), page_.rows());
  return std::clamp<uint64_t>(missing * (considered + 1) / (page_.rows() + 1), 1,
                              CandidateRows::kBatch);
}

Result<bool> StreamWalk::CountEntry(std::string_view entry) {
  TAMIS_ASSIGN_OR_RETURN(const EntryGroups::Split split, driving_.groups->SplitEntry(entry));
  if (!snapshot_.IsOutside(split.row_key)) {
    const auto values = entry.substr(0, entry.size() - split.row_key.size());
    if (!CountRow(split.values, values, split.row_key)) return false;
  }
  page_.CountCandidate();
  position_.last = entry;
  page_.NoteProgress();
  return true;
}

Result<bool> StreamWalk::CountKey(std::string_view values, const std::string& key) {
  TAMIS_ASSIGN_OR_RETURN(const std::string_view deciding, driving_.groups->Deciding(values));
  if (!CountRow(deciding, values, key)) return false;
  page_.CountCandidate();
  position_.last = key;
  page_.NoteProgress();
  return true;
}

bool StreamWalk::CountRow(std::string_view deciding, std::string_view values,
                          std::string_view key) {
  std::optional<RowGroups::Group*> group = driving_.groups->Find(deciding, page_.generation());
  if (!group.has_value()) {
    std::optional<Row> row = RowOf(values, key, /*included=*/{});
    if (!row.has_value()) return false;
    const bool matches = plan_.Matches(position_.branch, *row);
    group = matches ? page_.FindGroup(plan_.Encode(&*row)) : nullptr;
    driving_.groups->Remember(deciding, *group, page_.generation());
  }
  page_.CountRowFromEntry();
  if (*group != nullptr) page_.AddRow(*group);
  return true;
}

}  // namespace tamis
