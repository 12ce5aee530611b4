// ScriptedCluster: a cluster for tests whose region servers do what a test says: answer, hang,
// refuse, answer twice or for other keys. One table "t" of (id int64), its key.
//
// Threads: none; runs on a SimExecutor.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tamis/cluster/error.h"
#include "tamis/cluster/region_server.h"
#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"

namespace tamis {

class ScriptedServer : public RegionServer {
 public:
  using SearchCall = std::function<void(const pb::SearchRequest&, Callback<pb::SearchReply>)>;
  using MutateCall = std::function<void(const pb::MutateRequest&, Callback<pb::MutateReply>)>;

  void Mutate(const pb::MutateRequest& request, Callback<pb::MutateReply> done) override {
    mutate(request, std::move(done));
  }
  void Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) override {
    ++searches;
    search(request, std::move(done));
  }
  void Poll(const pb::PollRequest&, Callback<pb::PollReply>) override {}

  SearchCall search;
  MutateCall mutate;
  int searches = 0;
};

class ScriptedCluster : public Cluster {
 public:
  ScriptedCluster() {
    table.id = 1;
    table.name = "t";
    table.columns = {{.id = 1, .name = "id", .type = Type::kInt64, .nullable = false}};
    table.key = {0};
  }

  std::string Key(int64_t id) const { return *KeyFormat(table).Encode({Value::Int64(id)}); }

  // Regions of `width` ids each, one after the other, the first and the last without bounds, given
  // to the servers in turn; each row is in its region.
  void Make(int regions_wanted, int64_t width, const std::vector<std::string>& names) {
    for (int i = 0; i < regions_wanted; ++i) {
      regions.push_back({.id = RegionId(static_cast<uint64_t>(i) + 1),
                         .name = std::to_string(i + 1),
                         .epoch = 1,
                         .table_id = 1,
                         .start = i == 0 ? "" : Key(i * width),
                         .end = i + 1 == regions_wanted ? "" : Key((i + 1) * width),
                         .server = names[static_cast<size_t>(i) % names.size()]});
      for (int64_t id = i * width; id < (i + 1) * width; ++id) rows.insert(id);
    }
    for (const std::string& name : names) {
      auto server = std::make_shared<ScriptedServer>();
      server->search = [this](const pb::SearchRequest& request, Callback<pb::SearchReply> done) {
        done(Answer(request));
      };
      servers[name] = std::move(server);
    }
  }

  // The answer of a healthy server.
  pb::SearchReply Answer(const pb::SearchRequest& request) const {
    pb::SearchReply reply;
    for (const pb::SearchRange& range : request.ranges()) {
      *reply.add_results() = AnswerRange(range);
    }
    return reply;
  }
  pb::RangeResult AnswerRange(const pb::SearchRange& range) const {
    pb::RangeResult result;
    result.set_region_id(range.region_id());
    result.set_epoch(range.epoch());
    auto region = std::ranges::find_if(
        regions, [&](const RegionInfo& info) { return info.id.number() == range.region_id(); });
    if (region == regions.end() || !region->Contains(range.start())) {
      SetError(Unavailable("the region is not here"), result.mutable_error());
      return result;
    }
    result.set_start(range.start());
    result.set_end(range.end());
    const KeyRange keys{range.start(), range.end()};
    for (const int64_t id : rows) {
      const std::string key = Key(id);
      if (!keys.Contains(key)) continue;
      pb::FoundRow* found = result.add_rows();
      found->set_key(key);
      found->set_row(EncodeRow(table, {Value::Int64(id)}));
    }
    return result;
  }

  std::shared_ptr<RegionServer> Server(const std::string& name) override {
    return servers.at(name);
  }
  void ListServers(Callback<std::vector<ServerInfo>> done) override {
    done(std::vector<ServerInfo>());
  }
  void ListRegions(const std::string&, std::vector<KeyRange> stale,
                   Callback<std::vector<RegionInfo>> done) override {
    listings.push_back(stale);
    if (list_regions) return list_regions(stale, done);
    done(Listed(stale));
  }
  std::vector<RegionInfo> Listed(const std::vector<KeyRange>& stale) const {
    std::vector<RegionInfo> listed;
    for (const RegionInfo& region : regions) {
      if (stale.empty() || std::ranges::any_of(stale, [&](const KeyRange& range) {
            return range.Overlaps(region.keys());
          })) {
        listed.push_back(region);
      }
    }
    return listed;
  }
  void ListTables(Callback<std::vector<TableSchema>> done) override {
    done(std::vector<TableSchema>{table});
  }
  void GetTable(const std::string&, Callback<TableSchema> done) override {
    ++schemas_asked;
    if (get_table) return get_table(done);
    done(table);
  }

  TableSchema table;
  std::vector<RegionInfo> regions;
  std::set<int64_t> rows;
  std::map<std::string, std::shared_ptr<ScriptedServer>> servers;
  std::function<void(const std::vector<KeyRange>&, Callback<std::vector<RegionInfo>>)> list_regions;
  std::vector<std::vector<KeyRange>> listings;  // ranges that were asked for
  std::function<void(Callback<TableSchema>)> get_table;
  int schemas_asked = 0;
};

}  // namespace tamis
