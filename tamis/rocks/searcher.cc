#include "tamis/rocks/searcher.h"

#include <algorithm>

#include "tamis/rocks/branch_streams.h"
#include "tamis/rocks/candidate_rows.h"
#include "tamis/rocks/entry_sort.h"
#include "tamis/rocks/least_entries.h"
#include "tamis/rocks/region_snapshot.h"
#include "tamis/rocks/search_cost.h"
#include "tamis/rocks/search_page.h"
#include "tamis/rocks/search_position.h"
#include "tamis/rocks/stream_walk.h"

namespace tamis {

Result<std::unique_ptr<Searcher>> Searcher::Create(const ServerContext& context,
                                                   const pb::SearchRequest& request,
                                                   SchemaPtr schema) {
  TAMIS_ASSIGN_OR_RETURN(SearchPlan plan, SearchPlan::Create(context, request, std::move(schema)));
  return std::unique_ptr<Searcher>(new Searcher(context, std::move(plan)));
}

// One range of one region, in one snapshot.
class Searcher::Run {
 public:
  Run(const Searcher& searcher, const Region& region, const pb::SearchRange& range,
      uint64_t max_rows, Time deadline)
      : context_(searcher.context_),
        plan_(searcher.plan_),
        schema_(*plan_.schema()),
        region_(region),
        snapshot_(context_, region, {range.start(), range.end()}),
        cost_(context_, snapshot_, schema_, max_rows),
        page_(context_, range, max_rows, plan_.Grouping(), deadline) {}

  pb::RangeResult Search(const std::string& resume) {
    page_.SetRange(snapshot_.start(), snapshot_.end());
    SearchPosition position = plan_.Begin();
    if (!resume.empty()) {
      auto parsed = SearchPosition::Parse(resume);
      if (!parsed.has_value()) {
        return page_.Failed(InvalidArgument("a continuation is damaged, or of another version"));
      }
      position = std::move(*parsed);
      if (position.IsDescending() && !plan_.IsInOrder(position)) {
        return page_.Failed(InvalidArgument("a continuation is of a search in another order"));
      }
    }
    if (plan_.IsInOrder(position)) page_.NoteInOrder();
    if (Status status = snapshot_.Take(); !status.ok()) return page_.Failed(status);
    std::string rest;
    while (position.branch < plan_.branches().size()) {
      Result<bool> done = RunBranch(&position);
      if (!done.ok()) return page_.Failed(done.status());
      if (!*done) {
        rest = position.Serialize();
        break;
      }
      position = {.branch = position.branch + 1};
      page_.NoteProgress();
      if (position.branch < plan_.branches().size() && page_.IsOutOfTime()) {
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

  // True when the branch is done; else *position tells how far it came.
  Result<bool> RunBranch(SearchPosition* position) {
    BranchStreams streams(context_, snapshot_.read_options(), region_.info().id.number());
    streams_ = &streams;
    Result<bool> done = RunStreams(position);
    for (const Stream& stream : streams.all()) page_.NoteUse(stream);
    driving_ = nullptr;
    streams_ = nullptr;
    return done;
  }

  Result<bool> RunStreams(SearchPosition* position) {
    const SearchPlan::Branch& branch = plan_.branches()[position->branch];
    if (position->order == SearchPosition::Order::kRowKeyDescending) return ScanRowsDown(position);
    const bool by_entry = position->IsByEntry();
    const bool has_begun = position->HasBegun();
    const pb::IndexStream* named = AddStreams(branch, *position);
    if (by_entry && (named == nullptr || named->equality())) {
      return InvalidArgument("the continuation belongs to a search by another index");
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
      } else if (branch.plan->streams_size() > 0) {
        page_.NoteScan();
      }
      position->index_id = 0;
      return ScanRows(position);
    }
    if (page_.in_order()) {
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
    if (!driving_->equality() && !by_entry) position->order = SearchPosition::Order::kEntry;
    return StreamWalk(context_, plan_, snapshot_, cost_, streams_, driving_, &page_, position)
        .Walk();
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
  const pb::IndexStream* AddStreams(const SearchPlan::Branch& branch,
                                    const SearchPosition& position) {
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
          {by_entry ? snapshot_.start() : snapshot_.StartAfter(position.last), snapshot_.end()},
          by_entry && is_named ? position.last : "", is_named && position.IsDescending());
      added->rows = EntryRows::For(schema_, *index, branch.needed, context_.options.faults);
      if (plan_.groups() && added->rows.has_value()) {
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
    return TakeRows(snapshot_.RowsFrom(snapshot_.StartAfter(position->last)), &RowCursor::Next,
                    position);
  }

  // From the last row to the first.
  Result<bool> ScanRowsDown(SearchPosition* position) {
    return TakeRows(snapshot_.RowsBefore(position->last), &RowCursor::Prev, position);
  }

  Result<bool> TakeRows(RowCursor rows, void (RowCursor::*go_on)(), SearchPosition* position) {
    CandidateRows candidates(plan_, snapshot_, &page_, position);
    for (; rows.Valid(); (rows.*go_on)()) {
      if (page_.IsFull()) return false;
      const std::string_view key = rows.key();
      if (key.empty()) {  // no row of any table, and no position to continue from
        page_.CountRowUnparsed();
        continue;
      }
      page_.CountCandidate();
      page_.CountRowRead();
      TAMIS_RETURN_IF_ERROR(candidates.TakeStored(key, rows.value()));
      position->last = key;
      page_.NoteProgress();
    }
    TAMIS_RETURN_IF_ERROR(rows.status("scan rows"));
    return true;
  }

  // A continuation in the order of an index is of no use without it.
  Status UnknownIndex(uint32_t index_id) const {
    if (context_.catalog->HasIndex(region_.info().table_id, index_id)) {
      return Unavailable("the index is not known here yet");
    }
    return FailedPrecondition("an index was dropped while it was searched; search again");
  }

  // The search counts in the order of an index that is not complete here, or costs more than its
  // rows: the rows are put into that order first.
  Result<bool> SortRows(const pb::IndexStream& order, SearchPosition* position) {
    const SchemaPtr schema = region_.schema();
    const IndexSpec* index = schema->FindIndex(order.index_id());
    if (index == nullptr) return UnknownIndex(order.index_id());
    EntrySort sort(context_, *schema, *index, order, *position, &snapshot_, &page_);
    TAMIS_ASSIGN_OR_RETURN(const LeastEntries* least, sort.OfRows());
    return least != nullptr ? TakeLeast(*least, position) : Result<bool>(false);
  }

  // So few rows are in the stream that they cost less than a walk over the entries of the order:
  // they are put into that order.
  Result<bool> SortStream(const pb::IndexStream& order, Stream* stream, SearchPosition* position) {
    const IndexSpec& index = *schema_.FindIndex(order.index_id());
    stream->led = true;
    stream->expected = *stream->size;
    streams_->Open(stream);
    EntrySort sort(context_, schema_, index, order, *position, &snapshot_, &page_);
    TAMIS_ASSIGN_OR_RETURN(const LeastEntries* least, sort.OfStream(stream));
    return TakeLeast(*least, position);
  }

  Result<bool> TakeLeast(const LeastEntries& least, SearchPosition* position) {
    CandidateRows candidates(plan_, snapshot_, &page_, position);
    for (const auto& [entry, key] : least.in_order()) {
      candidates.Add(key, entry);
      if (candidates.size() < CandidateRows::kBatch) continue;
      TAMIS_ASSIGN_OR_RETURN(const bool all, candidates.Take());
      if (!all) return false;
    }
    TAMIS_ASSIGN_OR_RETURN(const bool all, candidates.Take());
    return all && !least.dropped();
  }

  const ServerContext& context_;
  const SearchPlan& plan_;
  const TableSchema& schema_;
  const Region& region_;
  RegionSnapshot snapshot_;
  const SearchCost cost_;
  SearchPage page_;
  // Each branch has its own:
  BranchStreams* streams_ = nullptr;
  Stream* driving_ = nullptr;  // nullptr: rows are scanned or sorted
};

pb::RangeResult Searcher::Search(const Region& region, const pb::SearchRange& range,
                                 uint64_t max_rows, Time deadline) const {
  return Run(*this, region, range, max_rows, deadline).Search(range.resume());
}

}  // namespace tamis
