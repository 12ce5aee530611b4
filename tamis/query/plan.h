// Plan: the plan of a search, made of its condition: which row keys can match, which values routing
// looks up in the filters, and the branches by which a region server finds the rows.
//
// There is a branch for each alternative of the condition (it is split at OR where that lets an
// index be used, up to a bound), with the streams of all indexes that help: what each region reads
// first is the region's choice, since it knows how many entries each has there. Without any index
// the rows of the key range are scanned. The whole condition is verified on every row in any case.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/query/index_order.h"
#include "tamis/routing/global_index.h"
#include "tamis/routing/key_ranges.h"
#include "tamis/table/predicate.h"
#include "tamis/table/schema.h"

namespace tamis {

struct PlanOptions {
  bool use_filters = true;
  bool use_indexes = true;
  // Positions of the columns wanted; nullopt = all.
  std::optional<std::vector<uint32_t>> columns = std::nullopt;
  bool key_order = false;                   // only branches that give row-key order
  bool groups = false;                      // rows may come as groups with counts
  bool sparse_as_whole = false;             // a fault, for tests: sparse indexes are asked for NULL
  bool conditions_of_streams_only = false;  // a fault: filters ignore conditions of indexes
  std::vector<OrderTerm> order = {};        // rows come in this order; empty: in any
};

struct Plan {
  KeyRanges keys;
  RoutingTerm routing;
  std::vector<pb::Branch> branches;  // none: nothing can match
  std::string index;                 // names, "|" between those of one branch, "" = scan
  std::vector<std::string> terms;    // the terms that filters are asked for
  std::string reason;
  // The order that was asked for, by an index of the schema: then there is one branch, whose first
  // stream is that index's; or by the row key: one branch without a stream. nullopt: no order was
  // asked for, or neither gives it.
  std::optional<IndexOrder> order;
};

// REQUIRES: predicate.Validate(schema) is ok.
Plan MakePlan(const TableSchema& schema, const Predicate& predicate, const PlanOptions& options);

}  // namespace tamis
