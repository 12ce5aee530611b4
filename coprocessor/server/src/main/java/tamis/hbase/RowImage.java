package tamis.hbase;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.table.Codec;
import tamis.table.Key;
import tamis.table.KeyFormat;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * The versions of one row's cells, as HBase keeps them, and the index entries that they want.
 *
 * A tombstone masks every version at or below it, also those that are put later: until a major compaction forgets the
 * tombstone. A version that was put behind its tombstone may then show, if it was still in memory. So a column may
 * have several values that it shows or may come to show without anybody writing; the row wants an entry for each.
 *
 * Read raw (all versions and tombstones that there are), or as it is seen (newest versions) with all that stands at or
 * above the time stamps of what is put. The second is enough unless single versions are deleted or some stand behind
 * tombstones, since nothing below the newest version can show before that goes.
 *
 * Threads: exclusive access.
 */
final class RowImage {
  /** More states than that are not looked at: a row that somebody tortures. */
  private static final int MAX_STATES = 256;
  private static final long NOW = Long.MAX_VALUE; // the sequence id of the batch

  /** One version of a cell. */
  static final class Version {
    final Cell cell;
    final long timestamp;
    final long sequence;
    byte[] value;
    Value decoded;
    boolean isDecoded;

    Version(Cell cell, long sequence) {
      this.cell = cell;
      this.timestamp = cell.getTimestamp();
      this.sequence = sequence;
    }

    byte[] bytes() {
      if (value == null) value = CellUtil.cloneValue(cell);
      return value;
    }
  }

  private static final class Tombstone {
    final long timestamp;
    final long sequence;
    final boolean single; // that version only
    final byte[] family;
    final byte[] qualifier; // null: of the whole family

    Tombstone(Cell cell, long sequence, boolean single, boolean wholeFamily) {
      timestamp = cell.getTimestamp();
      this.sequence = sequence;
      this.single = single;
      family = CellUtil.cloneFamily(cell);
      qualifier = wholeFamily ? null : CellUtil.cloneQualifier(cell);
    }

    boolean masks(Column column, Version version) {
      return (single ? timestamp == version.timestamp : timestamp >= version.timestamp)
          && (qualifier == null || Arrays.equals(qualifier, column.qualifier)) && Arrays.equals(family, column.family);
    }
  }

  private static final class Column {
    final byte[] family;
    final byte[] qualifier;
    final int position; // in the schema; -1: no column is there
    final List<Version> versions = new ArrayList<>(); // newest first, each time stamp once

    Column(byte[] family, byte[] qualifier, int position) {
      this.family = family;
      this.qualifier = qualifier;
      this.position = position;
    }

    void add(Version version, boolean later) {
      int at = 0;
      while (at < versions.size() && versions.get(at).timestamp > version.timestamp) ++at;
      if (at < versions.size() && versions.get(at).timestamp == version.timestamp) {
        if (later || version.sequence > versions.get(at).sequence) versions.set(at, version);
      } else {
        versions.add(at, version);
      }
    }
  }

  private final IndexedTable table;
  private final byte[] row;
  private final TreeMap<byte[], TreeMap<byte[], Column>> columns = new TreeMap<>(Bytes.BYTES_COMPARATOR);
  private final List<Tombstone> tombstones = new ArrayList<>();

  RowImage(IndexedTable table, byte[] row) {
    this.table = table;
    this.row = row;
  }

  /** Cells as they were read. */
  void addStored(List<Cell> cells) {
    for (Cell cell : cells) add(cell, cell.getSequenceId(), false);
  }

  /** A cell of the batch, in the batch's order, its time stamp final. */
  void addWritten(Cell cell) {
    add(cell, NOW, true);
  }

  private void add(Cell cell, long sequence, boolean later) {
    switch (cell.getType()) {
      case Put: {
        byte[] family = CellUtil.cloneFamily(cell);
        byte[] qualifier = CellUtil.cloneQualifier(cell);
        columns.computeIfAbsent(family, f -> new TreeMap<>(Bytes.BYTES_COMPARATOR))
            .computeIfAbsent(qualifier, q -> new Column(family, q, table.columnOf(family, q)))
            .add(new Version(cell, sequence), later);
        break;
      }
      case Delete:
        tombstones.add(new Tombstone(cell, sequence, true, false));
        break;
      case DeleteColumn:
        tombstones.add(new Tombstone(cell, sequence, false, false));
        break;
      case DeleteFamilyVersion:
        tombstones.add(new Tombstone(cell, sequence, true, true));
        break;
      case DeleteFamily:
        tombstones.add(new Tombstone(cell, sequence, false, true));
        break;
      default:
        throw new IllegalArgumentException("a cell of type " + cell.getType());
    }
  }

  /** The same row, to which a batch may be added. */
  RowImage copy() {
    RowImage copy = new RowImage(table, row);
    for (TreeMap<byte[], Column> family : columns.values()) {
      for (Column column : family.values()) {
        Column other = new Column(column.family, column.qualifier, column.position);
        other.versions.addAll(column.versions);
        copy.columns.computeIfAbsent(column.family, f -> new TreeMap<>(Bytes.BYTES_COMPARATOR)).put(column.qualifier,
            other);
      }
    }
    copy.tombstones.addAll(tombstones);
    return copy;
  }

  // ---- What shows

  private enum Mask { NONE, FOR_EVER, UNTIL_FORGOTTEN }

  private Mask maskOf(Column column, Version version) {
    Mask mask = Mask.NONE;
    for (Tombstone tombstone : tombstones) {
      if (!tombstone.masks(column, version)) continue;
      // Sequence ids become 0 some days after a compaction: then nobody knows which came first.
      boolean putBehind = version.sequence > tombstone.sequence || (version.sequence == 0 && tombstone.sequence == 0);
      if (!putBehind) return Mask.FOR_EVER;
      mask = Mask.UNTIL_FORGOTTEN;
    }
    return mask;
  }

  /** The version that is seen, or null; adds to `maybe` those above it that may come to be seen. */
  private Version seen(Column column, List<Version> maybe) {
    for (Version version : column.versions) {
      switch (maskOf(column, version)) {
        case NONE:
          return version;
        case UNTIL_FORGOTTEN:
          maybe.add(version);
          break;
        default:
      }
    }
    return null;
  }

  private Column column(int position) {
    Schema.Column schema = table.schema.columns[position];
    TreeMap<byte[], Column> family = columns.get(schema.family);
    return family == null ? null : family.get(schema.qualifier);
  }

  /** Whether the column shows nothing. */
  boolean isNull(byte[] family, byte[] qualifier) {
    TreeMap<byte[], Column> qualifiers = columns.get(family);
    Column column = qualifiers == null ? null : qualifiers.get(qualifier);
    return column == null || seen(column, new ArrayList<>()) == null;
  }

  /**
   * The cells that show in `after` and are not new: a version that shows again since a newer one was deleted. A
   * compaction that meets it with the newer one, but not with the tombstone, would drop it as one version too many. It is
   * put again beside the tombstone.
   */
  List<Cell> uncovered(RowImage after) {
    List<Cell> again = new ArrayList<>();
    for (TreeMap<byte[], Column> family : after.columns.values()) {
      for (Column column : family.values()) {
        Version now = after.seen(column, new ArrayList<>());
        if (now == null || now.sequence == NOW) continue;
        TreeMap<byte[], Column> oldFamily = columns.get(column.family);
        Column old = oldFamily == null ? null : oldFamily.get(column.qualifier);
        Version before = old == null ? null : seen(old, new ArrayList<>());
        if (before != now) again.add(now.cell);
      }
    }
    return again;
  }

  /** Whether any cell of the table's families shows, or may come to. */
  private boolean exists() {
    List<Version> maybe = new ArrayList<>();
    for (TreeMap<byte[], Column> family : columns.values()) {
      for (Column column : family.values()) {
        if (!table.isOurs(column.family)) break;
        if (seen(column, maybe) != null || !maybe.isEmpty()) return true;
      }
    }
    return false;
  }

  /** The greatest time stamp of all that is known; at least 1. */
  long newest() {
    long newest = 1;
    for (TreeMap<byte[], Column> family : columns.values()) {
      for (Column column : family.values()) {
        if (!column.versions.isEmpty()) newest = Math.max(newest, column.versions.get(0).timestamp);
      }
    }
    for (Tombstone tombstone : tombstones) newest = Math.max(newest, tombstone.timestamp);
    return newest;
  }

  /** Whether a version stands behind an older tombstone: it may come to show. */
  boolean hasHidden() {
    List<Version> maybe = new ArrayList<>();
    for (TreeMap<byte[], Column> family : columns.values()) {
      for (Column column : family.values()) seen(column, maybe);
    }
    return !maybe.isEmpty();
  }

  /** The greatest time stamp that shows; 0 when nothing does. */
  long newestSeen() {
    long newest = 0;
    for (TreeMap<byte[], Column> family : columns.values()) {
      for (Column column : family.values()) {
        Version version = seen(column, new ArrayList<>());
        if (version != null) newest = Math.max(newest, version.timestamp);
      }
    }
    return newest;
  }

  /** The row as it is seen; null where a key column does not parse or nothing is there. */
  Value[] values() {
    Value[] values = new Value[table.schema.columns.length];
    if (!KeyFormat.decode(table.schema, row, values) || !exists()) return null;
    for (int i = 0; i < values.length; ++i) {
      if (table.schema.isKey(i)) continue;
      Column column = column(i);
      values[i] = column == null ? null : decode(i, seen(column, new ArrayList<>()));
    }
    return values;
  }

  private Value decode(int position, Version version) {
    if (version == null) return null;
    if (!version.isDecoded) {
      Schema.Column column = table.schema.columns[position];
      version.decoded = column.encoding.decode(column.type, version.bytes());
      version.isDecoded = true;
    }
    return version.decoded;
  }

  // ---- Entries

  /** What the row puts into its indexes: by key. */
  Map<Key, IndexEntry> entries(EntryKeys keys) {
    Schema schema = table.schema;
    Value[] values = new Value[schema.columns.length];
    if (!KeyFormat.decode(schema, row, values) || !exists()) return Collections.emptyMap();
    Map<Key, IndexEntry> entries = new LinkedHashMap<>();
    boolean certain = newestSeen() > 0;
    for (Schema.Index index : schema.indexes) {
      addEntries(index, 0, values.clone(), 0, certain, keys, entries);
    }
    return entries;
  }

  private void addEntries(Schema.Index index, int at, Value[] values, long timestamp, boolean certain, EntryKeys keys,
      Map<Key, IndexEntry> entries) {
    if (at == index.columns.length) {
      if (Codec.isSkipped(index, values)) return;
      byte[][] prefixes = Codec.indexPrefixes(index, values);
      byte[] key = keys.entry(index.id, prefixes[prefixes.length - 1], row);
      long stamp = timestamp == 0 ? Math.max(1, newestSeen()) : timestamp;
      IndexEntry other = entries.get(new Key(key));
      if (other != null) {
        stamp = Math.max(stamp, other.timestamp);
        certain |= other.certain;
      }
      entries.put(new Key(key), new IndexEntry(index, key, prefixes, stamp, certain));
      if (entries.size() > MAX_STATES) {
        throw new IllegalStateException("row " + Bytes.toStringBinary(row) + " has more than " + MAX_STATES
            + " index entries: too many of its versions stand behind tombstones");
      }
      return;
    }
    int position = index.columns[at];
    if (table.schema.isKey(position)) {
      addEntries(index, at + 1, values, timestamp, certain, keys, entries);
      return;
    }
    List<Version> states = new ArrayList<>();
    Column column = column(position);
    states.add(column == null ? null : seen(column, states)); // null: NULL
    if (states.size() > 1) {
      // A flush may count the hidden version, drop those below as too many, and hide it all the same.
      states.clear();
      states.add(null);
      for (Version version : column.versions) {
        if (maskOf(column, version) != Mask.FOR_EVER) states.add(version);
      }
    }
    for (Version version : states) {
      values[position] = decode(position, version);
      addEntries(index, at + 1, values, version == null ? timestamp : Math.max(timestamp, version.timestamp),
          certain && states.size() == 1, keys, entries);
    }
  }
}
