package tamis.feed;

import java.util.ArrayDeque;
import java.util.PriorityQueue;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The puts that a feed holds: those that are written and wait for an acknowledgement, and those that queue, not written
 * yet, until fewer wait. Each sleeps on a condition of its own: an acknowledgement wakes the puts that it concerns and
 * no others, and a put that has been acknowledged wakes one that queues.
 *
 * Threads: REQUIRES the feed's lock.
 */
final class WaitingPuts {
  /** A put that sleeps until coordinators have applied the event `sequence`, or something else wakes it. */
  static final class Put implements Comparable<Put> {
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
  private final PriorityQueue<Put> sleeping = new PriorityQueue<>();
  private final ArrayDeque<Put> queued = new ArrayDeque<>();
  private int waiting;

  WaitingPuts(ReentrantLock lock, FeedOptions options) {
    this.lock = lock;
    this.options = options;
  }

  /** The number of puts that are written and wait. */
  int waiting() {
    return waiting;
  }

  /** The put is written. */
  Put begin(long sequence) {
    Put put = new Put(sequence, lock.newCondition());
    ++waiting;
    return put;
  }

  void end(Put put) {
    --waiting;
    sleeping.remove(put);
    offerPlace();
  }

  /** The put is not written. */
  Put beginQueued(long sequence) {
    Put put = new Put(sequence, lock.newCondition());
    put.queues = queued.add(put);
    return put;
  }

  /** `takesRoom`: it will wait in the place of one that ended. Otherwise that place is the next one's. */
  void endQueued(Put put, boolean takesRoom) {
    if (put.queues) queued.remove(put);
    sleeping.remove(put);
    if (!takesRoom) offerPlace();
  }

  /** Sleeps as `sleep`. One that found no room, although a place was offered to it, is the first again. */
  void sleepQueued(Put put, long ns) throws InterruptedException {
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
  void offerPlace() {
    Put next = queued.poll();
    if (next == null) return;
    next.queues = false;
    next.woken.signal();
  }

  /** Sleeps until the put is woken, or until it is time to look at the clock again. */
  void sleep(Put put, long ns) throws InterruptedException {
    if (!put.sleeps) put.sleeps = sleeping.add(put);
    put.woken.awaitNanos(Math.max(1, Math.min(ns, options.lookNs)));
  }

  /** Wakes the puts whose events coordinators have applied. Returns whether there were any. */
  boolean wakeUpTo(long sequence) {
    boolean any = false;
    for (; !sleeping.isEmpty() && sleeping.peek().sequence <= sequence; any = true) {
      Put put = sleeping.poll();
      put.sleeps = false;
      put.woken.signal();
    }
    return any;
  }
}
