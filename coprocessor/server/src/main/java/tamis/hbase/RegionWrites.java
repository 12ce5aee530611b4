package tamis.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.regionserver.MiniBatchOperationInProgress;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.util.Pair;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.base.Fault;
import tamis.index.BatchContext;
import tamis.index.IndexMaintenance;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.server.RegionServerState;

/**
 * The writes of one region, step by step as the hooks of HBase bring them: checked, with their entries, committed,
 * acknowledged. While the table is indexed and its indexes cannot be maintained, each write is refused. The locks and
 * registrations that a batch takes in `before` are released by `after`, or at the latest by `ended`.
 *
 * An exception of a step before the commit makes the write fail. `after` throws only exceptions that no client answers
 * by repeating the write.
 *
 * Threads: safe once the observer has started; the steps of a write run on one thread.
 */
final class RegionWrites {
  private static final Logger LOG = LoggerFactory.getLogger(RegionWrites.class);

  private final HookErrors errors;
  private Region region;
  private RegionServerState state; // null: HBase lacks what the jar needs
  private IndexedTable table;
  private volatile IndexedRegion indexed; // null: the table is not indexed, or its indexes cannot be maintained
  private String broken; // why the table's indexes cannot be maintained; null: they can

  RegionWrites(HookErrors errors) {
    this.errors = errors;
  }

  /** The region that is written. All writes pass until one of the following is called. */
  void begin(Region region, RegionServerState state) {
    this.region = region;
    this.state = state;
  }

  /** From now on the entries of the table's indexes are kept. */
  void maintain(IndexedRegion indexed, IndexedTable table) {
    this.table = table;
    this.indexed = indexed;
  }

  /** From now on all writes are refused. */
  void refuse(String broken) {
    this.broken = broken;
  }

  /** Takes over what the region's previous observer had. */
  void takeOver(RegionWrites before) {
    table = before.table;
    indexed = before.indexed;
    broken = before.broken;
  }

  private static boolean isOwnWork() {
    return BatchContext.current().caller.writer != BatchContext.Writer.CLIENT;
  }

  // ---- Checks

  /**
   * Throws while the indexes cannot be maintained. Rows that are written meanwhile would have no entries, and a later
   * observer that can maintain the indexes would assume that every row has its entries.
   */
  void refuseUnread() throws IOException {
    if (broken != null) throw new DoNotRetryIOException("the table is indexed, and it takes no writes here: " + broken);
  }

  void check(Mutation mutation) throws IOException {
    refuseUnread();
    if (indexed == null || isOwnWork()) return;
    ClientAccess.check(mutation, table);
    IndexMaintenance.keepInLog(mutation);
  }

  void checkDelete(Delete delete) throws IOException {
    if (indexed != null && !isOwnWork()) ClientAccess.leaveOutEntries(delete);
    check(delete);
  }

  void checkCondition(CheckAndMutate check) throws IOException {
    if (indexed != null) ClientAccess.check(check);
  }

  /** An edit that comes into the log by other ways than a batch. */
  void checkEdit(WALEdit edit) throws IOException {
    if (broken != null && !edit.isMetaEdit()) refuseUnread(); // others were refused by the hooks of batches
    if (indexed == null || isOwnWork() || BatchContext.current().isUnderWay()) return;
    ClientAccess.check(edit, table);
  }

  /** Increment and Append come to `before` with what is added; what it makes is here. */
  void keepComputed(Mutation mutation, List<Pair<Cell, Cell>> cells) {
    if (indexed == null || isOwnWork()) return;
    Fault.allocate();
    for (Pair<Cell, Cell> pair : cells) {
      if (!table.isOurs(CellUtil.cloneFamily(pair.getSecond()))) continue;
      BatchContext.current().computed.computeIfAbsent(mutation, m -> new ArrayList<>()).add(pair.getSecond());
    }
  }

  // ---- Batches

  void before(MiniBatchOperationInProgress<Mutation> batch) throws IOException {
    BatchContext context = BatchContext.current();
    if (indexed == null || context.caller.writer == BatchContext.Writer.INDEX) return;
    if (context.isUnderWay()) sweep(context);
    try {
      IndexMaintenance.before(indexed, batch);
    } catch (Throwable e) {
      context.leave(); // nothing is written
      context.release();
      throw e;
    }
  }

  /**
   * Behind all locks, before the client is answered. An exception here must not cause a retry: the write stands, or
   * may.
   */
  void after(boolean success) throws IOException {
    BatchContext context = BatchContext.current();
    long sequence = 0;
    IOException failed = null;
    try {
      if (context.isUnderWay() && success) sequence = IndexMaintenance.after(context);
    } catch (Throwable e) {
      errors.log("uncount what a write removed", e);
      failed = errors.standsUnseen;
    } finally {
      if (context.isUnderWay()) context.release();
    }
    if (failed != null) throw failed;
    if (context.caller.conditions != null) {
      context.caller.waitFor = Math.max(context.caller.waitFor, sequence);
      return;
    }
    boolean known = false;
    try {
      known = state.acknowledgements.await(sequence);
    } catch (IOException e) {
      throw e;
    } catch (Throwable e) {
      errors.log("wait for coordinators", e);
    }
    if (!known) throw errors.notAcknowledged;
  }

  /** A batch has ended, even where another coprocessor's exception left `after` out. */
  void ended() {
    BatchContext context = BatchContext.current();
    if (context.isUnderWay() && Fault.NO_SWEEP.isOn()) return;
    if (context.isUnderWay()) sweep(context);
    BatchContext.end();
  }

  private void sweep(BatchContext context) {
    context.release();
    try {
      LOG.warn("A write of region {} ended without its last hook: another coprocessor threw",
          region.getRegionInfo().getEncodedName());
    } catch (Throwable e) {
      // There is no memory to say so.
    }
  }
}
