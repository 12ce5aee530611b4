package tamis.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.regionserver.InternalScanner;
import org.apache.hadoop.hbase.regionserver.ScannerContext;
import org.apache.hadoop.hbase.regionserver.Shipper;
import tamis.region.EntryKeys;
import tamis.region.IndexedRegion;

/**
 * The scanner of a compaction of the entries' family. It drops entries of other regions, of indexes that are no more,
 * and of rows that lie elsewhere since a split. Threads: that of the compaction.
 */
final class EntrySieve implements InternalScanner, Shipper {
  private final InternalScanner in;
  private final IndexedRegion region;

  EntrySieve(InternalScanner in, IndexedRegion region) {
    this.in = in;
    this.region = region;
  }

  @Override
  public boolean next(List<Cell> out, ScannerContext context) throws IOException {
    List<Cell> cells = new ArrayList<>();
    boolean more = in.next(cells, context);
    byte[] key = null;
    boolean garbage = false;
    for (Cell cell : cells) {
      if (key == null || !CellUtil.matchingRows(cell, key)) {
        key = CellUtil.cloneRow(cell);
        garbage = region.keys.kindOf(region.table.schema, key) == EntryKeys.Kind.GARBAGE;
      }
      if (!garbage) out.add(cell);
    }
    return more;
  }

  @Override
  public void close() throws IOException {
    in.close();
  }

  @Override
  public void shipped() throws IOException {
    if (in instanceof Shipper) ((Shipper) in).shipped();
  }
}
