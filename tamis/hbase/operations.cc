#include "tamis/hbase/operations.h"

#include "tamis/base/coding.h"

namespace tamis::hbase {

Mutation& Mutation::Set(std::string_view family, std::string_view qualifier, std::string_view value,
                        int64_t timestamp) {
  return AppendOne(
      {.family = family, .qualifier = qualifier, .timestamp = timestamp, .value = value});
}

Mutation& Mutation::Add(std::string_view family, std::string_view qualifier, int64_t amount) {
  std::string bytes;
  PutBig64(&bytes, static_cast<uint64_t>(amount));
  return Set(family, qualifier, bytes);
}

Mutation& Mutation::DeleteColumn(std::string_view family, std::string_view qualifier,
                                 int64_t timestamp) {
  return AppendOne({.family = family,
                    .qualifier = qualifier,
                    .timestamp = timestamp,
                    .type = CellType::kDeleteColumn,
                    .value = {}});
}

Mutation& Mutation::DeleteVersion(std::string_view family, std::string_view qualifier,
                                  int64_t timestamp) {
  return AppendOne({.family = family,
                    .qualifier = qualifier,
                    .timestamp = timestamp,
                    .type = CellType::kDelete,
                    .value = {}});
}

Mutation& Mutation::DeleteFamily(std::string_view family, int64_t timestamp) {
  return AppendOne({.family = family,
                    .qualifier = {},
                    .timestamp = timestamp,
                    .type = CellType::kDeleteFamily,
                    .value = {}});
}

Mutation& Mutation::SetDurability(Durability durability) {
  durability_ = durability;
  return *this;
}

Mutation& Mutation::SetAttribute(std::string name, std::string value) {
  attributes_.emplace_back(std::move(name), std::move(value));
  return *this;
}

Mutation& Mutation::AppendOne(const Cell& cell) {
  const bool deletes = cell.type != CellType::kPut;
  if (deletes != (kind_ == Kind::kDelete)) {
    fault_ = InvalidArgument(deletes ? "only a Delete deletes" : "a Delete has no values");
  } else if (row_.empty() || row_.size() > kMaxRowBytes) {
    fault_ = InvalidArgument("a row's key has 1 to " + std::to_string(kMaxRowBytes) +
                             " bytes, not " + std::to_string(row_.size()));
  } else if (cell.family.empty() || cell.family.size() > kMaxFamilyBytes) {
    fault_ = InvalidArgument("a family's name has 1 to " + std::to_string(kMaxFamilyBytes) +
                             " bytes, not " + std::to_string(cell.family.size()));
  } else {
    AppendCell(row_, cell, &cells_);
    ++cell_count_;
  }
  return *this;
}

Status Mutation::Check() const {
  TAMIS_RETURN_IF_ERROR(fault_);
  if (row_.empty() || row_.size() > kMaxRowBytes) {
    return InvalidArgument("a row's key has 1 to " + std::to_string(kMaxRowBytes) + " bytes, not " +
                           std::to_string(row_.size()));
  }
  if (cell_count_ == 0 && kind_ != Kind::kDelete) {
    return InvalidArgument("the change of row \"" + row_ + "\" changes no column");
  }
  return {};
}

}  // namespace tamis::hbase
