// SimNetwork: a Cluster behind a network that delays, loses and reorders. Every message between an
// engine and a region server goes through its bytes.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/cluster/region_server.h"

namespace tamis {

struct NetworkCounts {
  uint64_t messages = 0;
  uint64_t lost = 0;
  uint64_t polls_lost = 0;
  uint64_t polls_late = 0;  // delayed so long that a later one overtakes
};

class SimNetwork : public Cluster {
 public:
  struct Options {
    Duration delay = std::chrono::microseconds(500);      // at most, usually
    Duration late = std::chrono::milliseconds(150);       // at most, for the late ones
    Duration poll_late = std::chrono::milliseconds(600);  // longer than the poller waits
    uint64_t one_in_late = 50;
    uint64_t one_in_lost = 100;
    uint64_t poll_one_in_late = 15;
    uint64_t poll_one_in_lost = 20;
  };

  SimNetwork(Cluster* cluster, SimExecutor* executor, Options options, NetworkCounts* counts)
      : cluster_(cluster), executor_(executor), options_(options), counts_(counts) {}

  // Polls to this server are lost until the time given.
  void CutPolls(const std::string& server, Time until) { cut_[server] = until; }
  // Polls reach this server, which answers and grants leases; the replies are lost.
  void CutPollReplies(const std::string& server, Time until) { replies_cut_[server] = until; }

  std::shared_ptr<RegionServer> Server(const std::string& name) override {
    return std::make_shared<Proxy>(this, cluster_->Server(name), name);
  }
  void ListServers(Callback<std::vector<ServerInfo>> done) override { cluster_->ListServers(done); }
  void ListRegions(const std::string& table, std::vector<KeyRange> stale,
                   Callback<std::vector<RegionInfo>> done) override {
    // The reply is as of the time of the question.
    const auto listed = [this, done](Result<std::vector<RegionInfo>> regions) {
      // RocksDB's estimates differ from run to run, and SQLite plans by them.
      if (regions.ok()) {
        for (RegionInfo& region : *regions) region.size_bytes = 0;
      }
      executor_->PostAfter(Delay(false), [done, regions] { done(regions); });
    };
    cluster_->ListRegions(table, std::move(stale), listed);
  }
  void ListTables(Callback<std::vector<TableSchema>> done) override { cluster_->ListTables(done); }
  void GetTable(const std::string& name, Callback<TableSchema> done) override {
    cluster_->GetTable(name, done);
  }

 private:
  class Proxy : public RegionServer {
   public:
    Proxy(SimNetwork* network, std::shared_ptr<RegionServer> server, std::string name)
        : network_(network), server_(std::move(server)), name_(std::move(name)) {}

    void Mutate(const pb::MutateRequest& request, Callback<pb::MutateReply> done) override {
      network_->Carry<pb::MutateRequest, pb::MutateReply>(request, done, false, name_, server_,
                                                          &RegionServer::Mutate);
    }
    void Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) override {
      network_->Carry<pb::SearchRequest, pb::SearchReply>(request, done, false, name_, server_,
                                                          &RegionServer::Search);
    }
    void Poll(const pb::PollRequest& request, Callback<pb::PollReply> done) override {
      network_->Carry<pb::PollRequest, pb::PollReply>(request, done, true, name_, server_,
                                                      &RegionServer::Poll);
    }

   private:
    SimNetwork* const network_;
    const std::shared_ptr<RegionServer> server_;
    const std::string name_;
  };

  Duration Delay(bool poll) {
    const bool late =
        executor_->random().OneIn(poll ? options_.poll_one_in_late : options_.one_in_late);
    if (late && poll) ++counts_->polls_late;
    const Duration most = !late ? options_.delay : poll ? options_.poll_late : options_.late;
    return Duration(executor_->random().Uniform(static_cast<uint64_t>(most.count()) + 1));
  }
  bool Lost(bool poll, bool reply, const std::string& server) {
    ++counts_->messages;
    bool lost = executor_->random().OneIn(poll ? options_.poll_one_in_lost : options_.one_in_lost);
    if (poll && executor_->Now() < cut_[server]) lost = true;
    if (poll && reply && executor_->Now() < replies_cut_[server]) lost = true;
    if (lost) ++counts_->lost;
    if (lost && poll) ++counts_->polls_lost;
    return lost;
  }

  template <class Request, class Reply>
  void Carry(const Request& request, Callback<Reply> done, bool poll, const std::string& name,
             std::shared_ptr<RegionServer> server,
             void (RegionServer::*method)(const Request&, Callback<Reply>)) {
    if (Lost(poll, false, name)) return;
    executor_->PostAfter(
        Delay(poll), [this, bytes = request.SerializeAsString(), done, poll, name, server, method] {
          Request arrived;
          if (!arrived.ParseFromString(bytes)) return;
          ((*server).*method)(arrived, [this, done, poll, name](Result<Reply> reply) {
            if (Lost(poll, true, name)) return;
            const Status status = reply.ok() ? Status::Ok() : reply.status();
            const std::string reply_bytes = reply.ok() ? reply->SerializeAsString() : "";
            executor_->PostAfter(Delay(poll), [done, status, reply_bytes] {
              if (!status.ok()) return done(status);
              Reply back;
              if (back.ParseFromString(reply_bytes)) done(std::move(back));
            });
          });
        });
  }

  Cluster* const cluster_;
  SimExecutor* const executor_;
  const Options options_;
  NetworkCounts* const counts_;
  std::map<std::string, Time> cut_;
  std::map<std::string, Time> replies_cut_;
};

}  // namespace tamis
