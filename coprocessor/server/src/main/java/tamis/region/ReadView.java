package tamis.region;

import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.PackagePrivateFieldAccessor;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import tamis.base.Fault;
import tamis.table.Key;

/** One instant of a region: all scanners that it opens see the same. Threads: exclusive access. */
public final class ReadView implements AutoCloseable {
  private final Region region;
  private final RegionScanner first; // holds the instant: what it sees is not dropped

  public ReadView(Region region) throws IOException {
    this.region = region;
    byte[] start = region.getRegionInfo().getStartKey();
    first = region.getScanner(new Scan().addFamily(IndexedTable.FAMILY).withStartRow(start).withStopRow(start, true));
  }

  /** A scan from `start` to before `end`, either of which may be longer than HBase allows a row; empty end: no end. */
  public static Scan scan(byte[] start, byte[] end) {
    Scan scan = new Scan();
    // No row lies between the first MAX_ROW_LENGTH bytes of a longer start and that start.
    boolean within = start.length <= HConstants.MAX_ROW_LENGTH;
    scan.withStartRow(within ? start : Arrays.copyOf(start, HConstants.MAX_ROW_LENGTH), within);
    return end.length == 0 ? scan : scan.withStopRow(firstRow(end));
  }

  /**
   * The same of index entries, of which the first cell of each row counts. After the one version that it is asked for
   * HBase seeks the next row, which costs as much as the entry does; an entry has few versions, so all are asked for.
   */
  public static Scan scanEntries(byte[] start, byte[] end) {
    return scan(start, end).addFamily(IndexedTable.FAMILY).readAllVersions();
  }

  /** The rows from the first key, which may be longer than any row is, down to the other, both included. */
  public static Scan scanDown(byte[] start, byte[] end) {
    byte[] from = start.length <= HConstants.MAX_ROW_LENGTH ? start : Arrays.copyOf(start, HConstants.MAX_ROW_LENGTH);
    return new Scan().setReversed(true).withStartRow(from).withStopRow(firstRow(end), true);
  }

  /** The rows before `end`, which may be longer than any row is, down to the other; an empty end is none. */
  public static Scan scanDownBefore(byte[] end, byte[] start) {
    if (end.length > HConstants.MAX_ROW_LENGTH) return scanDown(end, start);
    return scanDown(end, start).withStartRow(end, end.length == 0);
  }

  /** The first key at or after this one that is short enough for a row; empty: there is none. */
  public static byte[] firstRow(byte[] key) {
    return key.length <= HConstants.MAX_ROW_LENGTH ? key : Key.prefixEnd(Arrays.copyOf(key, HConstants.MAX_ROW_LENGTH));
  }

  public RegionScanner open(Scan scan) throws IOException {
    Fault.STREAM_CLOSED_IN_READ.happen();
    PackagePrivateFieldAccessor.setMvccReadPoint(scan, first.getMvccReadPoint());
    return region.getScanner(scan);
  }

  @Override
  public void close() throws IOException {
    first.close();
  }
}
