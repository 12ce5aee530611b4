// Entity tags of rows, and the conditions of requests on them (RFC 9110, section 13).
//
// The tag is a strong validator: another table, other columns or other values give another tag.
//
// Threads: values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tamis/server/exchange.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis::server {

// With its quotes.
std::string EntityTagOf(const TableSchema& table, const Row& row);

// If-Match and If-None-Match.
class RowConditions {
 public:
  // kInvalidArgument: a header is no list of tags, or is a condition that no row can be tested for.
  static Result<RowConditions> Of(const Request& request);
  // With the value of an If-Match header.
  static Result<RowConditions> IfMatch(const std::string& value);

  bool empty() const { return !if_match_ && !if_none_match_; }
  // No condition names the tag of a single row.
  bool ForAnyRow() const;
  // The first condition that a row with this tag does not meet; empty: it meets all. nullopt: there
  // is no row.
  std::string Broken(const std::optional<std::string>& tag) const;

 private:
  struct Tags {
    bool any = false;               // "*"
    std::vector<std::string> tags;  // without W/
    std::vector<bool> is_weak;

    bool Has(const std::string& tag, bool weak_too) const;
  };
  static Result<Tags> Parse(const std::string& header, std::string_view value);

  std::optional<Tags> if_match_;
  std::optional<Tags> if_none_match_;
};

}  // namespace tamis::server
