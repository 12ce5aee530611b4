package tamis.feed;

import java.util.ArrayDeque;
import java.util.PriorityQueue;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import tamis.base.Fault;

/**
 * The puts that a feed holds: those that are written and wait for an acknowledgement, and those that queue, not written
 * yet, until fewer wait. Each sleeps on a condition of its own: an acknowledgement wakes the puts that it concerns and
 * no others, and a put that has been acknowledged wakes one that queues.
 *
 * A coordinator is stuck when enough puts wait, and none was acknowledged for options.patienceNs.
 *
 * Threads: REQUIRES the feed's lock, which a put releases while it sleeps.
 */
final class WaitingPuts {
  /** A put that sleeps until coordinators have applied the event `sequence`, or something else wakes it. */
  private static final class Put implements Comparable<Put> {
    final long sequence;
    private final Condition woken;
    private boolean sleeps; // in `sleeping`
    private boolean queues; // in `queued`

    Put(long sequence, Condition woken) {
      this.sequence = sequence;
      this.woken = woken;
    }

    @Override
    public int compareTo(Put other) {
      return Long.compare(sequence, other.sequence);
    }
  }

  private final ReentrantLock lock;
  private final FeedOptions options;
  private final LongSupplier clock;
  private final EventLog log;
  private final FeedCoordinators coordinators;
  private final PriorityQueue<Put> sleeping = new PriorityQueue<>();
  private final ArrayDeque<Put> queued = new ArrayDeque<>();
  private int waiting;
  private long progressAt; // when a put was acknowledged last, or the first of those that wait began to

  WaitingPuts(
      ReentrantLock lock, FeedOptions options, LongSupplier clock, EventLog log, FeedCoordinators coordinators) {
    this.lock = lock;
    this.options = options;
    this.clock = clock;
    this.log = log;
    this.coordinators = coordinators;
  }

  private long floor(long now) {
    return coordinators.floor(log.last(), now);
  }

  /** The number of puts that are written and wait. */
  int waiting() {
    return waiting;
  }

  /** True while so many puts wait that a further one has to queue. */
  boolean areCrowded() {
    return waiting >= options.maxWaiting;
  }

  /** True while a put that has to queue would be refused: a coordinator is stuck. */
  boolean areStuck() {
    if (!areCrowded() || Fault.QUEUED_FOR_THE_STUCK.isOn()) return false;
    return clock.getAsLong() - progressAt >= options.patienceNs;
  }

  /** FilterFeed.awaitRoom. */
  boolean awaitRoom(long sequence, BooleanSupplier hurry) throws InterruptedException {
    Put put = null;
    boolean room = false;
    try {
      long end = clock.getAsLong() + options.maxQueuedNs;
      while (true) {
        long now = clock.getAsLong();
        boolean acknowledged = sequence <= floor(now);
        room = !acknowledged && !areCrowded(); // else it will not wait there
        if (room || acknowledged || hurry.getAsBoolean()) return true;
        long left = end - now;
        if (!Fault.QUEUED_FOR_THE_STUCK.isOn()) left = Math.min(left, progressAt + options.patienceNs - now);
        if (left <= 0) return false;
        if (put == null) put = beginQueued(sequence);
        sleepQueued(put, left);
      }
    } finally {
      if (put != null) endQueued(put, room);
    }
  }

  /** FilterFeed.waitAcknowledged. */
  boolean awaitAcknowledged(long sequence, long deadline) throws InterruptedException {
    Put put = null;
    try {
      while (true) {
        long now = clock.getAsLong();
        if (sequence <= floor(now) || Fault.NO_WAIT.isOn()) {
          if (put != null) {
            progressAt = now;
          } else {
            offerPlace(); // which it may have been given, and does not need
          }
          return true;
        }
        if (now - deadline >= 0) return false;
        if (waiting == 0) progressAt = now;
        if (put == null) put = begin(sequence);
        sleep(put, coordinators.nextLeaseEnd(now, deadline) - now);
      }
    } finally {
      if (put != null) end(put);
    }
  }

  /** A coordinator has applied events: wakes the puts that need not wait any more. */
  void wakeAcknowledged(long now) {
    if (wakeUpTo(floor(now))) progressAt = now;
  }

  /** The put is written. */
  private Put begin(long sequence) {
    Put put = new Put(sequence, lock.newCondition());
    ++waiting;
    return put;
  }

  private void end(Put put) {
    --waiting;
    sleeping.remove(put);
    offerPlace();
  }

  /** The put is not written. */
  private Put beginQueued(long sequence) {
    Put put = new Put(sequence, lock.newCondition());
    put.queues = queued.add(put);
    return put;
  }

  /** `takesRoom`: it will wait in the place of one that ended. Otherwise that place is the next one's. */
  private void endQueued(Put put, boolean takesRoom) {
    if (put.queues) queued.remove(put);
    sleeping.remove(put);
    if (!takesRoom) offerPlace();
  }

  /** Sleeps as `sleep`. One that found no room, although a place was offered to it, is the first again. */
  private void sleepQueued(Put put, long ns) throws InterruptedException {
    if (!put.queues) {
      queued.addFirst(put);
      put.queues = true;
    }
    sleep(put, ns);
  }

  /** Each queued put looks again whether it may go on. */
  void wakeAllQueued() {
    for (Put put : queued) put.woken.signal();
  }

  /** A place has become free. Several places are offered to as many puts: each call wakes another one. */
  private void offerPlace() {
    Put next = queued.poll();
    if (next == null) return;
    next.queues = false;
    next.woken.signal();
  }

  /** Sleeps until the put is woken, or until it is time to look at the clock again. */
  private void sleep(Put put, long ns) throws InterruptedException {
    if (!put.sleeps) put.sleeps = sleeping.add(put);
    put.woken.awaitNanos(Math.max(1, Math.min(ns, options.lookNs)));
  }

  /** Wakes the puts whose events coordinators have applied. Returns whether there were any. */
  private boolean wakeUpTo(long sequence) {
    boolean any = false;
    for (; !sleeping.isEmpty() && sleeping.peek().sequence <= sequence; any = true) {
      Put put = sleeping.poll();
      put.sleeps = false;
      put.woken.signal();
    }
    return any;
  }
}
