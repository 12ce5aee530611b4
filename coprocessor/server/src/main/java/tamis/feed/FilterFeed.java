package tamis.feed;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.pb.Cluster;
import tamis.pb.Cluster.Event;

/**
 * The region server's end of routing: it sends changes of the filters to coordinators as numbered events, grants the
 * coordinators leases, and decides when a put may be acknowledged. tamis/feed/filter_feed.h describes the protocol.
 * Here a poll or a put that waits blocks its thread, since an HBase handler answers a call by returning.
 *
 * The events are an EventLog, the coordinators and their leases FeedCoordinators, the puts that are held WaitingPuts.
 * Polls wait for new events (condition `news`). Puts wait until coordinators have applied events. Appending an event
 * wakes polls, never puts. A poll wakes those puts whose events every coordinator has now applied.
 *
 * Threads: safe. Lock order: an IndexFilter before the feed.
 */
public final class FilterFeed {
  /** The source of the filter bits that polls request. */
  public interface Projections {
    /** Returns the column's present bits, at most maxBytes of them; null when the region does not have the bits. */
    Cluster.Projection project(Cluster.ColumnId column, long maxBytes);
  }

  /** The user of a poll and its host, and the tables whose events it may receive; null: all tables. */
  public static final class Reader {
    private final String user;
    private final String host;
    private final Set<Integer> tables;

    public Reader(String user, String host, Set<Integer> tables) {
      this.user = user;
      this.host = host;
      this.tables = tables;
    }
  }

  private final String server;
  private final long startCode;
  private final FeedOptions options;
  private final LongSupplier clock;
  private final Projections projections;

  private final EventLog log;
  private final FeedCoordinators coordinators;
  private long urgentUntil; // number of the last event that parked polls are woken for
  private int parked;
  private final ReentrantLock lock = new ReentrantLock(); // guards all fields above that change
  private final Condition news = lock.newCondition(); // for parked polls
  private final WaitingPuts puts;

  public FilterFeed(String server, long startCode, FeedOptions options, LongSupplier clock, Projections projections) {
    this.server = server;
    this.startCode = startCode;
    this.options = options;
    this.clock = clock;
    this.projections = projections;
    log = new EventLog(options);
    coordinators = new FeedCoordinators(options);
    puts = new WaitingPuts(lock, options, clock, log, coordinators);
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
    lock.lock();
    try {
      return appendLocked(builder, urgent); // not by locked(), whose boxed result could find no memory after the event
    } finally {
      lock.unlock();
    }
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
    long last = log.append(builder);
    try {
      Fault.allocate();
      forgetEvents(clock.getAsLong());
    } catch (OutOfMemoryError e) {
      // The next append forgets them.
    }
    // Events that are not urgent must not grow so large that a reply has to be cut.
    if (urgent || log.bytes() > options.replyBytes / 2) {
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
      long toldVersion = log.schemaVersion(tableId);
      if (schemaVersion == toldVersion || (schemaVersion != 0 && schemaVersion < toldVersion)) return;
      append(Event.newBuilder().setKind(Event.Kind.TABLE_CHANGED).setTableId(tableId).setSchemaVersion(schemaVersion));
    } finally {
      lock.unlock();
    }
  }

  public long last() {
    return locked(log::last);
  }

  public long eventBytes() {
    return locked(log::bytes);
  }

  /** Drops the events that every listening coordinator has applied, and the oldest ones beyond the bounds. */
  private void forgetEvents(long now) {
    log.forgetUpTo(coordinators.appliedByAll(log.last(), now));
  }

  // ---- Polls

  /** For a single user, which may read all tables. */
  public Cluster.PollReply poll(Cluster.PollRequest request, LongSupplier verifiedUntil) throws InterruptedException {
    try {
      return poll(request, verifiedUntil, new Reader("", "", null));
    } catch (StatusException e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * Answers a poll. While there are no new events, the poll is parked: for request.getWaitNs() at most, and only if
   * fewer than options.maxParked polls are parked. When the set of the reader's tables changes, the coordinator
   * receives the whole state, so that it keeps no state of a table whose events it no longer receives. The number of a
   * coordinator belongs to the user of its first poll: the polls of other users with this number are refused. The poll
   * of a coordinator that leaves ends its lease, and is answered at once.
   */
  public Cluster.PollReply poll(Cluster.PollRequest request, LongSupplier verifiedUntil, Reader reader)
      throws InterruptedException, StatusException {
    Set<Integer> tables = reader.tables;
    if (request.getLeaves()) return leave(request, reader);
    boolean crowdedOut = false;
    lock.lock();
    try {
      long now = clock.getAsLong();
      if (hear(request, now, reader)) puts.wakeAcknowledged(now);
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
    if (request.getWantedCount() > 0 && locked(() -> fitsInReply(request))) {
      long left = options.projectionBytes;
      for (Cluster.ColumnId column : request.getWantedList()) {
        if (!locked(() -> log.isOf(tables, column.getRegionId()))) continue;
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
      if (reply.getTo() == log.last() || Fault.LEASE_FOR_CUT_REPLY.isOn()) grantLease(request, sureUntil, reply);
    } finally {
      lock.unlock();
    }
    for (Cluster.Projection projection : bits) {
      if (projection.getAsOf() <= reply.getTo()) reply.addProjections(projection);
    }
    return reply.build();
  }

  /** Ends the coordinator's lease, and its poll that is still parked, which grants none. */
  private Cluster.PollReply leave(Cluster.PollRequest request, Reader reader) throws StatusException {
    lock.lock();
    try {
      long now = clock.getAsLong();
      FeedCoordinator coordinator = coordinators.hear(request.getCoordinator(), reader.user, now);
      if (coordinator != null && coordinator.isParked()) {
        coordinator.endParked();
        news.signalAll();
      }
      coordinators.leave(request.getCoordinator());
      forgetEvents(now);
      puts.wakeAcknowledged(now);
    } finally {
      lock.unlock();
    }
    return Cluster.PollReply.newBuilder().setStartCode(startCode).setServer(server).build();
  }

  private void park(Cluster.PollRequest request, long now) throws InterruptedException {
    FeedCoordinator coordinator = coordinators.get(request.getCoordinator());
    if (coordinator == null) return;
    if (coordinator.isParked()) news.signalAll(); // ends the coordinator's earlier poll
    long mine = coordinator.park();
    long until = now + Math.min(request.getWaitNs(), options.maxParkedNs);
    ++parked;
    try {
      while (request.getApplied() >= urgentUntil && coordinator.isLatest(mine)) {
        long left = until - clock.getAsLong();
        if (left <= 0) break;
        news.awaitNanos(Math.min(left, options.lookNs));
      }
    } finally {
      --parked;
      coordinator.unpark(mine);
    }
  }

  /** Notes what the poll says. True when it acknowledges events that its coordinator had not acknowledged before. */
  private boolean hear(Cluster.PollRequest request, long now, Reader reader) throws StatusException {
    FeedCoordinator coordinator = coordinators.hear(request.getCoordinator(), reader.user, now);
    if (coordinator == null) return false;
    if (!coordinator.receives(reader.tables)) {
      // Appends a known event again, so that this change gets a number of its own.
      Event.Builder known = log.someTable();
      if (known != null) append(known);
      coordinator.receive(reader.tables, log.last());
    }
    coordinator.heard(now, reader.host);
    if (request.getStartCode() != startCode) return false;
    return coordinator.acknowledge(Math.min(request.getApplied(), log.last()));
  }

  /** The coordinator knows this life of the server and these tables, and the events that it lacks are kept. */
  private boolean isServedByEvents(Cluster.PollRequest request) {
    FeedCoordinator coordinator = coordinators.get(request.getCoordinator());
    long since = coordinator == null ? 0 : coordinator.tablesSince();
    long applied = request.getApplied();
    return request.getStartCode() == startCode && applied >= since && log.keepsBehind(applied);
  }

  /** Whether the events that the coordinator lacks bring it up to date in one reply. */
  private boolean fitsInReply(Cluster.PollRequest request) {
    return isServedByEvents(request) && log.endOfReply(request.getApplied()) == log.last();
  }

  private void fillEvents(Cluster.PollRequest request, Cluster.PollReply.Builder reply, Set<Integer> tables) {
    reply.setFull(!isServedByEvents(request));
    if (reply.getFull()) {
      log.addState(tables, reply);
    } else {
      log.addEvents(request.getApplied(), tables, reply);
    }
  }

  private void grantLease(Cluster.PollRequest request, long sureUntil, Cluster.PollReply.Builder reply) {
    long lease = coordinators.grantLease(request.getCoordinator(), log.last(), clock.getAsLong(), sureUntil);
    if (lease > 0) reply.setLeaseNs(lease);
  }

  // ---- Puts

  /** The number up to which every coordinator with a live lease has applied the events. */
  public long acknowledgedFloor() {
    return locked(() -> coordinators.floor(log.last(), clock.getAsLong()));
  }

  /** True while so many puts wait that a further one has to queue. */
  public boolean isCrowded() {
    return locked(puts::areCrowded);
  }

  /** True while a put that has to queue would be refused: a coordinator is stuck. */
  public boolean isStuck() {
    return locked(puts::areStuck);
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
    try {
      return puts.awaitRoom(sequence, hurry);
    } finally {
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
    try {
      return puts.awaitAcknowledged(sequence, deadline);
    } finally {
      lock.unlock();
    }
  }

  // ---- Status

  /**
   * Adds the present state to the status. A caller that knows a coordinator's number can poll in its name, and
   * acknowledge events that the coordinator does not know. So `withNames`, for numbers, users and hosts, may be set
   * only where every user has all rights.
   */
  public void describe(Cluster.StatusReply.Builder status, boolean withNames) {
    lock.lock();
    try {
      forgetEvents(clock.getAsLong());
      status.setStartCode(startCode).setServer(server).setFeedEvents(log.size()).setFeedBytes(log.bytes());
      for (Cluster.CoordinatorStatus each : coordinators()) {
        Cluster.CoordinatorStatus.Builder shown = each.toBuilder();
        status.addCoordinators(withNames ? shown : shown.clearCoordinator().clearUser().clearHost());
      }
    } finally {
      lock.unlock();
    }
  }

  /** The coordinators that have a lease, or have polled lately. */
  public List<Cluster.CoordinatorStatus> coordinators() {
    return locked(() -> coordinators.statuses(log.last(), clock.getAsLong()));
  }

  /** The coordinators with a live lease. */
  public int leases() {
    return locked(() -> coordinators.leases(clock.getAsLong()));
  }

  public int waiting() {
    return locked(puts::waiting);
  }

  /** For tests and metrics. */
  public Set<Long> openRegions() {
    return locked(log::openRegions);
  }
}
