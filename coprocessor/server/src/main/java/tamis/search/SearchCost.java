package tamis.search;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import tamis.feed.IndexFilter;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * The choice, in one branch of a search, of what is read: the driving index stream or a scan of the rows, by what
 * each costs; and the streams that are joined with the driving one once enough rows were looked at. Threads: exclusive
 * access.
 */
final class SearchCost {
  private static final int SAMPLE = 32; // rows looked at before a stream is joined
  private static final int FEW = 32; // entries that cost less than counting rows
  // Reading a row costs as much as reading so many entries one after the other; and where rows are read one after the
  // other, so many.
  static final long ROW_COST = 8;
  private static final long SCAN_COST = 2;
  private static final long LEAST_TO_SCAN = 256; // a search for fewer rows gains nothing from a scan

  private final IndexedRegion region;
  private final Set<Integer> complete; // indexes that have all their entries in the view
  private final SearchedRows rows;
  private final SearchPage page;
  private final BranchStreams streams;
  private final BranchStreams.Choice choice;
  private final long rowsBefore; // rows of earlier branches

  private BranchStreams.Stream driving;
  private boolean scansByChoice;
  private final List<BranchStreams.Stream> leaps = new ArrayList<>(); // joined, in row-key order
  private final List<Set<Key>> joinedKeys = new ArrayList<>(); // keys of the others that are joined
  private long sampled; // rows
  private boolean joinsDone;

  SearchCost(IndexedRegion region, Set<Integer> complete, SearchedRows rows, SearchPage page, BranchStreams streams,
      BranchStreams.Choice choice) {
    this.region = region;
    this.complete = complete;
    this.rows = rows;
    this.page = page;
    this.streams = streams;
    this.choice = choice;
    rowsBefore = page.rows();
  }

  // ---- An index or a scan

  /** Opens the driving stream; null: rows are scanned. A search continues as it began. */
  BranchStreams.Stream lead() throws IOException {
    SearchPosition position = page.position;
    if (position.isBegun() && position.indexId == 0) {
      scansByChoice = !streams.all().isEmpty();
      return null;
    }
    boolean mayScan = !position.isBegun() && page.maxRows >= LEAST_TO_SCAN && choice.byCost;
    driving = streams.lead(position.isBegun() ? position.indexId : 0, probe(mayScan, leastEntryCost()));
    if (driving == null) return null;
    if (!position.isByEntry() && isScanBetter(mayScan)) {
      scansByChoice = true;
      driving = null;
      return null;
    }
    driving.led = true;
    if (!position.isBegun()) driving.expected = Math.max(driving.size, 0);
    return driving;
  }

  /** A counted entry costs less than any row. */
  private boolean isScanBetter(boolean mayScan) throws IOException {
    if (driving.groups != null) return false;
    if (driving.isWhole() && driving.rows == null) return true;
    return mayScan && isScanCheaper();
  }

  /** Rows are scanned although there are indexes. */
  boolean scansByChoice() {
    return scansByChoice;
  }

  /**
   * Entries that may be read ahead to see which stream has the fewest: as many as cost what reading the rows does that
   * are wanted, and no more than make a scan cheaper; `entryCost` is the least of all streams.
   */
  private long probe(boolean mayScan, long entryCost) {
    long most = Math.max(choice.probeEntries,
        Math.min(SearchPage.MAX_CANDIDATES, ROW_COST * Math.min(page.maxRows, SearchPage.MAX_CANDIDATES)));
    long all = mayScan && page.isWhole(region) ? rowCount() : -1;
    return all < 0 ? most : Math.min(most, all * SCAN_COST / entryCost + 1);
  }

  /** An entry of the stream with what it leads to: its row is read, unless the entry gives it. */
  private static long entryCost(BranchStreams.Stream stream) {
    return stream.rows != null ? 1 : 1 + ROW_COST;
  }

  private long leastEntryCost() {
    long least = 1 + ROW_COST;
    for (BranchStreams.Stream stream : streams.all()) least = Math.min(least, entryCost(stream));
    return least;
  }

  /** The number of rows of the region, as its filters know it; -1: they do not. */
  private long rowCount() {
    long least = -1;
    for (Schema.Index index : region.table.schema.indexes) {
      IndexFilter filter = region.filters.get(index.id);
      if (index.skipsNull || index.where != null || filter == null || !complete.contains(index.id)
          || !filter.isPublished())
        continue;
      long entries = filter.entries();
      if (least < 0 || entries < least) least = entries;
    }
    return least;
  }

  /** Whether reading all rows of the range costs less than the walk of the driving stream. */
  private boolean isScanCheaper() throws IOException {
    long all = rowCount();
    if (all < 0) return false;
    long entryCost = entryCost(driving);
    long entries = streams.sizeOf(driving, probe(true, entryCost));
    // Rows that cost as much when they are read in turn.
    long most = (entries * entryCost + driving.openingCost()) / SCAN_COST;
    if (page.isWhole(region)) return all <= most;
    if (entries <= FEW) return false; // to look how many rows there are costs as much
    if (entries <= choice.probeEntries) return rows.countRows(page.start, page.end, 2 * entries) < 2 * entries;
    byte[] family = region.table.families.get(0);
    long ofRegion = CellEstimate
                        .of(region.region, family,
                            Collections.singletonList(
                                new CellEstimate.Rows(region.info().getStartKey(), region.info().getEndKey())))
                        .likely;
    long ofRange =
        CellEstimate.of(region.region, family, Collections.singletonList(new CellEstimate.Rows(page.start, page.end)))
            .likely;
    return ofRegion > 0 && (double) all * ofRange / ofRegion <= most;
  }

  // ---- An order

  /** The number of rows that cost at least as much to sort as the walk to the wanted ones costs; 0: not known. */
  private long mostToSort() throws IOException {
    if (!choice.byCost || driving.filter == null || !driving.filter.isPublished()) return 0;
    List<Cluster.IndexRange> ranges = driving.plan.getRangesList();
    boolean whole = ranges.size() == 1 && ranges.get(0).getLow().isEmpty() && ranges.get(0).getHigh().isEmpty();
    long all = driving.filter.entries();
    if (!whole) all = Math.min(all, streams.sizeOf(driving, choice.probeEntries));
    return Math.min((long) Math.sqrt((double) page.maxRows * all), SearchPage.MAX_CANDIDATES);
  }

  /**
   * If the rows are wanted in the order of the driving stream: another stream, of so few entries that sorting their
   * rows costs less than the walk to the wanted ones, which then drives; null: there is none.
   */
  BranchStreams.Stream streamToSort() throws IOException {
    if (streams.all().size() < 2) return null;
    long most = mostToSort();
    BranchStreams.Stream least = null;
    for (BranchStreams.Stream stream : streams.all()) {
      if (stream == driving || most == 0) continue;
      long size = streams.sizeOf(stream, most);
      if (stream.exact && size < most && (least == null || size < least.size)) least = stream;
    }
    if (least == null) return null;
    driving.led = false;
    least.led = true;
    least.expected = least.size;
    streams.open(least);
    return least;
  }

  /** The same of the rows of the searched range, where that is a part of the region. */
  boolean isSortOfRowsCheaper() throws IOException {
    if (page.isWhole(region)) return false;
    long most = mostToSort();
    boolean cheaper = most > 0 && rows.countRows(page.start, page.end, most) < most;
    if (cheaper) driving.led = false;
    return cheaper;
  }

  // ---- Joins

  /** Notes in which of the other streams the row has an entry. */
  void sample(byte[] key, Value[] row) {
    if (driving == null || joinsDone) return;
    ++sampled;
    for (BranchStreams.Stream stream : streams.all()) {
      if (stream == driving) continue;
      byte[] entry = Codec.entryOf(stream.index, row, key);
      if (entry != null && BranchStreams.isIn(stream.plan, entry)) ++stream.rowsIn;
    }
  }

  /** Joins streams that spare more than they cost, once enough rows were looked at. */
  void joinStreams() throws IOException, DamagedBytesException {
    if (sampled < SAMPLE || joinsDone || !choice.join) return;
    joinsDone = true;
    List<BranchStreams.Stream> others = new ArrayList<>();
    for (BranchStreams.Stream stream : streams.all()) {
      if (stream != driving && stream.rowsIn * 4 <= sampled * 3) others.add(stream);
    }
    if (others.isEmpty()) return;
    others.sort(Comparator.comparingLong(stream -> stream.rowsIn));
    // The entries of the driving stream that are still to be read for this answer.
    double left = Math.max(0, streams.sizeOf(driving, choice.probeEntries) - sampled);
    left = Math.min(left, SearchPage.MAX_CANDIDATES);
    if (page.maxRows > page.rows() && page.rows() > rowsBefore) {
      left = Math.min(left, (double) (page.maxRows - page.rows()) * sampled / (page.rows() - rowsBefore));
    }
    for (BranchStreams.Stream stream : others) {
      double share = (double) stream.rowsIn / sampled;
      // Half of what it spares, so that little is lost where the first rows are not like the rest.
      long most = Math.min(SearchPage.MAX_CANDIDATES, (long) (left * (1 - share) * ROW_COST / 2));
      if (most < SAMPLE + stream.openingCost()) continue;
      if (streams.sizeOf(stream, most) > most - stream.openingCost()) continue; // reads so many only if in doubt
      join(stream, most);
      if (stream.joined) left *= share;
    }
  }

  /** An equality beside an equality is leapt along; of any other, all row keys are read, if they are not too many. */
  private void join(BranchStreams.Stream stream, long most) throws IOException, DamagedBytesException {
    streams.open(stream);
    if (driving.equality() && stream.equality()) {
      stream.joined = true;
      leaps.add(stream);
      return;
    }
    Set<Key> keys = new HashSet<>();
    long held = 0; // bytes
    byte[] target = page.start;
    while (keys.size() <= most && held < EntryQueue.MAX_BYTES && !page.isOutOfTime()) {
      byte[] key = null;
      if (stream.equality()) {
        key = stream.byKey.seek(target);
        if (key != null) target = Key.after(key);
      } else {
        byte[] entry = stream.byEntry.next();
        if (entry != null) key = Codec.rowKeyOf(region.table.schema, stream.index, entry);
      }
      if (key == null) {
        stream.joined = true;
        joinedKeys.add(keys);
        return;
      }
      if (keys.add(new Key(key))) held += key.length;
    }
  }

  /** Equalities with which the driving stream, an equality, is joined by a zigzag. */
  List<BranchStreams.Stream> leaps() {
    return leaps;
  }

  /** Whether the row key is in all joined streams that are no leaps. */
  boolean isInJoined(byte[] key) {
    for (Set<Key> keys : joinedKeys) {
      if (!keys.contains(new Key(key))) return false;
    }
    return true;
  }
}
