// MutateOperation: the mutations of one request for one region, from the gate to the
// acknowledgement.
//
//   gate -> row locks -> read old rows -> count new entries (flips are queued) -> commit rows and
//   entries in one batch under the fence -> uncount old entries -> locks and gate free -> wait
//   until coordinators have applied what the rows need -> answer
//
// Each arrow is a step of the server's executor, so that a simulation runs other things in between.
// In the locked part only memory and the store are touched; the wait holds no lock and no thread.
//
// A step that throws (std::bad_alloc) ends the operation alone: locks and gate are freed without
// taking memory, and the answer says that nothing was done, or, from the commit on, that the write
// may have been carried out. Values that were counted for it stay counted. An answer for which
// there is no memory is left without results, which says that it may have been carried out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/rocks/index_change.h"
#include "tamis/rocks/region.h"
#include "tamis/rocks/row_change.h"
#include "tamis/rocks/server_context.h"
#include "tamis/table/row.h"

namespace tamis {

class MutateOperation : public std::enable_shared_from_this<MutateOperation> {
 public:
  using Done = std::function<void(pb::RegionMutateResult)>;

  MutateOperation(std::shared_ptr<const ServerContext> context, std::shared_ptr<Region> region,
                  pb::RegionMutations mutations, uint64_t schema_version, Time deadline, Done done);

  void Start() noexcept { Run(&MutateOperation::Begin); }

 private:
  using StepFunction = void (MutateOperation::*)();
  void Next(StepFunction step);
  void Run(StepFunction step) noexcept;
  void Fail(Status status) noexcept;
  void Finish(Status status) noexcept;
  Status StatusOfStep() const noexcept;  // REQUIRES: called from a catch clause

  void Begin();
  void Enter();
  void Lock();
  void Locked();
  void Read();
  // The values of the keys, as they stand in the store.
  std::vector<rocksdb::Status> ReadRows(std::vector<std::string>* values) const;
  void Count();
  void Commit();
  void Uncount();
  void Acknowledge();

  void Release() noexcept;
  RowChange& ChangeOf(const std::string& key);

  const std::shared_ptr<const ServerContext> context_;
  const std::shared_ptr<Region> region_;
  const pb::RegionMutations mutations_;
  const uint64_t schema_version_;
  uint64_t other_schema_version_ = 0;  // the region's; set if all is refused for that reason
  const Time deadline_;
  const Done done_;

  SchemaPtr schema_;
  std::shared_ptr<const std::vector<std::string>> keys_;  // sorted
  bool locked_ = false;
  bool inside_ = false;
  bool may_stand_ = false;          // the batch was given to the store: it may be committed
  std::vector<RowChange> changes_;  // in the order of keys_
  std::vector<Status> results_;
  std::vector<IndexChange> index_changes_;
  uint64_t own_events_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace tamis
