#include "tamis/sql/replayed_rows.h"

#include <utility>

#include "tamis/query/index_order.h"
#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"

namespace tamis {

using Groups = SearchOptions::Groups;

namespace {

bool GathersGroups(const SearchOptions& options) {
  return options.groups != Groups::kNone && !options.order.empty();
}

// A search for groups gives them in no order.
SearchOptions Searched(const SearchOptions& options) {
  SearchOptions searched = options;
  if (GathersGroups(options)) searched.order.clear();
  return searched;
}

}  // namespace

ReplayedRows::ReplayedRows(Engine* engine, SchemaPtr schema, SearchOptions options,
                           const Needs& needs)
    : engine_(engine),
      schema_(std::move(schema)),
      needs_(needs),
      options_(std::move(options)),
      stream_(engine_->Search(schema_, Searched(options_))),
      to_gather_(GathersGroups(options_)),
      grouping_(options_.groups != Groups::kNone) {}

std::string ReplayedRows::CombinationOf(const Row& row) const {
  Row wanted(row.size());
  for (const uint32_t column : *options_.columns) wanted[column] = row[column];
  return EncodeRow(*schema_, wanted);
}

Status ReplayedRows::Next() {
  if (group_.has_value() && given_ < group_->count && !needs_.each_once) {
    ++given_;
    return Status::Ok();
  }
  if (grouping_ && group_.has_value()) {
    given_before_[CombinationOf(group_->row)] += group_->count;
    if (given_before_.size() == GatheredGroups::kMostCombinations) stream_.StopGrouping();
  }
  return Take();
}

Status ReplayedRows::Gather() {
  GatheredGroups groups(needs_.most_gathered);
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(auto group, stream_.NextGroup());
    if (!group.has_value()) break;
    std::string combination = CombinationOf(group->row);
    if (groups.Add(std::move(combination), *std::move(group))) continue;
    earlier_.Add(stream_.explain());
    grouping_ = false;
    options_.groups = Groups::kNone;
    stream_ = engine_->Search(schema_, options_);
    return Status::Ok();
  }
  groups.Sort(options_.order);
  gathered_ = std::move(groups);
  return Status::Ok();
}

Result<std::optional<RowGroup>> ReplayedRows::NextGroup() {
  if (std::exchange(to_gather_, false)) TAMIS_RETURN_IF_ERROR(Gather());
  if (gathered_.has_value()) return gathered_->Take();
  return stream_.NextGroup();
}

// Whether the row, which was found by the search that NeedKey began, was given out before.
bool ReplayedRows::WasGiven() {
  if (!key_given_.empty() && *KeyFormat(*schema_).Encode(group_->row) == key_given_) return true;
  // Such a row has come since: its combination had its turn.
  if (ComesBefore(options_.order, group_->row, first_)) return true;
  if (given_before_.empty()) return false;
  const auto given = given_before_.find(CombinationOf(group_->row));
  if (given == given_before_.end()) return false;
  if (--given->second == 0) given_before_.erase(given);
  return true;
}

Status ReplayedRows::Take() {
  while (true) {
    auto next = NextGroup();
    if (!next.ok()) {
      group_.reset();
      return next.status();
    }
    group_ = *std::move(next);
    given_ = 1;
    if (!group_.has_value() || !needed_key_ || !WasGiven()) return Status::Ok();
  }
}

// A row of the current combination, with its key.
Result<RowGroup> ReplayedRows::FindCurrent() {
  std::vector<Predicate> all = {options_.predicate};
  for (const uint32_t column : *options_.columns) {
    const Value& value = group_->row[column];
    all.push_back(value.is_null() ? Predicate::IsNull(column)
                                  : Predicate::Compare(column, Predicate::Op::kEq, value));
  }
  SearchOptions options = options_;
  options.predicate = Predicate::And(std::move(all));
  options.order.clear();
  options.limit = 1;
  RowStream rows = engine_->Search(schema_, std::move(options));
  TAMIS_ASSIGN_OR_RETURN(auto found, rows.NextGroup());
  earlier_.Add(rows.explain());
  if (!found.has_value()) {
    return Busy("table \"" + schema_->name +
                "\": rows were changed while the statement read them; run it again");
  }
  return *std::move(found);
}

Status ReplayedRows::NeedKey() {
  if (needed_key_ || group_->has_key) return Status::Ok();
  if (given_ > 1) given_before_[CombinationOf(group_->row)] += given_ - 1;
  options_.groups = Groups::kNone;
  TAMIS_ASSIGN_OR_RETURN(group_, FindCurrent());
  TAMIS_ASSIGN_OR_RETURN(key_given_, KeyFormat(*schema_).Encode(group_->row));
  first_ = group_->row;
  gathered_.reset();
  earlier_.Add(stream_.explain());
  stream_ = engine_->Search(schema_, options_);
  needed_key_ = true;
  grouping_ = false;
  given_ = 1;
  return Status::Ok();
}

const Explain& ReplayedRows::explain() {
  if (earlier_.searches == 0) return stream_.explain();
  sum_ = earlier_;
  sum_->Add(stream_.explain());
  return *sum_;
}

}  // namespace tamis
