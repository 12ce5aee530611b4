package tamis.hbase;

import java.io.IOException;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.NotServingRegionException;
import org.slf4j.Logger;
import tamis.base.Fault;
import tamis.region.IndexedRegion;

/**
 * How hooks fail: before a commit by an exception that makes the write fail, after it by one after which clients do
 * not repeat the write, or by a line in the log alone.
 *
 * Exceptions that may be needed when memory has run out are created in advance, so an instance has to be there before
 * the first hook. Threads: safe.
 */
final class HookErrors {
  /** The work of a hook that must not throw. */
  interface Work {
    void run() throws Exception;
  }

  /** After a commit: it is unknown which event the write waits for. */
  final DoNotRetryIOException standsUnseen =
      new DoNotRetryIOException("the write was carried out, but searches may not find it: see the server's log");
  /** After a commit that coordinators may not know of. */
  final DoNotRetryIOException notAcknowledged =
      new DoNotRetryIOException("coordinators did not acknowledge in time; the write may have been carried out");
  private final DoNotRetryIOException noMemory =
      new DoNotRetryIOException("the server has no memory left; a write that was under way may have been carried out");
  private final Logger logger;

  HookErrors(Logger logger) {
    this.logger = logger;
  }

  /**
   * The exception that a hook throws before anything is written: always an IOException, which makes the write fail. If
   * the closing of the region caused the failure, the client retries where the region opens. `region`: null if the
   * table is not indexed here.
   */
  IOException failure(String what, Throwable e, IndexedRegion region) {
    if (e instanceof IOException) return (IOException) e;
    try {
      if (e instanceof InterruptedException) Thread.currentThread().interrupt();
      Fault.allocate();
      if (region != null && region.isLeaving()) {
        return new NotServingRegionException("cannot " + what + " while the region closes or its server stops: " + e);
      }
      logger.error("Failed to {}", what, e);
      return new DoNotRetryIOException("cannot " + what + ": " + e, e);
    } catch (Throwable another) {
      return noMemory;
    }
  }

  void log(String what, Throwable e) {
    try {
      Fault.allocate();
      logger.error("Failed to {}", what, e);
    } catch (Throwable another) {
      // There is no memory to say more.
    }
  }

  void quietly(String what, Work work) {
    try {
      work.run();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (Throwable e) {
      log(what, e);
    }
  }
}
