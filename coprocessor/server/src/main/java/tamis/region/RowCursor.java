package tamis.region;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import org.apache.hadoop.hbase.regionserver.Shipper;

/**
 * The rows of a long scan, one after the other. The blocks that HBase reads them from are given back every so often, as
 * it does between the pages of a client's scan: a row's cells are of no use once the next row is asked for. Threads:
 * exclusive access.
 */
public final class RowCursor implements Closeable {
  static final int ROWS_HELD = 100;

  private final RegionScanner scanner;
  private final List<Cell> cells = new ArrayList<>();
  private boolean more = true;
  private long read;

  public RowCursor(RegionScanner scanner) {
    this.scanner = scanner;
  }

  /** The cells of the next row; null: there is none. */
  public List<Cell> next() throws IOException {
    cells.clear();
    if (read > 0 && read % ROWS_HELD == 0 && scanner instanceof Shipper) ((Shipper) scanner).shipped();
    while (more && cells.isEmpty()) more = scanner.nextRaw(cells);
    ++read;
    return cells.isEmpty() ? null : cells;
  }

  /** It is known that there is no other row. */
  public boolean ended() {
    return !more;
  }

  @Override
  public void close() throws IOException {
    scanner.close();
  }
}
