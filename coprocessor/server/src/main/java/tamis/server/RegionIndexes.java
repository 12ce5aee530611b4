package tamis.server;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.RegionTooBusyException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.base.Backoff;
import tamis.base.Fault;
import tamis.feed.IndexFilter;
import tamis.index.IndexBuilder;
import tamis.region.BuildFailure;
import tamis.region.IndexedRegion;
import tamis.region.LoadedRows;
import tamis.table.Schema;

/**
 * Makes the indexes of a region complete: when the region opens, when a job asks for it, and after files were loaded
 * into it. Threads: safe.
 */
public final class RegionIndexes {
  private static final Logger LOG = LoggerFactory.getLogger(RegionIndexes.class);
  private static final Backoff FAILED = new Backoff(TimeUnit.SECONDS.toNanos(1), TimeUnit.MINUTES.toNanos(5));

  private final Acknowledgements acknowledgements;
  private final RegionFilters filters;
  private final Workers workers;

  RegionIndexes(Acknowledgements acknowledgements, RegionFilters filters, Workers workers) {
    this.acknowledgements = acknowledgements;
    this.filters = filters;
    this.workers = workers;
  }

  /**
   * Begins the work, which the workers do. The filters of indexes that have their entries are counted before the other
   * indexes get their entries. A failure is retried until the region closes, or this is called again.
   */
  void completeAndCount(IndexedRegion region) {
    completeAndCount(region, region.completions.incrementAndGet(), 0);
  }

  private void completeAndCount(IndexedRegion region, long number, int failures) {
    workers.counts.execute(() -> {
      Throwable uncounted = thrownBy(region, () -> countMarked(region));
      if (uncounted != null) { // tried again with the rest
        LOG.warn("The filters of region {} are not counted before all of its indexes are complete",
            region.info().getEncodedName(), uncounted);
      }
      workers.builds.execute(() -> {
        Throwable failed = thrownBy(region, () -> completeAndCountRest(region));
        if (region.completions.get() != number) return; // a later call does all of it
        region.failure = failed == null ? null : BuildFailure.of(failed, region.failure);
        if (failed != null && !region.isClosing()) tryAgain(region, number, failures, failed);
      });
    });
  }

  private void tryAgain(IndexedRegion region, long number, int failures, Throwable failed) {
    long pause = FAILED.after(failures);
    LOG.error("The indexes of region {} stay incomplete or without filters: searches scan or ask it. Retry in {} s",
        region.info().getEncodedName(), TimeUnit.NANOSECONDS.toSeconds(pause), failed);
    workers.steps.run(() -> {
      if (region.completions.get() == number) completeAndCount(region, number, failures + 1);
    }, pause);
  }

  /** Work on a region. */
  private interface Work {
    void run() throws IOException, InterruptedException;
  }

  /** Does the work and returns what it threw; null: nothing, or nothing that matters since the region closes. */
  private static Throwable thrownBy(IndexedRegion region, Work work) {
    try {
      if (!region.isClosing()) work.run();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt(); // the server stops
    } catch (Throwable e) {
      // A server that aborts closes files before it says that a region closes.
      if (!region.isLeaving()) return e;
    }
    return null;
  }

  /** Counts the indexes that have their entries; does nothing while another thread makes entries, which takes long. */
  private void countMarked(IndexedRegion region) throws IOException, InterruptedException {
    if (!region.hasEntries || !region.building.tryLock()) return;
    try {
      long files = region.filesSince();
      setComplete(region, IndexBuilder.markedComplete(region), files);
      countUncounted(region);
    } finally {
      region.building.unlock();
    }
  }

  private void completeAndCountRest(IndexedRegion region) throws IOException, InterruptedException {
    complete(region);
    countUncounted(region);
    if (region.recounts.takePutOff()) filters.lookAt(region);
  }

  private void countUncounted(IndexedRegion region) throws IOException, InterruptedException {
    for (Schema.Index index : region.table.schema.indexes) {
      IndexFilter filter = region.filters.get(index.id);
      if (filter != null && !filter.isCounted()) filters.count(region, index);
    }
  }

  /** Completes the indexes that are not complete. */
  public static void complete(IndexedRegion region) throws IOException {
    if (!region.hasEntries) return;
    region.building.lock();
    try {
      long files = region.filesSince();
      Set<Integer> complete = IndexBuilder.markedComplete(region);
      setComplete(region, complete, files); // indexes that are complete already need not wait for the others
      Set<Integer> missing = new HashSet<>(region.indexIds());
      missing.removeAll(complete);
      if (!missing.isEmpty() && !build(region, missing)) return;
      complete.addAll(missing);
      setComplete(region, complete, files);
    } finally {
      region.building.unlock();
    }
  }

  /** Does nothing if files were loaded since `files` was read: the end of that load builds the indexes again. */
  private static void setComplete(IndexedRegion region, Set<Integer> indexes, long files) throws IOException {
    synchronized (region.marking) {
      if (files < 0 || region.filesSince() != files) return;
      IndexBuilder.mark(region, indexes);
      region.setComplete(indexes);
      region.loadedRows.end(indexes);
    }
  }

  /** An index that was complete until files were loaded needs a look at the rows of these files alone. */
  private static boolean build(IndexedRegion region, Set<Integer> indexes) throws IOException {
    Set<Integer> whole = new HashSet<>(indexes);
    Set<Integer> loaded;
    List<LoadedRows.Range> ranges;
    synchronized (region.marking) {
      loaded = region.loadedRows.indexes();
      ranges = region.loadedRows.ranges();
    }
    loaded.retainAll(indexes);
    whole.removeAll(loaded);
    IndexBuilder.Progress progress = rows -> {
      region.rowsVisited = rows;
      return !region.isClosing();
    };
    return (whole.isEmpty() || IndexBuilder.build(region, whole, progress))
        && (loaded.isEmpty() || IndexBuilder.build(region, loaded, ranges, progress));
  }

  /**
   * Rebuilds an index (id 0: all of them). At the end its entries and filter agree with the rows, and coordinators have
   * applied that. False: the region closes, or `progress` stopped it.
   */
  boolean rebuild(IndexedRegion region, int indexId, IndexBuilder.Progress progress)
      throws IOException, InterruptedException {
    Set<Integer> indexes = new HashSet<>(region.indexIds());
    if (indexId != 0) indexes.retainAll(Collections.singleton(indexId));
    if (!region.hasEntries) return true;
    region.building.lockInterruptibly();
    List<IndexFilter> held = new ArrayList<>();
    try {
      for (int id : indexes) {
        IndexFilter filter = region.filters.get(id);
        if (filter == null) continue;
        held.add(filter);
        filter.holdClearing(); // entries may be missing
      }
      long files = region.filesSince();
      if (!IndexBuilder.build(region, indexes, rows -> progress.rows(rows) && !region.isClosing())) return false;
      Set<Integer> complete = new HashSet<>(region.complete());
      complete.addAll(indexes);
      setComplete(region, complete, files);
      for (Schema.Index index : region.table.schema.indexes) {
        if (indexes.contains(index.id)) filters.count(region, index);
      }
      if (region.complete().containsAll(region.indexIds())) region.failure = null;
    } finally {
      held.forEach(IndexFilter::releaseClearing);
      region.building.unlock();
    }
    if (region.recounts.takePutOff()) filters.lookAt(region);
    return acknowledgements.awaitAll(region);
  }

  // ---- Files that are loaded

  /**
   * Before files are loaded. Returns when no coordinator excludes the region and no marker says that an index is
   * complete. Throws RegionTooBusyException if that takes too long; nothing may be loaded then.
   */
  public void beforeLoad(IndexedRegion region) throws IOException, InterruptedException {
    if (!Fault.LOAD_WITHOUT_OPENING_WAIT.isOn()) region.refuseBeforeItsTime();
    region.loads.incrementAndGet();
    region.loadsBegun.incrementAndGet();
    boolean ready = false;
    try {
      synchronized (region.marking) {
        region.loaded = true;
        region.loadedRows.begin(region.complete());
        region.setComplete(Collections.emptySet());
        if (!Fault.LOAD_WITHOUT_UNMARKING.isOn()) IndexBuilder.unmark(region);
      }
      if (!Fault.LOAD_WITHOUT_TELLING.isOn()) tellIncomplete(region);
      ready = true;
    } finally {
      if (!ready) afterLoad(region, Collections.emptyList());
    }
  }

  private void tellIncomplete(IndexedRegion region) throws IOException {
    // A filter generation that is being counted is dropped as well.
    long told = 0;
    for (IndexFilter filter : region.filters.values()) told = Math.max(told, filter.drop());
    if (!acknowledgements.await(told)) {
      throw new RegionTooBusyException("cannot load files into region " + region.info().getEncodedName()
          + " yet: coordinators did not acknowledge in time that its indexes are incomplete; nothing was done; retry");
    }
  }

  /** `ranges`: the rows of the files that were loaded; null: it is not known which. */
  public void afterLoad(IndexedRegion region, List<LoadedRows.Range> ranges) {
    synchronized (region.marking) {
      region.loadedRows.add(ranges);
    }
    if (region.loads.decrementAndGet() > 0) return;
    completeAndCount(region);
  }
}
