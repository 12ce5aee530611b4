package tamis.feed;

import java.util.ArrayDeque;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import tamis.base.Fault;
import tamis.pb.Cluster;
import tamis.pb.Cluster.Event;

/**
 * The events of a feed: numbered in one sequence without a gap, the last ones kept for coordinators that lack them, and
 * the state that all of them together describe, for coordinators that lack more. Like tamis::EventLog.
 *
 * The state is the open regions and, for each complete index, its layers and range; and the schema versions of tables.
 * An event of an earlier opening of a region says nothing about it, as at a coordinator.
 *
 * Threads: REQUIRES the feed's lock.
 */
final class EventLog {
  private static final class KeptEvent {
    final Event event;
    final int tableId; // 0: the event names a region that was not open
    final int bytes;

    KeptEvent(Event event, int tableId) {
      this.event = event;
      this.tableId = tableId;
      bytes = event.getSerializedSize();
    }
  }

  /** An open region and, for each complete index, its layers and range as of the last event. */
  private static final class OpenRegion {
    final Event opened;
    final Map<Integer, Event> complete = new TreeMap<>();

    OpenRegion(Event opened) {
      this.opened = opened;
    }

    /** An event of this opening. */
    void remember(Event event) {
      switch (event.getKind()) {
        case INDEX_COMPLETE:
          complete.put(event.getIndexId(), event);
          break;
        case INDEX_DROPPED:
          complete.remove(event.getIndexId());
          break;
        case LAYER_ADDED:
          change(event, known -> known.toBuilder().setLayers(event.getLayers()).build());
          break;
        case RANGE_WIDENED:
          change(event, known -> withRangeOf(event, known));
          break;
        default:
          break;
      }
    }

    /** Changes the copy of the event's generation; another one was published if there is none. */
    private void change(Event event, UnaryOperator<Event> changed) {
      complete.computeIfPresent(event.getIndexId(),
          (index, known) -> known.getGeneration() == event.getGeneration() ? changed.apply(known) : known);
    }

    private static Event withRangeOf(Event widened, Event known) {
      return known.toBuilder()
          .setMin(widened.getMin())
          .setMax(widened.getMax())
          .setHasRange(widened.getHasRange())
          .build();
    }
  }

  private final FeedOptions options;
  private long last; // number of the last event
  private final ArrayDeque<KeptEvent> events = new ArrayDeque<>(); // the kept events; the newest has number `last`
  private long eventBytes;
  private final Map<Long, OpenRegion> regions = new TreeMap<>();
  private final Map<Integer, Event> tables = new TreeMap<>();

  EventLog(FeedOptions options) {
    this.options = options;
  }

  /** Number of the last event. */
  long last() {
    return last;
  }

  /** Bytes of the events that are kept. */
  long bytes() {
    return eventBytes;
  }

  /** The number of events that are kept. */
  int size() {
    return events.size();
  }

  /**
   * Appends an event, sets its number, and returns the number. If memory runs out, nothing is appended: the numbers of
   * events follow from their count, and the caller of an append that throws assumes that no coordinator receives the
   * event.
   */
  long append(Event.Builder builder) {
    Fault.allocate();
    Event event = builder.setSequence(last + 1).build();
    KeptEvent kept = new KeptEvent(event, tableOf(event));
    events.add(kept);
    boolean remembered = false;
    try {
      Fault.allocate();
      remember(event);
      remembered = true;
    } finally {
      if (!remembered) events.removeLast();
    }
    eventBytes += kept.bytes;
    return ++last;
  }

  /** Drops the events up to this number, and the oldest ones beyond the bounds. */
  void forgetUpTo(long number) {
    while (!events.isEmpty()
        && (events.peek().event.getSequence() <= number || events.size() > options.maxEvents
            || eventBytes > options.maxEventBytes)) {
      eventBytes -= events.poll().bytes;
    }
  }

  private int tableOf(Event event) {
    if (event.getKind() == Event.Kind.TABLE_CHANGED || event.getKind() == Event.Kind.REGION_OPENED) {
      return event.getTableId();
    }
    OpenRegion region = regions.get(event.getRegionId());
    return region == null ? 0 : region.opened.getTableId();
  }

  private void remember(Event event) {
    switch (event.getKind()) {
      case TABLE_CHANGED:
        if (event.getSchemaVersion() == 0) {
          tables.remove(event.getTableId());
        } else {
          tables.put(event.getTableId(), event);
        }
        return;
      case REGION_OPENED:
        regions.put(event.getRegionId(), new OpenRegion(event));
        return;
      default:
        break;
    }
    OpenRegion region = regions.get(event.getRegionId());
    if (region == null || region.opened.getEpoch() != event.getEpoch()) return;
    if (event.getKind() == Event.Kind.REGION_CLOSED) {
      regions.remove(event.getRegionId());
    } else {
      region.remember(event);
    }
  }

  // ---- State

  /** The schema version of a table by the last event of it; 0: there is none, or the table was dropped. */
  long schemaVersion(int tableId) {
    Event told = tables.get(tableId);
    return told == null ? 0 : told.getSchemaVersion();
  }

  /** The event of some table, to be appended again; null: there is no table. */
  Event.Builder someTable() {
    return tables.isEmpty() ? null : tables.values().iterator().next().toBuilder();
  }

  /** Whether the region is open and of one of these tables; null: of any, and also if it is not open. */
  boolean isOf(Set<Integer> tables, long regionId) {
    OpenRegion region = regions.get(regionId);
    return tables == null || (region != null && tables.contains(region.opened.getTableId()));
  }

  Set<Long> openRegions() {
    return new HashSet<>(regions.keySet());
  }

  // ---- Replies

  /** Whether all events behind this number are kept. */
  boolean keepsBehind(long number) {
    return number >= before() && number <= last;
  }

  private long before() {
    return last - events.size();
  }

  /** Number of the last event that fits in a reply with those after `number`: at least one, if there is one. */
  long endOfReply(long number) {
    long next = before();
    long end = number;
    long bytes = 0;
    for (KeptEvent kept : events) {
      if (++next <= number) continue;
      if (end > number && bytes + kept.bytes > options.replyBytes) break;
      bytes += kept.bytes;
      end = next;
    }
    return end;
  }

  /** Adds the events behind `number` that fit, those of the tables; null: of all. REQUIRES: keepsBehind(number). */
  void addEvents(long number, Set<Integer> tables, Cluster.PollReply.Builder reply) {
    long end = endOfReply(number);
    for (KeptEvent kept : events) {
      long sequence = kept.event.getSequence();
      boolean known = tables == null || tables.contains(kept.tableId);
      if (known && sequence > number && sequence <= end) reply.addEvents(kept.event);
    }
    reply.setFrom(number).setTo(end);
  }

  /** Adds the whole state of the tables; null: of all. It is small, and never cut. */
  void addState(Set<Integer> tables, Cluster.PollReply.Builder reply) {
    reply.setFrom(last).setTo(last);
    this.tables.forEach((id, event) -> {
      if (tables == null || tables.contains(id)) reply.addEvents(event);
    });
    for (OpenRegion region : regions.values()) {
      if (tables != null && !tables.contains(region.opened.getTableId())) continue;
      reply.addEvents(region.opened);
      reply.addAllEvents(region.complete.values());
    }
  }
}
