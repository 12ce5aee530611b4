package tamis.region;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.base.Fault;
import tamis.table.CellEncoding;
import tamis.table.DamagedBytesException;
import tamis.table.Hash;
import tamis.table.Predicate;
import tamis.table.Schema;

/** The schema and the settings of a table's indexes in its descriptor (docs/HBASE.md#contents-of-a-table). A value. */
public final class IndexedTable {
  /** How the names of all attributes of ours begin. */
  public static final String ATTRIBUTES = "tamis.";
  /** Attributes of the table: the schema's bytes, and the zeros of entry prefixes as digits. */
  public static final byte[] SCHEMA = Bytes.toBytes("tamis.schema");
  public static final byte[] PREFIX_ZEROS = Bytes.toBytes("tamis.prefix.zeros");
  /**
   * The full name of the HBase table that was indexed, which a copy of the table inherits; and whether that table was
   * "created" or "attached". Programs read both; here they are only guarded.
   */
  public static final byte[] TABLE = Bytes.toBytes("tamis.table");
  public static final byte[] ORIGIN = Bytes.toBytes("tamis.origin");
  /** The family that holds the entries. */
  public static final byte[] FAMILY = Bytes.toBytes("tamis");
  public static final byte[] QUALIFIER = HConstants.EMPTY_BYTE_ARRAY;
  /**
   * Values of entry cells (IndexEntry.certain): the row may stop giving an uncertain entry without a write. The value
   * of a certain one is that of its included columns (Codec.encodeIncluded), which never begins with the byte 1.
   */
  public static final byte[] CERTAIN = HConstants.EMPTY_BYTE_ARRAY;
  public static final byte[] UNCERTAIN = {1};

  private static final int DEFAULT_PREFIX_ZEROS = 8;
  private static final int MAX_PREFIX_ZEROS = 64;

  public final TableName name;
  public final Schema schema;
  public final int prefixZeros;
  public final int tableId;
  /** Families of the table's columns and marker. */
  public final List<byte[]> families = new ArrayList<>();
  /** Whether one of those families has a TTL: then an entry has the time stamp of its youngest cell. */
  public final boolean expires;
  /** Whether another program made the table: rows may be older than the observer. */
  public final boolean attached;
  /**
   * Whether an index may have an entry for a row that has no cell of the indexed columns: for NULL, or for its key.
   * Then all cells of a row are read, to see whether the row exists.
   */
  public final boolean indexesNull;
  /** Whether the families may have a TTL: a cell that expires may take the row's entry, but must not change it. */
  public final boolean mayExpire;

  private final TreeMap<byte[], TreeMap<byte[], Integer>> columns = new TreeMap<>(Bytes.BYTES_COMPARATOR);
  private final TreeMap<byte[], TreeMap<byte[], Integer>> indexed = new TreeMap<>(Bytes.BYTES_COMPARATOR);

  /** The columns of one family, ordered by their qualifiers. */
  private static final class CellColumns {
    final byte[] family;
    final byte[][] qualifiers;
    final int[] positions;

    CellColumns(byte[] family, TreeMap<byte[], Integer> columns) {
      this.family = family;
      qualifiers = columns.keySet().toArray(new byte[0][]);
      positions = columns.values().stream().mapToInt(Integer::intValue).toArray();
    }

    int find(Cell cell) {
      int low = 0;
      int high = qualifiers.length;
      while (low < high) {
        int middle = (low + high) / 2;
        int order = CellUtil.compareQualifiers(cell, qualifiers[middle], 0, qualifiers[middle].length);
        if (order == 0) return positions[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
      }
      return -1;
    }
  }

  private final CellColumns[] cellColumns; // an array: each cell of a write is looked up
  private final boolean[] used; // by an index

  private IndexedTable(TableDescriptor descriptor, Schema schema, int prefixZeros) {
    name = descriptor.getTableName();
    this.schema = schema;
    this.prefixZeros = prefixZeros;
    tableId = tableId(name, schema.id);
    used = new boolean[schema.columns.length];
    boolean nulls = false;
    boolean more = false;
    for (Schema.Index index : schema.indexes) {
      for (int column : index.columns) use(column);
      if (!Fault.INCLUDED_COLUMNS_NOT_USED.isOn()) {
        for (int column : index.include) use(column);
      }
      if (index.where != null && !Fault.CONDITION_COLUMNS_NOT_USED.isOn()) useColumnsOf(index.where);
      more |= index.include.length > 0 || index.where != null;
      // In a sparse index on one column no entry says NULL; but columns of the key are never NULL.
      nulls |= !index.skipsNull || index.columns.length > 1 || schema.isKey(schema.sourceOf(index.columns[0]));
    }
    indexesNull = nulls;
    mayExpire = !nulls && !more;
    for (int i = 0; i < schema.columns.length; ++i) {
      Schema.Column column = schema.columns[i];
      if (column.encoding == CellEncoding.NONE) continue;
      addFamily(column.family);
      columns.computeIfAbsent(column.family, f -> new TreeMap<>(Bytes.BYTES_COMPARATOR)).put(column.qualifier, i);
      if (used[i]) {
        indexed.computeIfAbsent(column.family, f -> new TreeMap<>(Bytes.BYTES_COMPARATOR)).put(column.qualifier, i);
      }
    }
    cellColumns = columns.entrySet()
                      .stream()
                      .map(family -> new CellColumns(family.getKey(), family.getValue()))
                      .toArray(CellColumns[] ::new);
    if (schema.markerFamily != null) addFamily(schema.markerFamily);
    boolean ttl = false;
    for (ColumnFamilyDescriptor family : descriptor.getColumnFamilies()) {
      ttl |= isOurs(family.getName()) && family.getTimeToLive() != HConstants.FOREVER;
    }
    expires = ttl;
    attached = "attached".equals(Bytes.toString(descriptor.getValue(ORIGIN)));
  }

  /** A write of the column from which an indexed one is computed concerns the index. */
  private void use(int column) {
    used[Fault.SOURCES_NOT_INDEXED.isOn() ? column : schema.sourceOf(column)] = true;
  }

  private void useColumnsOf(Predicate condition) {
    boolean[] of = new boolean[used.length];
    condition.addColumns(of);
    for (int i = 0; i < of.length; ++i) {
      if (of[i]) use(i);
    }
  }

  /** Whether the value of an entry is no mark. */
  public static boolean isCertain(byte[] value) {
    return value.length == 0 || value[0] != UNCERTAIN[0];
  }

  /** The value of the entry: a mark, or its included columns. */
  public static byte[] valueOf(Cell entry) {
    return entry.getValueLength() == 0 ? CERTAIN : CellUtil.cloneValue(entry);
  }

  private void addFamily(byte[] family) {
    if (!isOurs(family)) families.add(family);
  }

  /** null: the table has no schema of ours. */
  public static IndexedTable of(TableDescriptor descriptor) throws DamagedBytesException {
    byte[] bytes = descriptor.getValue(SCHEMA);
    if (bytes == null) return null;
    Schema schema = Schema.parse(bytes);
    if (!schema.cells) throw new DamagedBytesException("the schema's rows are not cells");
    int zeros = DEFAULT_PREFIX_ZEROS;
    byte[] text = descriptor.getValue(PREFIX_ZEROS);
    if (text != null) {
      try {
        zeros = Integer.parseInt(new String(text, StandardCharsets.US_ASCII));
      } catch (NumberFormatException e) {
        zeros = -1;
      }
    }
    if (zeros < 0 || zeros > MAX_PREFIX_ZEROS) throw new DamagedBytesException("the prefix's zeros are no number");
    IndexedTable table = new IndexedTable(descriptor, schema, zeros);
    for (byte[] family : table.families) {
      if (!descriptor.hasColumnFamily(family)) {
        throw new DamagedBytesException(
            "a column is in family " + Bytes.toStringBinary(family) + ", which the table does not have");
      }
    }
    return table;
  }

  /**
   * The number of a table in requests and events: 31 bits, computed by each server from the name that the table has, so
   * that a clone of a table is another one.
   */
  public static int tableId(TableName name, int creation) {
    byte[] text = fullName(name).getBytes(StandardCharsets.UTF_8);
    return Math.max(1, (int) (Hash.of(text, creation & 0xffffffffL) >>> 33));
  }

  /** "NAMESPACE:NAME", also in the namespace "default". */
  public static String fullName(TableName name) {
    return name.getNamespaceAsString() + ":" + name.getQualifierAsString();
  }

  /** Whether the table's cells stand in the family. */
  public boolean isOurs(byte[] family) {
    for (byte[] ours : families) {
      if (Arrays.equals(ours, family)) return true;
    }
    return false;
  }

  /** Position of the column that the cell holds, or -1. */
  public int columnOf(byte[] family, byte[] qualifier) {
    TreeMap<byte[], Integer> qualifiers = columns.get(family);
    Integer column = qualifiers == null ? null : qualifiers.get(qualifier);
    return column == null ? -1 : column;
  }

  /** The same, of a cell. */
  public int columnOf(Cell cell) {
    for (CellColumns columns : cellColumns) {
      if (CellUtil.matchingFamily(cell, columns.family)) return columns.find(cell);
    }
    return -1;
  }

  /** Whether an index reads the column. */
  public boolean isIndexed(int column) {
    return used[column];
  }

  /** The cells that indexes read, by family. */
  public TreeMap<byte[], TreeMap<byte[], Integer>> indexed() {
    return indexed;
  }
}
