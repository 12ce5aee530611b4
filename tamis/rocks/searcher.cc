#include "tamis/rocks/searcher.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tamis/rocks/branch_streams.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/least_entries.h"
#include "tamis/rocks/region_snapshot.h"
#include "tamis/rocks/search_cost.h"
#include "tamis/rocks/search_page.h"
#include "tamis/rocks/search_position.h"
#include "tamis/rocks/stream_joins.h"
#include "tamis/table/codec.h"
#include "tamis/table/stored_row.h"

namespace tamis {
namespace {

constexpr int kMaxBranches = 1024;
constexpr size_t kBatch = 32;  // rows read at once

Status CheckOrder(const pb::SearchRequest& request) {
  if (!request.has_order()) return Status::Ok();
  const uint32_t index_id = request.order().index_id();
  const auto gives_order = [&](const pb::IndexStream& stream) {
    return stream.index_id() == index_id && !stream.equality();
  };
  if (request.branches_size() == 1 &&
      std::ranges::any_of(request.branches(0).streams(), gives_order)) {
    return Status::Ok();
  }
  return InvalidArgument("a search in the order of index " + std::to_string(index_id) +
                         " has one branch, with a stream of that index that is no equality");
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
  TAMIS_RETURN_IF_ERROR(CheckOrder(request));
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
    searcher->branches_.push_back({std::move(predicate), &branch, {}});
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
  TAMIS_RETURN_IF_ERROR(searcher->CheckGrouping());
  std::vector<bool> needed = searcher->wanted_;
  for (Branch& branch : searcher->branches_) {
    branch.predicate.AddColumns(&needed);
    branch.needed = needed;
  }
  return searcher;
}

Status Searcher::CheckGrouping() {
  if (!request_.groups()) return Status::Ok();
  for (uint32_t i = 0; i < wanted_.size(); ++i) {
    if (!wanted_[i] || !schema_->IsKey(i)) continue;
    return InvalidArgument("groups of rows have no column of the key, such as \"" +
                           schema_->columns[i].name + "\"");
  }
  for (const uint32_t id : request_.totals()) {
    const auto at = std::ranges::find(schema_->columns, id, &Column::id);
    const auto position = static_cast<uint32_t>(at - schema_->columns.begin());
    if (at == schema_->columns.end() || !wanted_[position]) {
      return InvalidArgument("totals are wanted of column " + std::to_string(id) +
                             ", which is none of the wanted columns");
    }
    totals_.push_back(position);
  }
  return Status::Ok();
}

std::optional<SearchPage::Grouping> Searcher::Grouping() const {
  if (!request_.groups()) return std::nullopt;
  SearchPage::Grouping grouping{.schema = *schema_, .by = {}, .totals = totals_};
  for (uint32_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_[i] && std::ranges::find(totals_, i) == totals_.end()) grouping.by.push_back(i);
  }
  return grouping;
}

// One range of one region, in one snapshot.
class Searcher::Run {
 public:
  Run(const Searcher& searcher, const Region& region, const pb::SearchRange& range,
      uint64_t max_rows, Time deadline)
      : searcher_(searcher),
        context_(searcher.context_),
        schema_(*searcher.schema_),
        region_(region),
        snapshot_(context_, region, {range.start(), range.end()}),
        cost_(context_, snapshot_, schema_, max_rows),
        page_(context_, range, max_rows, searcher.Grouping(), deadline) {}

  pb::RangeResult Search(const std::string& resume) {
    page_.SetRange(snapshot_.start(), snapshot_.end());
    SearchPosition position = Begin();
    if (!resume.empty()) {
      auto parsed = SearchPosition::Parse(resume);
      if (!parsed.has_value()) {
        return page_.Failed(InvalidArgument("a continuation is damaged, or of another version"));
      }
      position = std::move(*parsed);
      if (position.IsDescending() && !IsInOrder(position)) {
        return page_.Failed(InvalidArgument("a continuation is of a search in another order"));
      }
    }
    in_order_ = IsInOrder(position);
    if (in_order_) page_.NoteInOrder();
    if (Status status = snapshot_.Take(); !status.ok()) return page_.Failed(status);
    std::string rest;
    while (position.branch < searcher_.branches_.size()) {
      Result<bool> done = RunBranch(&position);
      if (!done.ok()) return page_.Failed(done.status());
      if (!*done) {
        rest = position.Serialize();
        break;
      }
      position = {.branch = position.branch + 1};
      page_.NoteProgress();
      if (position.branch < searcher_.branches_.size() && page_.IsOutOfTime()) {
        rest = position.Serialize();
        break;
      }
    }
    if (!snapshot_.IsCurrent()) {
      return page_.Failed(Unavailable("the region or an index changed during the search"));
    }
    return page_.Finish(rest);
  }

 private:
  using Stream = BranchStreams::Stream;

  // A search in the order of an index is the rest of one, from before its first entry.
  SearchPosition Begin() const {
    if (!searcher_.request_.has_order()) return {};
    const pb::Order& order = searcher_.request_.order();
    return {.order = order.descending() ? SearchPosition::Order::kEntryDescending
                                        : SearchPosition::Order::kEntry,
            .index_id = order.index_id()};
  }

  // False for a continuation that was begun by a server that does not know of orders, too: it goes
  // on as it began.
  bool IsInOrder(const SearchPosition& position) const {
    if (!searcher_.request_.has_order()) return false;
    const SearchPosition begin = Begin();
    return position.order == begin.order && position.index_id == begin.index_id;
  }

  struct Candidate {
    std::string key;
    std::string position;                   // SearchPosition::last once this one is done
    std::optional<Row> row = std::nullopt;  // where the entry gives it
  };

  // True when the branch is done; else *position tells how far it came.
  Result<bool> RunBranch(SearchPosition* position) {
    BranchStreams streams(context_, snapshot_.read_options(), region_.info().id.number());
    streams_ = &streams;
    Result<bool> done = RunStreams(position);
    for (const Stream& stream : streams.all()) page_.NoteUse(stream);
    joins_.reset();
    driving_ = nullptr;
    streams_ = nullptr;
    return done;
  }

  Result<bool> RunStreams(SearchPosition* position) {
    const pb::Branch& plan = *searcher_.branches_[position->branch].plan;
    const bool by_entry = position->IsByEntry();
    const bool has_begun = position->HasBegun();
    const pb::IndexStream* named = AddStreams(searcher_.branches_[position->branch], *position);
    if (by_entry && (named == nullptr || named->equality())) {
      return InvalidArgument("a continuation counts in the order of an index of another search");
    }
    const bool is_scanning = has_begun && position->index_id == 0;
    const bool may_scan = !has_begun && cost_.MayScan();
    if (!is_scanning) {
      driving_ = streams_->Lead(has_begun ? position->index_id : 0,
                                cost_.Probe(may_scan, LeastEntryCost()));
    }
    if (driving_ == nullptr && by_entry) {
      page_.NoteScan();
      return SortRows(*named, position);
    }
    const bool by_choice =
        is_scanning ? !streams_->all().empty() : !by_entry && IsScanBetter(may_scan);
    if (driving_ == nullptr || by_choice) {
      driving_ = nullptr;
      if (by_choice) {
        page_.NoteScanByChoice();
      } else if (plan.streams_size() > 0) {
        page_.NoteScan();
      }
      position->index_id = 0;
      return ScanRows(position);
    }
    if (in_order_) {
      if (Stream* few = cost_.StreamToSort(streams_, driving_)) {
        return SortStream(*named, few, position);
      }
      if (cost_.IsSortOfRowsCheaper(streams_, driving_)) {
        page_.NoteScanByChoice();
        return SortRows(*named, position);
      }
    }
    driving_->led = true;
    if (!has_begun) driving_->expected = driving_->size.value_or(0);
    position->index_id = driving_->index->id;
    joins_.emplace(context_, snapshot_, schema_, cost_, &page_, streams_, driving_);
    if (driving_->equality()) return WalkKeys(position);
    if (!by_entry) position->order = SearchPosition::Order::kEntry;
    return WalkEntries(position);
  }

  // Whether the rows of the range are better read than what the driving stream finds. A counted
  // entry costs less than any row.
  bool IsScanBetter(bool may_scan) {
    if (driving_ == nullptr || driving_->groups.has_value()) return false;
    if (driving_->IsWhole() && !driving_->rows.has_value()) return true;
    return may_scan && cost_.IsScanCheaper(streams_, driving_);
  }

  // Adds the streams whose indexes are complete in the snapshot. Returns the stream of the plan
  // that the continuation names, if there is one.
  const pb::IndexStream* AddStreams(const Branch& branch, const SearchPosition& position) {
    const bool by_entry = position.IsByEntry();
    const pb::IndexStream* named = nullptr;
    const auto indexes = region_.indexes();
    for (const pb::IndexStream& stream : branch.plan->streams()) {
      const bool is_named = stream.index_id() == position.index_id;
      if (is_named) named = &stream;
      const IndexSpec* index = schema_.FindIndex(stream.index_id());
      const auto state = indexes->find(stream.index_id());
      if (index == nullptr || !snapshot_.IsComplete(index->id) || state == indexes->end()) continue;
      snapshot_.NoteUse(index->id);
      // A search continues in the order in which it began.
      const bool may_lead = by_entry ? is_named : (!position.HasBegun() || stream.equality());
      Stream* added = streams_->Add(
          stream, *index, state->second.filter, may_lead,
          {by_entry ? snapshot_.start() : AfterLast(position), snapshot_.end()},
          by_entry && is_named ? position.last : "", is_named && position.IsDescending());
      added->rows = EntryRows::For(schema_, *index, branch.needed, context_.options.faults);
      if (searcher_.request_.groups() && added->rows.has_value()) {
        added->groups = EntryGroups::For(schema_, *index, branch.needed);
      }
    }
    return named;
  }

  uint64_t LeastEntryCost() const {
    uint64_t least = 1 + SearchCost::kRow;
    for (const Stream& stream : streams_->all()) {
      least = std::min(least, SearchCost::EntryCost(stream));
    }
    return least;
  }

  Result<bool> ScanRows(SearchPosition* position) {
    RowCursor rows = snapshot_.RowsFrom(AfterLast(*position));
    for (; rows.Valid(); rows.Next()) {
      if (page_.IsFull()) return false;
      const std::string_view key = rows.key();
      if (key.empty()) {  // no row of any table, and no position to continue from
        page_.CountRowUnparsed();
        continue;
      }
      page_.CountCandidate();
      page_.CountRowRead();
      TAMIS_RETURN_IF_ERROR(Consider(position->branch, key, rows.value()));
      position->last = key;
      page_.NoteProgress();
    }
    TAMIS_RETURN_IF_ERROR(rows.status("scan rows"));
    return true;
  }

  // By the row keys of the driving stream that are in all joined streams, in their order.
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
      const bool found = key.has_value() && !snapshot_.IsOutside(*key);
      if (found && *key > target) go_to(*key);
      ended = !found;
      bool everywhere = found;
      for (Stream* stream : joins_->zigzag()) {
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
      if (everywhere && !joins_->Contains(target)) {
        everywhere = false;
        go_to(target + '\0');
      }
      if (everywhere) {
        if (batch.empty() && driving_->groups.has_value()) {
          if (page_.HasAllRows()) return false;
          TAMIS_ASSIGN_OR_RETURN(const bool counted, CountKey(keys.values(), target, position));
          if (counted) {
            if (page_.IsFull()) return false;
            target.push_back('\0');
            continue;
          }
        }
        batch.push_back({target, target, RowOf(keys.values(), target, keys.included())});
        target.push_back('\0');  // the least key behind it
      }
      const bool stop = !ended && moves >= kLeastMoves && !passed.empty() &&
                        page_.IsOutOfTime(/*even_without_progress=*/true);
      if (batch.size() >= kBatch || ended || stop) {
        // A stream that broke looks like one that has ended.
        for (const Stream& stream : streams_->all()) {
          TAMIS_RETURN_IF_ERROR(stream.status());
        }
        TAMIS_ASSIGN_OR_RETURN(const bool all, ConsiderBatch(&batch, position));
        if (all && stop && passed > position->last) position->last = passed;
        if (!all || stop || (page_.IsFull() && !ended)) return false;
        TAMIS_RETURN_IF_ERROR(joins_->Join());
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

  // By the entries of the driving stream whose row keys are in all joined streams, in their order.
  Result<bool> WalkEntries(SearchPosition* position) {
    std::vector<Candidate> batch;
    uint64_t batch_size = BatchSize(0);
    uint64_t considered = 0;
    uint64_t left_out = 0;
    while (const std::optional<std::string_view> entry = driving_->by_entry->Next()) {
      if (batch.empty() && driving_->groups.has_value()) {
        if (page_.HasAllRows()) return false;
        TAMIS_ASSIGN_OR_RETURN(const bool counted, CountEntry(*entry, position));
        if (counted && page_.IsFull()) return false;
        if (counted) continue;
      }
      TAMIS_ASSIGN_OR_RETURN(const auto split, SplitIndexEntry(schema_, *driving_->index, *entry));
      std::string key(split.second);
      const bool garbage = snapshot_.IsOutside(key);
      if (garbage || !joins_->Contains(key)) {
        // Many of them must not hold up a reply, and the next one begins behind them.
        if (garbage || ++left_out % SearchCost::kRow == 0) page_.CountCandidate();
        if (batch.empty()) {
          position->last = *entry;
          page_.NoteProgress();
        }
        if (!page_.IsFull()) continue;
        TAMIS_RETURN_IF_ERROR(ConsiderBatch(&batch, position).status());
        return false;
      }
      std::optional<Row> row = RowOf(split.first, key, driving_->by_entry->value());
      batch.push_back({std::move(key), std::string(*entry), std::move(row)});
      if (batch.size() < batch_size) continue;
      considered += batch.size();
      TAMIS_ASSIGN_OR_RETURN(const bool all, ConsiderBatch(&batch, position));
      if (!all || page_.IsFull()) return false;
      batch_size = BatchSize(considered);
      TAMIS_RETURN_IF_ERROR(joins_->Join());
    }
    TAMIS_RETURN_IF_ERROR(driving_->status());
    return ConsiderBatch(&batch, position);
  }

  // Candidates that are read at once, after so many. A search in an order is often one for its
  // first rows: no more are read than the page needs if they match as often as those before.
  uint64_t BatchSize(uint64_t considered) const {
    if (!in_order_) return kBatch;
    const uint64_t missing = page_.max_rows() - std::min(page_.max_rows(), page_.rows());
    return std::clamp<uint64_t>(missing * (considered + 1) / (page_.rows() + 1), 1, kBatch);
  }

  // The search counts in the order of an index that is not complete here, or costs more than its
  // rows: the rows are put into that order first.
  Result<bool> SortRows(const pb::IndexStream& stream, SearchPosition* position) {
    const SchemaPtr schema = region_.schema();
    const IndexSpec* index = schema->FindIndex(stream.index_id());
    if (index == nullptr) return UnknownIndex(stream.index_id());
    LeastEntries least = NoEntries(*position);
    RowCursor rows = snapshot_.RowsFrom(snapshot_.start());
    for (; rows.Valid(); rows.Next()) {
      const std::string_view key = rows.key();
      if (key > snapshot_.start() && page_.has_progress() && page_.IsOutOfTime()) {
        if (page_.rows() > 0) return false;  // of earlier branches, and of the whole range
        // The least entries are known only of the rows up to here: the answer is for those.
        snapshot_.CutOffAt(std::string(key));
        page_.SetRange(snapshot_.start(), snapshot_.end());
        break;
      }
      page_.NoteProgress();
      page_.CountRowRead();
      TAMIS_RETURN_IF_ERROR(
          AddEntry({*schema, *index, stream}, *position, key, rows.value(), &least));
    }
    TAMIS_RETURN_IF_ERROR(rows.status("scan rows"));
    return TakeLeast(least, position);
  }

  // So few rows are in the stream that they cost less than a walk over the entries of the order:
  // they are put into that order.
  Result<bool> SortStream(const pb::IndexStream& order, Stream* stream, SearchPosition* position) {
    const EntryOrder by{schema_, *schema_.FindIndex(order.index_id()), order};
    stream->led = true;
    stream->expected = *stream->size;
    streams_->Open(stream);
    LeastEntries least = NoEntries(*position);
    std::vector<std::string> keys;
    std::string from = snapshot_.start();
    for (bool ended = false; !ended;) {
      TAMIS_ASSIGN_OR_RETURN(auto key, NextKey(stream, from));
      ended = !key.has_value();
      if (!ended) {
        from = *key + '\0';
        keys.push_back(*std::move(key));
      }
      if (keys.size() < kBatch && !ended) continue;
      std::vector<std::string> values;
      const auto statuses = snapshot_.ReadRows(keys, &values);
      for (size_t i = 0; i < keys.size(); ++i) {
        page_.CountRowRead();
        if (statuses[i].IsNotFound()) continue;
        if (!statuses[i].ok()) return FromRocks(statuses[i], "read a row");
        TAMIS_RETURN_IF_ERROR(AddEntry(by, *position, keys[i], values[i], &least));
      }
      keys.clear();
    }
    page_.NoteProgress();
    return TakeLeast(least, position);
  }

  // The row key of the next entry of an opened stream; of an equality, the first one from `from`.
  Result<std::optional<std::string>> NextKey(Stream* stream, const std::string& from) {
    std::optional<std::string> key;
    if (stream->equality()) {
      key = stream->by_key->Seek(from);
    } else if (const auto next = stream->by_entry->Next()) {
      TAMIS_ASSIGN_OR_RETURN(const auto split, SplitIndexEntry(schema_, *stream->index, *next));
      key = std::string(split.second);
    }
    if (!key.has_value()) TAMIS_RETURN_IF_ERROR(stream->status());
    return key;
  }

  struct EntryOrder {
    const TableSchema& schema;
    const IndexSpec& index;
    const pb::IndexStream& stream;
  };

  LeastEntries NoEntries(const SearchPosition& position) const {
    return {position.IsDescending(),
            std::max<size_t>(page_.max_rows(), context_.options.page_candidates)};
  }

  // Adds the entry of the row if it is still to come.
  Status AddEntry(const EntryOrder& order, const SearchPosition& position, std::string_view key,
                  std::string_view stored, LeastEntries* least) {
    TAMIS_ASSIGN_OR_RETURN(const StoredRow read, ReadStoredRow(order.schema, key, stored));
    if (read.state != StoredRow::State::kRow || snapshot_.IsOutside(std::string(key))) {
      return Status::Ok();
    }
    const auto given = IndexEntry::Of(order.schema, order.index, read.row);
    if (!given.has_value()) return Status::Ok();
    std::string entry = given->values + std::string(key);
    if (IsInRanges(order.stream, entry) && position.IsToCome(entry)) {
      least->Add(std::move(entry), std::string(key));
    }
    return Status::Ok();
  }

  Result<bool> TakeLeast(const LeastEntries& least, SearchPosition* position) {
    std::vector<Candidate> batch;
    for (const auto& [entry, key] : least.in_order()) {
      batch.push_back({key, entry});
      if (batch.size() < kBatch) continue;
      TAMIS_ASSIGN_OR_RETURN(const bool all, ConsiderBatch(&batch, position));
      if (!all) return false;
    }
    TAMIS_ASSIGN_OR_RETURN(const bool all, ConsiderBatch(&batch, position));
    return all && !least.dropped();
  }

  // Counts the row of an entry where its values say to which group it belongs; else it is false.
  Result<bool> CountEntry(std::string_view entry, SearchPosition* position) {
    TAMIS_ASSIGN_OR_RETURN(const EntryGroups::Split split, driving_->groups->SplitEntry(entry));
    if (!snapshot_.IsOutside(split.row_key)) {
      const auto values = entry.substr(0, entry.size() - split.row_key.size());
      if (!CountRow(split.values, values, split.row_key, position)) return false;
    }
    page_.CountCandidate();
    position->last = entry;
    page_.NoteProgress();
    return true;
  }

  // The same for a row key whose entry has these values.
  Result<bool> CountKey(std::string_view values, const std::string& key, SearchPosition* position) {
    TAMIS_ASSIGN_OR_RETURN(const std::string_view deciding, driving_->groups->Deciding(values));
    if (!CountRow(deciding, values, key, position)) return false;
    page_.CountCandidate();
    position->last = key;
    page_.NoteProgress();
    return true;
  }

  // False: the entry does not prove its row.
  bool CountRow(std::string_view deciding, std::string_view values, std::string_view key,
                SearchPosition* position) {
    std::optional<RowGroups::Group*> group = driving_->groups->Find(deciding, page_.generation());
    if (!group.has_value()) {
      std::optional<Row> row = RowOf(values, key, /*included=*/{});
      if (!row.has_value()) return false;
      group = Matches(position->branch, *row) ? page_.FindGroup(Encode(&*row)) : nullptr;
      driving_->groups->Remember(deciding, *group, page_.generation());
    }
    page_.CountRowFromEntry();
    if (*group != nullptr) page_.AddRow(*group);
    return true;
  }

  // The row of an entry of the driving stream; nullopt: it must be read.
  std::optional<Row> RowOf(std::string_view values, std::string_view key,
                           std::string_view included) const {
    return driving_->rows.has_value() ? driving_->rows->Read(values, key, included) : std::nullopt;
  }

  // Reads the rows of the candidates that lack them, and takes those that match. False when the
  // page became full before the last of them; *position says what is done, which is at least the
  // first of them.
  Result<bool> ConsiderBatch(std::vector<Candidate>* batch, SearchPosition* position) {
    std::vector<Candidate> candidates = std::exchange(*batch, {});
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
        TakeIfMatching(position->branch, candidate.key, &*candidate.row);
      } else {
        page_.CountRowRead();
        if (statuses[read].ok()) {
          TAMIS_RETURN_IF_ERROR(Consider(position->branch, candidate.key, values[read]));
        } else if (!statuses[read].IsNotFound()) {
          return FromRocks(statuses[read], "read a row");
        }
        ++read;
      }
      position->last = candidate.position;
      page_.NoteProgress();
    }
    return true;
  }

  Status Consider(uint64_t branch, std::string_view key, std::string_view stored) {
    TAMIS_ASSIGN_OR_RETURN(StoredRow read, ReadStoredRow(schema_, key, stored));
    page_.CountUndecodable(read.undecodable);
    if (read.state == StoredRow::State::kForeignKey) page_.CountRowUnparsed();
    if (read.state != StoredRow::State::kRow) return Status::Ok();
    if (joins_.has_value()) joins_->Sample(read.row, key);
    TakeIfMatching(branch, key, &read.row);
    return Status::Ok();
  }

  void TakeIfMatching(uint64_t branch, std::string_view key, Row* row) {
    if (Matches(branch, *row)) page_.AddRow(key, Encode(row));
  }

  // Whether the branch returns the row, which no earlier one does.
  bool Matches(uint64_t branch, const Row& row) const {
    if (context_.options.faults.no_row_verification) return true;
    if (!searcher_.branches_[branch].predicate.Matches(row)) return false;
    for (uint64_t i = 0; i < branch; ++i) {
      if (searcher_.branches_[i].predicate.Matches(row)) return false;
    }
    return true;
  }

  // Its wanted columns; the others become NULL.
  std::string Encode(Row* row) const {
    for (size_t i = 0; i < row->size(); ++i) {
      if (!searcher_.wanted_[i]) (*row)[i] = Value();
    }
    return EncodeRow(schema_, *row);
  }

  // The first row key that is not done.
  std::string AfterLast(const SearchPosition& position) const {
    return position.last.empty() ? snapshot_.start()
                                 : std::max(snapshot_.start(), position.last + '\0');
  }

  const Searcher& searcher_;
  const ServerContext& context_;
  const TableSchema& schema_;
  const Region& region_;
  RegionSnapshot snapshot_;
  const SearchCost cost_;
  SearchPage page_;
  bool in_order_ = false;  // that was asked for
  // Each branch has its own:
  BranchStreams* streams_ = nullptr;
  Stream* driving_ = nullptr;         // nullptr: rows are scanned or sorted
  std::optional<StreamJoins> joins_;  // beside the driving stream
};

pb::RangeResult Searcher::Search(const Region& region, const pb::SearchRange& range,
                                 uint64_t max_rows, Time deadline) const {
  return Run(*this, region, range, max_rows, deadline).Search(range.resume());
}

}  // namespace tamis
