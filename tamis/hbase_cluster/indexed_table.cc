#include "tamis/hbase_cluster/indexed_table.h"

#include <algorithm>
#include <charconv>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/table/schema_change.h"

namespace tamis {
namespace {

constexpr std::string_view kDefaultNamespace = "default";
constexpr std::string_view kSchemaAttribute = "tamis.schema";
constexpr std::string_view kTableAttribute = "tamis.table";
constexpr std::string_view kOriginAttribute = "tamis.origin";
constexpr std::string_view kCreated = "created";
constexpr std::string_view kAttached = "attached";
constexpr std::string_view kZerosAttribute = "tamis.prefix.zeros";
constexpr std::string_view kIndexFamily = "tamis";
constexpr std::string_view kObserver = "tamis.hbase.IndexObserver";
constexpr std::string_view kSplitPolicy = "tamis.hbase.IndexSplitPolicy";
constexpr std::string_view kSplitPolicyAttribute = "SPLIT_POLICY";
constexpr std::string_view kCoprocessorAttribute = "coprocessor$";
// The lowest priority runs after the hooks of other coprocessors, so it sees the final write.
constexpr std::string_view kLowestPriority = "2147483647";
constexpr std::string_view kDataFamily = "d";

std::string FamilyOf(const TableSchema& schema) {
  if (schema.marker) return schema.marker->family;
  for (const Column& column : schema.columns) {
    if (!column.cell.family.empty()) return column.cell.family;
  }
  return std::string(kDataFamily);
}

bool HasObserver(const std::string& coprocessor) {  // "PATH|CLASS|PRIORITY|ARGUMENTS"
  return coprocessor.find("|" + std::string(kObserver) + "|") != std::string::npos;
}

void AddObserver(hbase::TableDescription* description) {
  std::string name;
  for (int i = 1; name.empty() || description->attributes.contains(name); ++i) {
    name = std::string(kCoprocessorAttribute) + std::to_string(i);
    const auto other = description->attributes.find(name);
    if (other != description->attributes.end() && HasObserver(other->second)) break;
  }
  description->attributes[name] =
      "|" + std::string(kObserver) + "|" + std::string(kLowestPriority) + "|";
}

void AddFamily(const std::string& name, std::map<std::string, std::string> attributes,
               hbase::TableDescription* description) {
  auto& families = description->families;
  if (std::ranges::find(families, name, &hbase::FamilySchema::name) == families.end()) {
    families.push_back({.name = name, .attributes = std::move(attributes), .configuration = {}});
  }
}

std::string Attribute(const hbase::TableDescription& description, std::string_view name) {
  const auto found = description.attributes.find(std::string(name));
  return found == description.attributes.end() ? "" : found->second;
}

bool IsTrace(const std::string& name, const std::string& value) {
  return name == kSchemaAttribute || name == kTableAttribute || name == kOriginAttribute ||
         name == kZerosAttribute || (name == kSplitPolicyAttribute && value == kSplitPolicy) ||
         (name.starts_with(kCoprocessorAttribute) && HasObserver(value));
}

}  // namespace

std::string IndexedTable::full_name() const { return FullTableName(description.name); }

std::string IndexedTable::indexed_as() const { return Attribute(description, kTableAttribute); }

TableOrigin IndexedTable::origin() const {
  return Attribute(description, kOriginAttribute) == kCreated ? TableOrigin::kCreated
                                                              : TableOrigin::kAttached;
}

TableSchema IndexedTable::schema() const {
  TableSchema schema = stored;
  schema.id = TableIdInMessages(description.name, stored.id);
  return schema;
}

uint64_t NewIndexSeed() { return std::max<uint64_t>(1, SeedFromSystem()); }

Result<TableSchema> FirstVersion(TableSchema wanted) {
  const auto drawn = static_cast<uint32_t>(SeedFromSystem() >> 33);
  TAMIS_ASSIGN_OR_RETURN(TableSchema stored, NewTable(std::move(wanted), drawn + 1));
  for (IndexSpec& index : stored.indexes) {
    if (index.seed == 0) index.seed = NewIndexSeed();
  }
  return stored;
}

Result<std::optional<IndexedTable>> ReadIndexedTable(hbase::TableDescription description) {
  const auto found = description.attributes.find(std::string(kSchemaAttribute));
  if (found == description.attributes.end()) return std::optional<IndexedTable>();
  auto schema = ParseSchema(found->second);
  if (!schema.ok()) {
    return schema.status().WithContext("cannot read the schema of HBase table \"" +
                                       description.name + "\"");
  }
  return std::optional(IndexedTable{std::move(description), *std::move(schema)});
}

hbase::TableDescription DescribeIndexed(hbase::TableDescription description,
                                        const TableSchema& stored) {
  description.attributes[std::string(kSchemaAttribute)] = SerializeSchema(stored);
  description.attributes[std::string(kTableAttribute)] = FullTableName(description.name);
  description.attributes[std::string(kSplitPolicyAttribute)] = kSplitPolicy;
  AddObserver(&description);
  // Searches read rows by key: a row filter lets HBase skip store files without the key.
  const std::map<std::string, std::string> rows = {{"BLOOMFILTER", "ROW"}};
  if (stored.marker) AddFamily(stored.marker->family, rows, &description);
  for (const Column& column : stored.columns) {
    if (!column.cell.family.empty()) AddFamily(column.cell.family, rows, &description);
  }
  // Entries are found by scans, which row filters do not help.
  AddFamily(std::string(kIndexFamily),
            {{"VERSIONS", "2147483647"},
             {"NEW_VERSION_BEHAVIOR", "true"},
             {"REPLICATION_SCOPE", "0"},
             {"BLOOMFILTER", "NONE"}},
            &description);
  return description;
}

hbase::TableDescription WithOrigin(hbase::TableDescription description, TableOrigin origin) {
  description.attributes[std::string(kOriginAttribute)] =
      origin == TableOrigin::kCreated ? kCreated : kAttached;
  return description;
}

bool HasTraces(const hbase::TableDescription& description) {
  return std::ranges::any_of(description.attributes, [](const auto& attribute) {
    return IsTrace(attribute.first, attribute.second);
  });
}

hbase::TableDescription DescribePlain(hbase::TableDescription description) {
  // Without traces of Tamis, a family of this name belongs to another program.
  if (!HasTraces(description)) return description;
  std::erase_if(description.attributes,
                [](const auto& attribute) { return IsTrace(attribute.first, attribute.second); });
  std::erase_if(description.families,
                [](const hbase::FamilySchema& family) { return family.name == kIndexFamily; });
  return description;
}

TableSchema InCells(TableSchema schema) {
  if (schema.cells) return schema;
  schema.cells = true;
  schema.marker = CellName{std::string(kDataFamily), ""};
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    if (!schema.IsKey(i)) schema.columns[i] = InCell(schema, std::move(schema.columns[i]));
  }
  return schema;
}

Column InCell(const TableSchema& schema, Column column) {
  if (column.encoding != CellEncoding::kNone || column.is_computed()) return column;
  column.cell = {FamilyOf(schema), column.name};
  column.encoding = DefaultEncoding(column.type);
  return column;
}

std::string HBaseTableName(std::string_view name_space, std::string_view name) {
  if (name_space.empty() || name_space == kDefaultNamespace) return std::string(name);
  return std::string(name_space) + ":" + std::string(name);
}

std::string FullTableName(std::string_view hbase_table) {
  if (hbase_table.find(':') != std::string_view::npos) return std::string(hbase_table);
  return std::string(kDefaultNamespace) + ":" + std::string(hbase_table);
}

uint32_t TableIdInMessages(std::string_view hbase_table, uint32_t stored_id) {
  return std::max(1u, static_cast<uint32_t>(Hash(FullTableName(hbase_table), stored_id) >> 33));
}

Result<RegionId> RegionIdOf(std::string_view encoded_name) {
  constexpr size_t kDigits = 16;
  uint64_t bits = 0;
  const std::string_view digits = encoded_name.substr(0, kDigits);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  if (digits.size() < kDigits || error != std::errc() || end != digits.data() + digits.size()) {
    return DataLoss("\"" + std::string(encoded_name) + "\" is no encoded name of a region");
  }
  return RegionId(std::max<uint64_t>(1, bits >> 1));
}

}  // namespace tamis
