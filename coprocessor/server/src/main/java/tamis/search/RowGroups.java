package tamis.search;

import java.util.LinkedHashMap;
import java.util.Map;
import tamis.pb.Cluster;
import tamis.shaded.protobuf.ByteString;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.GroupTotals;
import tamis.table.Key;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * The rows of a page as distinct combinations of the wanted columns with counts, in bounded memory. Threads: exclusive
 * access.
 */
final class RowGroups {
  static final long MAX_BYTES = 4 << 20;
  private static final int OVERHEAD = 64; // bytes for each group

  /** The rows of the page with the same wanted columns. Threads: exclusive access. */
  static final class Group { private long count; }

  private final Map<Key, Group> groups = new LinkedHashMap<>(); // by the encoded columns; in the order of first rows
  private long bytes;
  private long generation;

  /** The group of the rows whose wanted columns are encoded so; it has to be counted, since none is empty. */
  Group find(byte[] row) {
    return groups.computeIfAbsent(new Key(row), key -> {
      bytes += row.length + OVERHEAD;
      return new Group();
    });
  }

  void add(Group group) {
    ++group.count;
  }

  boolean isFull() {
    return bytes >= MAX_BYTES;
  }

  /** Groups that were found before others were moved have another number. */
  long generation() {
    return generation;
  }

  /** None is left. */
  void moveTo(Schema schema, GroupTotals totals) {
    groups.forEach((row, group) -> {
      Value[] values = new Value[schema.columns.length];
      try {
        Codec.decodeRow(schema, row.bytes(), values);
      } catch (DamagedBytesException e) {
        throw new IllegalStateException(e); // it was encoded here
      }
      totals.add(values, group.count);
    });
    groups.clear();
    bytes = 0;
    ++generation;
  }

  void addTo(Cluster.RangeResult.Builder result) {
    groups.forEach(
        (row, group)
            -> result.addRows(
                Cluster.FoundRow.newBuilder().setRow(ByteString.copyFrom(row.bytes())).setCount(group.count)));
  }
}
