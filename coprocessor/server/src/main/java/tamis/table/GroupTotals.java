package tamis.table;

import java.util.LinkedHashMap;
import java.util.Map;
import tamis.pb.Cluster;
import tamis.shaded.protobuf.ByteString;

/**
 * Groups of rows that have the same values in some columns, with their counts and the totals of other columns. Threads:
 * exclusive access.
 */
public final class GroupTotals {
  private static final int OVERHEAD = 128; // bytes for each group

  /** One of them. */
  private static final class Group {
    long count;
    final ColumnTotals[] totals;

    Group(Schema schema, int[] columns) {
      totals = new ColumnTotals[columns.length];
      for (int i = 0; i < columns.length; ++i) totals[i] = new ColumnTotals(schema.columns[columns[i]].type);
    }

    long totalsBytes() {
      long sum = 0;
      for (ColumnTotals one : totals) sum += one.sizeBytes();
      return sum;
    }
  }

  private final Schema schema;
  private final boolean[] by; // columns that the rows of a group have in common
  private final int[] columns; // totals of these columns are wanted
  private final Map<Key, Group> groups = new LinkedHashMap<>(); // by the encoded columns; in the order of first rows
  private long bytes;

  public GroupTotals(Schema schema, boolean[] by, int[] columns) {
    this.schema = schema;
    this.by = by;
    this.columns = columns;
  }

  /** Adds `count` rows with these values. */
  public void add(Value[] row, long count) {
    byte[] key = Codec.encodeRow(schema, row, by);
    Group group = groups.computeIfAbsent(new Key(key), values -> {
      Group made = new Group(schema, columns);
      bytes += OVERHEAD + key.length + made.totalsBytes();
      return made;
    });
    long before = group.totalsBytes();
    group.count += count;
    for (int i = 0; i < columns.length; ++i) group.totals[i].add(row[columns[i]], count);
    bytes += group.totalsBytes() - before;
  }

  /** Rough. */
  public long sizeBytes() {
    return bytes;
  }

  public void addTo(Cluster.RangeResult.Builder result) {
    result.setTotals(true);
    groups.forEach((row, group) -> {
      Cluster.FoundRow.Builder found =
          Cluster.FoundRow.newBuilder().setRow(ByteString.copyFrom(row.bytes())).setCount(group.count);
      for (ColumnTotals totals : group.totals) found.addTotals(totals.message());
      result.addRows(found);
    });
  }
}
