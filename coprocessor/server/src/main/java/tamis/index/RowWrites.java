package tamis.index;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.base.Fault;

/** The changes of a batch to one row, and the row before them. Threads: exclusive access. */
final class RowWrites {
  final byte[] row;
  int[] operations; // in the order of the batch
  boolean raw; // one of them deletes a single version of a cell
  boolean conditional; // one of them comes from a Tamis request and has conditions
  RowImage before; // set by RowsBefore

  RowWrites(byte[] row, int operation) {
    this.row = row;
    operations = new int[] {operation};
  }

  /** Adds the later operations of another one on the same row. */
  void append(RowWrites later) {
    int size = operations.length;
    operations = Arrays.copyOf(operations, size + later.operations.length);
    System.arraycopy(later.operations, 0, operations, size, later.operations.length);
    raw |= later.raw;
    conditional |= later.conditional;
  }

  /** Sorts them by row, each row once. */
  static List<RowWrites> byRow(List<RowWrites> writes) {
    if (Fault.LATER_WRITES_OF_A_ROW_FIRST.isOn()) Collections.reverse(writes);
    writes.sort((a, b) -> Bytes.compareTo(a.row, b.row)); // keeps the order of writes of the same row
    List<RowWrites> rows = new ArrayList<>(writes.size());
    for (RowWrites each : writes) {
      RowWrites last = rows.isEmpty() ? null : rows.get(rows.size() - 1);
      if (last != null && Arrays.equals(last.row, each.row)) last.append(each);
      else rows.add(each);
    }
    return rows;
  }

  static List<byte[]> rowsOf(List<RowWrites> writes) {
    List<byte[]> rows = new ArrayList<>(writes.size());
    for (RowWrites each : writes) rows.add(each.row);
    return rows;
  }
}
