package tamis.feed;

import tamis.table.Hash;
import tamis.table.Key;
import tamis.table.Schema;

/** The entry of a row in one index. A value. */
public final class IndexEntry {
  public final Schema.Index index;
  public final byte[] key;
  final byte[][] prefixes; // each leading prefix of the encoded values
  public final long timestamp;
  /**
   * True: the row gives this entry until the next write of the row. False: the entry belongs to a version under a
   * tombstone; without any write the row may stop giving it, or begin to.
   */
  public final boolean certain;
  /** The included columns (Codec.encodeIncluded); of an entry that is not certain, nothing. */
  public final byte[] included;

  private long[] hashes;

  /** An entry without included columns. */
  public IndexEntry(Schema.Index index, byte[] key, byte[][] prefixes, long timestamp, boolean certain) {
    this(index, key, prefixes, timestamp, certain, Key.EMPTY);
  }

  public IndexEntry(
      Schema.Index index, byte[] key, byte[][] prefixes, long timestamp, boolean certain, byte[] included) {
    this.index = index;
    this.key = key;
    this.prefixes = prefixes;
    this.timestamp = timestamp;
    this.certain = certain;
    this.included = included;
  }

  /** The hashes that a filter counts. */
  public long[] hashes() {
    if (hashes == null) {
      hashes = new long[prefixes.length];
      for (int i = 0; i < hashes.length; ++i) hashes[i] = Hash.of(prefixes[i], index.seed);
    }
    return hashes;
  }

  /** The first encoded value, for the range. */
  public byte[] first() {
    return prefixes[0];
  }
}
