package tamis.index;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.base.Fault;
import tamis.feed.IndexEntry;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.table.Key;

/**
 * The changes that a mini-batch makes to the entries of its region: which are put and which are deleted, and with which
 * operation of the batch. The lists `added`, `removed` and `held` of the batch's context are filled on the way: the
 * entries that the filters count, uncount, and that the rows have afterwards.
 *
 * `compare` and `rebuild` note the changes of one row each. `finish` reads, for all rows at once, whether entries stand
 * where the row does not tell. The cells are there after that. A deleted entry gets a tombstone with the last time
 * stamp that there is.
 *
 * Threads: that of the batch. REQUIRES: the rows are locked.
 */
final class EntryChanges {
  private final IndexedRegion region;
  private final IndexedTable table;
  private final BatchContext context;
  private final boolean building;
  private final List<List<Cell>> cells; // cells of entries, by operation; null: none
  private final TreeMap<byte[], IndexEntry> gone = new TreeMap<>(Bytes.BYTES_COMPARATOR);
  private final Map<Key, Integer> goneWith = new HashMap<>();
  private final TreeMap<byte[], IndexEntry> missing = new TreeMap<>(Bytes.BYTES_COMPARATOR);
  private final Map<Key, Integer> missingWith = new HashMap<>();

  EntryChanges(IndexedRegion region, BatchContext context, int operations) {
    this.region = region;
    this.table = region.table;
    this.context = context;
    building = context.caller.writer == BatchContext.Writer.BUILDER;
    cells = new ArrayList<>(Collections.nCopies(operations, null));
  }

  /** Notes the entries of a row by which it differs from what it was. */
  void compare(int operation, RowImage before, RowImage after) {
    Map<Key, IndexEntry> old = before.entries(region.keys);
    Map<Key, IndexEntry> now = after.entries(region.keys);
    for (Map.Entry<Key, IndexEntry> entry : now.entrySet()) {
      IndexEntry wanted = entry.getValue();
      context.held.add(wanted);
      IndexEntry there = old.get(entry.getKey());
      boolean complete = region.complete().contains(wanted.index.id);
      // A hidden version may have lost its entry when another one came to show: whether it stands is read.
      if (there != null && complete && !there.certain && !Fault.UNCERTAIN_ENTRIES_TAKEN_FOR_THERE.isOn()) {
        missing.put(wanted.key, wanted);
        missingWith.put(entry.getKey(), operation);
        continue;
      }
      // Where cells expire, an entry is as young as its youngest cell.
      boolean younger = there != null && table.expires && there.timestamp < wanted.timestamp;
      boolean doubtful = there != null && there.certain && !wanted.certain;
      boolean outdated = there != null && isOutdated(valueOf(there), wanted) && !Fault.INCLUDED_COLUMNS_LEFT.isOn();
      if (there != null && complete && !younger && !doubtful && !outdated) continue;
      // The mark that an entry is doubtful must be the visible version, whatever the time of the version that it was
      // certain by.
      put(operation, wanted, doubtful ? RowImage.LAST_TIMESTAMP : wanted.timestamp);
      if (there == null || !complete) context.added.add(wanted);
    }
    for (Map.Entry<Key, IndexEntry> entry : old.entrySet()) {
      if (now.containsKey(entry.getKey())) continue;
      gone.put(entry.getValue().key, entry.getValue());
      goneWith.put(entry.getKey(), operation);
    }
  }

  /** For the indexes that are built: adds the entries that the row lacks, and removes the others. */
  void rebuild(int operation, byte[] row, RowImage image) {
    Map<Key, IndexEntry> now = image.entries(region.keys);
    for (Map.Entry<Key, IndexEntry> entry : now.entrySet()) {
      if (!context.caller.indexes.contains(entry.getValue().index.id)) continue;
      context.held.add(entry.getValue());
      missing.put(entry.getValue().key, entry.getValue());
      missingWith.put(entry.getKey(), operation);
    }
    for (IndexEntry suspect : context.caller.suspects.getOrDefault(new Key(row), Collections.emptyList())) {
      Key key = new Key(suspect.key);
      if (now.containsKey(key)) continue;
      gone.put(suspect.key, suspect);
      goneWith.put(key, operation);
    }
  }

  /** All rows are noted. */
  void finish() throws IOException {
    deleteGone();
    putMissing();
  }

  /** The cells of entries that are to be written with the operation; null: none. */
  List<Cell> cellsOf(int operation) {
    return cells.get(operation);
  }

  private void add(int operation, IndexEntry entry, long timestamp, KeyValue.Type type, byte[] value) {
    if (cells.get(operation) == null) cells.set(operation, new ArrayList<>());
    cells.get(operation).add(
        new KeyValue(entry.key, IndexedTable.FAMILY, IndexedTable.QUALIFIER, timestamp, type, value));
  }

  private void put(int operation, IndexEntry entry, long timestamp) {
    // Its included columns change without the time stamps of the indexed cells: whatever these are, the entry that is
    // written last shows.
    boolean carries = entry.index.include.length > 0 && !Fault.INCLUDED_AT_THEIR_TIMESTAMPS.isOn();
    add(operation, entry, carries ? RowImage.LAST_TIMESTAMP : timestamp, KeyValue.Type.Put, valueOf(entry));
  }

  private byte[] valueOf(IndexEntry entry) {
    return entry.certain ? entry.included : IndexedTable.UNCERTAIN;
  }

  /** Whether an entry with this value is to be written again for its included columns. */
  private boolean isOutdated(byte[] value, IndexEntry wanted) {
    return wanted.index.include.length > 0 && !Arrays.equals(value, valueOf(wanted));
  }

  private void putMissing() throws IOException {
    if (missing.isEmpty()) return;
    RowReader.seek(
        region.region::getScanner, new Scan().addFamily(IndexedTable.FAMILY), new TreeMap<>(missing), (key, cells) -> {
          // Where cells expire, an entry is as young as its youngest cell.
          boolean old = table.expires && cells.get(0).getTimestamp() < missing.get(key).timestamp;
          if (old) return;
          IndexEntry entry = missing.remove(key);
          byte[] value = IndexedTable.valueOf(cells.get(0));
          boolean doubtful = IndexedTable.isCertain(value) && !entry.certain;
          boolean marked = doubtful && !Fault.REBUILT_ENTRIES_LEFT_UNMARKED.isOn();
          if (marked || (isOutdated(value, entry) && !Fault.REBUILT_COLUMNS_LEFT.isOn())) {
            put(missingWith.get(new Key(entry.key)), entry, RowImage.LAST_TIMESTAMP);
          }
        });
    for (IndexEntry entry : missing.values()) {
      put(missingWith.get(new Key(entry.key)), entry, entry.timestamp);
      context.added.add(entry);
    }
  }

  /** For an entry that the row gave: every row has its entry in an index that is complete. */
  private boolean stands(IndexEntry entry) {
    return !building && entry.certain && region.complete().contains(entry.index.id) && !table.expires && !region.loaded;
  }

  /**
   * Only what stands is deleted and uncounted: a filter must not lose one that it never counted. Whether it stands is
   * read, but where it cannot be otherwise: that costs as much as reading the rows does.
   */
  private void deleteGone() throws IOException {
    if (gone.isEmpty()) return;
    Set<Key> there = new HashSet<>();
    TreeMap<byte[], IndexEntry> doubtful = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    for (IndexEntry entry : gone.values()) {
      if (entry.key.length > HConstants.MAX_ROW_LENGTH) continue; // it never stood: the row is older than the index
      if (stands(entry)) there.add(new Key(entry.key));
      else doubtful.put(entry.key, entry);
    }
    if (!doubtful.isEmpty()) {
      RowReader.seek(region.region::getScanner, new Scan().addFamily(IndexedTable.FAMILY), doubtful,
          (key, cells) -> there.add(new Key(key)));
    }
    for (IndexEntry entry : gone.values()) {
      Key key = new Key(entry.key);
      if (!there.contains(key)) continue;
      add(goneWith.get(key), entry, RowImage.LAST_TIMESTAMP, KeyValue.Type.DeleteColumn, HConstants.EMPTY_BYTE_ARRAY);
      // It is not known whether an entry that no row gave was counted. A builder's work is counted again.
      if (!building) context.removed.add(entry);
    }
  }
}
