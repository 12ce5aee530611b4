#include "tamis/sql/replayed_rows.h"

#include <utility>

#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"

namespace tamis {

using Groups = SearchOptions::Groups;

ReplayedRows::ReplayedRows(Engine* engine, SchemaPtr schema, SearchOptions options)
    : engine_(engine),
      schema_(std::move(schema)),
      options_(std::move(options)),
      stream_(engine_->Search(schema_, options_)),
      grouping_(options_.groups != Groups::kNone) {}

std::string ReplayedRows::CombinationOf(const Row& row) const {
  Row wanted(row.size());
  for (const uint32_t column : *options_.columns) wanted[column] = row[column];
  return EncodeRow(*schema_, wanted);
}

Status ReplayedRows::Next() {
  if (group_.has_value() && given_ < group_->count) {
    ++given_;
    return Status::Ok();
  }
  if (grouping_ && group_.has_value()) {
    given_before_[CombinationOf(group_->row)] += given_;
    if (given_before_.size() == kMostCombinations) stream_.StopGrouping();
  }
  return Take();
}

Status ReplayedRows::Take() {
  while (true) {
    auto next = stream_.NextGroup();
    if (!next.ok()) {
      group_.reset();
      return next.status();
    }
    group_ = *std::move(next);
    given_ = 1;
    if (!group_.has_value() || !needed_key_) return Status::Ok();
    if (!key_given_.empty() && *KeyFormat(*schema_).Encode(group_->row) == key_given_) continue;
    if (given_before_.empty()) return Status::Ok();
    const auto given = given_before_.find(CombinationOf(group_->row));
    if (given == given_before_.end()) return Status::Ok();
    if (--given->second == 0) given_before_.erase(given);
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
