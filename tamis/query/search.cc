#include "tamis/query/search.h"

#include <algorithm>
#include <utility>

#include "tamis/base/exception_status.h"

namespace tamis {

Search::Search(std::shared_ptr<QueryContext> context, SchemaPtr schema, SearchOptions options,
               KeyRanges only)
    : context_(std::move(context)),
      schema_(std::move(schema)),
      options_(std::move(options)),
      only_(std::move(only)),
      fan_out_(context_, schema_, options_, &account_) {
  grouping_ =
      options_.groups != SearchOptions::Groups::kNone && !options_.key_order &&
      options_.order.empty() && options_.columns.has_value() &&
      std::ranges::none_of(*options_.columns, [&](uint32_t c) { return schema_->IsKey(c); });
}

Result<std::optional<RowGroup>> Search::Next() {
  auto row = WithoutExceptions([this] { return NextRow(); });
  if (!row.ok() && !ended_.has_value()) ended_ = row.status();
  return row;
}

void Search::StopGrouping() {
  grouping_ = false;
  fan_out_.StopGrouping();
}

Result<std::optional<RowGroup>> Search::NextRow() {
  if (!begun_) {
    begun_ = true;
    if (Status status = Begin(); !status.ok()) ended_ = status;
  }
  if (first_.has_value()) return NextFirst();
  return sorts_ ? NextSorted() : NextFound();
}

Result<std::optional<RowGroup>> Search::NextSorted() {
  if (!sorted_.has_value()) {
    std::vector<Row> rows;
    for (;;) {
      TAMIS_ASSIGN_OR_RETURN(auto row, NextFound());
      if (!row.has_value()) break;
      rows.push_back(std::move(row->row));
    }
    std::ranges::stable_sort(
        rows, [&](const Row& a, const Row& b) { return ComesBefore(options_.order, a, b); });
    if (options_.limit > 0 && rows.size() > options_.limit) rows.resize(options_.limit);
    std::ranges::reverse(rows);
    given_ = rows.size();
    sorted_ = std::move(rows);
  }
  if (sorted_->empty()) return std::optional<RowGroup>();
  Row row = std::move(sorted_->back());
  sorted_->pop_back();
  return std::optional(RowGroup{.row = ShownOf(std::move(row))});
}

Result<std::optional<RowGroup>> Search::NextFirst() {
  while (first_->empty()) {
    if (options_.limit > 0 && first_->given() >= options_.limit) return std::optional<RowGroup>();
    std::vector<Row> entries;
    for (uint64_t missing = first_->Missing(at_once()); missing > 0; --missing) {
      TAMIS_ASSIGN_OR_RETURN(auto entry, NextFound());
      if (!entry.has_value()) break;
      entries.push_back(std::move(entry->row));
    }
    if (entries.empty()) return std::optional<RowGroup>();
    TAMIS_RETURN_IF_ERROR(ReadRowsOf(entries));
  }
  return std::optional(RowGroup{.row = ShownOf(first_->Take())});
}

Status Search::ReadRowsOf(const std::vector<Row>& entries) {
  SearchOptions options{.predicate = options_.predicate,
                        .columns = options_.columns,
                        .use_filters = false,
                        .use_indexes = false,
                        .timeout = deadline_ - context_->executor->Now(),
                        .cancelled = options_.cancelled};
  if (options.columns.has_value()) {
    for (const OrderTerm& term : options_.order) options.columns->push_back(term.column);
  }
  Search search(context_, schema_, std::move(options), first_->KeysOf(entries));
  std::vector<Row> rows;
  for (;;) {
    TAMIS_ASSIGN_OR_RETURN(auto row, search.Next());
    if (!row.has_value()) break;
    rows.push_back(std::move(row->row));
  }
  account_.AddPart(search.account_);
  first_->Add(entries, std::move(rows), [this](const std::string& key) { fan_out_.Forget(key); });
  return Status::Ok();
}

Result<std::optional<RowGroup>> Search::NextFound() {
  while (!ended_.has_value()) {
    if (limit() > 0 && given_ >= limit()) {
      ended_ = Status::Ok();
      break;
    }
    auto row = fan_out_.Next();
    if (!row.ok()) {
      ended_ = row.status().WithContext("cannot search table \"" + schema_->name + "\"");
    } else if (row->has_value()) {
      RowGroup& group = **row;
      if (limit() > 0) group.count = std::min(group.count, limit() - given_);
      given_ += group.count;
      // In an order there are columns that the caller does not want. NextFirst needs them.
      if (plan_.order.has_value() && !first_.has_value()) group.row = ShownOf(std::move(group.row));
      return row;
    } else if (!BeginNulls()) {
      ended_ = Status::Ok();
    }
  }
  if (!ended_->ok()) return *ended_;
  return std::optional<RowGroup>();
}

Status Search::Begin() {
  TAMIS_RETURN_IF_ERROR(options_.predicate.Validate(*schema_));
  deadline_ = context_->executor->Now() + options_.timeout;
  account_.explain.table = schema_->name;
  account_.explain.predicate = options_.predicate.ToString(*schema_);
  BeginPlan(options_.predicate, options_.order);
  account_.explain.index = plan_.index;
  account_.explain.terms = plan_.terms;
  account_.explain.reason = plan_.reason;
  sorts_ = !options_.order.empty() && !plan_.order.has_value();
  if (sorts_)
    account_.explain.reason += "; no index gives the order, so that all of them are sorted here";
  if (!options_.remark.empty()) account_.explain.reason += "; " + options_.remark;
  nulls_follow_ = plan_.order.has_value() && plan_.order->nulls_follow;
  if (plan_.order.has_value() && plan_.order->index != nullptr &&
      FirstRows::Applies(*schema_, *plan_.order, options_) && fan_out_.MayAskSeveral()) {
    first_.emplace(schema_, *plan_.order->index, options_.order);
    account_.explain.reason += FirstRows::kReason;
  }
  SetWanted();
  return Status::Ok();
}

void Search::BeginPlan(const Predicate& predicate, const std::vector<OrderTerm>& order) {
  plan_ =
      MakePlan(*schema_, predicate,
               {.use_filters = options_.use_filters,
                .use_indexes = options_.use_indexes,
                .columns = options_.columns,
                .key_order = options_.key_order,
                .groups = grouping_ && options_.groups == SearchOptions::Groups::kWhole,
                .conditions_of_streams_only = context_->options.faults.conditions_of_streams_only,
                .order = order});
  plan_.keys = plan_.keys.Intersect(only_);
  fan_out_.Begin(plan_, deadline_);
}

bool Search::BeginNulls() {
  if (!std::exchange(nulls_follow_, false)) return false;
  const uint32_t column = options_.order[0].column;
  BeginPlan(Predicate::And({options_.predicate, Predicate::IsNull(column)}), {});
  SetWanted();
  return true;
}

void Search::SetWanted() {
  FanOut::Wanted wanted{.at_once = sorts_ ? 0 : at_once(), .limit = limit(), .groups = grouping_};
  for (uint32_t i = 0; i < schema_->columns.size(); ++i) {
    if (IsWanted(i)) wanted.columns.push_back(i);
  }
  fan_out_.SetWanted(wanted);
}

bool Search::IsShown(uint32_t column) const {
  return !options_.columns.has_value() ||
         std::ranges::find(*options_.columns, column) != options_.columns->end();
}

bool Search::IsWanted(uint32_t column) const {
  if (first_.has_value() && !first_->IsInEntry(column)) return false;
  if (IsShown(column)) return true;
  const auto of_index = [&](const IndexSpec& index) {
    return std::ranges::find(index.columns, column) != index.columns.end();
  };
  const IndexSpec* index = plan_.order.has_value() ? plan_.order->index : nullptr;
  return (index != nullptr && of_index(*index)) ||
         std::ranges::find(options_.order, column, &OrderTerm::column) != options_.order.end();
}

Row Search::ShownOf(Row row) const {
  for (uint32_t i = 0; i < row.size(); ++i) {
    if (!schema_->IsKey(i) && !IsShown(i)) row[i] = Value();
  }
  return row;
}

void Search::Conclude() {
  if (fan_out_.regions() == nullptr) return;
  account_.Conclude(*context_, *schema_, plan_, *fan_out_.regions(), options_.explained_regions,
                    first_.has_value() ? first_->given() : given_);
}

}  // namespace tamis
