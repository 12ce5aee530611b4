package tamis.hbase;

import tamis.shaded.protobuf.ByteString;
import tamis.table.ByteReader;
import tamis.table.ByteWriter;
import tamis.table.DamagedBytesException;
import tamis.table.Key;

/** How far a search has come in a key range (docs/FORMATS.md#continuations). A value. */
final class SearchPosition {
  private static final int VERSION = 1;

  final long branch;        // earlier ones are done
  final boolean entryOrder; // else by row key
  final byte[] last;        // the last row key, or entry, that is done; empty: none is

  SearchPosition(long branch, boolean entryOrder, byte[] last) {
    this.branch = branch;
    this.entryOrder = entryOrder;
    this.last = last;
  }

  static SearchPosition begin() {
    return new SearchPosition(0, false, Key.EMPTY);
  }

  SearchPosition nextBranch() {
    return new SearchPosition(branch + 1, false, Key.EMPTY);
  }

  SearchPosition at(byte[] done) {
    return new SearchPosition(branch, entryOrder, done);
  }

  SearchPosition inEntryOrder() {
    return new SearchPosition(branch, true, last);
  }

  ByteString serialize() {
    return ByteString.copyFrom(
        new ByteWriter().put(VERSION).putVarint(branch).put(entryOrder ? 1 : 0).put(last).toBytes());
  }

  static SearchPosition parse(ByteString bytes) throws DamagedBytesException {
    ByteReader in = new ByteReader(bytes.toByteArray());
    int version = in.takeByte();
    long branch = in.takeVarint();
    int order = in.takeByte();
    if (version != VERSION || order > 1 || branch < 0) {
      throw new DamagedBytesException("a continuation is damaged, or of another version");
    }
    return new SearchPosition(branch, order == 1, in.rest());
  }
}
