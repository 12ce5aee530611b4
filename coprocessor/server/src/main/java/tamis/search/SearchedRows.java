package tamis.search;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.compat.Cells;
import tamis.index.RowReader;
import tamis.region.IndexedTable;
import tamis.region.ReadView;
import tamis.region.RowCursor;
import tamis.table.Key;
import tamis.table.KeyFormat;
import tamis.table.Schema;
import tamis.table.Value;

/** The rows of a region as one search sees them: one after the other, or by their keys. Threads: exclusive access. */
final class SearchedRows {
  private final ReadView view;
  private final IndexedTable table;

  SearchedRows(ReadView view, IndexedTable table) {
    this.view = view;
    this.table = table;
  }

  /** The rows from one key to the other; an empty end is none. */
  RowCursor scan(byte[] from, byte[] end) throws IOException {
    return new RowCursor(view.open(rowScan(from, end)));
  }

  /** The rows before `end`, an empty one is none, down to the one at `from`. */
  RowCursor scanDown(byte[] from, byte[] end) throws IOException {
    return new RowCursor(view.open(newest(ReadView.scanDownBefore(end, from))));
  }

  private Scan rowScan(byte[] from, byte[] end) {
    // One key: HBase asks the files' filters only where the first row is the last one.
    boolean one = from.length > 0 && from.length <= HConstants.MAX_ROW_LENGTH && Arrays.equals(end, Key.after(from));
    return newest(one ? ReadView.scan(from, Key.EMPTY).withStopRow(from, true) : ReadView.scan(from, end));
  }

  private Scan newest(Scan scan) {
    for (byte[] family : table.families) scan.addFamily(family);
    return scan.readVersions(1);
  }

  /** The number of those rows, `most` for as many or more. */
  long countRows(byte[] from, byte[] end, long most) throws IOException {
    long count = 0;
    try (RowCursor cursor = new RowCursor(view.open(rowScan(from, end).setFilter(new FirstKeyOnlyFilter())))) {
      while (count < most && cursor.next() != null) ++count;
    }
    return count;
  }

  /** The cells of those rows that are there. REQUIRES: there are keys. */
  Map<Key, List<Cell>> read(Collection<byte[]> keys) throws IOException {
    TreeMap<byte[], Boolean> sorted = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    for (byte[] key : keys) sorted.put(key, true);
    Map<Key, List<Cell>> rows = new HashMap<>();
    RowReader.seek(view::open, newest(new Scan()), sorted, (key, cells) -> rows.put(new Key(key), copiesOf(cells)));
    return rows;
  }

  /** Copies the cells of the row's columns; after its scanner moves on, HBase reuses their bytes for other cells. */
  private List<Cell> copiesOf(List<Cell> cells) {
    List<Cell> copies = new ArrayList<>();
    for (Cell cell : cells) {
      if (table.columnOf(cell) >= 0) copies.add(Cells.copyOf(cell));
    }
    return copies;
  }

  /** null: no row of the table. Counts only where there is something to count in. */
  Value[] decode(byte[] key, List<Cell> cells, SearchCounts counts) {
    Schema schema = table.schema;
    Value[] row = new Value[schema.columns.length];
    if (!KeyFormat.decode(schema, key, row)) {
      if (counts != null) ++counts.rowsUnparsed;
      return null;
    }
    for (Cell cell : cells) {
      int column = table.columnOf(CellUtil.cloneFamily(cell), CellUtil.cloneQualifier(cell));
      if (column < 0 || schema.isKey(column)) continue;
      row[column] = schema.columns[column].encoding.decode(schema.columns[column].type, CellUtil.cloneValue(cell));
      if (row[column] == null && counts != null) ++counts.cellsUndecodable;
    }
    schema.setComputed(row);
    return row;
  }
}
