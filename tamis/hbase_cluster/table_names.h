// TableNames: maps the names of a store to HBase tables.
//
// The name is part of the schema, which HBase copies with the table (indexed_table.h). So a name
// belongs to the table that records its own HBase name; a copy has no name until it is attached
// under one. Tables that an older program indexed record nothing. Such a table has its name unless
// another table has it by its record or is called so in HBase. If several candidates remain, the
// name is ambiguous and belongs to none of them.
//
// Threads: a value.
#pragma once

#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase_cluster/indexed_table.h"

namespace tamis {

class TableNames {
 public:
  enum class Standing {
    kNamed,      // its name refers to it
    kCopy,       // a copy of a table that had this schema before
    kAmbiguous,  // this table and others claim the same name
  };

  // All indexed tables of one namespace.
  explicit TableNames(std::vector<IndexedTable> tables);

  // Whether the table's own description proves that it has its name, whatever other tables exist.
  static bool HasItsName(const IndexedTable& table);

  // Returns kNotFound; or kFailedPrecondition for an ambiguous name, with the HBase names of all
  // claimants.
  Result<IndexedTable> Find(const std::string& name) const;
  // The tables that have a name.
  std::vector<IndexedTable> Named() const;
  // Returns kCopy for an unknown table.
  Standing StandingOf(const std::string& full_name) const;

  // The tables without a name, with a sentence for each that says what it is and what to do.
  struct Unnamed {
    IndexedTable table;
    Standing standing;
    std::string text;
  };
  std::vector<Unnamed> ListUnnamed() const;

 private:
  std::vector<IndexedTable> Claimants(const std::string& name) const;

  std::vector<IndexedTable> tables_;
  std::vector<Standing> standings_;  // parallel to tables_
};

}  // namespace tamis
