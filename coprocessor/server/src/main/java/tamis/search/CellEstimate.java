package tamis.search;

import java.util.List;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.regionserver.HStoreFile;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.Store;
import org.apache.hadoop.hbase.regionserver.StoreFile;
import org.apache.hadoop.hbase.regionserver.StoreFileReader;
import tamis.compat.BlockIndexRoot;
import tamis.region.ReadView;

/**
 * How many cells of a family lie in ranges of rows, without reading any: the roots of its files' block indexes are in
 * memory, and say it but for a block at either end; of what is not in files yet any share may lie in the ranges. A
 * value.
 */
final class CellEstimate {
  /** A range of rows; an empty end is none. */
  static final class Rows {
    final byte[] start;
    final byte[] end;

    Rows(byte[] start, byte[] end) {
      this.start = start;
      this.end = end;
    }
  }

  private static final double UNKNOWN_SHARE = 1.0 / 3;

  final long least;
  final long likely;
  final long most;

  private CellEstimate(double least, double likely, double most) {
    this.least = (long) Math.max(0, least);
    this.likely = (long) likely;
    this.most = (long) Math.ceil(most);
  }

  static CellEstimate of(Region region, byte[] family, List<Rows> ranges) {
    Store store = region.getStore(family);
    double all = 0;
    double inRanges = 0;
    double ends = 0;
    for (StoreFile file : store.getStorefiles()) {
      StoreFileReader opened = ((HStoreFile) file).getReader();
      HFile.Reader reader = opened == null ? null : opened.getHFileReader();
      if (reader == null) continue;
      BlockIndexRoot index = BlockIndexRoot.of(reader);
      int blocks = index == null ? 0 : index.blocks();
      if (blocks == 0) continue;
      double ofBlock = (double) reader.getEntries() / blocks;
      all += reader.getEntries();
      for (Rows range : ranges) {
        int first = index.blockOf(ReadView.firstRow(range.start));
        int last = range.end.length == 0 ? blocks : index.blockOf(ReadView.firstRow(range.end));
        inRanges += Math.max(0, last - first) * ofBlock;
        if (first >= 0 || last >= 0) ends += ofBlock;
      }
    }
    double inMemory = store.getMemStoreSize().getCellsCount();
    double share = all > 0 ? Math.min(1, inRanges / all) : UNKNOWN_SHARE;
    return new CellEstimate(inRanges - ends, inRanges + share * inMemory, inRanges + ends + inMemory);
  }

  /** For that many times as many ranges, which have at most that many cells together. */
  CellEstimate times(double factor, long cells) {
    return new CellEstimate(
        Math.min(cells, least * factor), Math.min(cells, likely * factor), Math.min(cells, most * factor));
  }
}
