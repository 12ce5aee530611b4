#include "tamis/rocks/stream_joins.h"

#include <algorithm>
#include <optional>

#include "tamis/rocks/entry_queue.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/table/codec.h"

namespace tamis {

using Stream = BranchStreams::Stream;

void StreamJoins::Sample(const Row& row, std::string_view key) {
  if (is_decided_) return;
  ++sampled_;
  for (Stream& stream : streams_.all()) {
    if (&stream == &driving_) continue;
    const auto given = IndexEntry::Of(schema_, *stream.index, row);
    if (!given.has_value()) continue;
    const std::string entry = given->values + std::string(key);
    stream.rows_in += IsInRanges(*stream.plan, entry) ? 1 : 0;
  }
}

// Entries of the driving stream that this page may still read.
double StreamJoins::EntriesLeft() {
  const uint64_t size = streams_.SizeOf(&driving_, context_.options.probe_entries);
  double left = static_cast<double>(size - std::min(size, sampled_));
  left = std::min(left, static_cast<double>(context_.options.page_candidates));
  const uint64_t found = page_.rows() - rows_before_;
  if (page_.max_rows() > page_.rows() && found > 0) {
    left = std::min(left, static_cast<double>((page_.max_rows() - page_.rows()) * sampled_) /
                              static_cast<double>(found));
  }
  return left;
}

Status StreamJoins::Join() {
  if (sampled_ < SearchCost::kSample || is_decided_ || !context_.options.join_streams) {
    return Status::Ok();
  }
  is_decided_ = true;
  std::vector<Stream*> others;
  for (Stream& stream : streams_.all()) {
    if (&stream != &driving_ && stream.rows_in * 4 <= sampled_ * 3) others.push_back(&stream);
  }
  if (others.empty()) return Status::Ok();
  std::ranges::stable_sort(others, {}, &Stream::rows_in);
  double left = EntriesLeft();
  for (Stream* stream : others) {
    const double share = static_cast<double>(stream->rows_in) / static_cast<double>(sampled_);
    const uint64_t most = cost_.MostToJoin(&streams_, stream, share, left);
    if (most == 0) continue;
    TAMIS_RETURN_IF_ERROR(Join(stream, most));
    if (stream->joined) left *= share;
  }
  return Status::Ok();
}

Status StreamJoins::Join(Stream* stream, uint64_t most) {
  streams_.Open(stream);
  if (driving_.equality() && stream->equality()) {
    stream->joined = true;
    zigzag_.push_back(stream);
    return Status::Ok();
  }
  std::unordered_set<std::string> keys;
  size_t held = 0;  // bytes
  std::string target = snapshot_.start();
  while (keys.size() <= most && held < EntryQueue::kMaxBytes && !page_.IsOutOfTime()) {
    std::optional<std::string> key;
    if (stream->equality()) {
      key = stream->by_key->Seek(target);
      if (key.has_value()) target = *key + '\0';
    } else if (const auto next = stream->by_entry->Next()) {
      TAMIS_ASSIGN_OR_RETURN(const auto split, SplitIndexEntry(schema_, *stream->index, *next));
      key = split.second;
    }
    if (!key.has_value()) {
      TAMIS_RETURN_IF_ERROR(stream->status());
      stream->joined = true;
      key_sets_.push_back(std::move(keys));
      break;
    }
    const size_t bytes = key->size();
    if (keys.insert(*std::move(key)).second) held += bytes;
  }
  return Status::Ok();
}

bool StreamJoins::Contains(const std::string& key) const {
  return std::ranges::all_of(key_sets_, [&](const auto& keys) { return keys.contains(key); });
}

}  // namespace tamis
