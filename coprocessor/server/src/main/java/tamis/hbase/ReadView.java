package tamis.hbase;

import java.io.IOException;
import org.apache.hadoop.hbase.client.PackagePrivateFieldAccessor;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.RegionScanner;

/** One instant of a region: all scanners that it opens see the same. Threads: exclusive access. */
final class ReadView implements AutoCloseable {
  private final Region region;
  private final RegionScanner first; // holds the instant: what it sees is not dropped

  ReadView(Region region) throws IOException {
    this.region = region;
    byte[] start = region.getRegionInfo().getStartKey();
    first = region.getScanner(new Scan().addFamily(IndexedTable.FAMILY).withStartRow(start).withStopRow(start, true));
  }

  RegionScanner open(Scan scan) throws IOException {
    PackagePrivateFieldAccessor.setMvccReadPoint(scan, first.getMvccReadPoint());
    return region.getScanner(scan);
  }

  @Override
  public void close() throws IOException {
    first.close();
  }
}
