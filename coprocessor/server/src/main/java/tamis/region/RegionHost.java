package tamis.region;

import java.util.function.BooleanSupplier;
import tamis.table.Schema;

/** The server of a region, as the work in the region needs it. Threads: safe. */
public interface RegionHost {
  /** The server stops or aborts. */
  boolean isEnding();

  /** True while so many writes wait for coordinators that a further one has to queue. */
  boolean isCrowded();

  /** True while a write that has to queue would be refused, since a coordinator is stuck. */
  boolean isStuck();

  /**
   * Queues a write until fewer writes wait, or until coordinators have applied the event that it would wait for
   * (Long.MAX_VALUE: it is not known), or until `hurry` is true. False: a coordinator is stuck, and the write has to be
   * refused.
   */
  boolean awaitRoom(long sequence, BooleanSupplier hurry) throws InterruptedException;

  /** Lets the writes that queue look whether they are to hurry. */
  void hurryQueued();

  /** A write is committed that made and removed so many entries. */
  void wrote(int added, int removed);

  /** Counts those filters of the region again that do not fit any more. */
  void lookAtFilters(IndexedRegion region);

  /** Looks, after a while, what of the index's filter removals have emptied. */
  void clearLater(IndexedRegion region, Schema.Index index);
}
