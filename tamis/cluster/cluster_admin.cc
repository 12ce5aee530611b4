#include "tamis/cluster/cluster_admin.h"

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
  }
  return "do that";
}

Status CannotDo(Capability capability) {
  return FailedPrecondition("this cluster cannot " + std::string(CapabilityName(capability)));
}

std::string JobSpec::ToString() const {
  switch (kind) {
    case Kind::kCheck:
      return "check table \"" + table + "\"";
    case Kind::kRebuildIndex:
      return index.empty() ? "rebuild indexes of table \"" + table + "\""
                           : "rebuild index \"" + index + "\" of table \"" + table + "\"";
    case Kind::kBalance:
      return "balance the regions";
    case Kind::kCompact:
      return "compact the store";
  }
  return "do a job";
}

}  // namespace tamis
