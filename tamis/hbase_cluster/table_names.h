// TableNames: which table of HBase each name of a store stands for.
//
// The name is in the schema, which HBase copies with the table (indexed_table.h). So a name stands
// for the table that records its own HBase name; a copy of it has no name until it is attached
// under one. Tables that an older program indexed record nothing. Such a table has its name unless
// another table has it by its record, or is called so in HBase; where several are left, the name
// is ambiguous and stands for none of them.
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
    kNamed,      // its name stands for it
    kCopy,       // of a table that had this schema before
    kAmbiguous,  // it and others claim one name
  };

  // All indexed tables of one namespace.
  explicit TableNames(std::vector<IndexedTable> tables);

  // Whether the name stands for the table whatever other tables there are, as far as its own
  // description tells.
  static bool HasItsName(const IndexedTable& table);

  // kNotFound; kFailedPrecondition for an ambiguous name, with the HBase names of all claimants.
  Result<IndexedTable> Find(const std::string& name) const;
  // The tables that have a name.
  std::vector<IndexedTable> Named() const;
  // kCopy for a table that was not given.
  Standing StandingOf(const std::string& full_name) const;

  // A sentence for each copy and each ambiguous name, which says what it is and what to do.
  struct Unnamed {
    IndexedTable table;
    Standing standing;
    std::string text;
  };
  std::vector<Unnamed> ListUnnamed() const;

 private:
  std::vector<IndexedTable> Claimants(const std::string& name) const;

  std::vector<IndexedTable> tables_;
  std::vector<Standing> standings_;  // as tables_
};

}  // namespace tamis
