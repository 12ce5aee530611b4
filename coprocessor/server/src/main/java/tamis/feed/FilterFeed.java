package tamis.feed;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.pb.Cluster;
import tamis.pb.Cluster.Event;

/**
 * The region server's end of routing: it sends changes of the filters to coordinators as numbered events, grants the
 * coordinators leases, and decides when a put may be acknowledged. tamis/feed/filter_feed.h describes the protocol.
 * Here a poll or a put that waits blocks its thread, since an HBase handler answers a call by returning.
 *
 * Polls wait for new events (condition `news`). Puts wait until coordinators have applied events (WaitingPuts).
 * Appending an event wakes polls, never puts. A poll wakes those puts whose events every coordinator has now applied.
 *
 * Threads: safe. Lock order: an IndexFilter before the feed.
 */
public final class FilterFeed {
  /** The source of the filter bits that polls request. */
  public interface Projections {
    /** Returns the column's present bits, at most maxBytes of them; null when the region does not have the bits. */
    Cluster.Projection project(Cluster.ColumnId column, long maxBytes);
  }

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

  /** The user of a poll, and the tables whose events it may receive; null: all tables. */
  public static final class Reader {
    private final String user;
    private final Set<Integer> tables;

    public Reader(String user, Set<Integer> tables) {
      this.user = user;
      this.tables = tables;
    }
  }

  private static final class Coordinator {
    final String user; // a poll of another user would acknowledge events that this coordinator has not applied
    long acked;
    long leaseUntil;
    long heardAt;
    boolean leased;
    // The oldest reply that the coordinator has not applied yet: the number of its last event (0: there is no such
    // reply), and when it was sent.
    long sentTo;
    long sentAt;
    boolean parked;
    long polls; // the number of its polls that were parked; a new one ends the one before it
    Set<Integer> tables; // the tables whose events it receives; null: all tables
    long tablesSince; // the number of the last event when `tables` changed: an older copy is of other tables

    Coordinator(String user) {
      this.user = user;
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

  private final String server;
  private final long startCode;
  private final FeedOptions options;
  private final LongSupplier clock;
  private final Projections projections;

  private long last; // number of the last event
  private long urgentUntil; // number of the last event that parked polls are woken for
  private final ArrayDeque<KeptEvent> events = new ArrayDeque<>(); // the kept events; the newest has number `last`
  private long eventBytes;
  private final Map<Long, OpenRegion> regions = new TreeMap<>();
  private final Map<Integer, Event> tables = new TreeMap<>();
  private final Map<Long, Coordinator> coordinators = new HashMap<>();
  private int parked;
  private long progressAt; // when a put of `puts` was acknowledged last, or the first of those that wait began to
  private final ReentrantLock lock = new ReentrantLock(); // guards all fields above that change
  private final Condition news = lock.newCondition(); // for parked polls
  private final WaitingPuts puts;

  public FilterFeed(String server, long startCode, FeedOptions options, LongSupplier clock, Projections projections) {
    this.server = server;
    this.startCode = startCode;
    this.options = options;
    this.clock = clock;
    this.projections = projections;
    puts = new WaitingPuts(lock, options);
  }

  long startCode() {
    return startCode;
  }

  // ---- Events

  /**
   * Appends an urgent event, sets its number, and returns the number. The event wakes parked polls at once: the reply
   * travels while the put's log is being synced.
   */
  public long append(Event.Builder builder) {
    return append(builder, true);
  }

  /**
   * Appends an event. An event that is not urgent wakes no parked poll, since no put waits for it: the next reply
   * carries it. When the kept events exceed half of a reply's bytes, parked polls are woken all the same.
   */
  public long append(Event.Builder builder, boolean urgent) {
    return locked(() -> appendLocked(builder, urgent));
  }

  private <T> T locked(Supplier<T> work) {
    lock.lock();
    try {
      return work.get();
    } finally {
      lock.unlock();
    }
  }

  private long appendLocked(Event.Builder builder, boolean urgent) {
    // If memory runs out, nothing must be appended: the numbers of events follow from their count, and the caller of an
    // append that throws assumes that no coordinator receives the event.
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
    ++last;
    eventBytes += kept.bytes;
    try {
      Fault.allocate();
      forgetEvents(clock.getAsLong());
    } catch (OutOfMemoryError e) {
      // The next append forgets them.
    }
    // Events that are not urgent must not grow so large that a reply has to be cut.
    if (urgent || eventBytes > options.replyBytes / 2) {
      urgentUntil = last;
      news.signalAll();
    }
    return last;
  }

  /**
   * Appends an event for a changed schema, or for a dropped table (version 0), unless an event of this or a later
   * version was appended before.
   */
  public void tellTable(int tableId, long schemaVersion) {
    lock.lock();
    try {
      Event told = tables.get(tableId);
      long toldVersion = told == null ? 0 : told.getSchemaVersion();
      if (schemaVersion == toldVersion || (schemaVersion != 0 && schemaVersion < toldVersion)) return;
      append(Event.newBuilder().setKind(Event.Kind.TABLE_CHANGED).setTableId(tableId).setSchemaVersion(schemaVersion));
    } finally {
      lock.unlock();
    }
  }

  public long last() {
    return locked(() -> last);
  }

  public long eventBytes() {
    return locked(() -> eventBytes);
  }

  /** Drops the events that every listening coordinator has applied, and the oldest ones beyond the bounds. */
  private void forgetEvents(long now) {
    long applied = last;
    for (Coordinator coordinator : coordinators.values()) {
      boolean listens =
          hasLease(coordinator, now) || coordinator.parked || now - coordinator.heardAt < options.silenceNs;
      if (listens) applied = Math.min(applied, coordinator.acked);
    }
    while (!events.isEmpty()
        && (events.peek().event.getSequence() <= applied || events.size() > options.maxEvents
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
    // An event of an earlier opening says nothing about this one, as at a coordinator.
    if (region == null || region.opened.getEpoch() != event.getEpoch()) return;
    if (event.getKind() == Event.Kind.REGION_CLOSED) {
      regions.remove(event.getRegionId());
    } else {
      region.remember(event);
    }
  }

  // ---- Polls

  /** For a single user, which may read all tables. */
  public Cluster.PollReply poll(Cluster.PollRequest request, LongSupplier verifiedUntil) throws InterruptedException {
    try {
      return poll(request, verifiedUntil, new Reader("", null));
    } catch (StatusException e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * Answers a poll. While there are no new events, the poll is parked: for request.getWaitNs() at most, and only if
   * fewer than options.maxParked polls are parked. When the set of the reader's tables changes, the coordinator
   * receives the whole state, so that it keeps no state of a table whose events it no longer receives. The number of a
   * coordinator belongs to the user of its first poll: the polls of other users with this number are refused.
   */
  public Cluster.PollReply poll(Cluster.PollRequest request, LongSupplier verifiedUntil, Reader reader)
      throws InterruptedException, StatusException {
    Set<Integer> tables = reader.tables;
    boolean crowdedOut = false;
    lock.lock();
    try {
      long now = clock.getAsLong();
      if (hear(request, now, reader) && puts.wakeUpTo(floor(now))) progressAt = now;
      forgetEvents(now);
      // Events that are not urgent are sent with urgent ones: a reply for them alone would make the next put wait for
      // one more poll. They always fit in one reply.
      boolean answerNow = !isServedByEvents(request) || request.getApplied() < urgentUntil
          || request.getWantedCount() > 0 || request.getWaitNs() <= 0;
      if (!answerNow && parked >= options.maxParked) crowdedOut = true;
      if (!answerNow && !crowdedOut) park(request, now);
    } finally {
      lock.unlock();
    }
    // The bits are read before the events: so the events reach the number of each projection, unless more events than
    // fit in the reply came in between.
    List<Cluster.Projection> bits = new ArrayList<>();
    if (request.getWantedCount() > 0 && locked(() -> isServedByEvents(request) && endOfReply(request) == last)) {
      long left = options.projectionBytes;
      for (Cluster.ColumnId column : request.getWantedList()) {
        if (!mayKnow(column.getRegionId(), tables)) continue;
        Cluster.Projection projection = projections.project(column, left);
        if (projection == null) continue;
        bits.add(projection);
        long bytes = projection.getCells().size();
        for (tamis.shaded.protobuf.ByteString layer : projection.getLayersList()) bytes += layer.size();
        if (bytes + 8 > left) break;
        left -= bytes;
      }
    }
    Cluster.PollReply.Builder reply = Cluster.PollReply.newBuilder().setStartCode(startCode).setServer(server);
    if (crowdedOut) reply.setNextPollNs(options.nextPollNs);
    long sureUntil = verifiedUntil.getAsLong();
    lock.lock();
    try {
      fillEvents(request, reply, tables);
      // A reply that was cut grants no lease: puts whose events it lacks may have been acknowledged already.
      if (reply.getTo() == last || Fault.LEASE_FOR_CUT_REPLY.isOn()) grantLease(request, sureUntil, reply);
    } finally {
      lock.unlock();
    }
    for (Cluster.Projection projection : bits) {
      if (projection.getAsOf() <= reply.getTo()) reply.addProjections(projection);
    }
    return reply.build();
  }

  private void park(Cluster.PollRequest request, long now) throws InterruptedException {
    Coordinator coordinator = coordinators.get(request.getCoordinator());
    if (coordinator == null) return;
    long mine = ++coordinator.polls;
    if (coordinator.parked) news.signalAll(); // ends the coordinator's earlier poll
    long until = now + Math.min(request.getWaitNs(), options.maxParkedNs);
    ++parked;
    coordinator.parked = true;
    try {
      while (request.getApplied() >= urgentUntil && coordinator.polls == mine) {
        long left = until - clock.getAsLong();
        if (left <= 0) break;
        news.awaitNanos(Math.min(left, options.lookNs));
      }
    } finally {
      --parked;
      if (coordinator.polls == mine) coordinator.parked = false;
    }
  }

  private boolean mayKnow(long regionId, Set<Integer> tables) {
    return locked(() -> {
      OpenRegion region = regions.get(regionId);
      return tables == null || (region != null && tables.contains(region.opened.getTableId()));
    });
  }

  /** Notes what the poll says. True when it acknowledges events that its coordinator had not acknowledged before. */
  private boolean hear(Cluster.PollRequest request, long now, Reader reader) throws StatusException {
    Set<Integer> tables = reader.tables;
    Coordinator coordinator = coordinators.get(request.getCoordinator());
    if (coordinator != null && !coordinator.user.equals(reader.user) && !Fault.COORDINATOR_OF_ANYBODY.isOn()) {
      throw new StatusException(Cluster.Error.Code.FAILED_PRECONDITION,
          "the number of this coordinator belongs to another user: poll with a number of your own");
    }
    if (coordinator == null) {
      if (coordinators.size() >= options.maxListeners) {
        for (Iterator<Coordinator> it = coordinators.values().iterator(); it.hasNext();) {
          Coordinator other = it.next();
          if (!hasLease(other, now) && !other.parked && now - other.heardAt >= options.leaseNs) it.remove();
        }
        if (coordinators.size() >= options.maxListeners) return false;
      }
      coordinator = new Coordinator(reader.user);
      coordinators.put(request.getCoordinator(), coordinator);
    }
    if (!java.util.Objects.equals(coordinator.tables, tables)) {
      // Appends a known event again, so that this change gets a number of its own.
      if (!this.tables.isEmpty()) append(this.tables.values().iterator().next().toBuilder());
      coordinator.tablesSince = last;
      coordinator.tables = tables;
    }
    coordinator.heardAt = now;
    if (request.getStartCode() != startCode) return false;
    long before = coordinator.acked;
    coordinator.acked = Math.max(coordinator.acked, Math.min(request.getApplied(), last));
    if (coordinator.acked >= coordinator.sentTo) coordinator.sentTo = 0;
    return coordinator.acked > before;
  }

  private long before() {
    return last - events.size();
  }

  private boolean isServedByEvents(Cluster.PollRequest request) {
    Coordinator coordinator = coordinators.get(request.getCoordinator());
    long since = coordinator == null ? 0 : coordinator.tablesSince;
    return request.getStartCode() == startCode && request.getApplied() >= Math.max(before(), since)
        && request.getApplied() <= last;
  }

  /** Number of the last event that fits in the reply. */
  private long endOfReply(Cluster.PollRequest request) {
    long number = before();
    long end = request.getApplied();
    long bytes = 0;
    for (KeptEvent kept : events) {
      if (++number <= request.getApplied()) continue;
      if (end > request.getApplied() && bytes + kept.bytes > options.replyBytes) break;
      bytes += kept.bytes;
      end = number;
    }
    return end;
  }

  private void fillEvents(Cluster.PollRequest request, Cluster.PollReply.Builder reply, Set<Integer> tables) {
    reply.setFull(!isServedByEvents(request));
    if (!reply.getFull()) {
      long end = endOfReply(request);
      for (KeptEvent kept : events) {
        long number = kept.event.getSequence();
        boolean known = tables == null || tables.contains(kept.tableId);
        if (known && number > request.getApplied() && number <= end) reply.addEvents(kept.event);
      }
      reply.setFrom(request.getApplied()).setTo(end);
      return;
    }
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

  // ---- Leases

  private static boolean hasLease(Coordinator coordinator, long now) {
    return coordinator.leased && coordinator.leaseUntil - now > 0;
  }

  private int leases(long now) {
    int leases = 0;
    for (Coordinator coordinator : coordinators.values()) leases += hasLease(coordinator, now) ? 1 : 0;
    return leases;
  }

  private void grantLease(Cluster.PollRequest request, long sureUntil, Cluster.PollReply.Builder reply) {
    long now = clock.getAsLong();
    Coordinator coordinator = coordinators.get(request.getCoordinator());
    if (coordinator == null) return;
    int leased = leases(now);
    if (!hasLease(coordinator, now) && leased >= options.maxCoordinators) return;
    if (coordinator.sentTo != 0 && now - coordinator.sentAt > options.leaseNs) return; // lags
    if (coordinator.sentTo == 0 && last > coordinator.acked) {
      coordinator.sentTo = last;
      coordinator.sentAt = now;
    }
    long lease = Math.min(options.leaseNs, sureUntil - now);
    if (lease <= 0) return;
    long until = now + lease + options.leaseMarginNs;
    if (!coordinator.leased || until - coordinator.leaseUntil > 0) coordinator.leaseUntil = until;
    coordinator.leased = true;
    reply.setLeaseNs(lease);
  }

  private long floor(long now) {
    long floor = last;
    for (Coordinator coordinator : coordinators.values()) {
      if (hasLease(coordinator, now)) floor = Math.min(floor, coordinator.acked);
    }
    return floor;
  }

  /** The number up to which every coordinator with a live lease has applied the events. */
  public long acknowledgedFloor() {
    return locked(() -> floor(clock.getAsLong()));
  }

  /** True while so many puts wait that a further one has to queue. */
  public boolean isCrowded() {
    return locked(() -> puts.waiting() >= options.maxWaiting);
  }

  /** True while a put that has to queue would be refused: a coordinator is stuck. */
  public boolean isStuck() {
    return locked(() -> {
      if (puts.waiting() < options.maxWaiting || Fault.QUEUED_FOR_THE_STUCK.isOn()) return false;
      return clock.getAsLong() - progressAt >= options.patienceNs;
    });
  }

  /**
   * Queues a put, which is not written yet, until fewer than options.maxWaiting wait, or until coordinators have
   * applied the event that the put would wait for (Long.MAX_VALUE: it is not known), or until others wait for what the
   * put holds (`hurry`; the caller that makes it true calls `hurryQueued`). Returns false, for the put to be refused,
   * if a coordinator is stuck: acknowledgements take milliseconds otherwise. So more than options.maxWaiting handlers
   * are held for options.patienceNs at the most without any put being acknowledged.
   */
  public boolean awaitRoom(long sequence, BooleanSupplier hurry) throws InterruptedException {
    lock.lock();
    WaitingPuts.Put put = null;
    boolean room = false;
    try {
      long end = clock.getAsLong() + options.maxQueuedNs;
      while (true) {
        long now = clock.getAsLong();
        boolean acknowledged = sequence <= floor(now);
        room = !acknowledged && puts.waiting() < options.maxWaiting; // else it will not wait there
        if (room || acknowledged || hurry.getAsBoolean()) return true;
        long left = end - now;
        if (!Fault.QUEUED_FOR_THE_STUCK.isOn()) left = Math.min(left, progressAt + options.patienceNs - now);
        if (left <= 0) return false;
        if (put == null) put = puts.beginQueued(sequence);
        puts.sleepQueued(put, left);
      }
    } finally {
      if (put != null) puts.endQueued(put, room);
      lock.unlock();
    }
  }

  /** Lets the puts that queue look whether they are to hurry. */
  public void hurryQueued() {
    locked(() -> {
      puts.wakeAllQueued();
      return null;
    });
  }

  /** Returns true once every coordinator with a live lease has applied the event, or false at the deadline. */
  public boolean waitAcknowledged(long sequence, long deadline) throws InterruptedException {
    lock.lock();
    WaitingPuts.Put put = null;
    try {
      while (true) {
        long now = clock.getAsLong();
        if (sequence <= floor(now) || Fault.NO_WAIT.isOn()) {
          if (put != null) {
            progressAt = now;
          } else {
            puts.offerPlace(); // which it may have been given, and does not need
          }
          return true;
        }
        if (now - deadline >= 0) return false;
        if (puts.waiting() == 0) progressAt = now;
        if (put == null) put = puts.begin(sequence);
        puts.sleep(put, nextLeaseEnd(now, deadline) - now);
      }
    } finally {
      if (put != null) puts.end(put);
      lock.unlock();
    }
  }

  /** When the first live lease ends; `otherwise`: none does earlier. */
  private long nextLeaseEnd(long now, long otherwise) {
    long next = otherwise;
    for (Coordinator coordinator : coordinators.values()) {
      if (hasLease(coordinator, now) && coordinator.leaseUntil - next < 0) next = coordinator.leaseUntil;
    }
    return next;
  }

  /**
   * Adds the present state to the status. A caller that knows a coordinator's number can poll in its name, and
   * acknowledge events that the coordinator does not know. So `withNumbers` may be set only where every user has all
   * rights.
   */
  public void describe(Cluster.StatusReply.Builder status, boolean withNumbers) {
    lock.lock();
    try {
      describeLocked(status, withNumbers, clock.getAsLong());
    } finally {
      lock.unlock();
    }
  }

  private void describeLocked(Cluster.StatusReply.Builder status, boolean withNumbers, long now) {
    forgetEvents(now);
    status.setStartCode(startCode).setServer(server).setFeedEvents(events.size()).setFeedBytes(eventBytes);
    coordinators.forEach((number, coordinator) -> {
      boolean silent = !hasLease(coordinator, now) && now - coordinator.heardAt >= options.silenceNs;
      if (silent) return;
      status.addCoordinators(Cluster.CoordinatorStatus.newBuilder()
                                 .setCoordinator(withNumbers ? number : 0)
                                 .setEventsBehind(last - coordinator.acked)
                                 .setLeaseLeftNs(hasLease(coordinator, now) ? coordinator.leaseUntil - now : 0));
    });
  }

  /** The coordinators with a live lease. */
  public int leases() {
    return locked(() -> leases(clock.getAsLong()));
  }

  public int waiting() {
    return locked(puts::waiting);
  }

  /** For tests and metrics. */
  public Set<Long> openRegions() {
    return locked(() -> new HashSet<>(regions.keySet()));
  }
}
