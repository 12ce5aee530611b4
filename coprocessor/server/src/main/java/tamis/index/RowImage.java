package tamis.index;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.base.Fault;
import tamis.compat.Cells;
import tamis.feed.IndexEntry;
import tamis.region.EntryKeys;
import tamis.region.IndexedTable;
import tamis.table.Codec;
import tamis.table.Expression;
import tamis.table.Key;
import tamis.table.KeyFormat;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * The versions of one row's cells, as HBase keeps them, and the index entries that they want.
 *
 * A tombstone masks every version at or below it, also those that are put later, until a major compaction drops the
 * tombstone. A version that was put after its tombstone may then become visible, if it was still in memory. So a column
 * may have several values that are visible or may become visible without any write; the row gives an entry for each.
 *
 * An image is read raw (all versions and tombstones), or as readers see the row (newest versions) plus all versions and
 * tombstones at or above the time stamps of the batch. The second is enough unless single versions are deleted or some
 * are hidden by tombstones, since nothing below the newest version can become visible before that is gone.
 *
 * Threads: exclusive access.
 */
final class RowImage {
  /** Bound of the index entries that one row may give. */
  private static final int MAX_STATES = 256;
  /** Bound of the combinations of versions that are looked at for them. */
  private static final int MAX_COMBINATIONS = 16 * MAX_STATES;
  private static final long NOW = Long.MAX_VALUE; // the sequence id of the batch
  /** A cell's own time stamp at the most; the next one means "now". */
  static final long LAST_TIMESTAMP = Long.MAX_VALUE - 1;
  /** Advice for a row in which nothing can be placed above such a time stamp. */
  static final String WAY_OUT = "delete the row, run major_compact of its table in HBase's shell, and write it again";

  /** One version of a cell. */
  static final class Version {
    final Cell cell; // null where only that it stands matters
    final long timestamp;
    final long sequence;
    byte[] value;
    Value decoded;
    boolean isDecoded;

    Version(Cell cell, long timestamp, long sequence) {
      this.cell = cell;
      this.timestamp = timestamp;
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

    String place() {
      return RowImage.place(family, qualifier);
    }

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
    final List<Version> versions = new ArrayList<>(2); // newest first, each time stamp once

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
  private final boolean raw;
  private final Value[] key; // null: the row's key is none of the table's
  private final Column[] columns; // columns of the schema, by position
  // Others; null: there are none. Families that the table's columns are not in do not come here.
  private TreeMap<byte[], TreeMap<byte[], Column>> strangers;
  private final List<Column> all; // the columns above
  private List<Tombstone> tombstones = Collections.emptyList(); // most rows have none
  private int combinations;

  /** Raw: all versions and tombstones come. */
  RowImage(IndexedTable table, byte[] row, boolean raw) {
    this(table, row, raw, keyOf(table.schema, row));
  }

  private RowImage(IndexedTable table, byte[] row, boolean raw, Value[] key) {
    this.table = table;
    this.row = row;
    this.raw = raw;
    this.key = key;
    columns = new Column[table.schema.columns.length];
    all = new ArrayList<>(columns.length);
  }

  boolean isRaw() {
    return raw;
  }

  private static Value[] keyOf(Schema schema, byte[] row) {
    Value[] key = new Value[schema.columns.length];
    return KeyFormat.decode(schema, row, key) ? key : null;
  }

  /** Cells as they were read. */
  void addStored(List<Cell> cells) {
    for (Cell cell : cells) addStored(cell);
  }

  /** Its bytes are HBase's, and may be used for other cells once the scanner is closed. */
  void addStored(Cell cell) {
    boolean kept = raw || table.columnOf(cell) >= 0;
    add(kept && Cells.typeOf(cell) == KeyValue.Type.Put.getCode() ? Cells.copyOf(cell) : null, cell,
        Cells.sequenceOf(cell), false);
  }

  /** A cell of the batch, in the batch's order, its time stamp final. */
  void addWritten(Cell cell) {
    add(cell, cell, NOW, true);
  }

  private Column columnOf(Cell cell) {
    int position = table.columnOf(cell);
    if (position >= 0) {
      if (columns[position] == null) {
        Schema.Column column = table.schema.columns[position];
        columns[position] = added(new Column(column.family, column.qualifier, position));
      }
      return columns[position];
    }
    byte[] family = CellUtil.cloneFamily(cell);
    return strangersOf(family).computeIfAbsent(CellUtil.cloneQualifier(cell), q -> added(new Column(family, q, -1)));
  }

  private TreeMap<byte[], Column> strangersOf(byte[] family) {
    if (strangers == null) strangers = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    return strangers.computeIfAbsent(family, f -> new TreeMap<>(Bytes.BYTES_COMPARATOR));
  }

  private Column added(Column column) {
    all.add(column);
    return column;
  }

  private void add(Cell kept, Cell cell, long sequence, boolean later) {
    switch (cell.getType()) {
      case Put:
        columnOf(cell).add(new Version(kept, cell.getTimestamp(), sequence), later);
        break;
      case Delete:
        add(new Tombstone(cell, sequence, true, false));
        break;
      case DeleteColumn:
        add(new Tombstone(cell, sequence, false, false));
        break;
      case DeleteFamilyVersion:
        add(new Tombstone(cell, sequence, true, true));
        break;
      case DeleteFamily:
        add(new Tombstone(cell, sequence, false, true));
        break;
      default:
        throw new IllegalArgumentException("a cell of type " + cell.getType());
    }
  }

  private void add(Tombstone tombstone) {
    if (tombstones.isEmpty()) tombstones = new ArrayList<>();
    tombstones.add(tombstone);
  }

  /** The same row, to which a batch may be added. */
  RowImage copy() {
    RowImage copy = new RowImage(table, row, raw, key);
    for (Column column : all) {
      Column other = copy.added(new Column(column.family, column.qualifier, column.position));
      other.versions.addAll(column.versions);
      if (column.position >= 0) {
        copy.columns[column.position] = other;
      } else {
        copy.strangersOf(column.family).put(column.qualifier, other);
      }
    }
    for (Tombstone tombstone : tombstones) copy.add(tombstone);
    return copy;
  }

  private Column find(byte[] family, byte[] qualifier) {
    int position = table.columnOf(family, qualifier);
    if (position >= 0) return columns[position];
    TreeMap<byte[], Column> others = strangers == null ? null : strangers.get(family);
    return others == null ? null : others.get(qualifier);
  }

  // ---- What shows

  private enum Mask { NONE, FOR_EVER, UNTIL_FORGOTTEN }

  private Mask maskOf(Column column, Version version) {
    if (tombstones.isEmpty()) return Mask.NONE;
    Mask mask = Mask.NONE;
    for (Tombstone tombstone : tombstones) {
      if (!tombstone.masks(column, version)) continue;
      // Sequence ids become 0 some days after a compaction: then it is unknown which came first.
      boolean putBehind = version.sequence > tombstone.sequence || (version.sequence == 0 && tombstone.sequence == 0);
      if (!putBehind) return Mask.FOR_EVER;
      mask = Mask.UNTIL_FORGOTTEN;
    }
    return mask;
  }

  /** The visible version, or null; adds to `maybe` the versions above it that may become visible. */
  private Version seen(Column column, List<Version> maybe) {
    if (tombstones.isEmpty()) return column.versions.isEmpty() ? null : column.versions.get(0);
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

  /** The visible version, or null. */
  private Version seen(Column column) {
    if (tombstones.isEmpty()) return column.versions.isEmpty() ? null : column.versions.get(0);
    return seen(column, new ArrayList<>());
  }

  /** Whether the column shows nothing. */
  boolean isNull(byte[] family, byte[] qualifier) {
    Column column = find(family, qualifier);
    return column == null || seen(column) == null;
  }

  /**
   * The cells that show in `after` and are not new: a version that shows again since a newer one was deleted. A
   * compaction that meets it with the newer one, but not with the tombstone, would drop it as one version too many. It
   * is put again beside the tombstone.
   */
  List<Cell> uncovered(RowImage after) {
    List<Cell> again = new ArrayList<>();
    for (Column column : after.all) {
      Version now = after.seen(column);
      if (now == null || now.sequence == NOW) continue;
      Column old = find(column.family, column.qualifier);
      Version before = old == null ? null : seen(old);
      if (before != now) again.add(now.cell);
    }
    return again;
  }

  /** Whether any cell of the table's families is visible, or may become visible. */
  private boolean exists() {
    if (tombstones.isEmpty()) return shows();
    List<Version> maybe = new ArrayList<>();
    for (Column column : all) {
      if (seen(column, maybe) != null || !maybe.isEmpty()) return true;
    }
    return false;
  }

  /** Whether any cell of the table's families is visible. */
  boolean shows() {
    for (int i = 0; i < all.size(); ++i) { // without an iterator, here and in newest: for each row that is written
      if (seen(all.get(i)) != null) return true;
    }
    return false;
  }

  /** The greatest time stamp of all that is known; at least 1. */
  long newest() {
    long newest = 1;
    for (int i = 0; i < all.size(); ++i) {
      List<Version> versions = all.get(i).versions;
      if (!versions.isEmpty()) newest = Math.max(newest, versions.get(0).timestamp);
    }
    for (Tombstone tombstone : tombstones) newest = Math.max(newest, tombstone.timestamp);
    return newest;
  }

  /** A cell or delete marker that has the time stamp `newest()`, as an error names it. */
  String newestPlace() {
    long newest = newest();
    for (Tombstone tombstone : tombstones) {
      if (tombstone.timestamp == newest) return "a delete marker in " + tombstone.place();
    }
    for (Column column : all) {
      if (!column.versions.isEmpty() && column.versions.get(0).timestamp == newest) {
        return "a cell in " + place(column.family, column.qualifier);
      }
    }
    return "nothing";
  }

  static String place(Cell cell) {
    return place(CellUtil.cloneFamily(cell), CellUtil.cloneQualifier(cell));
  }

  private static String place(byte[] family, byte[] qualifier) {
    return qualifier == null
        ? "family \"" + Bytes.toStringBinary(family) + "\""
        : "column \"" + Bytes.toStringBinary(family) + ":" + Bytes.toStringBinary(qualifier) + "\"";
  }

  /**
   * Why no read shows a cell that is put now, before a major compaction forgets a delete marker above which no time
   * stamp is left; null: nothing of that kind masks it.
   */
  String neverShows(Cell put) {
    if (tombstones.isEmpty()) return null;
    Column column = find(CellUtil.cloneFamily(put), CellUtil.cloneQualifier(put));
    if (column == null) return null;
    Version version = new Version(null, put.getTimestamp(), NOW);
    for (Tombstone tombstone : tombstones) {
      if (tombstone.timestamp < LAST_TIMESTAMP || !tombstone.masks(column, version)) continue;
      return "the cell in " + place(column.family, column.qualifier) + " at time stamp " + put.getTimestamp()
          + " could never be read, since a delete marker in " + tombstone.place() + " has time stamp "
          + tombstone.timestamp;
    }
    return null;
  }

  String rowText() {
    return Bytes.toStringBinary(row);
  }

  /** Whether a version stands under an older tombstone: it may come to show. */
  boolean hasHidden() {
    if (tombstones.isEmpty()) return false;
    List<Version> maybe = new ArrayList<>();
    for (Column column : all) seen(column, maybe);
    return !maybe.isEmpty();
  }

  /** The greatest time stamp that shows; 0 when nothing does. */
  long newestSeen() {
    long newest = 0;
    for (Column column : all) {
      Version version = seen(column);
      if (version != null) newest = Math.max(newest, version.timestamp);
    }
    return newest;
  }

  /** The row as it is seen; null where a key column does not parse or nothing is there. */
  Value[] values() {
    if (key == null || !exists()) return null;
    Value[] values = key.clone();
    for (int i = 0; i < values.length; ++i) {
      if (table.schema.isKey(i)) continue;
      values[i] = columns[i] == null ? null : decode(i, seen(columns[i]));
    }
    table.schema.setComputed(values);
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

  /** The row's entries in its indexes: by key. */
  Map<Key, IndexEntry> entries(EntryKeys keys) {
    if (key == null || !exists()) return Collections.emptyMap();
    Map<Key, IndexEntry> entries = new LinkedHashMap<>(2 * table.schema.indexes.length);
    boolean certain = shows();
    combinations = 0;
    Value[] values = key.clone(); // an index sets all that it looks at
    for (Schema.Index index : table.schema.indexes) {
      addEntries(index, columnsOf(index), 0, values, 0, certain, keys, entries);
    }
    return entries;
  }

  /** The columns on whose states it depends which entries the row gives: those of the index, then of its condition. */
  private int[] columnsOf(Schema.Index index) {
    if (index.where == null) return index.columns;
    boolean[] more = new boolean[columns.length];
    index.where.addColumns(more);
    for (int column : index.columns) more[column] = false;
    int[] all = Arrays.copyOf(index.columns, columns.length);
    int size = index.columns.length;
    for (int i = 0; i < more.length; ++i) {
      if (more[i]) all[size++] = i;
    }
    return Arrays.copyOf(all, size);
  }

  /** The included columns as they show; null: one of them may show another value without a write. */
  private byte[] includedOf(Schema.Index index) {
    if (index.include.length == 0) return IndexedTable.CERTAIN;
    Value[] values = new Value[columns.length];
    List<Version> maybe = new ArrayList<>();
    for (int position : index.include) {
      int source = table.schema.sourceOf(position);
      Expression expression = table.schema.columns[position].expression;
      Value value = key[source];
      if (columns[source] != null) value = decode(source, seen(columns[source], maybe));
      values[position] = expression == null ? value : expression.evaluate(value);
    }
    boolean changes = !maybe.isEmpty() && !Fault.DOUBTFUL_COLUMNS_INCLUDED.isOn();
    return changes ? null : Codec.encodeIncluded(table.schema, index, values);
  }

  private IllegalStateException tooManyStates() {
    return new IllegalStateException("row " + Bytes.toStringBinary(row) + " has more than " + MAX_STATES
        + " index entries: too many of its versions are hidden by delete markers; flush and major_compact its"
        + " table in HBase's shell, then retry");
  }

  private void addEntries(Schema.Index index, int[] of, int at, Value[] values, long timestamp, boolean certain,
      EntryKeys keys, Map<Key, IndexEntry> entries) {
    if (at == of.length) {
      if (++combinations > MAX_COMBINATIONS) throw tooManyStates();
      if (Codec.isSkipped(index, values)) return;
      byte[][] prefixes = Codec.indexPrefixes(index, values);
      byte[] key = keys.entry(index.id, prefixes[prefixes.length - 1], row);
      // An entry's tombstone stands at LAST_TIMESTAMP, also where a file that was loaded brought a cell above it.
      long stamp = Math.min(LAST_TIMESTAMP, timestamp == 0 ? Math.max(1, newestSeen()) : timestamp);
      Key name = new Key(key);
      IndexEntry other = entries.get(name);
      if (other != null) {
        stamp = Math.max(stamp, other.timestamp);
        certain |= other.certain;
      }
      byte[] included = certain ? includedOf(index) : null;
      entries.put(name,
          new IndexEntry(
              index, key, prefixes, stamp, included != null, included == null ? IndexedTable.CERTAIN : included));
      if (entries.size() > MAX_STATES) throw tooManyStates();
      return;
    }
    int position = of[at];
    int source = table.schema.sourceOf(position);
    Expression expression = table.schema.columns[position].expression;
    if (table.schema.isKey(source)) {
      if (expression != null) values[position] = expression.evaluate(values[source]);
      addEntries(index, of, at + 1, values, timestamp, certain, keys, entries);
      return;
    }
    Column column = columns[source];
    if (tombstones.isEmpty()) {
      addState(index, of, at, values, column == null ? null : seen(column), timestamp, certain, keys, entries);
      return;
    }
    List<Version> states = new ArrayList<>();
    states.add(column == null ? null : seen(column, states)); // null: NULL
    boolean overlooked = at >= index.columns.length && Fault.HIDDEN_CONDITIONS_OVERLOOKED.isOn();
    if (overlooked) states = states.subList(states.size() - 1, states.size());
    if (states.size() > 1) {
      // A flush may count the hidden version, drop those below as too many, and hide it all the same.
      states.clear();
      states.add(null);
      for (Version version : column.versions) {
        if (maskOf(column, version) != Mask.FOR_EVER) states.add(version);
      }
    }
    for (Version version : states) {
      addState(index, of, at, values, version, timestamp, certain && states.size() == 1, keys, entries);
    }
  }

  /** The entries that the row gives while the column at `at` shows the version; null: it shows nothing. */
  private void addState(Schema.Index index, int[] of, int at, Value[] values, Version version, long timestamp,
      boolean certain, EntryKeys keys, Map<Key, IndexEntry> entries) {
    int source = table.schema.sourceOf(of[at]);
    Expression expression = table.schema.columns[of[at]].expression;
    Value value = decode(source, version);
    values[of[at]] = expression == null ? value : expression.evaluate(value);
    addEntries(index, of, at + 1, values, version == null ? timestamp : Math.max(timestamp, version.timestamp), certain,
        keys, entries);
  }
}
