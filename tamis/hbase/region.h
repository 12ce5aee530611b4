// Regions as rows of hbase:meta describe them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/hbase/row.h"
#include "tamis/hbase/server_name.h"

namespace tamis::hbase {

namespace pb {
class RegionInfo;
class RegionSpecifier;
class ServerName;
class TableName;
}  // namespace pb

inline constexpr std::string_view kMetaTable = "hbase:meta";

// "NAME" or "NAMESPACE:NAME"; the namespace "default" is left out.
std::string NormalTableName(std::string_view table);

struct Region {
  std::string table;
  std::string name;     // "table,start,id.encoded." (bytes): its row key in hbase:meta
  std::string encoded;  // the 32 hexadecimal digits in `name`
  std::string start;
  std::string end;  // empty: no end
  uint64_t id = 0;  // creation time
  ServerName server;
  int64_t open_sequence = -1;  // grows with each opening

  bool Holds(std::string_view row) const { return row >= start && (end.empty() || row < end); }
  friend bool operator==(const Region&, const Region&) = default;
};
using RegionPtr = std::shared_ptr<const Region>;

// The region of hbase:meta itself, which has no row in any table.
Region MetaRegion(ServerName server);

// A parsed row of hbase:meta.
struct MetaRow {
  Region region;
  bool open = false;  // a server has it
};
// Returns nothing for rows without a region to read from: parents of a split, replicas, regions
// whose end is not after their start, rows of other kinds. Returns kDataLoss if the row cannot be
// parsed.
Result<std::optional<MetaRow>> ParseMetaRow(const Row& row);

// The keys of hbase:meta where a search for a table's regions begins and ends.
// the last key for this row
std::string MetaKeyOfRow(std::string_view table, std::string_view row);
std::string MetaKeyBefore(std::string_view table, std::string_view row);
std::string MetaKeyFirst(std::string_view table);
std::string MetaKeyEnd(std::string_view table);

void ToProto(std::string_view table, pb::TableName* out);
std::string FromProto(const pb::TableName& table);
void ToProto(const ServerName& server, pb::ServerName* out);
ServerName FromProto(const pb::ServerName& server);
void ToProto(const Region& region, pb::RegionSpecifier* out);
void ToProto(const Region& region, pb::RegionInfo* out);

}  // namespace tamis::hbase
