#include "tamis/rocks/entry_groups.h"

#include <algorithm>

#include "tamis/table/codec.h"

namespace tamis {
namespace {

// Skips the values of some columns of the index.
Status Skip(const TableSchema& schema, const IndexSpec& index, size_t begin, size_t end,
            std::string_view* in) {
  for (size_t i = begin; i < end; ++i) {
    if (!SkipIndexed(schema.columns[index.columns[i]].type, in)) {
      return DataLoss("index \"" + index.name + "\": an entry is damaged or foreign");
    }
  }
  return Status::Ok();
}

}  // namespace

std::optional<EntryGroups> EntryGroups::For(const TableSchema& schema, const IndexSpec& index,
                                            const std::vector<bool>& needed) {
  size_t deciding = 0;
  for (uint32_t column = 0; column < needed.size(); ++column) {
    if (!needed[column]) continue;
    const auto at = std::ranges::find(index.columns, column);
    if (at == index.columns.end()) return std::nullopt;
    deciding = std::max<size_t>(deciding, at - index.columns.begin() + 1);
  }
  return EntryGroups(schema, index, deciding);
}

Result<EntryGroups::Split> EntryGroups::SplitEntry(std::string_view entry) const {
  std::string_view rest = entry;
  if (has_last_ && entry.starts_with(last_values_)) {  // no value is the prefix of another one
    rest.remove_prefix(last_values_.size());
  } else {
    TAMIS_RETURN_IF_ERROR(Skip(*schema_, *index_, 0, deciding_, &rest));
  }
  const std::string_view values = entry.substr(0, entry.size() - rest.size());
  TAMIS_RETURN_IF_ERROR(Skip(*schema_, *index_, deciding_, index_->columns.size(), &rest));
  return Split{values, rest};
}

Result<std::string_view> EntryGroups::Deciding(std::string_view values) const {
  if (deciding_ == index_->columns.size()) return values;
  TAMIS_ASSIGN_OR_RETURN(const Split split, SplitEntry(values));
  return split.values;
}

void EntryGroups::Follow(uint64_t generation) {
  if (generation == generation_) return;
  generation_ = generation;
  groups_.clear();
  bytes_ = 0;
  has_last_ = false;
}

std::optional<RowGroups::Group*> EntryGroups::Find(std::string_view values, uint64_t generation) {
  Follow(generation);
  if (has_last_ && values == last_values_) return last_group_;
  const auto found = groups_.find(values);
  if (found == groups_.end()) return std::nullopt;
  last_values_ = values;
  last_group_ = found->second;
  has_last_ = true;
  return last_group_;
}

void EntryGroups::Remember(std::string_view values, RowGroups::Group* group, uint64_t generation) {
  Follow(generation);
  if (bytes_ >= kMaxBytes) {
    groups_.clear();
    bytes_ = 0;
  }
  groups_.emplace(values, group);
  bytes_ += values.size() + kOverhead;
}

}  // namespace tamis
