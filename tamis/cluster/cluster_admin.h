// ClusterAdmin: the calls that change or inspect a cluster: tables, indexes, regions, servers,
// jobs. A coordinator does not need it to search and write (see cluster.h, also for names and
// threads).
//
// Long work runs as a job: StartJob returns at once, and GetJob returns the state of the job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/cluster/check_report.h"
#include "tamis/cluster/cluster.h"

namespace tamis {

// Operations that some clusters lack.
enum class Capability {
  kKillServer,
  kPauseServer,
  kResumeServer,
  kBalance,
  kCompact,
  kAttachTable,
  kExamine,
};

std::string_view CapabilityName(Capability capability);  // "pause a server"
// The answer to a call for what a cluster cannot do: kFailedPrecondition.
Status CannotDo(Capability capability);

// Why an index is not complete in a region.
struct IndexFailure {
  RegionId region;
  std::string server = {};  // empty: no server has the region
  // The server's attempts to complete the index that failed since it opened the region, or since an
  // attempt succeeded. 0: no attempt is known of, since the server could not be asked, or the
  // region is open nowhere.
  uint64_t attempts = 0;
  bool given_up = false;  // there is no further attempt until the user acts
  Status reason = {};     // why the last attempt failed

  std::string ToString() const;  // "region 7 on server rs2 failed to complete it (3 attempts): ..."
};

// How far an index is in the regions of its table.
struct IndexProgress {
  uint64_t regions = 0;
  uint64_t complete = 0;  // with a published filter
  uint64_t entries = 0;   // in those
  uint64_t failing = 0;   // regions that are not complete, and have an IndexFailure
  // The first failure in key order, of a region that was given up if there is one.
  std::optional<IndexFailure> failure = {};

  // Adds a region that is not complete and has this failure. REQUIRES: called in key order.
  void Add(IndexFailure one);
  // "1 of 3 regions ready; region 7 on server rs2 failed ...".
  std::string ToString() const;
};

// How a coordinator follows a server, as the server knows it.
struct CoordinatorStatus {
  uint64_t coordinator = 0;    // its number
  uint64_t events_behind = 0;  // sent or to be sent, and not acknowledged yet
  Duration lease_left{};       // zero: it has none, and asks all regions of the server
  std::string user = {};       // the user of its polls; empty: not known, or not for this user
  std::string host = {};       // where its polls come from; empty: likewise
};

// The filter memory and feed state of a server that is not dead.
struct ServerStatus {
  ServerInfo info;
  uint64_t filter_bytes = 0;
  uint64_t max_filter_bytes = 0;  // beyond it filters keep bits alone; 0 = not known
  uint64_t filters_of_bits = 0;   // filters that keep bits alone
  uint64_t feed_events = 0;       // kept for coordinators that have not applied them
  uint64_t feed_bytes = 0;
  uint64_t searches = 0;          // requests that were answered, since it began
  uint64_t regions_searched = 0;  // for these
  // Counters of the Bloom filters in the store's own files, where the store reports them: how often
  // a filter was asked, how often its file was skipped, how often a file had no filter.
  uint64_t file_filters_asked = 0;
  uint64_t file_filters_said_no = 0;
  uint64_t file_filters_missing = 0;
  std::vector<CoordinatorStatus> coordinators;
};

struct ClusterStatus {
  std::vector<ServerStatus> servers;
  uint64_t pending_work = 0;  // in the background: indexes being built, splits, moves
};

// A finding of an examination of the cluster's set-up.
struct Finding {
  enum class Kind {
    kFine,
    kNote,  // good to know; nothing needs to be done
    kToDo,
  };
  Kind kind = Kind::kFine;
  std::vector<std::string> subjects;  // "region server a:16020"
  std::string text;                   // the finding about each of them, and its remedy
};

struct JobSpec {
  enum class Kind {
    kCheck,         // compares every row of the table with every index and every filter
    kRebuildIndex,  // makes the entries and filters of the index (all of the table when it names
                    // none) agree with the rows, while the table is in use; ends when coordinators
                    // have the corrected filters
    kFitCells,  // makes the cells of the index again by the values that it holds now, or removes
                // them; ends when the schema is changed. Regions follow in the background
    kBalance,   // moves regions until all servers have about as many
    kCompact,   // drops garbage from the whole store
  };
  Kind kind = Kind::kCheck;
  std::string table = {};         // kCheck, kRebuildIndex, kFitCells
  std::string index = {};         // kRebuildIndex, kFitCells
  uint32_t cells_per_value = 16;  // kFitCells: of a region of mean size; 0 removes the cells

  std::string ToString() const;  // "check table "t"", as in "cannot check table "t""
};

// The state of a job at the time of the request.
struct JobInfo {
  JobSpec spec;
  bool ended = false;
  Status status;  // once it has ended: how
  uint64_t done = 0;
  uint64_t total = 0;  // parts of the work, as far as they are known
  CheckReport check;   // kCheck that ended well
  uint64_t moved = 0;  // kBalance: regions
};

struct DropOptions {
  bool delete_attached = false;  // also a table that was attached, with the rows of its owner
};

class ClusterAdmin {
 public:
  virtual ~ClusterAdmin() = default;

  virtual bool Can(Capability capability) const = 0;

  // Ids and version are given by the cluster. kAlreadyExists when the name is taken.
  virtual void CreateTable(TableSchema schema, Callback<TableSchema> done) = 0;
  // Deletes the table with its rows. kFailedPrecondition for an attached table, whose rows belong
  // to another program, unless options.delete_attached is set.
  virtual void DropTable(const std::string& table, DropOptions options, DoneCallback done) = 0;
  // Attaches a table that another program created and may go on writing. `foreign_name` is the
  // cluster's name of the table; the schema gives its name and definition here. A schema with a
  // name and no columns uses the definition that is stored with the table, which a copy of an
  // attached table has. Requires Can(kAttachTable).
  virtual void AttachTable(TableSchema schema, const std::string& foreign_name,
                           Callback<TableSchema> done);
  // Removes name, definition and indexes from an attached table; its rows stay as they are.
  virtual void DetachTable(const std::string& table, DoneCallback done);
  // The same for a table that is identified by the cluster's name, and may have no name here.
  virtual void DetachForeignTable(const std::string& foreign_name, DoneCallback done);
  // Lists the indexed tables that have no name here, or share one: for each a sentence that says
  // what is wrong and what to do. Empty for clusters that cannot attach tables.
  virtual void ListUnnamedTables(Callback<std::vector<std::string>> done);
  virtual void AddColumn(const std::string& table, Column column, Callback<TableSchema> done) = 0;
  // Drops a computed column. Programs that have the table open can use it until they read the
  // schema again. kFailedPrecondition for a column that is not computed or that an index uses.
  virtual void DropColumn(const std::string& table, const std::string& column,
                          Callback<TableSchema> done) = 0;
  // Online. Done when puts maintain the index; regions complete it in the background, and until one
  // has, a search by the index scans that region.
  virtual void CreateIndex(const std::string& table, IndexSpec index,
                           Callback<TableSchema> done) = 0;
  virtual void DropIndex(const std::string& table, const std::string& index,
                         Callback<TableSchema> done) = 0;
  virtual void GetIndexProgress(const std::string& table, const std::string& index,
                                Callback<IndexProgress> done) = 0;

  // Splits the region at `key`, or near its middle when empty.
  virtual void SplitRegion(RegionId region, std::string key, DoneCallback done) = 0;
  // The region and its right neighbour become one.
  virtual void MergeRegion(RegionId region, DoneCallback done) = 0;
  virtual void MoveRegion(RegionId region, const std::string& server, DoneCallback done) = 0;

  virtual void KillServer(const std::string& server, DoneCallback done) = 0;
  virtual void PauseServer(const std::string& server, DoneCallback done) = 0;
  // A paused server goes on; a killed one is started again, empty.
  virtual void ResumeServer(const std::string& server, DoneCallback done) = 0;

  virtual void GetStatus(Callback<ClusterStatus> done) = 0;
  // Whether the place that the tables are in is set up as it should be. For those that
  // Can(kExamine).
  virtual void Examine(Callback<std::vector<Finding>> done);

  // Starts a job and returns its number. If the work cannot be started, the call fails and there is
  // no job. A job runs on even if no client calls GetJob, and ends with the process that runs it.
  virtual void StartJob(JobSpec spec, Callback<uint64_t> done) = 0;
  // kNotFound for a job that never existed, or that ended long ago.
  virtual void GetJob(uint64_t job, Callback<JobInfo> done) = 0;
};

}  // namespace tamis
