#include "tamis/rocks/searcher.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "tamis/cluster/error.h"
#include "tamis/rocks/branch_streams.h"
#include "tamis/rocks/entry_queue.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/row_cursor.h"
#include "tamis/rocks/search_position.h"
#include "tamis/table/codec.h"
#include "tamis/table/stored_row.h"

namespace tamis {
namespace {

constexpr int kMaxBranches = 1024;
constexpr size_t kBatch = 32;  // rows read at once
// Rows looked at before a stream is joined.
constexpr uint64_t kSample = 32;
// Reading a row costs as much as reading so many entries one after the other; and where rows are
// read one after the other, so many.
constexpr uint64_t kRowCost = 8;
constexpr uint64_t kScanCost = 2;
// A search for fewer rows than this gains nothing from a scan.
constexpr uint64_t kLeastToScan = 256;

bool InRange(const pb::IndexRange& range, std::string_view values_and_key) {
  return values_and_key >= range.low() && (range.high().empty() || values_and_key < range.high());
}

}  // namespace

Result<std::unique_ptr<Searcher>> Searcher::Create(const ServerContext& context,
                                                   const pb::SearchRequest& request,
                                                   SchemaPtr schema) {
  const auto newer = [&](const std::string& what) {
    return Unavailable("table \"" + schema->name + "\": server " + context.name +
                       " does not have schema version " + std::to_string(request.schema_version()) +
                       " yet, and " + what);
  };
  const bool is_newer = request.schema_version() > schema->version;
  if (request.branches_size() < 1 || request.branches_size() > kMaxBranches) {
    return InvalidArgument("a search has 1 to " + std::to_string(kMaxBranches) + " branches, not " +
                           std::to_string(request.branches_size()));
  }
  std::unique_ptr<Searcher> searcher(new Searcher(context, request, schema));
  for (const pb::Branch& branch : request.branches()) {
    TAMIS_ASSIGN_OR_RETURN(Predicate predicate, ParsePredicate(branch.predicate()));
    if (Status status = predicate.Validate(*schema); !status.ok()) {
      return is_newer ? newer(status.message()) : status;
    }
    std::set<uint32_t> index_ids;
    for (const pb::IndexStream& stream : branch.streams()) {
      if (!index_ids.insert(stream.index_id()).second) {
        return InvalidArgument("a branch has two streams of one index");
      }
    }
    searcher->branches_.push_back({std::move(predicate), &branch});
  }
  if (is_newer) {
    for (const uint32_t id : request.columns()) {
      if (std::ranges::find(schema->columns, id, &Column::id) == schema->columns.end()) {
        return newer("not its column " + std::to_string(id));
      }
    }
  }
  searcher->wanted_.assign(schema->columns.size(), false);
  for (uint32_t i = 0; i < schema->columns.size(); ++i) {
    searcher->wanted_[i] =
        std::ranges::find(request.columns(), schema->columns[i].id) != request.columns().end();
  }
  return searcher;
}

// One region, one snapshot.
class Searcher::Run {
 public:
  Run(const Searcher& searcher, const Region& region, const pb::SearchRange& range,
      uint64_t max_rows, Time deadline)
      : searcher_(searcher),
        context_(searcher.context_),
        region_(region),
        max_rows_(max_rows),
        deadline_(deadline),
        start_(std::max(range.start(), region.info().start)),
        end_(range.end()) {
    const std::string& region_end = region.info().end;
    if (end_.empty() || (!region_end.empty() && region_end < end_)) end_ = region_end;
    result_.set_region_id(range.region_id());
    result_.set_epoch(range.epoch());
    result_.set_start(start_);
    result_.set_end(end_);
  }

  pb::RangeResult Search(const std::string& resume) {
    SearchPosition position;
    if (!resume.empty()) {
      auto parsed = SearchPosition::Parse(resume);
      if (!parsed.has_value())
        return Failed(InvalidArgument("a continuation is damaged, or of another version"));
      position = std::move(*parsed);
    }
    // Before the snapshot: an index that is complete now has all its entries in it.
    const auto indexes = region_.indexes();
    for (const auto& [index_id, state] : *indexes) {
      if (state.entries_complete) complete_.insert(index_id);
    }
    if (Status status = TakeSnapshot(); !status.ok()) return Failed(status);
    while (position.branch < searcher_.branches_.size()) {
      Result<bool> done = RunBranch(&position);
      if (!done.ok()) return Failed(done.status());
      if (!*done) {
        result_.set_resume(position.Serialize());
        break;
      }
      position = {.branch = position.branch + 1};
      came_some_way_ = true;
      if (position.branch < searcher_.branches_.size() && IsOutOfTime()) {
        result_.set_resume(position.Serialize());
        break;
      }
    }
    // Compactions may have dropped entries that were the region's when the snapshot was taken; they
    // do so only for what the region holds no longer.
    if (!IsCurrent())
      return Failed(Unavailable("the region or an index changed during the search"));
    auto* counters = result_.mutable_counters();
    counters->set_index_seeks(counters_.index_seeks);
    counters->set_entries_read(counters_.entries_read);
    counters->set_rows_read(counters_.rows_read);
    counters->set_rows_returned(rows_);
    counters->set_scanned_regions(scanned_ ? 1 : 0);
    counters->set_cells_undecodable(counters_.cells_undecodable);
    counters->set_rows_unparsed(counters_.rows_unparsed);
    return std::move(result_);
  }

 private:
  struct Candidate {
    std::string key;
    std::string position;  // SearchPosition::last once this one is done
  };

  struct ReleaseSnapshot {
    rocksdb::DB* db;
    void operator()(const rocksdb::Snapshot* snapshot) const { db->ReleaseSnapshot(snapshot); }
  };

  pb::RangeResult Failed(const Status& status) {
    pb::RangeResult failed;
    failed.set_region_id(result_.region_id());
    failed.set_epoch(result_.epoch());
    SetError(status, failed.mutable_error());
    return failed;
  }

  bool IsCurrent() const {
    // The entries of a dropped index go at compactions, maybe before this region hears of it.
    for (const uint32_t index_id : used_) {
      if (!context_.catalog->HasIndex(region_.info().table_id, index_id)) return false;
    }
    const bool verified = context_.options.faults.search_beyond_proof || context_.is_verified();
    return verified && (!context_.options.fence_searches ||
                        region_.fence().Enter(region_.info().epoch).owns_lock());
  }

  Status TakeSnapshot() {
    {
      auto fence = region_.fence().Enter(region_.info().epoch);
      if (context_.options.fence_searches && !fence.owns_lock()) {
        return Unavailable("the region is not open here any more");
      }
      rocksdb::DB* db = context_.store->db();
      snapshot_ = {db->GetSnapshot(), ReleaseSnapshot{db}};
      read_options_.snapshot = snapshot_.get();
    }
    if (context_.options.during_search) context_.options.during_search();
    return Status::Ok();
  }

  using Stream = BranchStreams::Stream;

  // True when the branch is done; else *position tells how far it came.
  Result<bool> RunBranch(SearchPosition* position) {
    BranchStreams streams(context_, read_options_, region_.info().id.number());
    streams_ = &streams;
    Result<bool> done = RunBranch(position, &streams);
    for (const Stream& stream : streams.all()) NoteUse(stream);
    sampled_ = 0;
    joins_done_ = false;
    rows_before_ = rows_;
    joined_keys_.clear();
    leaps_.clear();
    streams_ = nullptr;
    driving_ = nullptr;
    return done;
  }

  Result<bool> RunBranch(SearchPosition* position, BranchStreams* streams) {
    const pb::Branch& plan = *searcher_.branches_[position->branch].plan;
    const bool by_entry = position->order == SearchPosition::Order::kEntry;
    const bool begun = by_entry || !position->last.empty();
    const pb::IndexStream* named = nullptr;
    const auto indexes = region_.indexes();
    for (const pb::IndexStream& stream : plan.streams()) {
      const bool is_named = stream.index_id() == position->index_id;
      if (is_named) named = &stream;
      const IndexSpec* index = searcher_.schema_->FindIndex(stream.index_id());
      const auto state = indexes->find(stream.index_id());
      if (index == nullptr || !complete_.contains(index->id) || state == indexes->end()) continue;
      used_.insert(stream.index_id());
      // A search continues in the order in which it began.
      const bool may_lead = by_entry ? is_named : (!begun || stream.equality());
      streams->Add(stream, *index, state->second.filter, may_lead,
                   {by_entry ? start_ : AfterLast(*position), end_},
                   by_entry && is_named ? position->last : "");
    }
    if (by_entry && (named == nullptr || named->equality())) {
      return InvalidArgument("a continuation counts in the order of an index of another search");
    }
    const bool scanning = begun && position->index_id == 0;
    const bool may_scan = !begun && max_rows_ >= kLeastToScan && context_.options.streams_by_cost;
    if (!scanning) driving_ = streams->Lead(begun ? position->index_id : 0, Probe(may_scan));
    if (driving_ == nullptr && by_entry) return SortRows(*named, position);
    const bool by_choice =
        scanning ? !streams->all().empty() : driving_ != nullptr && may_scan && IsScanCheaper();
    if (driving_ == nullptr || by_choice) {
      driving_ = nullptr;
      scanned_ |= !by_choice && plan.streams_size() > 0;
      if (by_choice) result_.mutable_counters()->add_uses()->set_led(1);
      position->index_id = 0;
      return ScanRows(position);
    }
    driving_->led = true;
    if (!begun) driving_->expected = driving_->size.value_or(0);
    position->index_id = driving_->index->id;
    if (driving_->equality()) return WalkKeys(position);
    position->order = SearchPosition::Order::kEntry;
    return WalkEntries(position);
  }

  // Entries that may be read ahead to see which stream has the fewest: as many as cost what reading
  // the rows does that are wanted, and no more than make a scan cheaper.
  uint64_t Probe(bool may_scan) const {
    const RegionServerOptions& options = context_.options;
    const uint64_t most =
        std::max(options.probe_entries, std::min(options.page_candidates, kRowCost * max_rows_));
    const auto rows = may_scan && IsWhole() ? RowCount() : std::nullopt;
    return rows.has_value() ? std::min(most, *rows * kScanCost / (1 + kRowCost) + 1) : most;
  }

  bool IsWhole() const { return start_ <= region_.info().start && end_ == region_.info().end; }

  // The number of rows of the region, as its filters know it.
  std::optional<uint64_t> RowCount() const {
    std::optional<uint64_t> rows;
    const auto indexes = region_.indexes();
    for (const auto& [index_id, state] : *indexes) {
      const IndexSpec* index = searcher_.schema_->FindIndex(index_id);
      if (index == nullptr || index->nulls == IndexNulls::kSkip || state.filter == nullptr ||
          !complete_.contains(index_id) || !state.filter->published()) {
        continue;
      }
      rows = std::min(rows.value_or(~uint64_t{0}), state.filter->entries());
    }
    return rows;
  }

  // Whether reading all rows of the range costs less than what the leader finds.
  bool IsScanCheaper() {
    const auto rows = RowCount();
    if (!rows.has_value()) return false;
    const RegionInfo& info = region_.info();
    const uint64_t entries = streams_->SizeOf(driving_, Probe(true));
    // Rows that cost as much when they are read in turn.
    const uint64_t most =
        (entries * (1 + kRowCost) + BranchStreams::OpeningCost(*driving_)) / kScanCost;
    if (IsWhole()) return *rows <= most;
    // So few rows that they can be counted?
    if (entries <= context_.options.probe_entries) return CountRows(2 * entries) < 2 * entries;
    const Store& store = *context_.store;
    const auto all =
        static_cast<double>(store.ApproximateRowBytes(info.table_id, info.start, info.end));
    const auto part = static_cast<double>(store.ApproximateRowBytes(info.table_id, start_, end_));
    return all > 0 && static_cast<double>(*rows) * part / all <= static_cast<double>(most);
  }

  // A cursor over the rows of the searched range.
  RowCursor RowsFrom(const std::string& start) const {
    return RowCursor(*context_.store, region_.info().table_id, {start, end_}, read_options_);
  }

  // Rows of the range searched, `most` for as many or more.
  uint64_t CountRows(uint64_t most) const {
    RowCursor rows = RowsFrom(start_);
    uint64_t count = 0;
    for (; count < most && rows.Valid(); rows.Next()) ++count;
    return rows.status("count rows").ok() ? count : most;
  }

  void NoteUse(const Stream& stream) {
    counters_.index_seeks += stream.read.index_seeks;
    counters_.entries_read += stream.read.entries_read;
    if (!stream.led && !stream.joined && stream.read.entries_read == 0) return;
    pb::IndexUse* use = result_.mutable_counters()->add_uses();
    use->set_index_id(stream.index->id);
    use->set_led(stream.led ? 1 : 0);
    use->set_joined(stream.joined ? 1 : 0);
    use->set_entries_expected(stream.expected);
    use->set_entries_read(stream.read.entries_read);
  }

  // Joins streams that spare more than they cost, once enough rows were looked at.
  Status JoinStreams() {
    if (sampled_ < kSample || joins_done_ || !context_.options.join_streams) return Status::Ok();
    joins_done_ = true;
    std::vector<Stream*> others;
    for (Stream& stream : streams_->all()) {
      if (&stream != driving_ && stream.rows_in * 4 <= sampled_ * 3) others.push_back(&stream);
    }
    if (others.empty()) return Status::Ok();
    std::ranges::stable_sort(others, {}, &Stream::rows_in);
    // The entries of the driving stream that are still to be read for this answer.
    const uint64_t size = streams_->SizeOf(driving_, context_.options.probe_entries);
    double left = static_cast<double>(size - std::min(size, sampled_));
    left = std::min(left, static_cast<double>(context_.options.page_candidates));
    if (max_rows_ > rows_ && rows_ > rows_before_) {
      left = std::min(left, static_cast<double>((max_rows_ - rows_) * sampled_) /
                                static_cast<double>(rows_ - rows_before_));
    }
    for (Stream* stream : others) {
      const double share = static_cast<double>(stream->rows_in) / static_cast<double>(sampled_);
      // Half of what it spares, so that little is lost where the first rows are not like the rest.
      const auto spared = static_cast<uint64_t>(left * (1 - share) * kRowCost / 2);
      const auto most = std::min<uint64_t>(context_.options.page_candidates, spared);
      const uint64_t opening = BranchStreams::OpeningCost(*stream);
      if (most < kSample + opening) continue;
      const uint64_t probe = std::min(context_.options.probe_entries, most);
      if (streams_->SizeOf(stream, probe) > most - opening) continue;
      TAMIS_RETURN_IF_ERROR(Join(stream, most));
      if (stream->joined) left *= share;
    }
    return Status::Ok();
  }

  Status Join(Stream* stream, uint64_t most) {
    streams_->Open(stream);
    if (driving_->equality() && stream->equality()) {
      stream->joined = true;
      leaps_.push_back(stream);
      return Status::Ok();
    }
    std::unordered_set<std::string> keys;
    size_t held = 0;  // bytes
    std::string target = start_;
    while (keys.size() <= most && held < EntryQueue::kMaxBytes && !IsOutOfTime()) {
      std::optional<std::string> key;
      if (stream->equality()) {
        key = stream->by_key->Seek(target);
        if (key.has_value()) target = *key + '\0';
      } else if (const auto entry = stream->by_entry->Next()) {
        TAMIS_ASSIGN_OR_RETURN(const auto split,
                               SplitIndexEntry(*searcher_.schema_, *stream->index, *entry));
        key = split.second;
      }
      if (!key.has_value()) {
        TAMIS_RETURN_IF_ERROR(stream->status());
        stream->joined = true;
        joined_keys_.push_back(std::move(keys));
        break;
      }
      const size_t bytes = key->size();
      if (keys.insert(*std::move(key)).second) held += bytes;
    }
    return Status::Ok();
  }

  bool IsInJoined(const std::string& key) const {
    return std::ranges::all_of(joined_keys_, [&](const auto& keys) { return keys.contains(key); });
  }

  // Notes in which of the other streams the row has an entry.
  void Sample(const Row& row, std::string_view key) {
    if (streams_ == nullptr || driving_ == nullptr || joins_done_) return;
    ++sampled_;
    for (Stream& stream : streams_->all()) {
      if (&stream == driving_) continue;
      const auto given = IndexEntry::Of(*stream.index, row);
      if (!given.has_value()) continue;
      const std::string entry = given->values + std::string(key);
      stream.rows_in += std::ranges::any_of(
          stream.plan->ranges(), [&](const auto& range) { return InRange(range, entry); });
    }
  }

  Result<bool> ScanRows(SearchPosition* position) {
    RowCursor rows = RowsFrom(AfterLast(*position));
    for (; rows.Valid(); rows.Next()) {
      if (Full()) return false;
      const std::string_view key = rows.key();
      if (key.empty()) {  // no row of any table; and no position to go on from
        ++counters_.rows_unparsed;
        continue;
      }
      ++candidates_;
      ++counters_.rows_read;
      TAMIS_RETURN_IF_ERROR(Consider(position->branch, key, rows.value()));
      position->last = key;
      came_some_way_ = true;
    }
    TAMIS_RETURN_IF_ERROR(rows.status("scan rows"));
    return true;
  }

  // By the row keys of the leader that are in all joined streams, in their order.
  Result<bool> WalkKeys(SearchPosition* position) {
    KeyStream& keys = *driving_->by_key;
    std::vector<Candidate> batch;
    std::string target = AfterLast(*position);
    std::string passed;  // no key up to it is in all streams, but for those in the batch
    constexpr int kLeastMoves = 16;  // so that a request comes some way
    int moves = 0;
    bool ended = false;
    const auto go_to = [&](std::string next) {
      passed = std::exchange(target, std::move(next));
      ++moves;
    };
    while (!ended) {
      std::optional<std::string> key = keys.Seek(target);
      const bool found = key.has_value() && (end_.empty() || *key < end_);
      if (found && *key > target) go_to(*key);
      ended = !found;
      bool everywhere = found;
      for (Stream* stream : leaps_) {
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
      if (everywhere && !IsInJoined(target)) {
        everywhere = false;
        go_to(target + '\0');
      }
      if (everywhere) {
        batch.push_back({target, target});
        target.push_back('\0');  // the least key behind it
      }
      const bool stop = !ended && moves >= kLeastMoves && !passed.empty() &&
                        IsOutOfTime(/*even_if_nothing=*/true);
      if (batch.size() >= kBatch || ended || stop) {
        // A stream that broke looks like one that has ended.
        for (const Stream& stream : streams_->all()) {
          TAMIS_RETURN_IF_ERROR(stream.status());
        }
        TAMIS_ASSIGN_OR_RETURN(const bool all, ConsiderBatch(&batch, position));
        if (all && stop && passed > position->last) position->last = passed;
        if (!all || stop || (Full() && !ended)) return false;
        TAMIS_RETURN_IF_ERROR(JoinStreams());
      }
    }
    return true;
  }

  // A continuation in the order of an index is of no use without it.
  Status UnknownIndex(uint32_t index_id) const {
    if (context_.catalog->HasIndex(region_.info().table_id, index_id)) {
      return Unavailable("the index is not known here yet");
    }
    return FailedPrecondition("an index was dropped while it was searched; search again");
  }

  // By the entries of the leader whose row keys are in all joined streams, in their order.
  Result<bool> WalkEntries(SearchPosition* position) {
    const TableSchema& schema = *searcher_.schema_;
    std::vector<Candidate> batch;
    uint64_t left_out = 0;
    while (const std::optional<std::string> entry = driving_->by_entry->Next()) {
      TAMIS_ASSIGN_OR_RETURN(const auto split, SplitIndexEntry(schema, *driving_->index, *entry));
      std::string key(split.second);
      const bool garbage = key < start_ || (!end_.empty() && key >= end_);
      if (garbage || !IsInJoined(key)) {
        // Many of them must not hold up a reply, and the next one begins behind them.
        if (garbage || ++left_out % kRowCost == 0) ++candidates_;
        if (batch.empty()) {
          position->last = *entry;
          came_some_way_ = true;
        }
        if (!Full()) continue;
        TAMIS_RETURN_IF_ERROR(ConsiderBatch(&batch, position).status());
        return false;
      }
      batch.push_back({std::move(key), *entry});
      if (batch.size() < kBatch) continue;
      TAMIS_ASSIGN_OR_RETURN(const bool all, ConsiderBatch(&batch, position));
      if (!all || Full()) return false;
      TAMIS_RETURN_IF_ERROR(JoinStreams());
    }
    TAMIS_RETURN_IF_ERROR(driving_->status());
    return ConsiderBatch(&batch, position);
  }

  // The index is not complete here, but the continuation counts in its order: the rows are put into
  // that order first.
  Result<bool> SortRows(const pb::IndexStream& stream, SearchPosition* position) {
    scanned_ = true;
    const SchemaPtr schema = region_.schema();
    const IndexSpec* index = schema->FindIndex(stream.index_id());
    if (index == nullptr) return UnknownIndex(stream.index_id());
    // Entry -> row key; the least ones, as many as may be held.
    std::map<std::string, std::string> sorted;
    const size_t keep = std::max<size_t>(max_rows_, context_.options.page_candidates);
    size_t held = 0;  // bytes of entries, which end with their row keys
    bool dropped = false;
    RowCursor rows = RowsFrom(start_);
    for (; rows.Valid(); rows.Next()) {
      const std::string key(rows.key());
      if (key > start_ && came_some_way_ && IsOutOfTime()) {
        if (rows_ > 0) return false;  // of earlier branches, and of the whole range
        // The least entries are known only of the rows up to here: the answer is for those.
        end_ = key;
        result_.set_end(end_);
        break;
      }
      came_some_way_ = true;
      ++counters_.rows_read;
      TAMIS_ASSIGN_OR_RETURN(const StoredRow stored, ReadStoredRow(*schema, key, rows.value()));
      if (stored.state != StoredRow::State::kRow) continue;
      const auto given = IndexEntry::Of(*index, stored.row);
      if (!given.has_value()) continue;
      std::string entry = given->values + key;
      const bool in_stream = std::ranges::any_of(
          stream.ranges(), [&](const pb::IndexRange& range) { return InRange(range, entry); });
      if (!in_stream || entry <= position->last) continue;
      held += entry.size();
      sorted.emplace(std::move(entry), key);
      while (sorted.size() > keep || (held > EntryQueue::kMaxBytes && sorted.size() > 1)) {
        const auto last = std::prev(sorted.end());
        held -= last->first.size();
        sorted.erase(last);
        dropped = true;
      }
    }
    TAMIS_RETURN_IF_ERROR(rows.status("scan rows"));
    std::vector<Candidate> batch;
    for (const auto& [entry, key] : sorted) {
      batch.push_back({key, entry});
      if (batch.size() < kBatch) continue;
      TAMIS_ASSIGN_OR_RETURN(const bool all, ConsiderBatch(&batch, position));
      if (!all) return false;
    }
    TAMIS_ASSIGN_OR_RETURN(const bool all, ConsiderBatch(&batch, position));
    return all && !dropped;
  }

  // Reads the rows of the candidates and takes those that match. False when the page became full
  // before the last of them; *position says what is done, which is at least the first of them.
  Result<bool> ConsiderBatch(std::vector<Candidate>* batch, SearchPosition* position) {
    const std::vector<Candidate> candidates = std::exchange(*batch, {});
    std::vector<std::string> store_keys;
    for (const Candidate& candidate : candidates) {
      store_keys.push_back(RowStoreKey(region_.info().table_id, candidate.key));
    }
    const std::vector<rocksdb::Slice> slices(store_keys.begin(), store_keys.end());
    const std::vector<rocksdb::ColumnFamilyHandle*> families(slices.size(), context_.store->rows());
    std::vector<std::string> values;
    const auto statuses = context_.store->db()->MultiGet(read_options_, families, slices, &values);
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (PageFull()) return false;
      ++candidates_;
      ++counters_.rows_read;
      if (statuses[i].ok()) {
        TAMIS_RETURN_IF_ERROR(Consider(position->branch, candidates[i].key, values[i]));
      } else if (!statuses[i].IsNotFound()) {
        return FromRocks(statuses[i], "read a row");
      }
      position->last = candidates[i].position;
      came_some_way_ = true;
    }
    return true;
  }

  Status Consider(uint64_t branch, std::string_view key, std::string_view stored) {
    const TableSchema& schema = *searcher_.schema_;
    TAMIS_ASSIGN_OR_RETURN(StoredRow read, ReadStoredRow(schema, key, stored));
    counters_.cells_undecodable += read.undecodable;
    if (read.state == StoredRow::State::kForeignKey) ++counters_.rows_unparsed;
    if (read.state != StoredRow::State::kRow) return Status::Ok();
    Row& row = read.row;
    Sample(row, key);
    if (!context_.options.faults.no_row_verification) {
      if (!searcher_.branches_[branch].predicate.Matches(row)) return Status::Ok();
      for (uint64_t i = 0; i < branch; ++i) {
        if (searcher_.branches_[i].predicate.Matches(row)) return Status::Ok();
      }
    }
    ++rows_;
    for (size_t i = 0; i < row.size(); ++i) {
      if (!searcher_.wanted_[i]) row[i] = Value();
    }
    pb::FoundRow* found = result_.add_rows();
    found->set_key(std::string(key));
    found->set_row(EncodeRow(schema, row));
    bytes_ += key.size() + found->row().size();
    return Status::Ok();
  }

  bool PageFull() const { return rows_ >= max_rows_ || bytes_ >= context_.options.page_bytes; }
  // Or enough work for one request.
  bool Full() {
    return PageFull() || candidates_ >= context_.options.page_candidates || IsOutOfTime();
  }
  // Never before something is done that need not be done again.
  bool IsOutOfTime(bool even_if_nothing = false) {
    static constexpr uint64_t kLooks = 16;  // one of so many looks at the clock
    if (!came_some_way_ && !even_if_nothing) return false;
    if (!out_of_time_ && looks_++ % kLooks == 0) {
      out_of_time_ = context_.executor->Now() >= deadline_;
    }
    return out_of_time_;
  }

  std::string AfterLast(const SearchPosition& position) const {
    return position.last.empty() ? start_ : std::max(start_, AfterLast(position.last));
  }
  static std::string AfterLast(const std::string& last) {
    return last.empty() ? last : last + '\0';
  }

  const Searcher& searcher_;
  const ServerContext& context_;
  const Region& region_;
  const uint64_t max_rows_;
  const Time deadline_;
  const std::string start_;
  std::string end_;
  std::unique_ptr<const rocksdb::Snapshot, ReleaseSnapshot> snapshot_;
  rocksdb::ReadOptions read_options_;
  std::set<uint32_t> complete_;  // indexes whose entries all stand in the snapshot
  std::set<uint32_t> used_;
  pb::RangeResult result_;
  ReadCounters counters_;
  BranchStreams* streams_ = nullptr;  // of the branch under way
  Stream* driving_ = nullptr;
  std::vector<Stream*> leaps_;                                // joined, in row-key order
  std::vector<std::unordered_set<std::string>> joined_keys_;  // of the others
  uint64_t sampled_ = 0;                                      // rows
  bool joins_done_ = false;
  uint64_t rows_before_ = 0;  // of earlier branches
  uint64_t rows_ = 0;
  uint64_t bytes_ = 0;
  uint64_t candidates_ = 0;
  bool scanned_ = false;
  bool came_some_way_ = false;  // the position is not where it was
  bool out_of_time_ = false;
  uint64_t looks_ = 0;
};

pb::RangeResult Searcher::Search(const Region& region, const pb::SearchRange& range,
                                 uint64_t max_rows, Time deadline) const {
  return Run(*this, region, range, max_rows, deadline).Search(range.resume());
}

}  // namespace tamis
