package tamis.index;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants.OperationStatusCode;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.io.HFileLink;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.HStoreFile;
import org.apache.hadoop.hbase.regionserver.OperationStatus;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import org.apache.hadoop.hbase.regionserver.StoreFileInfo;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CommonFSUtils;
import tamis.base.Fault;
import tamis.feed.IndexEntry;
import tamis.region.EntryKeys;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.region.LoadedRows;
import tamis.region.ReadView;
import tamis.table.ByteReader;
import tamis.table.ByteWriter;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;

/**
 * Makes the entries of a region agree with its rows. Each row gets a write that does not change it, so that it takes
 * the way of all writes: the row is locked and read, and its missing entries are put. Rows that existing entries name
 * come first: entries that these rows do not give (left by an earlier region with the same rows, for example) are
 * deleted. Concurrent writes make their entries themselves.
 *
 * A marker for each index says that every row has its entry. It names the region, its end key, and the last restoring
 * of a snapshot before it. Threads: safe; REQUIRES for build: IndexedRegion.building is held.
 */
public final class IndexBuilder {
  private static final int BATCH = 100;
  private static final int STRETCH = 10_000; // the most entries that one scanner reads
  private static final int MAX_TRIES = 20;
  private static final long LAST_TIMESTAMP = Long.MAX_VALUE - 1;

  private IndexBuilder() {}

  private static byte[] markerOf(IndexedRegion region) throws IOException {
    return new ByteWriter()
        .putLengthPrefixed(Bytes.toBytes(region.info().getEncodedName()))
        .putLengthPrefixed(region.info().getEndKey())
        .putLengthPrefixed(Bytes.toBytes(lastRestoring(region)))
        .toBytes();
  }

  public static String lastRestoring(IndexedRegion region) throws IOException {
    if (!(region.region instanceof HRegion)) return "";
    HRegion opened = (HRegion) region.region;
    return RestoreMark.last(opened.getRegionFileSystem().getFileSystem(),
        CommonFSUtils.getRootDir(opened.getReadOnlyConfiguration()), region.table.name);
  }

  /** Hears of the progress of a build, and may stop it. */
  public interface Progress {
    /** `rows`: rows done so far. Return false to stop the build. */
    boolean rows(long rows);
  }

  /** The indexes whose markers hold for this region. */
  public static Set<Integer> markedComplete(IndexedRegion region) throws IOException {
    Set<Integer> complete = new HashSet<>();
    Set<String> origins = null;
    String restoring = lastRestoring(region);
    for (Schema.Index index : region.table.schema.indexes) {
      byte[] value = readMarker(region, index.id);
      if (value == null) {
        if (Fault.UNMARKED_BELIEVED.isOn()) complete.add(index.id);
        continue;
      }
      ByteReader in = new ByteReader(value);
      String name;
      byte[] end;
      String after;
      try {
        name = Bytes.toString(in.takeLengthPrefixed());
        end = in.takeLengthPrefixed();
        after = in.isEmpty() ? "" : Bytes.toString(in.takeLengthPrefixed());
      } catch (DamagedBytesException e) {
        continue;
      }
      if (!after.equals(restoring) && !Fault.RESTORED_MARKER_BELIEVED.isOn()) continue;
      if (name.equals(region.info().getEncodedName())) {
        complete.add(index.id);
        continue;
      }
      // The lower daughter has its parent's start key, and so its entries: complete if it is made of the parent's
      // files and no others.
      byte[] own = region.info().getEndKey();
      boolean within = end.length == 0 || (own.length > 0 && Key.compare(own, end) <= 0);
      if (!within) continue;
      if (origins == null) origins = origins(region);
      if (origins.size() == 1 && origins.contains(name)) complete.add(index.id);
    }
    return complete;
  }

  private static byte[] readMarker(IndexedRegion region, int indexId) throws IOException {
    byte[] key = region.keys.marker(indexId);
    try (RegionScanner scanner = region.region.getScanner(new Scan(new Get(key)).addFamily(IndexedTable.FAMILY))) {
      List<Cell> cells = new ArrayList<>();
      scanner.nextRaw(cells);
      return cells.isEmpty() ? null : CellUtil.cloneValue(cells.get(0));
    }
  }

  /** The regions of this table that the region's files come from; "" for files of its own or of another table. */
  public static Set<String> origins(IndexedRegion region) {
    Set<String> origins = new HashSet<>();
    if (!(region.region instanceof HRegion)) return origins;
    for (HStore store : ((HRegion) region.region).getStores()) {
      for (HStoreFile file : store.getStorefiles()) {
        String name = file.getPath().getName();
        if (HFileLink.isHFileLink(name)) {
          boolean same = HFileLink.getReferencedTableName(name).equals(region.table.name);
          origins.add(same ? HFileLink.getReferencedRegionName(name) : "");
        } else if (StoreFileInfo.isReference(name)) {
          origins.add(name.substring(name.lastIndexOf('.') + 1));
        } else {
          origins.add("");
        }
      }
    }
    return origins;
  }

  /** Writes the markers of indexes that are complete. REQUIRES: the region is online. */
  public static void mark(IndexedRegion region, Set<Integer> indexes) throws IOException {
    List<Mutation> markers = new ArrayList<>();
    byte[] marker = markerOf(region);
    for (int id : indexes) {
      if (Arrays.equals(marker, readMarker(region, id))) continue;
      markers.add(new Put(region.keys.marker(id)).addColumn(IndexedTable.FAMILY, IndexedTable.QUALIFIER, marker));
    }
    if (!markers.isEmpty()) write(region, markers, BatchContext.Writer.INDEX);
  }

  /** Deletes the markers: no index of the region counts as complete any more, also after it is opened elsewhere. */
  public static void unmark(IndexedRegion region) throws IOException {
    List<Mutation> markers = new ArrayList<>();
    for (int id : region.indexIds()) {
      markers.add(
          new Delete(region.keys.marker(id)).addColumns(IndexedTable.FAMILY, IndexedTable.QUALIFIER, LAST_TIMESTAMP));
    }
    if (!markers.isEmpty()) write(region, markers, BatchContext.Writer.INDEX);
  }

  /** Builds the indexes with these ids. False: `progress` stopped it. */
  public static boolean build(IndexedRegion region, Set<Integer> indexes, Progress progress) throws IOException {
    return build(region, indexes, null, progress);
  }

  /** The same for the rows of these ranges alone (null: all rows): the entries of the other rows are right. */
  public static boolean build(
      IndexedRegion region, Set<Integer> indexes, List<LoadedRows.Range> ranges, Progress progress) throws IOException {
    if (ranges != null && ranges.isEmpty()) return true;
    BatchContext.Caller caller = BatchContext.next();
    caller.indexes = indexes;
    try {
      long[] rows = new long[1];
      if (!sweep(region, indexes, ranges, rows, progress)) return false;
      if (ranges == null) return visit(region, region.info().getStartKey(), Key.EMPTY, rows, progress);
      for (LoadedRows.Range range : ranges) {
        if (!visit(region, range.from(), range.to(), rows, progress)) return false;
      }
      return true;
    } finally {
      caller.indexes = Collections.emptySet();
    }
  }

  /** Looks at the rows that the entries name. */
  private static boolean sweep(IndexedRegion region, Set<Integer> indexes, List<LoadedRows.Range> ranges, long[] rows,
      Progress progress) throws IOException {
    for (int id : indexes) {
      byte[] prefix = region.keys.index(id);
      byte[] end = Key.prefixEnd(prefix);
      byte[] from = prefix;
      while (from != null) {
        Scan scan = ReadView.scan(from, end).addFamily(IndexedTable.FAMILY).setCacheBlocks(false);
        Map<Key, List<IndexEntry>> suspects = new TreeMap<>();
        List<Mutation> nobodys = new ArrayList<>();
        from = collect(region, scan, ranges, suspects, nobodys);
        write(region, nobodys, BatchContext.Writer.INDEX);
        List<Mutation> touches = new ArrayList<>();
        for (Key row : suspects.keySet()) touches.add(new Put(row.bytes()));
        BatchContext.Caller caller = BatchContext.next();
        caller.suspects = suspects;
        try {
          write(region, touches, BatchContext.Writer.BUILDER);
        } finally {
          caller.suspects = Collections.emptyMap();
        }
        rows[0] += touches.size();
        if (!progress.rows(rows[0])) return false;
      }
    }
    return true;
  }

  /**
   * Reads some entries: adds those of rows in `ranges` to `suspects` by their rows, and to `nobodys` a delete for each
   * that no row of the region can give. Returns the key where the next entries begin; null: there are no more.
   */
  private static byte[] collect(IndexedRegion region, Scan scan, List<LoadedRows.Range> ranges,
      Map<Key, List<IndexEntry>> suspects, List<Mutation> nobodys) throws IOException {
    Schema schema = region.table.schema;
    try (RegionScanner scanner = region.region.getScanner(scan)) {
      List<Cell> cells = new ArrayList<>();
      boolean more = true;
      byte[] last = null;
      for (int seen = 0; more && seen < STRETCH && suspects.size() + nobodys.size() < BATCH; ++seen) {
        cells.clear();
        more = scanner.nextRaw(cells);
        if (cells.isEmpty()) continue;
        last = CellUtil.cloneRow(cells.get(0));
        Schema.Index index = schema.index(region.keys.indexOf(last));
        if (region.keys.kindOf(schema, last) != EntryKeys.Kind.ENTRY) {
          nobodys.add(new Delete(last).addColumns(IndexedTable.FAMILY, IndexedTable.QUALIFIER, LAST_TIMESTAMP));
          continue;
        }
        try {
          IndexEntry entry = region.keys.read(schema, index, last);
          byte[] row = region.keys.rowOf(schema, index, last);
          if (!isIn(ranges, row)) continue;
          suspects.computeIfAbsent(new Key(row), key -> new ArrayList<>()).add(entry);
        } catch (DamagedBytesException e) {
          throw new IOException("cannot build the indexes of region " + region.info().getEncodedName()
                  + ": the key of an entry cannot be decoded: " + Bytes.toStringBinary(last),
              e);
        }
      }
      return more ? Key.after(last) : null;
    }
  }

  private static boolean isIn(List<LoadedRows.Range> ranges, byte[] row) {
    return ranges == null || ranges.stream().anyMatch(range -> range.contains(row));
  }

  /** Looks at the rows from `start` on, before `end`; an empty end is none. */
  private static boolean visit(IndexedRegion region, byte[] start, byte[] end, long[] rows, Progress progress)
      throws IOException {
    // A scanner that is held open holds back what compactions may forget; so one for each stretch.
    byte[] from = start;
    while (true) {
      List<Mutation> touches = new ArrayList<>();
      boolean more = true;
      Scan scan = ReadView.scan(from, end).setFilter(new FirstKeyOnlyFilter()).setCacheBlocks(false);
      // A version that was loaded under a tombstone may become visible once a compaction ends that took the tombstone
      // before the files came.
      scan.setRaw(region.hasLoadedCells() && !Fault.HIDDEN_ROWS_NOT_VISITED.isOn());
      for (byte[] family : region.table.families) scan.addFamily(family);
      try (RegionScanner scanner = region.region.getScanner(scan)) {
        while (more && touches.size() < BATCH) {
          List<Cell> cells = new ArrayList<>();
          more = scanner.nextRaw(cells);
          if (!cells.isEmpty()) touches.add(new Put(CellUtil.cloneRow(cells.get(0))));
        }
      }
      if (touches.isEmpty()) return true;
      from = Key.after(touches.get(touches.size() - 1).getRow());
      write(region, touches, BatchContext.Writer.BUILDER);
      rows[0] += touches.size();
      if (!progress.rows(rows[0])) return false;
      if (!more) return true;
    }
  }

  private static void write(IndexedRegion region, List<Mutation> mutations, BatchContext.Writer writer)
      throws IOException {
    List<Mutation> left = mutations;
    for (int tried = 0; !left.isEmpty(); ++tried) {
      BatchContext.Caller caller = BatchContext.next();
      OperationStatus[] statuses = null;
      IOException busy = null;
      caller.writer = writer;
      try {
        statuses = ((HRegion) region.region).batchMutate(left.toArray(new Mutation[0]));
      } catch (org.apache.hadoop.hbase.RegionTooBusyException e) {
        busy = e;
      } finally {
        caller.writer = BatchContext.Writer.CLIENT;
      }
      List<Mutation> failed = new ArrayList<>();
      String why = busy == null ? "" : busy.getMessage();
      for (int i = 0; statuses != null && i < statuses.length; ++i) {
        if (statuses[i].getOperationStatusCode() == OperationStatusCode.SUCCESS) continue;
        failed.add(left.get(i));
        why = statuses[i].getExceptionMsg();
      }
      if (statuses != null) left = failed;
      if (left.isEmpty()) return;
      if (tried == MAX_TRIES) {
        throw new IOException("cannot write index entries of region " + region.info().getEncodedName() + " after "
                + tried + " retries: " + why,
            busy);
      }
      try {
        Thread.sleep(50L * (tried + 1));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new java.io.InterruptedIOException("interrupted while entries were written");
      }
    }
  }
}
