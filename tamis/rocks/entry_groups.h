// EntryGroups: the groups of a page to which the entries of one index belong, by their encoded
// values, so that a row is made, compared and encoded once for all entries with the same values.
//
// Every column that the branch needs (wanted, or of a condition) is a column of the index. Entries
// that agree in these columns belong to the same group, or none of their rows matches. The group of
// an entry that proves its row (EntryRows) is that of all entries that agree with it: a value that
// was cut has other bytes than every value that was not.
//
// The jar has the same class; tests/golden/searches.txt holds both to the same counts.
//
// Threads: exclusive access. Groups are pointed to: the RowGroups outlive this.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tamis/rocks/row_groups.h"
#include "tamis/table/schema.h"

namespace tamis {

class EntryGroups {
 public:
  // nullopt: some column of `needed` (by position) is no column of the index.
  static std::optional<EntryGroups> For(const TableSchema& schema, const IndexSpec& index,
                                        const std::vector<bool>& needed);

  struct Split {
    std::string_view values;  // values of the columns that decide
    std::string_view row_key;
  };
  // Takes the entry (encoded values, row key) apart without decoding it. kDataLoss: it is damaged.
  Result<Split> SplitEntry(std::string_view entry) const;
  // The values that decide, of all encoded values of an entry.
  Result<std::string_view> Deciding(std::string_view values) const;

  // nullopt: no entry with these values was remembered since groups were taken out of the page.
  // nullptr: their rows do not match.
  std::optional<RowGroups::Group*> Find(std::string_view values, uint64_t generation);
  void Remember(std::string_view values, RowGroups::Group* group, uint64_t generation);

 private:
  // Values that are remembered at most, in bytes.
  static constexpr size_t kMaxBytes = 4 << 20;
  static constexpr size_t kOverhead = 64;  // bytes for each
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  EntryGroups(const TableSchema& schema, const IndexSpec& index, size_t deciding)
      : schema_(&schema), index_(&index), deciding_(deciding) {}

  const TableSchema* schema_;
  const IndexSpec* index_;
  void Follow(uint64_t generation);

  size_t deciding_;          // leading columns of the index
  uint64_t generation_ = 0;  // the generation of the groups
  std::unordered_map<std::string, RowGroups::Group*, Hash, std::equal_to<>> groups_;
  size_t bytes_ = 0;
  // Found last. Entries in their order often agree with the one before.
  std::string last_values_;
  RowGroups::Group* last_group_ = nullptr;
  bool has_last_ = false;
};

}  // namespace tamis
