#include "tamis/rocks/search_plan.h"

#include <algorithm>
#include <set>

#include "tamis/table/codec.h"

namespace tamis {
namespace {

constexpr int kMaxBranches = 1024;

Status CheckOrder(const pb::SearchRequest& request) {
  if (!request.has_order()) return Status::Ok();
  const uint32_t index_id = request.order().index_id();
  if (index_id == 0) {
    if (request.order().descending() && !request.groups() && request.branches_size() == 1 &&
        request.branches(0).streams().empty()) {
      return Status::Ok();
    }
    return InvalidArgument(
        "a search in the order of the row key is descending and has one branch, without a stream");
  }
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

Result<SearchPlan> SearchPlan::Create(const ServerContext& context,
                                      const pb::SearchRequest& request, SchemaPtr schema) {
  if (request.branches_size() < 1 || request.branches_size() > kMaxBranches) {
    return InvalidArgument("a search has 1 to " + std::to_string(kMaxBranches) + " branches, not " +
                           std::to_string(request.branches_size()));
  }
  TAMIS_RETURN_IF_ERROR(CheckOrder(request));
  SearchPlan plan(context, request, std::move(schema));
  TAMIS_RETURN_IF_ERROR(plan.AddBranches());
  TAMIS_RETURN_IF_ERROR(plan.NoteWanted());
  TAMIS_RETURN_IF_ERROR(plan.CheckGrouping());
  std::vector<bool> needed = plan.wanted_;
  for (Branch& branch : plan.branches_) {
    branch.predicate.AddColumns(&needed);
    branch.needed = needed;
  }
  return plan;
}

Status SearchPlan::Newer(const std::string& what) const {
  return Unavailable("table \"" + schema_->name + "\": server " + context_->name +
                     " does not have schema version " + std::to_string(request_->schema_version()) +
                     " yet, and " + what);
}

Status SearchPlan::AddBranches() {
  for (const pb::Branch& branch : request_->branches()) {
    TAMIS_ASSIGN_OR_RETURN(Predicate predicate, ParsePredicate(branch.predicate()));
    if (Status status = predicate.Validate(*schema_); !status.ok()) {
      return IsNewer() ? Newer(status.message()) : status;
    }
    std::set<uint32_t> index_ids;
    for (const pb::IndexStream& stream : branch.streams()) {
      if (!index_ids.insert(stream.index_id()).second) {
        return InvalidArgument("a branch has two streams of one index");
      }
    }
    branches_.push_back({std::move(predicate), &branch, {}});
  }
  return Status::Ok();
}

Status SearchPlan::NoteWanted() {
  const std::vector<Column>& columns = schema_->columns;
  if (IsNewer()) {
    for (const uint32_t id : request_->columns()) {
      if (std::ranges::find(columns, id, &Column::id) == columns.end()) {
        return Newer("not its column " + std::to_string(id));
      }
    }
  }
  wanted_.assign(columns.size(), false);
  for (uint32_t i = 0; i < columns.size(); ++i) {
    wanted_[i] = std::ranges::find(request_->columns(), columns[i].id) != request_->columns().end();
  }
  return Status::Ok();
}

Status SearchPlan::CheckGrouping() {
  if (!request_->groups()) return Status::Ok();
  for (uint32_t i = 0; i < wanted_.size(); ++i) {
    if (!wanted_[i] || !schema_->IsKey(i)) continue;
    return InvalidArgument("groups of rows have no column of the key, such as \"" +
                           schema_->columns[i].name + "\"");
  }
  for (const uint32_t id : request_->totals()) {
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

std::optional<SearchPage::Grouping> SearchPlan::Grouping() const {
  if (!request_->groups()) return std::nullopt;
  SearchPage::Grouping grouping{.schema = *schema_, .by = {}, .totals = totals_};
  for (uint32_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_[i] && std::ranges::find(totals_, i) == totals_.end()) grouping.by.push_back(i);
  }
  return grouping;
}

SearchPosition SearchPlan::Begin() const {
  if (!request_->has_order()) return {};
  const pb::Order& order = request_->order();
  if (order.index_id() == 0) return {.order = SearchPosition::Order::kRowKeyDescending};
  return {.order = order.descending() ? SearchPosition::Order::kEntryDescending
                                      : SearchPosition::Order::kEntry,
          .index_id = order.index_id()};
}

bool SearchPlan::IsInOrder(const SearchPosition& position) const {
  if (!request_->has_order()) return false;
  const SearchPosition begin = Begin();
  return position.order == begin.order && position.index_id == begin.index_id;
}

bool SearchPlan::Matches(uint64_t branch, const Row& row) const {
  if (context_->options.faults.no_row_verification) return true;
  if (!branches_[branch].predicate.Matches(row)) return false;
  for (uint64_t i = 0; i < branch; ++i) {
    if (branches_[i].predicate.Matches(row)) return false;
  }
  return true;
}

std::string SearchPlan::Encode(Row* row) const {
  for (size_t i = 0; i < row->size(); ++i) {
    if (!wanted_[i]) (*row)[i] = Value();
  }
  return EncodeRow(*schema_, *row);
}

}  // namespace tamis
