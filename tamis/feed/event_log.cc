#include "tamis/feed/event_log.h"

#include <new>
#include <utility>

namespace tamis {

uint64_t EventLog::Append(pb::Event event) {
  // If memory runs out, nothing must be appended: the numbers of events follow from their count.
  event.set_sequence(last_ + 1);
  const size_t bytes = event.ByteSizeLong();
  events_.push_back({std::move(event), bytes});
  try {
    Remember(events_.back().event);
  } catch (const std::bad_alloc&) {
    events_.pop_back();
    throw;
  }
  bytes_ += bytes;
  return ++last_;
}

void EventLog::ForgetUpTo(uint64_t number) {
  while (!events_.empty() &&
         (events_.front().event.sequence() <= number || events_.size() > options_.max_events ||
          bytes_ > options_.max_event_bytes)) {
    bytes_ -= events_.front().bytes;
    events_.pop_front();
  }
}

uint64_t EventLog::SchemaVersion(uint32_t table_id) const {
  const auto told = tables_.find(table_id);
  return told == tables_.end() ? 0 : told->second.schema_version();
}

// Keeps regions_ and tables_ the state that all events together describe. Changes nothing when it
// throws std::bad_alloc.
void EventLog::Remember(const pb::Event& event) {
  if (event.kind() == pb::Event::TABLE_CHANGED) {
    if (event.schema_version() == 0) {
      tables_.erase(event.table_id());
    } else {
      tables_.insert_or_assign(event.table_id(), pb::Event(event));
    }
    return;
  }
  if (event.kind() == pb::Event::REGION_OPENED) {
    regions_.insert_or_assign(event.region_id(), OpenRegion{.opened = event, .complete = {}});
    return;
  }
  auto region = regions_.find(event.region_id());
  if (region == regions_.end() || region->second.opened.epoch() != event.epoch()) return;
  auto& complete = region->second.complete;
  // The copy of the event's generation; nullptr: another one was published.
  const auto known = [&]() -> pb::Event* {
    const auto index = complete.find(event.index_id());
    const bool same = index != complete.end() && index->second.generation() == event.generation();
    return same ? &index->second : nullptr;
  };
  switch (event.kind()) {
    case pb::Event::REGION_CLOSED:
      regions_.erase(region);
      break;
    case pb::Event::INDEX_COMPLETE:
      complete.insert_or_assign(event.index_id(), pb::Event(event));
      break;
    case pb::Event::INDEX_DROPPED:
      complete.erase(event.index_id());
      break;
    case pb::Event::LAYER_ADDED:
      if (pb::Event* const copy = known()) copy->set_layers(event.layers());
      break;
    case pb::Event::RANGE_WIDENED:
      if (pb::Event* const copy = known()) {
        pb::Event widened = *copy;
        widened.set_min(event.min());
        widened.set_max(event.max());
        widened.set_has_range(event.has_range());
        *copy = std::move(widened);
      }
      break;
    default:
      break;
  }
}

uint64_t EventLog::EndOfReply(uint64_t number) const {
  const size_t first = number - before();
  size_t bytes = 0;
  size_t end = first;
  while (end < events_.size() &&
         (end == first || bytes + events_[end].bytes <= options_.reply_bytes)) {
    bytes += events_[end++].bytes;
  }
  return before() + end;
}

void EventLog::AddEvents(uint64_t number, pb::PollReply* reply) const {
  const uint64_t end = EndOfReply(number);
  for (size_t i = number - before(); i < end - before(); ++i) {
    *reply->add_events() = events_[i].event;
  }
  reply->set_from(number);
  reply->set_to(end);
}

void EventLog::AddState(pb::PollReply* reply) const {
  reply->set_from(last_);
  reply->set_to(last_);
  for (const auto& [id, changed] : tables_) *reply->add_events() = changed;
  for (const auto& [id, region] : regions_) {
    *reply->add_events() = region.opened;
    for (const auto& [index_id, complete] : region.complete) *reply->add_events() = complete;
  }
}

}  // namespace tamis
