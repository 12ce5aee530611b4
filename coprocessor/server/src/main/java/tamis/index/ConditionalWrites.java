package tamis.index;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.compat.Cells;
import tamis.pb.Cluster;
import tamis.table.CellEncoding;
import tamis.table.Predicate;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * The mutations of a MutateRequest for one region, with their conditions and outcomes. Conditions are evaluated in the
 * hook that holds our row locks, since taking our locks before HBase's could deadlock. A mutation whose condition does
 * not hold is vetoed there, and its outcome is kept here. Threads: exclusive access.
 */
final class ConditionalWrites {
  /** One of them. */
  static final class Write {
    final Cluster.Mutation.Kind kind;
    final Mutation mutation;
    final Predicate condition; // null: none
    final boolean[] columns; // that are set; null: all
    Cluster.Error outcome = Cluster.Error.getDefaultInstance();
    boolean asked;

    /** Its outcome tells whether there is a row. */
    boolean tellsOfRow() {
      return kind == Cluster.Mutation.Kind.INSERT_IF_ABSENT || kind == Cluster.Mutation.Kind.UPDATE;
    }

    Write(Cluster.Mutation.Kind kind, Mutation mutation, Predicate condition, boolean[] columns) {
      this.kind = kind;
      this.mutation = mutation;
      this.condition = condition;
      this.columns = columns;
    }
  }

  private final Map<Mutation, Write> writes = new IdentityHashMap<>();

  void add(Write write) {
    writes.put(write.mutation, write);
  }

  Write of(Mutation mutation) {
    return writes.get(mutation);
  }

  /** False: it is not to be written, and the outcome says why, or is OK where nothing needs be done. */
  static boolean allows(Write write, Schema schema, RowImage row) {
    write.asked = true;
    Value[] values = row.values();
    if (write.kind == Cluster.Mutation.Kind.DELETE && write.condition == null && !row.shows()) {
      return false; // nothing is there: done
    }
    if (write.condition != null && (values == null || !write.condition.matches(values))) {
      write.outcome =
          StatusException.error(Cluster.Error.Code.FAILED_PRECONDITION, "the row is not as the condition says");
    } else if (write.kind == Cluster.Mutation.Kind.INSERT_IF_ABSENT && values != null) {
      write.outcome = StatusException.error(Cluster.Error.Code.ALREADY_EXISTS, "a row with this key exists");
    } else if (write.kind == Cluster.Mutation.Kind.UPDATE && values == null) {
      write.outcome = StatusException.error(Cluster.Error.Code.NOT_FOUND, "no row with this key");
    } else if (write.kind != Cluster.Mutation.Kind.DELETE && !leavesCells(write, schema, values)) {
      write.outcome = StatusException.error(Cluster.Error.Code.INVALID_ARGUMENT,
          "a row of table \"" + schema.name
              + "\" without any value cannot be: its rows are cells, and the table has no marker cell; give a column a"
              + " value, or delete the row");
    }
    return write.outcome.getCode() == Cluster.Error.Code.OK;
  }

  /**
   * False: no time stamp is left for it, and the outcome says so. A write needs one above everything that shows or
   * hides in its row; a delete masks what has its own, too.
   */
  static boolean isPlaceable(Write write, RowImage row) {
    long newest = row.newest();
    boolean deletes = write.kind == Cluster.Mutation.Kind.DELETE;
    if (newest < RowImage.LAST_TIMESTAMP || (deletes && newest == RowImage.LAST_TIMESTAMP)) return true;
    if (Fault.LAST_TIMESTAMPS_TAKEN.isOn()) return true;
    write.outcome = StatusException.error(Cluster.Error.Code.INVALID_ARGUMENT,
        "cannot write row \"" + row.rowText() + "\": " + row.newestPlace() + " has time stamp " + newest
            + ", and nothing can be placed above that; " + RowImage.WAY_OUT);
    return false;
  }

  /** For a write that is placeable: `now`, or the time stamp that makes it visible. */
  static long timestamp(Write write, RowImage row, long now) {
    long least = write.kind == Cluster.Mutation.Kind.DELETE ? row.newest() : row.newest() + 1;
    return Math.min(RowImage.LAST_TIMESTAMP, Math.max(now, least));
  }

  private static boolean leavesCells(Write write, Schema schema, Value[] before) {
    if (schema.markerFamily != null || write.mutation.size() > 0) return true;
    // Columns that do not decode read as NULL here. So a write that would leave only such cells is refused, although
    // the row would still exist.
    for (int i = 0; before != null && write.columns != null && i < before.length; ++i) {
      boolean kept = !write.columns[i] && schema.columns[i].encoding != CellEncoding.NONE;
      if (kept && before[i] != null) return true;
    }
    return false;
  }

  /**
   * Mutations that accompany the write's own cells: tombstones of columns that become NULL, the marker. All of its
   * cells get `timestamp`.
   */
  static List<Mutation> rest(Write write, Schema schema, RowImage row, long timestamp) {
    List<Mutation> rest = new ArrayList<>();
    if (write.kind == Cluster.Mutation.Kind.DELETE) return rest;
    byte[] key = write.mutation.getRow();
    Delete delete = new Delete(key);
    for (int i = 0; i < schema.columns.length; ++i) {
      Schema.Column column = schema.columns[i];
      if (column.encoding == CellEncoding.NONE || (write.columns != null && !write.columns[i])) continue;
      if (!has(write.mutation, column) && !row.isNull(column.family, column.qualifier)) {
        delete.addColumns(column.family, column.qualifier, timestamp);
      }
    }
    if (!delete.isEmpty()) rest.add(delete);
    if (schema.markerFamily != null && row.isNull(schema.markerFamily, schema.markerQualifier)) {
      rest.add(new Put(key).addColumn(schema.markerFamily, schema.markerQualifier, timestamp, new byte[0]));
    }
    return rest;
  }

  private static boolean has(Mutation mutation, Schema.Column column) {
    List<Cell> cells = mutation.getFamilyCellMap().get(column.family);
    if (cells == null) return false;
    for (Cell cell : cells) {
      if (Arrays.equals(CellUtil.cloneQualifier(cell), column.qualifier)) return true;
    }
    return false;
  }

  static void stamp(Mutation mutation, long timestamp) throws java.io.IOException {
    for (List<Cell> cells : mutation.getFamilyCellMap().values()) {
      for (Cell cell : cells) Cells.setTimestamp(cell, timestamp);
    }
  }
}
