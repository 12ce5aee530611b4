#include "tamis/cluster/cluster_admin.h"

#include <utility>

namespace tamis {

std::string_view CapabilityName(Capability capability) {
  switch (capability) {
    case Capability::kKillServer:
      return "kill a server";
    case Capability::kPauseServer:
      return "pause a server";
    case Capability::kResumeServer:
      return "start a server again";
    case Capability::kBalance:
      return "balance its regions";
    case Capability::kCompact:
      return "compact its store";
    case Capability::kAttachTable:
      return "attach or detach tables: all of its tables are its own";
    case Capability::kExamine:
      return "be looked over: nothing of it is set up by hand";
  }
  return "do that";
}

Status CannotDo(Capability capability) {
  return FailedPrecondition("this cluster cannot " + std::string(CapabilityName(capability)));
}

std::string IndexFailure::ToString() const {
  std::string text = "region " + region.ToString();
  if (!server.empty()) text += " on server " + server;
  if (attempts == 0) return text + " is not ready: " + reason.message();
  if (given_up) return text + " cannot complete it: " + reason.message();
  return text + " failed to complete it (" + std::to_string(attempts) +
         (attempts == 1 ? " attempt): " : " attempts): ") + reason.message();
}

void IndexProgress::Add(IndexFailure one) {
  const bool first = ++failing == 1;
  if (first || (one.given_up && !failure->given_up)) failure = std::move(one);
}

std::string IndexProgress::ToString() const {
  std::string text = std::to_string(complete) + " of " + std::to_string(regions) + " regions ready";
  if (!failure.has_value()) return text;
  text += "; " + failure->ToString();
  if (failing == 1) return text;
  return text + " (" + std::to_string(failing) + " regions fail)";
}

void ClusterAdmin::AttachTable(TableSchema, const std::string&, Callback<TableSchema> done) {
  done(CannotDo(Capability::kAttachTable));
}

void ClusterAdmin::DetachTable(const std::string&, DoneCallback done) {
  done(CannotDo(Capability::kAttachTable));
}

void ClusterAdmin::DetachForeignTable(const std::string&, DoneCallback done) {
  done(CannotDo(Capability::kAttachTable));
}

void ClusterAdmin::ListUnnamedTables(Callback<std::vector<std::string>> done) {
  done(std::vector<std::string>());
}

void ClusterAdmin::Examine(Callback<std::vector<Finding>> done) {
  done(CannotDo(Capability::kExamine));
}

std::string JobSpec::ToString() const {
  switch (kind) {
    case Kind::kCheck:
      return "check table \"" + table + "\"";
    case Kind::kRebuildIndex:
      return index.empty() ? "rebuild indexes of table \"" + table + "\""
                           : "rebuild index \"" + index + "\" of table \"" + table + "\"";
    case Kind::kFitCells:
      return "fit the cells of index \"" + index + "\" of table \"" + table + "\"";
    case Kind::kBalance:
      return "balance the regions";
    case Kind::kCompact:
      return "compact the store";
  }
  return "do a job";
}

}  // namespace tamis
