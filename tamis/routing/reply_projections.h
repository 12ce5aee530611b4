// ReplyProjections: the bits of filters and cells that one reply of a server brings, loaded into
// the matrices of the coordinator's copy.
//
// Bits are taken when they belong to the present copy of their region and index, and the events of
// the reply lead from their number to the number of the copy. A copy is used by searches after all
// of its bits have arrived, found room and are loaded, and the events after them are applied.
//
//   Threads   exclusive access to the copy. Load releases the lock, which guards the copy, and
//   locks
//             it again on the way
#pragma once

#include <memory>
#include <optional>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/routing/feed_copy.h"
#include "tamis/routing/index_copies.h"
#include "tamis/routing/projection_parts.h"
#include "tamis/routing/reply_events.h"

namespace tamis {

class ReplyProjections {
 public:
  // All of them outlive it; the events are those of the same reply.
  ReplyProjections(FeedCopy* copy, RoutedServer* server, const pb::PollReply& reply,
                   ReplyEvents* events, FeedCopy::Lock* lock)
      : copy_(*copy), server_(*server), reply_(reply), events_(*events), lock_(lock) {}

  // REQUIRES: all events of the reply are applied, so that the copy is as of reply.to.
  void Load();

 private:
  // The bits of one copy that has columns, which are being loaded.
  struct Loading {
    const pb::Projection* projection;
    IndexCopies::Slot slot;
    IndexCopies* copies;
    std::unique_ptr<ProjectionParts> parts;  // where the bits are, when they came in parts
  };

  // nullptr: the server does not have the region as of that epoch.
  const RoutedServer::Region* FindRegion(const pb::Projection& projection) const;
  std::optional<Loading> Begin(const pb::Projection& projection);
  void MakeColumns(IndexCopies* copies, IndexCopies::Slot slot, uint32_t layers);
  void End(const Loading& loading);
  void TakeCells(const pb::Projection& part);
  void LoadCells(const RoutedServer::Region& region, CellCopies* cells);

  FeedCopy& copy_;
  RoutedServer& server_;
  const pb::PollReply& reply_;
  ReplyEvents& events_;
  FeedCopy::Lock* const lock_;
};

}  // namespace tamis
