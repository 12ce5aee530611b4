package tamis.index;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.regionserver.MiniBatchOperationInProgress;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;

/**
 * Reads the rows of a mini-batch as they are before it. A row image has what the writes of the row may bring to light:
 * the newest cells, all versions where a write deletes single ones or a version is hidden, and the cells at or above
 * the time stamp of the oldest cell that is put, since a put at or below a tombstone does not show.
 *
 * Threads: that of the batch. REQUIRES: the rows are locked.
 */
final class RowsBefore {
  private final IndexedRegion region;
  private final IndexedTable table;
  private final MiniBatchOperationInProgress<Mutation> batch;
  private final BatchContext context;
  private final boolean building;

  RowsBefore(IndexedRegion region, MiniBatchOperationInProgress<Mutation> batch, BatchContext context) {
    this.region = region;
    this.table = region.table;
    this.batch = batch;
    this.context = context;
    building = context.caller.writer == BatchContext.Writer.BUILDER;
  }

  /**
   * Sets `before` of the writes, which are sorted by row. Most rows need one seek for each family; the maps are for the
   * others.
   */
  void read(List<RowWrites> rows) throws IOException {
    TreeMap<byte[], RowWrites> raw = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    TreeMap<byte[], RowWrites> hard = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    TreeMap<byte[], RowWrites> put = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    boolean foreign = building && region.hasLoadedCells();
    boolean conditional = context.caller.conditions != null;
    List<byte[]> sorted = RowWrites.rowsOf(rows);
    long since = Long.MAX_VALUE;
    try (NewestCells cells = NewestCells.open(region, sorted.get(0), sorted.get(sorted.size() - 1), conditional)) {
      for (RowWrites row : rows) {
        if (row.raw || region.isHiding(row.row) || foreign) {
          raw.put(row.row, row);
          continue;
        }
        row.before = cells == null ? null : cells.read(row.row);
        if (row.before == null) hard.put(row.row, row);
        // Puts at or below a tombstone do not show: what stands at their time stamps or above?
        long oldest = oldestPut(row);
        if (oldest == Long.MAX_VALUE || !region.newest.mayStand(region, row.row, oldest)) continue;
        put.put(row.row, row);
        since = Math.min(since, oldest);
      }
    }
    take(RowReader.readSeen(region.region::getScanner, table, hard, conditional), hard);
    Map<byte[], RowImage> images = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    put.forEach((key, row) -> images.put(key, row.before));
    RowReader.addSince(region.region::getScanner, table, put, since, images);
    take(RowReader.readRaw(region.region::getScanner, table, raw), raw);
  }

  private void take(Map<byte[], RowImage> images, Map<byte[], RowWrites> rows) {
    rows.forEach((key, row) -> row.before = images.get(key));
  }

  /** Time stamp of the oldest cell that is put; Long.MAX_VALUE when none is. */
  private long oldestPut(RowWrites writes) {
    long oldest = writes.conditional ? EnvironmentEdgeManager.currentTime() : Long.MAX_VALUE;
    for (int i : writes.operations) {
      Mutation mutation = batch.getOperation(i);
      if (mutation instanceof Delete) continue;
      List<Cell> made = context.computed.get(mutation);
      if (made != null) {
        for (Cell cell : made) oldest = Math.min(oldest, cell.getTimestamp());
      } else if (!(mutation instanceof Increment || mutation instanceof Append)) {
        for (List<Cell> cells : mutation.getFamilyCellMap().values()) {
          for (Cell cell : cells) oldest = Math.min(oldest, cell.getTimestamp());
        }
      }
    }
    return oldest;
  }
}
