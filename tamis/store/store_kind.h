// StoreKind: a kind of store: how its names look, and how one is opened. A new kind is a file that
// defines one of these, and its line in kStoreKinds.
//
// Threads: functions may be called concurrently.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "tamis/base/executor.h"
#include "tamis/cluster/cluster.h"
#include "tamis/cluster/cluster_admin.h"
#include "tamis/query/coordinator.h"
#include "tamis/store/opened_store.h"

namespace tamis {

// An open place. Destroyed once the executor has stopped.
struct OpenedKind {
  std::string name;  // for people
  std::shared_ptr<Cluster> cluster;
  std::shared_ptr<ClusterAdmin> admin;                 // destroyed before the cluster
  std::unique_ptr<Coordinator> coordinator = nullptr;  // null: one in this process, of the cluster
};

struct StoreKind {
  std::string_view prefix;  // the beginning of its names, without the colon
  std::string_view form;    // the form of its names, for messages
  // Fills `opened`, also in part before a failure: tasks of the executor may use that part until
  // the executor has stopped.
  Status (*open)(const std::string& name, const OpenedStore::Options& options, Executor* executor,
                 OpenedKind* opened);
  // Equal for names of the same place that is opened in the same way.
  Result<std::string> (*identity)(const std::string& name, const OpenedStore::Options& options);
};

extern const StoreKind kRocksKind;  // also of names without a kind
extern const StoreKind kHBaseKind;
extern const StoreKind kHBaseByZooKeeperKind;
extern const StoreKind kRemoteKind;
extern const StoreKind kSecureRemoteKind;

inline constexpr std::array<const StoreKind*, 5> kStoreKinds = {
    &kRocksKind, &kHBaseKind, &kHBaseByZooKeeperKind, &kRemoteKind, &kSecureRemoteKind};

// The forms of the names of all kinds, separated by `between`, for messages and help.
std::string StoreForms(std::string_view between);
// The kind of a name. kInvalidArgument for a prefix that no kind has.
Result<const StoreKind*> KindOfStore(const std::string& name);
// "hbase" for "hbase://host"; empty for a path.
std::string_view PrefixOfStore(std::string_view name);

}  // namespace tamis
