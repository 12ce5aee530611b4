// TableCache: an engine's cache of table schemas and of the servers of regions. It may be out of
// date at any time.
//
// The cache asks the cluster for the regions of a table, one question at a time, only for the keys
// that a caller of RefreshRegions found to be stale. Callers that come during a question share the
// next answer. A region in it that lasts without a server (RegionInfo::unserved) is a failure for
// the callers that asked for its keys, and for no others. Questions whose answers are the same as
// before are asked less and less often, down to once a second.
//
// Threads: safe. Table and RefreshTable block, and must not be called from an executor's task.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tamis/base/answers.h"
#include "tamis/cluster/cluster.h"
#include "tamis/query/retry_pauses.h"
#include "tamis/routing/key_ranges.h"
#include "tamis/table/schema.h"

namespace tamis {

class TableCache : public std::enable_shared_from_this<TableCache> {
 public:
  // In key order; with gaps where nothing is known.
  using Regions = std::shared_ptr<const std::vector<RegionInfo>>;

  struct Options {
    Duration timeout = std::chrono::seconds(5);  // for one question to the cluster
  };

  TableCache(Cluster* cluster, Executor* executor, const Options& options)
      : cluster_(cluster), executor_(executor), options_(options) {}

  // The schema from the cache; asks the cluster when it is missing, or when a newer version is
  // known to exist.
  Result<SchemaPtr> Table(const std::string& name);
  Result<SchemaPtr> RefreshTable(const std::string& name,
                                 const std::atomic<bool>* cancelled = nullptr);

  // nullptr when nothing is known.
  Regions KnownRegions(uint32_t table_id) const;
  // Asks the cluster for the regions of the `stale` keys (of all keys when it is empty), and passes
  // all known regions of the table to `done`. kNotFound when the table does not exist any more; the
  // reason of RegionInfo::unserved when a region of the `stale` keys has one, so not when it is
  // empty.
  void RefreshRegions(const TableSchema& table, const std::vector<KeyRange>& stale,
                      Callback<Regions> done);

  // Notes the schema version of a table that a server has reported; 0 = the table was dropped.
  void Heard(uint32_t table_id, uint64_t version);

  // Drops the table and its regions from the cache.
  void Forget(const std::string& name);
  // Waits for calls to the cluster that have begun; none begins afterwards.
  void Stop();

 private:
  struct Caller {
    std::vector<KeyRange> stale;
    Callback<Regions> done;
  };
  struct TableRegions {
    std::string name;
    Regions known;
    // Keys of the callers that share the next answer.
    KeyRanges stale;
    bool all_stale = false;
    std::vector<Caller> waiting;
    // The question that is under way, or that will be asked after a pause.
    bool asking = false;
    uint64_t question = 0;
    KeyRanges asked;  // empty: for all
    std::vector<Caller> sharing;
    Backoff backoff = kRetryPauses;
    Time not_before{};
  };

  void Drop(uint32_t table_id);  // forgets the table; REQUIRES: the mutex is held
  // A call to the cluster is under way while it lives. REQUIRES: the mutex is held.
  class Call;

  void AskSoon(uint32_t table_id, TableRegions* regions, std::unique_lock<std::mutex>* lock);
  // Ends as the question's failure when there is no memory to ask it.
  void Ask(uint32_t table_id);
  void Send(uint32_t table_id, uint64_t question, const std::string& name,
            std::vector<KeyRange> asked);
  void Take(uint32_t table_id, uint64_t question, Result<std::vector<RegionInfo>> listed);

  Cluster* const cluster_;
  Executor* const executor_;
  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  int calls_ = 0;
  bool stopped_ = false;
  std::map<std::string, SchemaPtr> tables_;
  std::map<uint32_t, uint64_t> versions_;     // the newest that was heard of, by table id
  std::map<uint32_t, TableRegions> regions_;  // by table id
};

}  // namespace tamis
