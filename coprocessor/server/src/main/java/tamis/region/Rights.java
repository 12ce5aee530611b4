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
 * Whether the caller may see what a region is asked for. A scanner of the region asks nobody; so the region's own hooks
 * are asked, whoever keeps the rights, about a scan of all that is read.
 */
public final class Rights {
  private Rights() {}

  /** `columns`: of the schema. Throws when he may not, or would see only some of the cells: an index tells of all. */
  public static void mayRead(IndexedRegion region, boolean[] columns) throws IOException, StatusException {
    RegionCoprocessorHost host = hooksOf(region);
    if (host == null) return;
    Schema schema = region.table.schema;
    Scan scan = new Scan();
    for (int i = 0; i < columns.length; ++i) {
      Schema.Column column = schema.columns[i];
      if (columns[i] && !schema.isKey(i)) scan.addColumn(column.family, column.qualifier);
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

  /** All columns that indexes tell of. */
  public static void mayReadIndexed(IndexedRegion region) throws IOException, StatusException {
    boolean[] columns = new boolean[region.table.schema.columns.length];
    for (Schema.Index index : region.table.schema.indexes) {
      for (int column : index.columns) columns[column] = true;
    }
    mayRead(region, columns);
  }

  /** Whether he may have all of it written anew: he may where he may have it flushed. Throws when he may not. */
  public static void mayRebuild(IndexedRegion region) throws IOException {
    RegionCoprocessorHost host = hooksOf(region);
    if (host != null && !Fault.REBUILD_FOR_READERS.isOn()) host.preFlush(FlushLifeCycleTracker.DUMMY);
  }

  /** Null: there are none. */
  private static RegionCoprocessorHost hooksOf(IndexedRegion region) {
    return region.region instanceof HRegion ? ((HRegion) region.region).getCoprocessorHost() : null;
  }
}
