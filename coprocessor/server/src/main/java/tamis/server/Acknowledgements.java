package tamis.server;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import tamis.feed.FilterFeed;
import tamis.region.IndexedRegion;

/** Lets a server's writes and jobs wait until coordinators have applied an event. Threads: safe. */
public final class Acknowledgements {
  // Shorter than the 10 s after which HBase interrupts the handlers of a region that closes.
  private static final long WRITE_WAIT_NS = TimeUnit.SECONDS.toNanos(8);
  private static final long LEASES_WAIT_NS = TimeUnit.MILLISECONDS.toNanos(1500); // a lease, and a little

  private final FilterFeed feed; // null: no coordinator listens
  private final RegionServerMetrics metrics;

  Acknowledgements(FilterFeed feed, RegionServerMetrics metrics) {
    this.feed = feed;
    this.metrics = metrics;
  }

  /** True while so many writes wait that a further one has to queue. */
  boolean isCrowded() {
    return feed != null && feed.isCrowded();
  }

  boolean isStuck() {
    return feed != null && feed.isStuck();
  }

  /** Queues until fewer writes wait, or the event is acknowledged, or `hurry`. False: the write has to be refused. */
  boolean awaitRoom(long sequence, BooleanSupplier hurry) throws InterruptedException {
    boolean room = feed == null || feed.awaitRoom(sequence, hurry);
    if (!room) metrics.writesTurnedAway.increment();
    return room;
  }

  void hurryQueued() {
    if (feed != null) feed.hurryQueued();
  }

  /** Waits until coordinators have applied the event, or lost their leases. False: not in time. */
  public boolean await(long sequence) throws IOException {
    if (feed == null || sequence == 0) return true;
    metrics.writesWaited.increment();
    long began = System.nanoTime();
    try {
      boolean inTime = feed.waitAcknowledged(sequence, System.nanoTime() + WRITE_WAIT_NS);
      if (!inTime) metrics.writesNotAcknowledged.increment();
      return inTime;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } finally {
      metrics.waitedNs.add(System.nanoTime() - began);
    }
  }

  /** Waits until coordinators have applied all events so far, or lost their leases. False: the region closes. */
  boolean awaitAll(IndexedRegion region) throws InterruptedException {
    if (feed == null) return !region.isClosing();
    long told = feed.last();
    while (!region.isClosing()) { // leases end
      if (feed.waitAcknowledged(told, System.nanoTime() + LEASES_WAIT_NS)) return true;
    }
    return false;
  }
}
