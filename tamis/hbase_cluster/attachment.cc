#include "tamis/hbase_cluster/attachment.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "tamis/hbase/printable.h"
#include "tamis/hbase_cluster/indexed_table.h"
#include "tamis/table/key_format.h"
#include "tamis/table/row.h"

namespace tamis {
namespace {

constexpr std::string_view kForever = "2147483647";  // the lowest priority has the same value
constexpr std::string_view kSplitPolicyAttribute = "SPLIT_POLICY";

using Attributes = std::map<std::string, std::string>;

std::string Of(const Attributes& attributes, std::string_view name, std::string_view otherwise) {
  const auto found = attributes.find(std::string(name));
  if (found == attributes.end()) return std::string(otherwise);
  std::string value = found->second;
  std::ranges::transform(value, value.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return value;
}

uint64_t NumberOf(const Attributes& attributes, std::string_view name, uint64_t otherwise) {
  const std::string text = Of(attributes, name, "");
  uint64_t number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The command for HBase's shell.
std::string AlterTable(const hbase::TableDescription& table, const std::string& what) {
  return "in HBase's shell: alter '" + table.name + "', " + what;
}

std::string AlterFamily(const hbase::TableDescription& table, const hbase::FamilySchema& family,
                        const std::string& what) {
  return AlterTable(table, "{NAME => '" + family.name + "', " + what + "}");
}

// Whether a cell that expires on its own leaves each index right: it may take a row's entry, but
// must not change it.
bool MayExpire(const TableSchema& schema) {
  return std::ranges::all_of(schema.indexes, [](const IndexSpec& index) {
    return index.nulls == IndexNulls::kSkip && index.columns.size() == 1 && index.include.empty() &&
           !index.IsPartial();
  });
}

void CheckFamily(const hbase::TableDescription& table, const hbase::FamilySchema& family,
                 const TableSchema& schema, std::vector<std::string>* faults) {
  const Attributes& said = family.attributes;
  const std::string which = "family \"" + family.name + "\" ";
  if (Of(said, "NEW_VERSION_BEHAVIOR", "FALSE") == "TRUE") {
    faults->push_back(which + "has NEW_VERSION_BEHAVIOR, by which deletes mean something else; " +
                      AlterFamily(table, family, "NEW_VERSION_BEHAVIOR => 'false'"));
  }
  if (const std::string kept = Of(said, "KEEP_DELETED_CELLS", "FALSE"); kept != "FALSE") {
    faults->push_back(which + "keeps deleted cells; " +
                      AlterFamily(table, family, "KEEP_DELETED_CELLS => 'FALSE'"));
  }
  if (Of(said, "IS_MOB", "FALSE") == "TRUE") {
    faults->push_back(which + "keeps large cells in files of their own (MOB); " +
                      AlterFamily(table, family, "IS_MOB => false"));
  }
  if (NumberOf(said, "MIN_VERSIONS", 0) > 0) {
    faults->push_back(which + "has MIN_VERSIONS; " +
                      AlterFamily(table, family, "MIN_VERSIONS => 0"));
  }
  const std::string life = Of(said, "TTL", kForever);
  if (life != kForever && life != "FOREVER" && !MayExpire(schema)) {
    faults->push_back(which + "forgets cells after " + life +
                      " s without a notice, which only indexes on one column, without NULL, "
                      "included columns and condition go with; make them so (--nulls skip), or " +
                      AlterFamily(table, family, "TTL => 'FOREVER'"));
  }
}

std::string KeyText(const TableSchema& schema) {
  std::string text;
  for (size_t i = 0; i < schema.key.size(); ++i) {
    const Column& column = schema.columns[schema.key[i]];
    const KeyPart part = schema.key_parts.empty() ? KeyPart() : schema.key_parts[i];
    text += (i == 0 ? "" : ", ") + column.name + " " + std::string(TypeName(column.type)) + " '" +
            KeyPartText(column.type, part) + "'";
  }
  return text;
}

// Returns an encoding of the type that fits all of these cells.
std::string BetterEncoding(Type type, const std::vector<std::string>& cells) {
  for (int number = 1; number <= static_cast<int>(CellEncoding::kBigDecimal); ++number) {
    const auto encoding = static_cast<CellEncoding>(number);
    if (!IsEncodingOf(type, encoding)) continue;
    if (std::ranges::all_of(cells, [&](const std::string& cell) {
          return DecodeCell(type, encoding, cell).has_value();
        })) {
      return std::string(EncodingName(encoding));
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> SettingsAgainst(const hbase::TableDescription& table,
                                         const TableSchema& schema) {
  std::vector<std::string> faults;
  if (Of(table.attributes, "DURABILITY", "USE_DEFAULT") == "SKIP_WAL") {
    faults.push_back(
        "its durability is SKIP_WAL, by which a crash takes an entry and leaves its "
        "row; " +
        AlterTable(table, "DURABILITY => 'USE_DEFAULT'"));
  }
  if (NumberOf(table.attributes, "REGION_REPLICATION", 1) > 1) {
    faults.push_back("its regions have replicas; " + AlterTable(table, "REGION_REPLICATION => 1"));
  }
  if (Of(table.attributes, "READONLY", "FALSE") == "TRUE") {
    faults.push_back("it is read-only, so that no entry can be written; " +
                     AlterTable(table, "READONLY => false"));
  }
  for (const auto& [name, value] : table.attributes) {  // "PATH|CLASS|PRIORITY|ARGUMENTS"
    if (!name.starts_with("coprocessor$") || value.find("tamis.hbase.") != std::string::npos) {
      continue;
    }
    if (value.find("|" + std::string(kForever) + "|") == std::string::npos) continue;
    faults.push_back("its coprocessor " + value +
                     " has the lowest priority, and would change writes behind the one that keeps "
                     "the indexes: give it another one, 1073741823 is usual");
  }
  for (const hbase::FamilySchema& family : table.families) {
    if (schema.HasFamily(family.name)) CheckFamily(table, family, schema, &faults);
  }
  return faults;
}

std::vector<std::string> ObstaclesToAttaching(const hbase::TableDescription& table,
                                              const TableSchema& schema) {
  std::vector<std::string> obstacles = SettingsAgainst(table, schema);
  std::string families;
  std::set<std::string> there;
  for (const hbase::FamilySchema& family : table.families) {
    families += (families.empty() ? "\"" : ", \"") + family.name + "\"";
    there.insert(family.name);
  }
  if (HasTraces(table)) {
    obstacles.push_back(
        "it was attached, and its schema was taken away; make it a plain table "
        "first: tamis table detach --hbase-table " +
        FullTableName(table.name));
    return obstacles;
  }
  if (there.contains("tamis")) {
    obstacles.push_back(
        "it has a family \"tamis\", which is to hold the entries of indexes; "
        "delete it first, " +
        AlterTable(table, "{NAME => 'tamis', METHOD => 'delete'}"));
  }
  const auto need = [&](const std::string& what, const std::string& family) {
    if (there.contains(family)) return;
    obstacles.push_back(what + " is in family \"" + family +
                        "\", which it does not have; its families are " + families);
  };
  for (const Column& column : schema.columns) {
    if (!column.cell.family.empty()) need("column \"" + column.name + "\"", column.cell.family);
  }
  if (schema.marker) need("the marker", schema.marker->family);
  const auto policy = table.attributes.find(std::string(kSplitPolicyAttribute));
  if (policy != table.attributes.end()) {
    obstacles.push_back(
        "it has the split policy " + policy->second +
        ", and would have ours, which splits like SteppingSplitPolicy; if that will do, remove it "
        "first, " +
        AlterTable(table, "METHOD => 'table_att_unset', NAME => 'SPLIT_POLICY'"));
  }
  return obstacles;
}

TableSchema WithIndexesFrom(TableSchema schema, uint32_t drawn) {
  schema.next_index_id = drawn;
  for (IndexSpec& index : schema.indexes) index.id = schema.next_index_id++;
  return schema;
}

RowSample::RowSample(const TableSchema& schema) : schema_(schema), cells_(schema.columns.size()) {}

void RowSample::Add(const hbase::Row& row) {
  Row values(schema_.columns.size());
  if (KeyFormat(schema_).Decode(row.key(), &values).ok()) {
    ++keys_read_;
  } else {
    keys_unread_.emplace_back(row.key());
    return;
  }
  for (size_t i = 0; i < schema_.columns.size(); ++i) {
    const Column& column = schema_.columns[i];
    if (column.encoding == CellEncoding::kNone) continue;
    const auto bytes = row.Find(column.cell.family, column.cell.qualifier);
    if (!bytes) continue;
    if (DecodeCell(column.type, column.encoding, *bytes).has_value()) {
      ++cells_[i].decoded;
    } else {
      cells_[i].undecoded.emplace_back(*bytes);
    }
  }
}

std::vector<std::string> RowSample::Faults() const {
  std::vector<std::string> faults;
  if (keys_read_ == 0 && !keys_unread_.empty()) {
    faults.push_back("none of the " + std::to_string(keys_unread_.size()) +
                     " rows that were looked at has a key of (" + KeyText(schema_) +
                     "); the first one is " + hbase::Printable(keys_unread_.front()) +
                     "; say how keys are made with --key NAME:TYPE:FORM");
  }
  for (size_t i = 0; i < schema_.columns.size(); ++i) {
    const Cells& cells = cells_[i];
    if (cells.decoded > 0 || cells.undecoded.empty()) continue;
    const Column& column = schema_.columns[i];
    const std::string better = BetterEncoding(column.type, cells.undecoded);
    faults.push_back("none of the " + std::to_string(cells.undecoded.size()) + " cells " +
                     CellNameText(column.cell) + " that were looked at is of type " +
                     std::string(TypeName(column.type)) + " in encoding " +
                     std::string(EncodingName(column.encoding)) + "; the first one is " +
                     hbase::Printable(cells.undecoded.front()) +
                     (better.empty() ? "; give column \"" + column.name + "\" another type"
                                     : "; they would be read as encoding " + better));
  }
  return faults;
}

std::string JoinSentences(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : "; ") + sentence;
  return text;
}

}  // namespace tamis
