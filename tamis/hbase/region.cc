#include "tamis/hbase/region.h"

#include "tamis/base/coding.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

constexpr std::string_view kDefaultNamespace = "default";
constexpr std::string_view kMessageMagic = "PBUF";
constexpr std::string_view kInfo = "info";

// Parses "host:port", the format in hbase:meta.
std::optional<Address> ParseServer(std::string_view text) {
  const auto addresses = ParseAddresses(text);
  if (!addresses.ok() || addresses->size() != 1) return {};
  return addresses->front();
}

}  // namespace

std::string NormalTableName(std::string_view table) {
  constexpr std::string_view kPrefix = "default:";
  if (table.starts_with(kPrefix)) table.remove_prefix(kPrefix.size());
  return std::string(table);
}

Region MetaRegion(ServerName server) {
  Region region;
  region.table = kMetaTable;
  region.name = "hbase:meta,,1";
  region.encoded = "1588230740";
  region.id = 1;
  region.server = std::move(server);
  return region;
}

Result<std::optional<MetaRow>> ParseMetaRow(const Row& row) {
  const auto fault = [&](std::string_view what) {
    return DataLoss("cannot read the row \"" + std::string(row.key()) +
                    "\" of hbase:meta: " + std::string(what));
  };
  const auto info_bytes = row.Find(kInfo, "regioninfo");
  // a row for a table, or for a region being merged
  if (!info_bytes) return std::optional<MetaRow>();
  if (!info_bytes->starts_with(kMessageMagic)) return fault("info:regioninfo is no message");
  pb::RegionInfo info;
  if (!info.ParseFromArray(info_bytes->data() + kMessageMagic.size(),
                           static_cast<int>(info_bytes->size() - kMessageMagic.size()))) {
    return fault("info:regioninfo is damaged");
  }
  if (info.offline() || info.split() || info.replica_id() != 0) return std::optional<MetaRow>();
  // Such a region holds no row, so it is skipped; hbase:meta was damaged.
  if (!info.end_key().empty() && info.end_key() <= info.start_key()) {
    return std::optional<MetaRow>();
  }
  MetaRow out;
  out.region.table = FromProto(info.table_name());
  out.region.name = row.key();
  out.region.start = info.start_key();
  out.region.end = info.end_key();
  out.region.id = info.region_id();
  // "...,id.encoded."
  std::string_view name = row.key();
  if (!name.ends_with('.')) return fault("its key does not end as a region's name does");
  name.remove_suffix(1);
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return fault("its key does not end as a region's name does");
  out.region.encoded = name.substr(dot + 1);

  const auto server = row.Find(kInfo, "server");
  const auto start_code = row.Find(kInfo, "serverstartcode");
  const auto sequence = row.Find(kInfo, "seqnumDuringOpen");
  const auto state = row.Find(kInfo, "state");
  if (server && !server->empty()) {
    const auto address = ParseServer(*server);
    if (!address) return fault("info:server is no host:port");
    out.region.server.address = *address;
    if (start_code && start_code->size() == 8) {
      out.region.server.start_code = Reader(*start_code).Big64();
    }
    if (sequence && sequence->size() == 8) {
      out.region.open_sequence = static_cast<int64_t>(Reader(*sequence).Big64());
    }
    out.open = !state || *state == "OPEN";
  }
  return std::optional(std::move(out));
}

std::string MetaKeyOfRow(std::string_view table, std::string_view row) {
  // Fourteen nines sort after every region's creation time.
  return NormalTableName(table) + "," + std::string(row) + ",99999999999999";
}
std::string MetaKeyBefore(std::string_view table, std::string_view row) {
  return NormalTableName(table) + "," + std::string(row) + ",";
}
std::string MetaKeyFirst(std::string_view table) { return NormalTableName(table) + ",,"; }
std::string MetaKeyEnd(std::string_view table) { return NormalTableName(table) + " ,,"; }

void ToProto(std::string_view table, pb::TableName* out) {
  const size_t colon = table.find(':');
  out->set_namespace_(
      std::string(colon == std::string_view::npos ? kDefaultNamespace : table.substr(0, colon)));
  out->set_qualifier(
      std::string(colon == std::string_view::npos ? table : table.substr(colon + 1)));
}

std::string FromProto(const pb::TableName& table) {
  return table.namespace_() == kDefaultNamespace ? table.qualifier()
                                                 : table.namespace_() + ":" + table.qualifier();
}

void ToProto(const ServerName& server, pb::ServerName* out) {
  out->set_host_name(server.address.host);
  out->set_port(server.address.port);
  if (server.start_code != 0) out->set_start_code(server.start_code);
}

ServerName FromProto(const pb::ServerName& server) {
  return {.address = {server.host_name(), static_cast<uint16_t>(server.port())},
          .start_code = server.start_code()};
}

void ToProto(const Region& region, pb::RegionSpecifier* out) {
  out->set_type(pb::RegionSpecifier::REGION_NAME);
  out->set_value(region.name);
}

void ToProto(const Region& region, pb::RegionInfo* out) {
  out->set_region_id(region.id);
  ToProto(region.table, out->mutable_table_name());
  out->set_start_key(region.start);
  out->set_end_key(region.end);
}

}  // namespace tamis::hbase
