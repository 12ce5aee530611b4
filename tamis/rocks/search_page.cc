#include "tamis/rocks/search_page.h"

#include <cassert>

#include "tamis/cluster/error.h"
#include "tamis/cluster/totals_message.h"
#include "tamis/table/codec.h"

namespace tamis {

SearchPage::SearchPage(const ServerContext& context, const pb::SearchRange& range,
                       uint64_t max_rows, std::optional<Grouping> grouping, Time deadline)
    : context_(context), max_rows_(max_rows), deadline_(deadline), grouping_(std::move(grouping)) {
  result_.set_region_id(range.region_id());
  result_.set_epoch(range.epoch());
  if (!grouping_.has_value()) return;
  groups_.emplace();
  if (!grouping_->totals.empty()) {
    totals_.emplace(grouping_->schema, grouping_->by, grouping_->totals);
  }
}

void SearchPage::AddRow(std::string_view key, std::string row) {
  if (groups_.has_value()) return AddRow(FindGroup(std::move(row)));
  ++rows_;
  bytes_ += key.size() + row.size();
  pb::FoundRow* found = result_.add_rows();
  found->set_key(std::string(key));
  found->set_row(std::move(row));
}

void SearchPage::SetRange(const std::string& start, const std::string& end) {
  result_.set_start(start);
  result_.set_end(end);
}

void SearchPage::NoteScanByChoice() { result_.mutable_counters()->add_uses()->set_led(1); }

void SearchPage::NoteUse(const BranchStreams::Stream& stream) {
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

bool SearchPage::HasAllRows() const {
  return rows_ >= max_rows_ || bytes_ >= context_.options.page_bytes ||
         (totals_.has_value() ? totals_->SizeBytes() >= RowGroups::kMaxBytes
                              : groups_.has_value() && groups_->IsFull());
}

bool SearchPage::IsFull() {
  const uint64_t most =
      groups_.has_value() ? context_.options.page_grouped : context_.options.page_candidates;
  return HasAllRows() || candidates_ >= most || IsOutOfTime();
}

bool SearchPage::IsOutOfTime(bool even_without_progress) {
  constexpr uint64_t kLooks = 16;  // the clock is read at one of so many, or after as much work
  if (!has_progress_ && !even_without_progress) return false;
  if (!out_of_time_ && (looks_++ % kLooks == 0 || candidates_ >= clock_read_at_ + kLooks)) {
    clock_read_at_ = candidates_;
    out_of_time_ = context_.executor->Now() >= deadline_;
  }
  return out_of_time_;
}

void SearchPage::AddToTotals() {
  for (const RowGroups::Group& group : groups_->Take()) {
    Row row(grouping_->schema.columns.size());
    if (const Status status = DecodeRow(grouping_->schema, group.row, &row); !status.ok()) {
      assert(false);  // it was encoded here
    }
    totals_->Add(row, group.count);
  }
}

void SearchPage::MoveGroups() {
  result_.set_groups(true);
  if (!totals_.has_value()) {
    for (RowGroups::Group& group : groups_->Take()) {
      pb::FoundRow* found = result_.add_rows();
      found->set_row(std::move(group.row));
      found->set_count(group.count);
    }
    return;
  }
  AddToTotals();
  result_.set_totals(true);
  for (const GroupTotals::Group& group : totals_->Take()) {
    pb::FoundRow* found = result_.add_rows();
    found->set_row(EncodeRow(grouping_->schema, group.row));
    found->set_count(group.count);
    for (const ColumnTotals& totals : group.totals) SetTotals(totals, found->add_totals());
  }
}

pb::RangeResult SearchPage::Finish(const std::string& resume) {
  result_.set_resume(resume);
  if (groups_.has_value()) MoveGroups();
  if (context_.options.faults.group_lost_between_pages && groups_.has_value() && !resume.empty() &&
      result_.rows_size() > 0) {
    result_.mutable_rows()->RemoveLast();
  }
  auto* counters = result_.mutable_counters();
  counters->set_index_seeks(counters_.index_seeks);
  counters->set_entries_read(counters_.entries_read);
  counters->set_rows_read(counters_.rows_read);
  counters->set_rows_from_entries(counters_.rows_from_entries);
  counters->set_rows_returned(rows_);
  counters->set_scanned_regions(scanned_ ? 1 : 0);
  counters->set_cells_undecodable(counters_.cells_undecodable);
  counters->set_rows_unparsed(counters_.rows_unparsed);
  return std::move(result_);
}

pb::RangeResult SearchPage::Failed(const Status& status) const {
  pb::RangeResult failed;
  failed.set_region_id(result_.region_id());
  failed.set_epoch(result_.epoch());
  SetError(status, failed.mutable_error());
  return failed;
}

}  // namespace tamis
