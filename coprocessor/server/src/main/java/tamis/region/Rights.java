package tamis.region;

import java.io.IOException;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.regionserver.FlushLifeCycleTracker;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.RegionCoprocessorHost;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.pb.Cluster;
import tamis.table.Schema;

/**
 * Checks whether the caller of a request may read what it asks for. A scanner that is opened on the region checks no
 * rights; so the region's coprocessor hooks, HBase's access control among them, are called for a scan of all that is
 * read. Threads: safe.
 */
public final class Rights {
  private Rights() {}

  /**
   * `columns`: those of the schema to be read; a computed one takes the right to read its source. Throws if the caller
   * may not read them, or only some of their cells: an index tells of all cells.
   */
  public static void mayRead(IndexedRegion region, boolean[] columns) throws IOException, StatusException {
    RegionCoprocessorHost host = hooksOf(region);
    if (host == null) return;
    Schema schema = region.table.schema;
    Scan scan = new Scan();
    for (int i = 0; i < columns.length; ++i) {
      int source = schema.sourceOf(i);
      Schema.Column column = schema.columns[source];
      if (columns[i] && !schema.isKey(source)) scan.addColumn(column.family, column.qualifier);
    }
    if (!scan.hasFamilies()) { // keys alone: of all rows
      for (byte[] family : region.table.families) scan.addFamily(family);
    }
    host.preScannerOpen(scan);
    if (scan.getFilter() != null && !Fault.FILTERED_READ_ALLOWED.isOn()) {
      throw new StatusException(Cluster.Error.Code.FAILED_PRECONDITION,
          "you may read only some cells of table \"" + schema.name + "\": this needs all of the columns of its"
              + " condition, indexes and output");
    }
  }

  /** Throws if the caller may read no column of the table. */
  public static void mayReadSome(IndexedRegion region) throws IOException {
    RegionCoprocessorHost host = hooksOf(region);
    if (host == null || Fault.SCHEMA_FOR_ALL.isOn()) return;
    Scan scan = new Scan();
    for (byte[] family : region.table.families) scan.addFamily(family);
    host.preScannerOpen(scan);
  }

  /** Throws if the caller may not read all columns of the table's indexes. */
  public static void mayReadIndexed(IndexedRegion region) throws IOException, StatusException {
    boolean[] columns = new boolean[region.table.schema.columns.length];
    for (Schema.Index index : region.table.schema.indexes) {
      for (int column : index.columns) columns[column] = true;
    }
    mayRead(region, columns);
  }

  /** Throws if the caller may not have the region's indexes rebuilt: that takes the right to flush the region. */
  public static void mayRebuild(IndexedRegion region) throws IOException {
    RegionCoprocessorHost host = hooksOf(region);
    if (host != null && !Fault.REBUILD_FOR_READERS.isOn()) host.preFlush(FlushLifeCycleTracker.DUMMY);
  }

  /** Null: the region has no hooks. */
  private static RegionCoprocessorHost hooksOf(IndexedRegion region) {
    return region.region instanceof HRegion ? ((HRegion) region.region).getCoprocessorHost() : null;
  }
}
