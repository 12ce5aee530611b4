#include "tamis/routing/reply_events.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

#include "tamis/routing/load_columns.h"

namespace tamis {
namespace {

constexpr size_t kFlipsPerEvent = 16;  // an event costs as much as this many flips

}  // namespace

uint64_t ReplyEvents::Apply() {
  uint64_t applied = 0;
  size_t done = 0;  // since searches had their turn
  for (const pb::Event& event : reply_.events()) {
    const bool is_new = event.sequence() > server_.applied || copy_.faults().ignore_sequence;
    if (!reply_.full() && !is_new) continue;
    if (done >= FeedCopy::kEventsAtOnce) {
      done = 0;
      copy_.Reconcile();
      FeedCopy::LetOthers(lock_);
    }
    ApplyEvent(event);
    ++applied;
    done += 1 + static_cast<size_t>(event.flips_size()) / kFlipsPerEvent;
  }
  return applied;
}

void ReplyEvents::ApplyEvent(const pb::Event& event) {
  if (event.kind() == pb::Event::REGION_OPENED) return copy_.OpenRegion(&server_, event);
  auto found = server_.regions.find(event.region_id());
  if (found == server_.regions.end() || found->second.epoch != event.epoch()) return;
  const RoutedServer::Region region = found->second;
  switch (event.kind()) {
    case pb::Event::REGION_CLOSED:
      return copy_.DropRegion(&server_, event.region_id());
    case pb::Event::INDEX_COMPLETE:
      return copy_.CompleteIndex(&server_, event);
    case pb::Event::INDEX_DROPPED:
      return copy_.DropIndex(&server_, event.region_id(), event.index_id());
    default:
      if (IndexCopies* copies = copy_.CopiesOf(region, event.index_id());
          copies != nullptr && !ApplyToCopy(copies, region.slot, event)) {
        copy_.DropIndex(&server_, event.region_id(), event.index_id());
      }
  }
}

bool ReplyEvents::ApplyToCopy(IndexCopies* copies, IndexCopies::Slot slot, const pb::Event& event) {
  if (event.generation() != copies->Find(slot)->generation) return true;
  switch (event.kind()) {
    case pb::Event::LAYER_ADDED:
      if (event.layers() > FeedCopy::kMaxLayers) return false;
      AddLayers(event, copies, slot);
      break;
    case pb::Event::FLIPS:
      return FlipCells(copies, slot, event) && FlipBits(copies, slot, event);
    case pb::Event::RANGE_WIDENED:
      copies->SetRange(slot, event.has_range(), event.min(), event.max());
      break;
    default:
      break;
  }
  return true;
}

// Gives the copy as many columns as the filter has layers. New columns are empty until the events
// after this one.
void ReplyEvents::AddLayers(const pb::Event& event, IndexCopies* copies, IndexCopies::Slot slot) {
  IndexCopies::Copy& copy = *copies->Find(slot);
  copy.layers = std::max(copy.layers, event.layers());
  if (copy.matrix == nullptr) return;
  const size_t lacking = copy.layers - copy.columns.size();
  if (!copy_.budget().MakeRoom(copies, copy.geometry, lacking, lock_)) {
    copies->FreeColumns(slot);
    server_.missing.insert({event.index_id(), event.region_id()});
    return;
  }
  while (copy.columns.size() < copy.layers) {
    const FilterMatrix::Filling zeros(copy.matrix->bits.Allocate(), std::string_view());
    LoadColumns(&copy.matrix->bits, std::span(&zeros, 1), lock_);
    copies->AddLayer(slot, zeros.column);
  }
}

bool ReplyEvents::FlipBits(IndexCopies* copies, IndexCopies::Slot slot, const pb::Event& event) {
  const IndexCopies::Copy& copy = *copies->Find(slot);
  if (copy.matrix == nullptr && !copy.arriving) return true;
  for (const uint64_t flip : event.flips()) {
    const uint64_t layer = flip >> 33;
    const uint64_t position = (flip >> 1) & 0xffffffffu;
    if (copy.arriving) copy.arriving->Flip(layer, position, (flip & 1) != 0);
    if (copy.matrix == nullptr) continue;
    if (layer >= copy.columns.size() || position >= copy.geometry.positions()) return false;
    copies->Set(slot, layer, position, (flip & 1) != 0);
  }
  return true;
}

bool ReplyEvents::FlipCells(IndexCopies* copies, IndexCopies::Slot slot, const pb::Event& event) {
  CellCopies& cells = copies->cells();
  const CellCopies::Copy* copy = cells.Find(slot);
  if (copy == nullptr || copy->generation != event.generation()) return event.cells().empty();
  return std::ranges::all_of(
      event.cells(), [&](uint32_t flip) { return cells.Set(slot, flip / 2, flip % 2 == 1); });
}

bool ReplyEvents::Replay(const pb::Projection& projection, IndexCopies* copies,
                         IndexCopies::Slot slot) {
  if (copy_.faults().parts_without_replay) return true;
  // Events after the projection stand at the end of the reply.
  int next = reply_.events_size();
  while (next > 0 && reply_.events(next - 1).sequence() > projection.as_of()) --next;
  for (; next < reply_.events_size(); ++next) {
    const pb::Event& event = reply_.events(next);
    if (event.region_id() != projection.region_id() || event.epoch() != projection.epoch() ||
        event.index_id() != projection.index_id()) {
      continue;
    }
    if (!ApplyToCopy(copies, slot, event)) {
      copy_.DropIndex(&server_, event.region_id(), event.index_id());
      return false;
    }
  }
  return true;
}

bool ReplyEvents::ReplayCells(const pb::Projection& part, IndexCopies* copies,
                              IndexCopies::Slot slot) {
  if (copy_.faults().parts_without_replay) return true;
  return std::ranges::all_of(reply_.events(), [&](const pb::Event& event) {
    const bool is_later = event.sequence() > part.as_of() && event.kind() == pb::Event::FLIPS &&
                          event.region_id() == part.region_id() && event.epoch() == part.epoch() &&
                          event.index_id() == part.index_id();
    return !is_later || FlipCells(copies, slot, event);
  });
}

}  // namespace tamis
