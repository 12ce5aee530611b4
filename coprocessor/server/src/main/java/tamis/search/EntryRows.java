package tamis.search;

import tamis.base.Fault;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.table.ByteReader;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.KeyFormat;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * Rows made from the entries of one index, without reading the rows; tamis::EntryRows tells the rule. In HBase an entry
 * may stand for a state that the row no longer shows, without a write: cells expire, a compaction forgets tombstones or
 * versions, files are loaded. So more must be proved: no family of the table has a TTL, the region's rows were all
 * written by the hooks (the table is not attached, no files were loaded since the region was opened), and the entry has
 * no mark. A value.
 */
final class EntryRows {
  private final Schema schema;
  private final Schema.Index index;

  private EntryRows(Schema schema, Schema.Index index) {
    this.schema = schema;
    this.index = index;
  }

  /** `needed`: columns. Null: rows must be read. */
  static EntryRows of(IndexedRegion region, Schema.Index index, boolean[] needed) {
    IndexedTable table = region.table;
    for (int i = 0; i < needed.length; ++i) {
      boolean known = table.schema.isKey(i) || has(index, i);
      if (needed[i] && !known && !Fault.ROWS_FROM_ANY_ENTRY.isOn()) return null;
    }
    if (table.expires && !Fault.EXPIRING_ENTRIES_TAKEN.isOn()) return null;
    if (table.attached && !Fault.ENTRIES_OF_ATTACHED_ROWS_TAKEN.isOn()) return null;
    if (region.loaded && !Fault.ENTRIES_OF_LOADED_ROWS_TAKEN.isOn()) return null;
    return new EntryRows(table.schema, index);
  }

  private static boolean has(Schema.Index index, int column) {
    for (int of : index.columns) {
      if (of == column) return true;
    }
    for (int of : index.include) {
      if (of == column) return true;
    }
    return false;
  }

  /**
   * The columns of the entry; others are NULL. Null: the entry does not prove them. `values` are its encoded values,
   * `value` is that of its cell.
   */
  Value[] read(byte[] values, byte[] key, byte[] value) {
    boolean certain = IndexedTable.isCertain(value);
    if (!certain && !Fault.MARKED_ENTRIES_TAKEN.isOn()) return null;
    Value[] row = new Value[schema.columns.length];
    ByteReader in = new ByteReader(values);
    try {
      if (certain) Codec.decodeRow(schema, value, row);
      for (int column : index.columns) {
        boolean whole = Codec.readIndexed(schema.columns[column].type, in, row, column);
        if (!whole && !Fault.CUT_VALUES_TAKEN.isOn()) return null;
      }
    } catch (DamagedBytesException e) {
      return null;
    }
    return in.isEmpty() && KeyFormat.decode(schema, key, row) ? row : null;
  }
}
