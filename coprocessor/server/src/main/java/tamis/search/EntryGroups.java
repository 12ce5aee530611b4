package tamis.search;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import tamis.table.ByteReader;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;

/**
 * The groups of a page to which the entries of one index belong, by their encoded values; tamis::EntryGroups tells the
 * rule. Threads: exclusive access.
 */
final class EntryGroups {
  private static final long MAX_BYTES = 4 << 20; // bytes of values that are remembered
  private static final int OVERHEAD = 64; // bytes for each

  /** The outcome for entries with the same values. */
  static final class Known {
    final RowGroups.Group group; // null: their rows do not match

    private Known(RowGroups.Group group) {
      this.group = group;
    }
  }

  private final Schema schema;
  private final Schema.Index index;
  private final int deciding; // leading columns of the index
  private final Map<Key, Known> known = new HashMap<>();
  private long bytes;
  private long generation; // the generation of the groups
  private byte[] lastValues; // found last; null: none
  private Known last;

  private EntryGroups(Schema schema, Schema.Index index, int deciding) {
    this.schema = schema;
    this.index = index;
    this.deciding = deciding;
  }

  /** `needed`: columns. Null: some of them is no column of the index. */
  static EntryGroups of(Schema schema, Schema.Index index, boolean[] needed) {
    int deciding = 0;
    for (int column = 0; column < needed.length; ++column) {
      if (!needed[column]) continue;
      int at = 0;
      while (at < index.columns.length && index.columns[at] != column) ++at;
      if (at == index.columns.length) return null;
      deciding = Math.max(deciding, at + 1);
    }
    return new EntryGroups(schema, index, deciding);
  }

  /** How many of the bytes of an entry, or of its values, are of the columns that decide. */
  int decidingBytes(byte[] entry) throws DamagedBytesException {
    if (lastValues != null && Key.startsWith(entry, lastValues)) return lastValues.length; // values are prefix-free
    return skip(entry, 0, 0, deciding);
  }

  /** Where the row key of the entry begins. */
  int keyOffset(byte[] entry, int decidingBytes) throws DamagedBytesException {
    return skip(entry, decidingBytes, deciding, index.columns.length);
  }

  private int skip(byte[] entry, int from, int begin, int end) throws DamagedBytesException {
    if (begin == end) return from;
    ByteReader in = new ByteReader(entry, from);
    for (int i = begin; i < end; ++i) Codec.skipIndexed(schema.columns[index.columns[i]].type, in);
    return in.at();
  }

  private void follow(long generation) {
    if (generation == this.generation) return;
    this.generation = generation;
    known.clear();
    bytes = 0;
    lastValues = null;
  }

  /** Null: no entry whose first bytes are these was remembered since groups were taken out of the page. */
  Known find(byte[] entry, int decidingBytes, long generation) {
    follow(generation);
    boolean again = lastValues != null && lastValues.length == decidingBytes && Key.startsWith(entry, lastValues);
    if (again) return last;
    byte[] values = Arrays.copyOf(entry, decidingBytes);
    Known found = known.get(new Key(values));
    if (found == null) return null;
    lastValues = values;
    last = found;
    return found;
  }

  Known remember(byte[] entry, int decidingBytes, RowGroups.Group group, long generation) {
    follow(generation);
    if (bytes >= MAX_BYTES) {
      known.clear();
      bytes = 0;
    }
    Known learned = new Known(group);
    known.put(new Key(Arrays.copyOf(entry, decidingBytes)), learned);
    bytes += decidingBytes + OVERHEAD;
    return learned;
  }
}
