package tamis.index;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.feed.IndexEntry;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.region.ReadView;
import tamis.region.RowCursor;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.KeyFormat;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * Compares every row of a region with its index entries and filters, as they all stood at one instant. Writes go on
 * meanwhile: the filters are copied at that instant, rows and entries are read as of it. Threads: exclusive access.
 */
public final class Checker {
  private static final int BATCH = 200;
  private static final int MAX_PROBLEMS = 20;

  private final IndexedRegion region;
  private final Schema schema;
  private final IndexBuilder.Progress progress;
  private final Cluster.RegionCheck.Builder report = Cluster.RegionCheck.newBuilder();
  private final Map<Integer, Predicate<IndexEntry>> filters = new HashMap<>();
  private final Set<Integer> complete = new HashSet<>();
  private ReadView view;

  private Checker(IndexedRegion region, IndexBuilder.Progress progress) {
    this.region = region;
    schema = region.table.schema;
    this.progress = progress;
  }

  /** Returns null when the region closes, or `progress` stops the check. */
  public static Cluster.RegionCheck check(IndexedRegion region, IndexBuilder.Progress progress)
      throws IOException, InterruptedException {
    return new Checker(region, progress).run();
  }

  private Cluster.RegionCheck run() throws IOException, InterruptedException {
    boolean quiet = region.whileQuiet(() -> {
      complete.addAll(region.complete());
      region.filters.forEach((id, filter) -> filters.put(id, complete.contains(id) ? filter.frozen() : null));
      view = new ReadView(region.region);
    });
    if (!quiet) return null;
    try (ReadView opened = view) {
      report.setIncomplete(schema.indexes.length - complete.size());
      return checkRows() && checkEntries() ? report.build() : null;
    }
  }

  private void note(String problem) {
    if (report.getProblemsCount() < MAX_PROBLEMS) {
      report.addProblems("region " + region.info().getEncodedName() + ": " + problem);
    }
  }

  private static String text(byte[] key) {
    return Bytes.toStringBinary(key);
  }

  // ---- Rows

  private boolean checkRows() throws IOException {
    TreeMap<byte[], IndexEntry> wanted = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    Scan scan = new Scan().readVersions(1).setCacheBlocks(false);
    for (byte[] family : region.table.families) scan.addFamily(family);
    long read = 0;
    try (RowCursor rows = new RowCursor(view.open(scan))) {
      for (List<Cell> cells = rows.next(); cells != null; cells = rows.next()) {
        look(CellUtil.cloneRow(cells.get(0)), cells, wanted);
        if (++read % BATCH == 0 && !progress.rows(report.getRows())) return false; // not all rows have an entry
        if (wanted.size() < BATCH) continue;
        findEntries(wanted);
        wanted.clear();
      }
    }
    findEntries(wanted);
    return progress.rows(report.getRows());
  }

  private void look(byte[] row, List<Cell> cells, Map<byte[], IndexEntry> wanted) {
    if (!KeyFormat.decode(schema, row, new Value[schema.columns.length])) {
      report.setUnparsedRows(report.getUnparsedRows() + 1);
      note("row key " + text(row) + " is not of the table's format");
      return;
    }
    report.setRows(report.getRows() + 1);
    for (Cell cell : cells) {
      int column = region.table.columnOf(CellUtil.cloneFamily(cell), CellUtil.cloneQualifier(cell));
      if (column < 0) continue;
      Schema.Column of = schema.columns[column];
      if (of.encoding.decode(of.type, CellUtil.cloneValue(cell)) != null) continue;
      report.setUndecodableCells(report.getUndecodableCells() + 1);
      note("row " + text(row) + " has a cell that does not decode, of column \"" + of.name + "\"");
    }
    RowImage image = new RowImage(region.table, row, false);
    image.addStored(cells);
    for (IndexEntry entry : image.entries(region.keys).values()) {
      if (!complete.contains(entry.index.id)) continue;
      wanted.put(entry.key, entry);
      Predicate<IndexEntry> filter = filters.get(entry.index.id);
      if (filter == null) continue;
      report.setFilterLookups(report.getFilterLookups() + 1);
      if (filter.test(entry)) continue;
      report.setMissingInFilter(report.getMissingInFilter() + 1);
      note("the filter of index \"" + entry.index.name + "\" says no to row " + text(row));
    }
  }

  private void findEntries(TreeMap<byte[], IndexEntry> wanted) throws IOException {
    if (wanted.isEmpty()) return;
    TreeMap<byte[], IndexEntry> missing = new TreeMap<>(wanted);
    RowReader.seek(view::open, new Scan().addFamily(IndexedTable.FAMILY).setCacheBlocks(false), wanted,
        (key, cells) -> compare(missing.remove(key), IndexedTable.valueOf(cells.get(0))));
    report.setEntries(report.getEntries() + wanted.size() - missing.size());
    for (IndexEntry entry : missing.values()) {
      report.setMissingEntries(report.getMissingEntries() + 1);
      note("index \"" + entry.index.name + "\" lacks the entry " + text(entry.key));
    }
  }

  /** No search takes the included columns of a marked entry, or of one of an attached table. */
  private void compare(IndexEntry wanted, byte[] value) {
    boolean taken = IndexedTable.isCertain(value) && !region.table.attached && !region.loaded;
    if (!taken || Arrays.equals(value, wanted.included)) return;
    report.setForeignEntries(report.getForeignEntries() + 1);
    note("index \"" + wanted.index.name + "\" has other values of included columns than the row in the entry "
        + text(wanted.key));
  }

  // ---- Entries

  private boolean checkEntries() throws IOException {
    TreeMap<byte[], List<byte[]>> byRow = new TreeMap<>(Bytes.BYTES_COMPARATOR); // entries to check against their rows
    long read = 0;
    Scan scan = new Scan().addFamily(IndexedTable.FAMILY).setCacheBlocks(false);
    try (RowCursor entries = new RowCursor(view.open(scan))) {
      for (List<Cell> cells = entries.next(); cells != null; cells = entries.next()) {
        sort(CellUtil.cloneRow(cells.get(0)), cells.get(0), byRow);
        if (++read % BATCH == 0 && !progress.rows(report.getRows())) return false; // not every entry is added to byRow
        if (byRow.size() < BATCH) continue;
        askRows(byRow);
        byRow.clear();
      }
    }
    askRows(byRow);
    return progress.rows(report.getRows());
  }

  private void sort(byte[] key, Cell cell, Map<byte[], List<byte[]>> byRow) {
    switch (region.keys.kindOf(schema, key)) {
      case MARKER:
        return;
      case GARBAGE:
        report.setGarbage(report.getGarbage() + 1);
        return;
      case DAMAGED:
        report.setForeignEntries(report.getForeignEntries() + 1);
        note("an entry cannot be read: " + text(key));
        return;
      default:
    }
    Schema.Index index = schema.index(region.keys.indexOf(key));
    if (!complete.contains(index.id)) return;
    // An uncertain entry, of a version under a tombstone: the row may have stopped giving it without a write.
    if (!IndexedTable.isCertain(IndexedTable.valueOf(cell))) return;
    try {
      byRow.computeIfAbsent(region.keys.rowOf(schema, index, key), row -> new ArrayList<>()).add(key);
    } catch (DamagedBytesException e) {
      throw new IllegalStateException(e);
    }
  }

  private void askRows(TreeMap<byte[], List<byte[]>> byRow) throws IOException {
    if (byRow.isEmpty()) return;
    TreeMap<byte[], List<byte[]>> left = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    Map<byte[], RowImage> images = RowReader.readSeen(view::open, region.table, byRow, true);
    byRow.forEach((row, keys) -> keep(row, keys, images.get(row), left));
    if (left.isEmpty()) return;
    // A hidden version may become visible later.
    Map<byte[], RowImage> all = RowReader.readRaw(view::open, region.table, left);
    TreeMap<byte[], List<byte[]>> foreign = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    left.forEach((row, keys) -> keep(row, keys, all.get(row), foreign));
    foreign.forEach((row, keys) -> {
      for (byte[] key : keys) {
        if (region.table.expires) { // the row may have gone first
          report.setGarbage(report.getGarbage() + 1);
          continue;
        }
        report.setForeignEntries(report.getForeignEntries() + 1);
        note("index \"" + schema.index(region.keys.indexOf(key)).name + "\" has an entry for row " + text(row)
            + " that the row does not give: " + text(key));
      }
    });
  }

  private void keep(byte[] row, List<byte[]> keys, RowImage image, Map<byte[], List<byte[]>> unwanted) {
    Map<Key, IndexEntry> entries = image.entries(region.keys);
    for (byte[] key : keys) {
      if (!entries.containsKey(new Key(key))) unwanted.computeIfAbsent(row, r -> new ArrayList<>()).add(key);
    }
  }
}
