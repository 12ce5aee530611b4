package tamis.search;

import tamis.pb.Cluster;
import tamis.shaded.protobuf.ByteString;
import tamis.table.ByteReader;
import tamis.table.ByteWriter;
import tamis.table.DamagedBytesException;
import tamis.table.Key;

/** How far a search has come in a key range (docs/FORMATS.md#continuations). A value. */
final class SearchPosition {
  enum Order { ROW_KEY, ENTRY, ENTRY_DESCENDING, ROW_KEY_DESCENDING }

  private static final int VERSION = 2;

  final long branch; // unsigned; earlier ones are done
  final Order order;
  final int indexId; // the driving index; 0: rows are scanned
  final byte[] last; // the last row key, or entry, that is done; empty: none is

  private SearchPosition(long branch, Order order, int indexId, byte[] last) {
    this.branch = branch;
    this.order = order;
    this.indexId = indexId;
    this.last = last;
  }

  static SearchPosition begin() {
    return new SearchPosition(0, Order.ROW_KEY, 0, Key.EMPTY);
  }

  /** Before the first entry of the order's index, or after the last row. */
  static SearchPosition begin(Cluster.Order order) {
    if (order.getIndexId() == 0) return new SearchPosition(0, Order.ROW_KEY_DESCENDING, 0, Key.EMPTY);
    return new SearchPosition(
        0, order.getDescending() ? Order.ENTRY_DESCENDING : Order.ENTRY, order.getIndexId(), Key.EMPTY);
  }

  boolean isByEntry() {
    return order == Order.ENTRY || order == Order.ENTRY_DESCENDING;
  }

  boolean isDescending() {
    return order == Order.ENTRY_DESCENDING || order == Order.ROW_KEY_DESCENDING;
  }

  /** Whether the entry comes after `last`. REQUIRES: isByEntry(). */
  boolean isToCome(byte[] entry) {
    int compared = Key.compare(entry, last);
    return last.length == 0 || (isDescending() ? compared < 0 : compared > 0);
  }

  /** Whether it counts in that order. */
  boolean isIn(Cluster.Order wanted) {
    SearchPosition begin = begin(wanted);
    return order == begin.order && indexId == begin.indexId;
  }

  /** Whether there is a branch left, of so many. */
  boolean isWithin(int branches) {
    return Long.compareUnsigned(branch, branches) < 0;
  }

  /** Something of the branch is done; the rest follows in the same order. */
  boolean isBegun() {
    return isByEntry() || last.length > 0;
  }

  SearchPosition nextBranch() {
    return new SearchPosition(branch + 1, Order.ROW_KEY, 0, Key.EMPTY);
  }

  SearchPosition at(byte[] done) {
    return new SearchPosition(branch, order, indexId, done);
  }

  /** Row keys are in the same order for every driving stream. */
  SearchPosition byRowKey(int drivingIndex) {
    return new SearchPosition(branch, Order.ROW_KEY, drivingIndex, last);
  }

  SearchPosition byEntry(int drivingIndex) {
    return new SearchPosition(branch, isByEntry() ? order : Order.ENTRY, drivingIndex, last);
  }

  ByteString serialize() {
    return ByteString.copyFrom(new ByteWriter()
                                   .put(VERSION)
                                   .putVarint(branch)
                                   .put(order.ordinal())
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
    if (order >= Order.values().length || indexId < 0 || indexId > 0xffffffffL) throw damaged();
    return new SearchPosition(branch, Order.values()[order], (int) indexId, in.rest());
  }

  private static DamagedBytesException damaged() {
    return new DamagedBytesException("a continuation is damaged, or of another version");
  }
}
