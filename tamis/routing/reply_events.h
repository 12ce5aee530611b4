// ReplyEvents: the events of one reply of a server, applied to the coordinator's copy in the order
// of their numbers.
//
// An event that follows from a copy changes it: regions and indexes (FeedCopy), and bits, layers
// and ranges of values here. The reply may also bring bits as of an earlier number than its last
// event; then the later events are applied to them once more (Replay).
//
//   Threads   exclusive access to the copy. A function releases the lock, which guards the copy,
//   and
//             locks it again on the way
#pragma once

#include <cstdint>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/routing/feed_copy.h"
#include "tamis/routing/index_copies.h"

namespace tamis {

class ReplyEvents {
 public:
  // All of them outlive it.
  ReplyEvents(FeedCopy* copy, RoutedServer* server, const pb::PollReply& reply,
              FeedCopy::Lock* lock)
      : copy_(*copy), server_(*server), reply_(reply), lock_(lock) {}

  // Applies all events that are newer than the copy, and returns their number.
  uint64_t Apply();
  // Applies the events that are newer than the projection to its bits. False: the copy could not
  // hold the changes, and the index was dropped.
  bool Replay(const pb::Projection& projection, IndexCopies* copies, IndexCopies::Slot slot);
  // The same of the bits of cells; false: there are no such cells.
  bool ReplayCells(const pb::Projection& part, IndexCopies* copies, IndexCopies::Slot slot);

 private:
  void ApplyEvent(const pb::Event& event);
  // Applies an event that changes bits, layers or the range of a copy. False when the copy cannot
  // hold the change: then it must not exclude any more.
  [[nodiscard]] bool ApplyToCopy(IndexCopies* copies, IndexCopies::Slot slot,
                                 const pb::Event& event);
  void AddLayers(const pb::Event& event, IndexCopies* copies, IndexCopies::Slot slot);
  [[nodiscard]] static bool FlipBits(IndexCopies* copies, IndexCopies::Slot slot,
                                     const pb::Event& event);
  // False when there are no such cells.
  [[nodiscard]] static bool FlipCells(IndexCopies* copies, IndexCopies::Slot slot,
                                      const pb::Event& event);

  FeedCopy& copy_;
  RoutedServer& server_;
  const pb::PollReply& reply_;
  FeedCopy::Lock* const lock_;
};

}  // namespace tamis
