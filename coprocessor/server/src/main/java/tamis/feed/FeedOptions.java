package tamis.feed;

import java.util.concurrent.TimeUnit;

/** The bounds of a FilterFeed. A value; tests make others. */
public final class FeedOptions {
  public long leaseNs = TimeUnit.SECONDS.toNanos(1);
  /** Added to the server's count of a lease, for clocks that run at different rates: 3 % and a little. */
  public long leaseMarginNs = TimeUnit.MILLISECONDS.toNanos(40);
  /** Bounds of the kept events. A coordinator that lacks a dropped event gets the whole state. */
  public int maxEvents = 1 << 16;
  long maxEventBytes = 8 << 20;
  /** No events are kept for a coordinator without a lease that has not polled for so long. */
  public long silenceNs = TimeUnit.SECONDS.toNanos(10);
  int maxCoordinators = 16;
  int maxListeners = 64;
  /** The number of puts that may wait, half of HBase's handlers; further ones queue. */
  public int maxWaiting = 15;
  /** No put queues once none of those that wait was acknowledged for so long: a refused client pauses as long. */
  public long patienceNs = TimeUnit.MILLISECONDS.toNanos(100);
  /** A put queues for so long at the most. */
  public long maxQueuedNs = TimeUnit.MILLISECONDS.toNanos(500);
  /** Bound of parked polls: they share their handlers with hbase:meta. */
  int maxParked = 4;
  long maxParkedNs = TimeUnit.SECONDS.toNanos(1);
  /** A wait looks at the clock again after so long, since the clock of a test may run faster than the real one. */
  long lookNs = TimeUnit.SECONDS.toNanos(1);
  long nextPollNs = TimeUnit.MILLISECONDS.toNanos(50);
  public long replyBytes = 2 << 20;
  long projectionBytes = 2 << 20;
}
