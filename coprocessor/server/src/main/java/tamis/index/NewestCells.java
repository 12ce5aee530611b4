package tamis.index;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;
import org.apache.hadoop.hbase.ByteBufferKeyValue;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellComparator;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HStore;
import tamis.base.Closing;
import tamis.base.Fault;
import tamis.compat.CellScanner;
import tamis.compat.Cells;
import tamis.compat.StoreScanners;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;

/**
 * Reads the newest cells of rows, as a scan for one version does, but faster: one seek a row in memory, and a file is
 * read only if neither its Bloom filter nor its time stamps rule the row out. (HBase checks these for reads of single
 * rows, not for scans.) This works only for rows as puts leave them: when it meets a tombstone or a tag it reports that
 * a scan has to read the row.
 *
 * REQUIRES: no thread writes to the rows meanwhile. Threads: exclusive access.
 */
final class NewestCells implements AutoCloseable {
  private static final int STEPS = 8; // cells that are passed one by one, before a seek
  private static final int MAX_NAMELESS = 64; // cells of a column without a name

  /** The cells of one family. */
  private static final class Family {
    final byte[] name;
    final byte[][] qualifiers; // that are wanted, in order; null: all
    final HStore store;
    final List<CellScanner> memory = new ArrayList<>();
    final List<CellScanner> files = new ArrayList<>(); // newest first
    boolean[] sought; // by file
    final boolean[] found; // by qualifier

    Family(HStore store, byte[][] qualifiers) {
      this.store = store;
      this.name = store.getColumnFamilyDescriptor().getName();
      this.qualifiers = qualifiers;
      found = new boolean[qualifiers == null ? 0 : qualifiers.length];
    }

    /** Whether there is a cell of each column that is wanted. */
    boolean hasAll() {
      for (boolean column : found) {
        if (!column) return false;
      }
      return qualifiers != null;
    }
  }

  private final IndexedTable table;
  private final List<Family> families = new ArrayList<>();

  // For the row that is read.
  private RowImage image;
  private long oldest; // time stamp of what was found

  private NewestCells(IndexedTable table) {
    this.table = table;
  }

  /**
   * Opens the columns that indexes need of the rows, or the whole rows; null: a scan has to read them. Rows are read in
   * their order.
   */
  static NewestCells open(IndexedRegion region, byte[] first, byte[] last, boolean whole) throws IOException {
    if (!(region.region instanceof HRegion)) return null;
    NewestCells cells = new NewestCells(region.table);
    for (byte[] family : region.table.families) {
      TreeMap<byte[], Integer> indexed = region.table.indexed().get(family);
      boolean all = whole || region.table.indexesNull;
      if (!all && indexed == null) continue;
      HStore store = ((HRegion) region.region).getStore(family);
      if (!fits(store)) return null;
      cells.families.add(new Family(store, all ? null : indexed.keySet().toArray(new byte[0][])));
    }
    boolean opened = false;
    try {
      for (Family family : cells.families) cells.open(family, first, last);
      opened = true;
    } finally {
      if (!opened) cells.close();
    }
    return cells;
  }

  /** Whether all cells of a family show that no tombstone hides. */
  private static boolean fits(HStore store) {
    ColumnFamilyDescriptor family = store.getColumnFamilyDescriptor();
    return family.getTimeToLive() == HConstants.FOREVER && !family.isMobEnabled() && !family.isNewVersionBehavior();
  }

  private void open(Family family, byte[] first, byte[] last) throws IOException {
    // The rows' writers come one after the other: all that stands in them has been written.
    for (CellScanner scanner : StoreScanners.open(family.store, first, last)) {
      if (scanner.isOfFile()) family.files.add(0, scanner);
      else family.memory.add(scanner);
    }
    family.sought = new boolean[family.files.size()];
  }

  @Override
  public void close() throws IOException {
    List<CellScanner> opened = new ArrayList<>();
    for (Family family : families) {
      opened.addAll(family.memory);
      opened.addAll(family.files);
    }
    Closing.all(opened);
  }

  /** null: a scan has to read it. */
  RowImage read(byte[] row) throws IOException {
    image = new RowImage(table, row, false);
    for (Family family : families) {
      if (!read(family, row)) return null;
    }
    return image;
  }

  /** A cell of the kind that cells in memory mostly are: HBase compares those faster. */
  private static Cell firstOn(byte[] row, byte[] family, byte[] qualifier) {
    byte[] key = new KeyValue(row, family, qualifier, HConstants.LATEST_TIMESTAMP, KeyValue.Type.Maximum).getBuffer();
    return new ByteBufferKeyValue(ByteBuffer.wrap(key), 0, key.length);
  }

  private boolean read(Family family, byte[] row) throws IOException {
    Arrays.fill(family.found, false);
    oldest = Long.MAX_VALUE;
    Cell first = firstOn(row, family.name, HConstants.EMPTY_BYTE_ARRAY);
    for (CellScanner scanner : family.memory) {
      scanner.seek(first);
      if (!collect(family, scanner, row)) return false;
    }
    if (family.files.isEmpty()) return true;
    Scan get = new Scan(new Get(row));
    // A whole file whose versions are older than the found one is not read.
    boolean hasAll = family.hasAll() || (Fault.OLDER_FILES_NOT_READ.isOn() && oldest != Long.MAX_VALUE);
    if (hasAll) get.setTimeRange(oldest, Long.MAX_VALUE);
    for (int i = 0; i < family.files.size(); ++i) {
      CellScanner scanner = family.files.get(i);
      if (!scanner.mayHave(get, family.store)) continue;
      Cell at = scanner.peek();
      if (!family.sought[i]) {
        family.sought[i] = true;
        scanner.seek(first);
      } else if (at != null && compareRow(at, row) < 0) {
        scanner.reseek(first);
      }
      if (!collect(family, scanner, row)) return false;
    }
    return true;
  }

  private static int compareRow(Cell cell, byte[] row) {
    return CellComparator.getInstance().compareRows(cell, row, 0, row.length);
  }

  /** Takes the newest cell of each column out of one scanner, which stands at the row's begin. False: a scan has to. */
  private boolean collect(Family family, CellScanner scanner, byte[] row) throws IOException {
    int wanted = 0;
    int nameless = 0;
    byte[] taken = null; // the column that has been
    Cell cell = scanner.peek();
    while (cell != null && CellUtil.matchingRows(cell, row)) {
      // Tombstones of the whole family stand there, among the versions of a column without a name.
      boolean isNameless = cell.getQualifierLength() == 0;
      boolean hides = Cells.typeOf(cell) != KeyValue.Type.Put.getCode() && !Fault.FAMILY_TOMBSTONES_OVERLOOKED.isOn();
      if (isNameless && (hides || ++nameless > MAX_NAMELESS)) return false;
      if (family.qualifiers == null) {
        if (taken == null || !CellUtil.matchingQualifier(cell, taken)) {
          if (!take(cell)) return false;
          taken = CellUtil.cloneQualifier(cell);
        }
        cell = isNameless ? step(scanner) : stepOver(scanner, row, taken);
        continue;
      }
      byte[] qualifier = family.qualifiers[wanted];
      int order = CellUtil.compareQualifiers(cell, qualifier, 0, qualifier.length);
      if (order == 0) {
        if (taken != qualifier && !take(cell)) return false;
        taken = qualifier;
        family.found[wanted] = true;
        if (isNameless) {
          cell = step(scanner);
          continue;
        }
        if (++wanted == family.qualifiers.length) break;
        cell = stepTo(scanner, family, row, family.qualifiers[wanted]);
      } else if (order > 0) {
        if (++wanted == family.qualifiers.length) break;
      } else {
        cell = isNameless ? step(scanner) : stepTo(scanner, family, row, qualifier);
      }
    }
    return true;
  }

  /** False: it does not tell what shows in its column. */
  private boolean take(Cell cell) {
    if (Cells.typeOf(cell) != KeyValue.Type.Put.getCode() || Cells.hasTags(cell)) return false;
    image.addStored(cell);
    oldest = Math.min(oldest, cell.getTimestamp());
    return true;
  }

  private static Cell step(CellScanner scanner) throws IOException {
    scanner.next();
    return scanner.peek();
  }

  /** To the column, or what is after it. */
  private static Cell stepTo(CellScanner scanner, Family family, byte[] row, byte[] qualifier) throws IOException {
    for (int i = 0; i < STEPS; ++i) {
      Cell cell = step(scanner);
      if (cell == null || !CellUtil.matchingRows(cell, row)
          || CellUtil.compareQualifiers(cell, qualifier, 0, qualifier.length) >= 0) {
        return cell;
      }
    }
    scanner.reseek(firstOn(row, family.name, qualifier));
    return scanner.peek();
  }

  /** Behind the column. */
  private static Cell stepOver(CellScanner scanner, byte[] row, byte[] qualifier) throws IOException {
    Cell cell = null;
    for (int i = 0; i < STEPS; ++i) {
      cell = step(scanner);
      boolean same = cell != null && CellUtil.matchingRows(cell, row) && CellUtil.matchingQualifier(cell, qualifier);
      if (!same) return cell;
    }
    scanner.reseek(Cells.lastOfColumn(cell));
    return scanner.peek();
  }
}
