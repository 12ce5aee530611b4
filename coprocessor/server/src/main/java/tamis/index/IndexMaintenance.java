package tamis.index;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HConstants.OperationStatusCode;
import org.apache.hadoop.hbase.RegionTooBusyException;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.regionserver.MiniBatchOperationInProgress;
import tamis.base.Fault;
import tamis.feed.IndexEntry;
import tamis.feed.IndexFilter;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;

/**
 * Maintains the index entries of a mini-batch. It locks the rows, reads the old rows, computes the net effect of the
 * batch on each row's entries, and adds these changes to the batch. So the log has rows and entries in one edit.
 *
 * For the net effect, the entries of a row before the whole batch are compared once with those after it, so that one
 * edit never both puts and deletes an entry. A deleted entry gets a tombstone with the last time stamp that there is,
 * which covers all of its versions. The column family of the entries has HBase's new version behaviour: a tombstone
 * masks only cells that were written before it.
 *
 * Threads: safe; the state of a mini-batch is in the BatchContext of its thread.
 */
public final class IndexMaintenance {
  /** Shorter than HBase's timeout for its own row locks, and than a client's timeout for a call. */
  private static final long LOCK_TIMEOUT_NS = TimeUnit.SECONDS.toNanos(5);
  /** Short, since the gate is closed only for moments, and HBase holds the region's lock of updates during the wait. */
  private static final long GATE_TIMEOUT_NS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final int LOOK_AT_FILTERS = 256; // mini-batches between two checks of the filters

  private IndexMaintenance() {}

  /**
   * Makes HBase log the mutation even if the client asked it not to. Otherwise a crash could lose the row and keep its
   * entry, which costs a needless read, or keep the row and lose its entry, and then searches would miss the row.
   */
  public static void keepInLog(Mutation mutation) {
    if (mutation.getDurability() == Durability.SKIP_WAL && !Fault.SKIP_WAL_KEPT.isOn()) {
      mutation.setDurability(Durability.SYNC_WAL);
    }
  }

  public static void before(IndexedRegion region, MiniBatchOperationInProgress<Mutation> batch) throws IOException {
    BatchContext context = BatchContext.current();
    context.take(region);
    boolean building = context.caller.writer == BatchContext.Writer.BUILDER;
    List<RowWrites> all = new ArrayList<>(batch.size());
    boolean ofTable = false;
    for (int i = 0; i < batch.size(); ++i) {
      if (batch.getOperationStatus(i).getOperationStatusCode() != OperationStatusCode.NOT_RUN) continue;
      Mutation mutation = batch.getOperation(i);
      keepInLog(mutation);
      ofTable |= isOfTable(region.table, mutation);
      boolean conditional = context.caller.conditions != null && context.caller.conditions.of(mutation) != null;
      if (!building && !conditional && !concerns(region.table, mutation, context)) continue;
      RowWrites writes = new RowWrites(mutation.getRow(), i);
      writes.raw = deletesVersions(mutation);
      writes.conditional = conditional;
      all.add(writes);
    }
    List<RowWrites> rows = RowWrites.byRow(all);
    // A search also reads columns without an index: a former owner of the region would answer with their old values. So
    // writes to such columns are refused, too.
    boolean read = !rows.isEmpty() || (ofTable && !Fault.OPENING_WAIT_OF_INDEXES_ONLY.isOn());
    if (read && !building) region.refuseBeforeItsTime();
    if (rows.isEmpty()) return;
    try {
      // Once a condition of a request is evaluated, it can no longer be said that nothing was done.
      if (context.caller.conditions != null && !region.host.awaitRoom(Long.MAX_VALUE, () -> false)) {
        throw tooMany(region);
      }
      if (!region.gate.readLock().tryLock(GATE_TIMEOUT_NS, TimeUnit.NANOSECONDS)) {
        throw refused(region, "a check or a recount of its indexes begins");
      }
      context.inside = true;
      context.locks = RowLocks.acquire(region.id, RowWrites.rowsOf(rows), LOCK_TIMEOUT_NS);
      if (context.locks == null) {
        throw refused(region, "other writes lock the rows for too long");
      }
      Fault.allocate();
      new BatchEffect(region, batch, context, rows).run();
      Fault.allocate();
      boolean mayQueue = !building && context.caller.conditions == null;
      // Clients repeat a refused put; each attempt would report its flips and then undo them.
      if (mayQueue && region.host.isStuck() && wouldWait(context)
          && !region.host.awaitRoom(Long.MAX_VALUE, () -> false)) {
        throw tooMany(region);
      }
      // New entries are counted before a reader can see them.
      if (!Fault.COUNTED_AFTER_COMMIT.isOn()) count(context);
      if (mayQueue && region.host.isCrowded()) queue(context);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new java.io.InterruptedIOException("interrupted while waiting for other writes");
    }
    if (Fault.UNCOUNTED_BEFORE_COMMIT.isOn()) uncount(context, context.removed);
  }

  /**
   * Queues the write, which is counted, if it has to wait for coordinators while as many writes wait as may. Its flips
   * are reported already, so one round of polls is for the writes that wait and for those that queue: a queued write
   * whose flips are acknowledged goes on, and does not wait again after its commit. One whose region is to be recounted
   * or checked, which waits for the gate, goes on, too, and waits after its commit. One that is refused is uncounted.
   */
  private static void queue(BatchContext context) throws IOException, InterruptedException {
    boolean goesOn = false;
    try {
      goesOn = context.region.host.awaitRoom(waitsFor(context), context.region::isGateClosing);
    } finally {
      if (!goesOn) uncount(context, context.added);
    }
    if (!goesOn) throw tooMany(context.region);
  }

  private static RegionTooBusyException tooMany(IndexedRegion region) {
    return refused(region, "too many writes wait for coordinators");
  }

  /** Whether the write will wait for coordinators, as far as its filters know before it is counted. */
  private static boolean wouldWait(BatchContext context) {
    for (Map.Entry<Integer, List<IndexEntry>> ofIndex : byIndex(context.held).entrySet()) {
      IndexFilter filter = context.region.filters.get(ofIndex.getKey());
      if (filter != null && filter.wouldWait(ofIndex.getValue())) return true;
    }
    return false;
  }

  /** The number of the event that coordinators must have applied before the write is acknowledged; 0: there is none. */
  private static long waitsFor(BatchContext context) {
    long[] sequence = {context.region.acknowledgeAfter.get()};
    byIndex(Fault.ONLY_OWN_FLIPS_WAITED_FOR.isOn() ? context.added : context.held).forEach((id, entries) -> {
      IndexFilter filter = context.region.filters.get(id);
      if (filter != null) sequence[0] = Math.max(sequence[0], filter.waitFor(entries));
    });
    return sequence[0];
  }

  private static void count(BatchContext context) {
    byIndex(context.added).forEach((id, entries) -> {
      IndexFilter filter = context.region.filters.get(id);
      if (filter != null) context.count(filter, entries);
    });
  }

  private static void uncount(BatchContext context, List<IndexEntry> gone) {
    IndexedRegion region = context.region;
    byIndex(gone).forEach((id, entries) -> {
      IndexFilter filter = region.filters.get(id);
      if (filter != null && filter.remove(entries)) region.host.clearLater(region, entries.get(0).index);
    });
  }

  private static Map<Integer, List<IndexEntry>> byIndex(List<IndexEntry> entries) {
    Map<Integer, List<IndexEntry>> byIndex = new HashMap<>();
    for (IndexEntry entry : entries) byIndex.computeIfAbsent(entry.index.id, id -> new ArrayList<>()).add(entry);
    return byIndex;
  }

  /**
   * After the commit and its MVCC number, with the locks held: leaves the filters, uncounts removed entries, and
   * returns the number of the event that coordinators must have applied before the write is acknowledged. Entries that
   * may or may not stand stay counted.
   */
  public static long after(BatchContext context) {
    IndexedRegion region = context.region;
    Fault.allocate();
    if (Fault.COUNTED_AFTER_COMMIT.isOn()) count(context);
    context.leave();
    if (!Fault.UNCOUNTED_BEFORE_COMMIT.isOn()) uncount(context, context.removed);
    long sequence = waitsFor(context);
    region.host.wrote(context.added.size(), context.removed.size());
    if (region.writes.incrementAndGet() % LOOK_AT_FILTERS == 0) region.host.lookAtFilters(region);
    return sequence;
  }

  private static boolean isOfTable(IndexedTable table, Mutation mutation) {
    for (byte[] family : mutation.getFamilyCellMap().keySet()) {
      if (table.isOurs(family)) return true;
    }
    return false;
  }

  private static RegionTooBusyException refused(IndexedRegion region, String why) {
    return new RegionTooBusyException(
        "cannot write to region " + region.info().getEncodedName() + ": " + why + "; nothing was done; retry");
  }

  /** True if the mutation may change an entry. */
  private static boolean concerns(IndexedTable table, Mutation mutation, BatchContext context) {
    if (mutation instanceof Increment || mutation instanceof Append) {
      return context.computed.containsKey(mutation);
    }
    for (Map.Entry<byte[], List<Cell>> family : mutation.getFamilyCellMap().entrySet()) {
      if (!table.isOurs(family.getKey()) || family.getValue().isEmpty()) continue;
      if (mutation instanceof Delete || table.indexesNull) return true;
      for (Cell cell : family.getValue()) {
        int column = table.columnOf(cell);
        if (column >= 0 && table.isIndexed(column)) return true;
      }
    }
    return false;
  }

  private static boolean deletesVersions(Mutation mutation) {
    if (!(mutation instanceof Delete)) return false;
    for (List<Cell> cells : mutation.getFamilyCellMap().values()) {
      for (Cell cell : cells) {
        if (cell.getType() == Cell.Type.Delete || cell.getType() == Cell.Type.DeleteFamilyVersion) return true;
      }
    }
    return false;
  }
}
