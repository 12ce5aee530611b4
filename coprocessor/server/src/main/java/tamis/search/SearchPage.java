package tamis.search;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.base.Fault;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.shaded.protobuf.ByteString;
import tamis.table.GroupTotals;
import tamis.table.Key;

/**
 * One answer to a search of one region: the rows found so far, the counters, the position up to which everything is
 * done, and the limits of rows, bytes, candidates and time. Threads: exclusive access.
 */
public final class SearchPage {
  public static final long MAX_ROWS = 1000;
  public static final long MAX_BYTES = 4 << 20;
  static final long MAX_CANDIDATES = 20_000;
  static final long MAX_GROUPED = 1_000_000; // the same, where rows are sent as groups

  final long maxRows;
  final byte[] start; // the start of the row keys
  byte[] end; // empty: none; moves to the front where less is answered
  final SearchCounts counts = new SearchCounts();
  SearchPosition position;
  long candidates; // rows and entries looked at
  boolean inOrder; // the rows come in the order that was asked for

  private final long deadline;
  private final Cluster.SearchRange range;
  private final SearchPlan plan;
  private final RowGroups groups; // null: rows are sent
  private final GroupTotals totals; // made of groups once these take much memory, and at the end; null: none are wanted
  private final List<Cluster.FoundRow> found = new ArrayList<>(); // unless as groups
  private final List<Cluster.IndexUse> uses = new ArrayList<>();
  private long rows;
  private long bytes;
  private boolean cameSomeWay; // the position is not where the request began

  /** Answers the part of the range that is the region's, in groups or rows; the deadline is one of nanoTime. */
  SearchPage(IndexedRegion region, Cluster.SearchRange range, SearchPosition position, SearchPlan plan, long maxRows,
      long deadline) {
    this.plan = plan;
    groups = plan.groups() ? new RowGroups() : null;
    totals = plan.groups() ? plan.newTotals() : null;
    this.range = range;
    this.position = position;
    this.maxRows = maxRows;
    this.deadline = deadline;
    byte[] from = range.getStart().toByteArray();
    byte[] first = region.info().getStartKey();
    start = Key.compare(from, first) < 0 ? first : from;
    byte[] to = range.getEnd().toByteArray();
    byte[] last = region.info().getEndKey();
    end = to.length == 0 || (last.length > 0 && Key.compare(last, to) < 0) ? last : to;
  }

  long rows() {
    return rows;
  }

  void add(byte[] key, byte[] row) {
    if (groups != null) {
      add(findGroup(row));
      return;
    }
    ++rows;
    found.add(Cluster.FoundRow.newBuilder().setKey(ByteString.copyFrom(key)).setRow(ByteString.copyFrom(row)).build());
    bytes += key.length + row.length;
  }

  /** The group of rows whose wanted columns are these. REQUIRES: rows are sent as groups. */
  RowGroups.Group findGroup(byte[] row) {
    if (totals != null && groups.isFull()) groups.moveTo(plan.schema(), totals);
    return groups.find(row);
  }

  /** The generation of the page's RowGroups. */
  long generation() {
    return groups.generation();
  }

  void add(RowGroups.Group group) {
    ++rows;
    groups.add(group);
  }

  void noteUse(BranchStreams.Stream stream) {
    counts.indexSeeks += stream.read.indexSeeks;
    counts.entriesRead += stream.read.entriesRead;
    if (!stream.led && !stream.joined && stream.read.entriesRead == 0) return;
    uses.add(Cluster.IndexUse.newBuilder()
                 .setIndexId(stream.index.id)
                 .setLed(stream.led ? 1 : 0)
                 .setJoined(stream.joined ? 1 : 0)
                 .setEntriesExpected(stream.expected)
                 .setEntriesRead(stream.read.entriesRead)
                 .build());
  }

  /** Rows were scanned because that cost less than any index. */
  void noteScan() {
    uses.add(Cluster.IndexUse.newBuilder().setLed(1).build());
  }

  // ---- The continuation

  /** Everything up to `done`, a row key or an entry in the position's order, is done. */
  void comeTo(byte[] done) {
    position = position.at(done);
    cameSomeWay = true;
  }

  /** Work is done that a continuation does not repeat, or that cannot be cut into pieces. */
  void setCameSomeWay() {
    cameSomeWay = true;
  }

  void finishBranch() {
    position = position.nextBranch();
    cameSomeWay = true;
  }

  /** The first row key that is not done. */
  byte[] afterLast() {
    if (position.last.length == 0) return start;
    byte[] behind = Key.after(position.last);
    return Key.compare(behind, start) < 0 ? start : behind;
  }

  boolean isIn(byte[] key) {
    return Key.compare(key, start) >= 0 && isBeforeEnd(key);
  }

  boolean isBeforeEnd(byte[] key) {
    return end.length == 0 || Key.compare(key, end) < 0;
  }

  /** The same of a row key that is the end of an entry. */
  boolean isIn(byte[] entry, int from) {
    int size = entry.length - from;
    return Bytes.compareTo(entry, from, size, start, 0, start.length) >= 0
        && (end.length == 0 || Bytes.compareTo(entry, from, size, end, 0, end.length) < 0);
  }

  /** Whether the whole region is searched. */
  boolean isWhole(IndexedRegion region) {
    return Key.compare(start, region.info().getStartKey()) <= 0 && Arrays.equals(end, region.info().getEndKey());
  }

  // ---- Limits

  boolean isPageFull() {
    if (rows >= maxRows || bytes >= MAX_BYTES) return true;
    return totals != null ? totals.sizeBytes() >= RowGroups.MAX_BYTES : groups != null && groups.isFull();
  }

  /** Or enough work for one request. */
  boolean isFull() {
    return isPageFull() || candidates >= (groups == null ? MAX_CANDIDATES : MAX_GROUPED) || isOutOfTime();
  }

  /** Never before something is done that need not be done again. */
  boolean isOutOfTime() {
    return cameSomeWay && isPastDeadline();
  }

  boolean isPastDeadline() {
    return System.nanoTime() - deadline >= 0;
  }

  private void addRowsTo(Cluster.RangeResult.Builder result) {
    if (groups == null) {
      result.addAllRows(found);
      return;
    }
    result.setGroups(true);
    if (totals == null) {
      groups.addTo(result);
      return;
    }
    groups.moveTo(plan.schema(), totals);
    totals.addTo(result);
  }

  Cluster.RangeResult result(boolean done) {
    Cluster.RangeResult.Builder result = Cluster.RangeResult.newBuilder()
                                             .setRegionId(range.getRegionId())
                                             .setEpoch(range.getEpoch())
                                             .setStart(ByteString.copyFrom(start))
                                             .setEnd(ByteString.copyFrom(end))
                                             .setInOrder(inOrder);
    if (!done) result.setResume(position.serialize());
    addRowsTo(result);
    boolean lost = Fault.GROUP_LOST_BETWEEN_PAGES.isOn() && groups != null && !done && result.getRowsCount() > 0;
    if (lost) result.removeRows(result.getRowsCount() - 1);
    return result
        .setCounters(Cluster.SearchCounters.newBuilder()
                         .setIndexSeeks(counts.indexSeeks)
                         .setEntriesRead(counts.entriesRead)
                         .setRowsRead(counts.rowsRead)
                         .setRowsFromEntries(counts.rowsFromEntries)
                         .setRowsReturned(rows)
                         .setScannedRegions(counts.scanned ? 1 : 0)
                         .setCellsUndecodable(counts.cellsUndecodable)
                         .setRowsUnparsed(counts.rowsUnparsed)
                         .addAllUses(uses))
        .build();
  }
}
