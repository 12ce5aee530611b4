#include "tamis/hbase/testing/scripted_cluster.h"

#include <algorithm>

#include "tamis/base/coding.h"
#include "tamis/hbase/cell_block.h"

namespace tamis::hbase {

ScriptedCluster::ScriptedCluster(size_t servers) {
  for (size_t i = 0; i < servers; ++i) {
    servers_.push_back(std::make_unique<ScriptedServer>());
    names_.push_back(servers_[i]->name());
  }
  for (const auto& server : servers_) {
    server->On("GetMetaRegionLocations", [this](const auto& request, const auto& peer) {
      const ServerName meta = NameOf(0);
      pb::GetMetaRegionLocationsResponse answer;
      pb::RegionLocation& location = *answer.add_meta_locations();
      ToProto(MetaRegion(meta), location.mutable_region_info());
      ToProto(meta, location.mutable_server_name());
      location.set_seq_num(-1);
      peer->Answer(request.call_id, answer);
    });
    server->On("GetBootstrapNodes", [](const auto& request, const auto& peer) {
      peer->Answer(request.call_id, pb::GetBootstrapNodesResponse());
    });
    server->On("GetActiveMaster", [this](const auto& request, const auto& peer) {
      pb::GetActiveMasterResponse answer;
      ToProto(NameOf(0), answer.mutable_server_name());
      peer->Answer(request.call_id, answer);
    });
  }
  servers_[0]->On("Scan",
                  [this](const auto& request, const auto& peer) { ScanMeta(request, peer); });
}

void ScriptedCluster::SetAddress(size_t server, const Address& address) {
  std::lock_guard lock(mutex_);
  names_[server].address = address;
}

ServerName ScriptedCluster::NameOf(size_t server) {
  std::lock_guard lock(mutex_);
  return names_[server];
}

Region ScriptedCluster::SetRegion(const std::string& start, const std::string& end, size_t server,
                                  int64_t open_sequence) {
  Region region;
  region.table = "t";
  region.start = start;
  region.end = end;
  region.id = 7;
  region.encoded = std::string(32, start.empty() ? '0' : start[0]);
  region.name = "t," + start + ",7." + region.encoded + ".";
  region.server = NameOf(server);
  region.open_sequence = open_sequence;
  std::lock_guard lock(mutex_);
  rows_[region.name] = region;
  return region;
}

void ScriptedCluster::RemoveRegion(const std::string& start) {
  std::lock_guard lock(mutex_);
  std::erase_if(rows_, [&](const auto& one) { return one.second.start == start; });
}

void ScriptedCluster::ScanMeta(const ScriptedServer::Request& request,
                               const ScriptedServer::PeerPtr& peer) {
  const auto scan = request.Parsed<pb::ScanRequest>();
  pb::ScanResponse answer;
  std::string cells;
  const auto add = [&](const std::string& key, const Region& region) {
    pb::RegionInfo info;
    ToProto(region, &info);
    std::string start_code;
    PutBig64(&start_code, region.server.start_code);
    std::string sequence;
    PutBig64(&sequence, static_cast<uint64_t>(region.open_sequence));
    const std::pair<std::string, std::string> columns[] = {
        {"regioninfo", "PBUF" + info.SerializeAsString()},
        {"seqnumDuringOpen", sequence},
        {"server", region.server.address.ToString()},
        {"serverstartcode", start_code},
        {"state", "OPEN"}};
    for (const auto& [qualifier, value] : columns) {
      AppendCell(key, {.family = "info", .qualifier = qualifier, .timestamp = 1, .value = value},
                 &cells);
    }
    answer.add_cells_per_result(std::size(columns));
    answer.add_partial_flag_per_result(false);
  };
  std::lock_guard lock(mutex_);
  // hbase:meta has the states of tables in rows and a family of their own. There are none.
  const bool of_tables = scan.scan().column_size() > 0 && scan.scan().column(0).family() == "table";
  if (of_tables) {
    // no rows
  } else if (scan.scan().reversed()) {
    for (auto row = rows_.rbegin(); row != rows_.rend(); ++row) {
      const bool within = row->first <= scan.scan().start_row() ||
                          scan.scan().start_row().starts_with("t ");  // after all rows of table t
      if (within && row->first >= scan.scan().stop_row()) add(row->first, row->second);
    }
  } else {
    for (const auto& [key, region] : rows_) {
      if (key >= scan.scan().start_row()) add(key, region);
    }
  }
  answer.set_scanner_id(1);
  answer.set_more_results(false);
  answer.set_more_results_in_region(false);
  peer->Answer(request.call_id, answer, cells);
}

void ScriptedCluster::AnswerGet(const ScriptedServer::Request& request,
                                const ScriptedServer::PeerPtr& peer, const std::string& value) {
  const auto get = request.Parsed<pb::GetRequest>();
  pb::GetResponse answer;
  answer.mutable_result()->set_associated_cell_count(1);
  std::string cells;
  AppendCell(get.get().row(), {.family = "f", .qualifier = "q", .timestamp = 1, .value = value},
             &cells);
  peer->Answer(request.call_id, answer, cells);
}

}  // namespace tamis::hbase
