package tamis.hbase;

import tamis.filter.Hash;
import tamis.table.Schema;

/** The entry of a row in one index. A value. */
final class IndexEntry {
  final Schema.Index index;
  final byte[] key;
  final byte[][] prefixes; // of the encoded values, each leading one
  final long timestamp;
  /** The row's until somebody writes; else it may come to be nobody's, or shows only then. */
  final boolean certain;

  private long[] hashes;

  IndexEntry(Schema.Index index, byte[] key, byte[][] prefixes, long timestamp, boolean certain) {
    this.index = index;
    this.key = key;
    this.prefixes = prefixes;
    this.timestamp = timestamp;
    this.certain = certain;
  }

  /** The hashes that a filter counts. */
  long[] hashes() {
    if (hashes == null) {
      hashes = new long[prefixes.length];
      for (int i = 0; i < hashes.length; ++i) hashes[i] = Hash.of(prefixes[i], index.seed);
    }
    return hashes;
  }

  /** The first encoded value, for the range. */
  byte[] first() {
    return prefixes[0];
  }
}
