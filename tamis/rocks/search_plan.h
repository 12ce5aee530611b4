// SearchPlan: a search request as the regions that follow one schema read it: its branches, the
// wanted columns, and which rows a branch returns.
//
// The schema may be an older one than the request's: what it does not know of indexes is scanned,
// what it does not know of columns is kUnavailable.
//
// The jar has the same class.
//
// Threads: const after construction. The context and the request outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/cluster/cluster.pb.h"
#include "tamis/rocks/search_page.h"
#include "tamis/rocks/search_position.h"
#include "tamis/rocks/server_context.h"
#include "tamis/table/predicate.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

class SearchPlan {
 public:
  struct Branch {
    Predicate predicate;
    const pb::Branch* plan;
    std::vector<bool> needed;  // columns, by position: wanted, or of this or an earlier condition
  };

  static Result<SearchPlan> Create(const ServerContext& context, const pb::SearchRequest& request,
                                   SchemaPtr schema);

  const SchemaPtr& schema() const { return schema_; }
  const std::vector<Branch>& branches() const { return branches_; }

  // Rows are sent as groups with counts.
  bool groups() const { return request_->groups(); }
  std::optional<SearchPage::Grouping> Grouping() const;

  // Where a search begins. One in an order that was asked for is the rest of one, from before its
  // first row or entry.
  SearchPosition Begin() const;
  // Whether a search that came to this position is in the order that was asked for. False for a
  // continuation that was begun by a server that does not know of orders, too: it goes on as it
  // began.
  bool IsInOrder(const SearchPosition& position) const;

  // Whether the branch returns the row, which no earlier one does.
  bool Matches(uint64_t branch, const Row& row) const;
  // The wanted columns of the row; the others become NULL.
  std::string Encode(Row* row) const;

 private:
  SearchPlan(const ServerContext& context, const pb::SearchRequest& request, SchemaPtr schema)
      : context_(&context), request_(&request), schema_(std::move(schema)) {}

  Status AddBranches();
  Status NoteWanted();
  Status CheckGrouping();
  // The request may name what the schema here does not have yet.
  bool IsNewer() const { return request_->schema_version() > schema_->version; }
  Status Newer(const std::string& what) const;

  const ServerContext* context_;
  const pb::SearchRequest* request_;
  SchemaPtr schema_;
  std::vector<Branch> branches_;
  std::vector<bool> wanted_;      // by column position
  std::vector<uint32_t> totals_;  // positions, as the request names them
};

}  // namespace tamis
