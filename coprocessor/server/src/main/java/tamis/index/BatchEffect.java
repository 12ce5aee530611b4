package tamis.index;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HConstants.OperationStatusCode;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.regionserver.MiniBatchOperationInProgress;
import org.apache.hadoop.hbase.regionserver.OperationStatus;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import tamis.base.Fault;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;

/**
 * The effect of a mini-batch on its rows: applies its operations to the rows as they are (RowsBefore), one after the
 * other, judges the conditions of Tamis requests on the way, and adds to the batch what has to be written with it, the
 * changes of entries (EntryChanges) among it.
 *
 * Threads: that of the batch. REQUIRES: the rows are locked.
 */
final class BatchEffect {
  private final IndexedRegion region;
  private final IndexedTable table;
  private final MiniBatchOperationInProgress<Mutation> batch;
  private final BatchContext context;
  private final List<RowWrites> rows; // by row
  private final boolean building;
  private final List<List<Mutation>> more; // by operation; null: none
  private final EntryChanges entries;

  BatchEffect(
      IndexedRegion region, MiniBatchOperationInProgress<Mutation> batch, BatchContext context, List<RowWrites> rows) {
    this.region = region;
    this.table = region.table;
    this.batch = batch;
    this.context = context;
    this.rows = rows;
    building = context.caller.writer == BatchContext.Writer.BUILDER;
    more = new ArrayList<>(Collections.nCopies(batch.size(), null));
    entries = new EntryChanges(region, context, batch.size());
  }

  void run() throws IOException {
    new RowsBefore(region, batch, context).read(rows);
    for (RowWrites row : rows) {
      RowImage before = row.before;
      RowImage after = before.copy();
      int last = -1; // the last that is written: HBase drops what comes with one that is vetoed
      for (int i : row.operations) {
        if (apply(i, before, after)) last = i;
      }
      if (last < 0) continue;
      region.newest.note(row.row, after.newest());
      if (before.isRaw() && !Fault.UNCOVERED_LEFT_ALONE.isOn()) {
        for (Cell cell : before.uncovered(after)) {
          if (!table.isOurs(CellUtil.cloneFamily(cell))) continue;
          add(last, new Put(row.row).add(copy(cell)));
        }
      }
      if (after.hasHidden()) region.setHiding(row.row);
      if (!region.hasEntries) continue;
      if (building) {
        entries.rebuild(last, row.row, after);
      } else {
        entries.compare(last, before, after);
      }
    }
    Fault.STREAM_CLOSED_BEHIND_CONDITIONS.happen();
    entries.finish();
    for (int i = 0; i < batch.size(); ++i) {
      if (entries.cellsOf(i) != null) {
        // One mutation for all of them, of the row that they are for: HBase locks the row of each, and this one is
        // locked.
        Delete entryDelete = new Delete(batch.getOperation(i).getRow());
        entryDelete.getFamilyCellMap().put(IndexedTable.FAMILY, entries.cellsOf(i));
        add(i, entryDelete);
      }
      List<Mutation> all = more.get(i);
      if (all == null) continue;
      Mutation[] others = batch.getOperationsFromCoprocessors(i);
      if (others != null) all.addAll(0, Arrays.asList(others));
      batch.addOperationsFromCP(i, all.toArray(new Mutation[0]));
    }
  }

  /** `image`: the row as the writes before this one leave it. False: vetoed. */
  private boolean apply(int i, RowImage before, RowImage image) throws IOException {
    Mutation mutation = batch.getOperation(i);
    ConditionalWrites.Write write = context.caller.conditions == null ? null : context.caller.conditions.of(mutation);
    if (write != null) {
      RowImage judged = Fault.FORMER_ROW_JUDGED.isOn() ? before : image;
      if (!ConditionalWrites.allows(write, table.schema, judged) || !ConditionalWrites.isPlaceable(write, image)) {
        boolean done = write.outcome.getCode() == tamis.pb.Cluster.Error.Code.OK;
        batch.setOperationStatus(i,
            new OperationStatus(
                done ? OperationStatusCode.SUCCESS : OperationStatusCode.FAILURE, "refused by a condition"));
        return false;
      }
      long timestamp = ConditionalWrites.timestamp(write, image, stampOf(mutation));
      ConditionalWrites.stamp(mutation, timestamp);
      for (Mutation rest : ConditionalWrites.rest(write, table.schema, image, timestamp)) {
        add(i, rest);
        for (List<Cell> cells : rest.getFamilyCellMap().values()) cells.forEach(image::addWritten);
      }
    }
    if (mutation instanceof Increment || mutation instanceof Append) {
      List<Cell> made = context.computed.remove(mutation);
      if (made != null) {
        for (Cell cell : made) addShown(image, cell);
      }
      return true;
    }
    // Its time stamp is ours, or it puts nothing.
    boolean placed = write != null || building || !(mutation instanceof Put);
    for (Map.Entry<byte[], List<Cell>> family : mutation.getFamilyCellMap().entrySet()) {
      if (!table.isOurs(family.getKey())) continue;
      for (Cell cell : family.getValue()) {
        if (placed) image.addWritten(cell);
        else addShown(image, cell);
      }
    }
    return true;
  }

  /**
   * A client's cell, of which HBase would tell the client that it is written. It is refused where no read would ever
   * show it, and where HBase made it of one at the last time stamp: the next one would then be put below it.
   */
  private static void addShown(RowImage image, Cell cell) throws DoNotRetryIOException {
    image.addWritten(cell);
    if (Fault.LAST_TIMESTAMPS_TAKEN.isOn()) return;
    String why = cell.getTimestamp() > RowImage.LAST_TIMESTAMP ? "the result of the cell at time stamp "
            + RowImage.LAST_TIMESTAMP + " in " + RowImage.place(cell) + " would need a greater one, and there is none"
                                                               : image.neverShows(cell);
    if (why == null) return;
    throw new DoNotRetryIOException("cannot write row \"" + image.rowText() + "\": " + why + "; " + RowImage.WAY_OUT);
  }

  private static long stampOf(Mutation mutation) {
    for (List<Cell> cells : mutation.getFamilyCellMap().values()) {
      for (Cell cell : cells) return cell.getTimestamp();
    }
    return EnvironmentEdgeManager.currentTime();
  }

  private void add(int operation, Mutation mutation) {
    if (more.get(operation) == null) more.set(operation, new ArrayList<>());
    more.get(operation).add(mutation);
  }

  private static Cell copy(Cell cell) {
    return org.apache.hadoop.hbase.CellBuilderFactory.create(org.apache.hadoop.hbase.CellBuilderType.SHALLOW_COPY)
        .setRow(CellUtil.cloneRow(cell))
        .setFamily(CellUtil.cloneFamily(cell))
        .setQualifier(CellUtil.cloneQualifier(cell))
        .setTimestamp(cell.getTimestamp())
        .setType(Cell.Type.Put)
        .setValue(CellUtil.cloneValue(cell))
        .build();
  }
}
