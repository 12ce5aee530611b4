package tamis.search;

import tamis.shaded.protobuf.ByteString;
import tamis.table.ByteReader;
import tamis.table.ByteWriter;
import tamis.table.DamagedBytesException;
import tamis.table.Key;

/** How far a search has come in a key range (docs/FORMATS.md#continuations). A value. */
final class SearchPosition {
  private static final int VERSION = 2;

  final long branch; // unsigned; earlier ones are done
  final boolean entryOrder; // else by row key
  final int indexId; // of the index that leads; 0: rows are scanned
  final byte[] last; // the last row key, or entry, that is done; empty: none is

  private SearchPosition(long branch, boolean entryOrder, int indexId, byte[] last) {
    this.branch = branch;
    this.entryOrder = entryOrder;
    this.indexId = indexId;
    this.last = last;
  }

  static SearchPosition begin() {
    return new SearchPosition(0, false, 0, Key.EMPTY);
  }

  /** Whether there is a branch left, of so many. */
  boolean isWithin(int branches) {
    return Long.compareUnsigned(branch, branches) < 0;
  }

  /** Something of the branch is done; the rest follows in the same order. */
  boolean isBegun() {
    return entryOrder || last.length > 0;
  }

  SearchPosition nextBranch() {
    return new SearchPosition(branch + 1, false, 0, Key.EMPTY);
  }

  SearchPosition at(byte[] done) {
    return new SearchPosition(branch, entryOrder, indexId, done);
  }

  /** Row keys are in the same order whatever leads. */
  SearchPosition byRowKey(int leader) {
    return new SearchPosition(branch, false, leader, last);
  }

  SearchPosition byEntry(int leader) {
    return new SearchPosition(branch, true, leader, last);
  }

  ByteString serialize() {
    return ByteString.copyFrom(new ByteWriter()
                                   .put(VERSION)
                                   .putVarint(branch)
                                   .put(entryOrder ? 1 : 0)
                                   .putVarint(indexId & 0xffffffffL)
                                   .put(last)
                                   .toBytes());
  }

  static SearchPosition parse(ByteString bytes) throws DamagedBytesException {
    ByteReader in = new ByteReader(bytes.toByteArray());
    int version = in.takeByte();
    if (version != VERSION) throw damaged();
    long branch = in.takeVarint();
    int order = in.takeByte();
    long indexId = in.takeVarint();
    if (order > 1 || indexId < 0 || indexId > 0xffffffffL) throw damaged();
    return new SearchPosition(branch, order == 1, (int) indexId, in.rest());
  }

  private static DamagedBytesException damaged() {
    return new DamagedBytesException("a continuation is damaged, or of another version");
  }
}
