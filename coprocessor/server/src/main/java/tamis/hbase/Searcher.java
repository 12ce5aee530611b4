package tamis.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeyValueUtil;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.pb.Cluster;
import tamis.shaded.protobuf.ByteString;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.KeyFormat;
import tamis.table.Predicate;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * Answers ranges of a search request in one region each, from one snapshot; described at tamis::Searcher, with the
 * choice of the driving index. A request's plan is parsed once for all of its regions that follow the same schema.
 * Threads: exclusive access.
 */
final class Searcher {
  static final long PAGE_ROWS = 1000;
  static final long PAGE_BYTES = 4 << 20;
  private static final long PAGE_CANDIDATES = 20_000;
  private static final int MAX_BRANCHES = 1024;
  private static final int BATCH = 32; // rows read at once
  private static final int SAMPLE = 32; // rows looked at before a stream is joined
  // Reading a row costs as much as reading so many entries one after the other; and where rows are read one after the
  // other, so many.
  private static final long ROW_COST = 8;
  private static final long SCAN_COST = 2;
  private static final long LEAST_TO_SCAN = 256; // who wants fewer rows is not helped by a scan

  /** A branch of the request. */
  private static final class Branch {
    final Predicate predicate;
    final List<Cluster.IndexStream> streams;

    Branch(Predicate predicate, Cluster.Branch plan) {
      this.predicate = predicate;
      streams = plan.getStreamsList();
    }
  }

  private final IndexedTable table;
  private final Schema schema;
  private final List<Branch> branches = new ArrayList<>();
  private final boolean[] wanted;
  private final boolean[] read; // columns of conditions, indexes and output
  private final BranchStreams.Choice choice;

  Searcher(Cluster.SearchRequest request, IndexedTable table, String server) throws StatusException {
    this(request, table, server, new BranchStreams.Choice());
  }

  Searcher(Cluster.SearchRequest request, IndexedTable table, String server, BranchStreams.Choice choice)
      throws StatusException {
    this.table = table;
    this.choice = choice;
    schema = table.schema;
    boolean newer = request.getSchemaVersion() > schema.version;
    String older = "table \"" + schema.name + "\": server " + server + " does not have schema version "
        + request.getSchemaVersion() + " yet, and ";
    if (request.getBranchesCount() < 1 || request.getBranchesCount() > MAX_BRANCHES) {
      throw invalid("a search has 1 to " + MAX_BRANCHES + " branches, not " + request.getBranchesCount());
    }
    wanted = new boolean[schema.columns.length];
    read = new boolean[schema.columns.length];
    for (Cluster.Branch branch : request.getBranchesList()) {
      Predicate predicate;
      try {
        predicate = Predicate.parse(branch.getPredicate());
      } catch (DamagedBytesException e) {
        throw invalid(e.getMessage());
      }
      String why = predicate.validate(schema);
      if (why != null) {
        throw newer ? new StatusException(Cluster.Error.Code.UNAVAILABLE, older + why) : invalid(why);
      }
      java.util.Set<Integer> indexes = new java.util.HashSet<>();
      for (Cluster.IndexStream stream : branch.getStreamsList()) {
        if (!indexes.add(stream.getIndexId())) throw invalid("a branch has two streams of one index");
        Schema.Index index = schema.index(stream.getIndexId());
        if (index != null) {
          for (int column : index.columns) read[column] = true;
        }
      }
      predicate.addColumns(read);
      branches.add(new Branch(predicate, branch));
    }
    for (int id : request.getColumnsList()) {
      Integer column = schema.columnOfId(id & 0xffffffffL);
      if (column != null) {
        wanted[column] = true;
        read[column] = true;
      } else if (newer) {
        throw new StatusException(Cluster.Error.Code.UNAVAILABLE, older + "not its column " + id);
      }
    }
  }

  /** Values and row key, as they stand in the index; null: the row has no entry in it. */
  private static byte[] entryOf(Schema.Index index, Value[] row, byte[] key) {
    if (Codec.isSkipped(index, row)) return null;
    byte[][] prefixes = Codec.indexPrefixes(index, row);
    return Key.concat(prefixes[prefixes.length - 1], key);
  }

  private static StatusException invalid(String message) {
    return new StatusException(Cluster.Error.Code.INVALID_ARGUMENT, message);
  }

  /** Ends soon after the deadline (nanoTime) with a continuation, but not before it has come some way. */
  Cluster.RangeResult search(IndexedRegion region, Cluster.SearchRange range, long maxRows, long deadline) {
    try {
      Rights.mayRead(region, read);
      return new Run(region, range, maxRows, deadline).search();
    } catch (Throwable e) {
      return Cluster.RangeResult.newBuilder().setRegionId(range.getRegionId()).setEpoch(range.getEpoch())
          .setError(StatusException.errorOf(e, RegionServerState.INSTANCE.isLeaving(region))).build();
    }
  }

  /** A row to look at, and where the search stands once that is done. */
  private static final class Candidate {
    final byte[] key;
    final byte[] position;
    final Schema.Index named; // of the entry that is the position; null: that is none

    Candidate(byte[] key, byte[] position) {
      this(key, position, null);
    }

    Candidate(byte[] key, byte[] position, Schema.Index named) {
      this.key = key;
      this.position = position;
      this.named = named;
    }
  }

  /** One region, one instant. */
  private final class Run {
    final IndexedRegion region;
    final Cluster.SearchRange range;
    final long maxRows;
    final long deadline;
    final byte[] start;
    byte[] end;
    final SearchCounts counts = new SearchCounts();
    final List<Cluster.FoundRow> rows = new ArrayList<>();
    final List<Cluster.IndexUse> uses = new ArrayList<>();
    SearchPosition position;
    ReadView view;
    Set<Integer> complete;
    // For the branch that is under way.
    BranchStreams streams;
    BranchStreams.Stream leader; // null: rows are scanned
    List<BranchStreams.Stream> leaps; // joined, in row-key order
    List<Set<Key>> joinedKeys;        // of the others that are joined
    long sampled; // rows
    boolean joinsDone;
    int rowsBefore; // of earlier branches
    long bytes;
    long candidates;
    boolean cameSomeWay;

    Run(IndexedRegion region, Cluster.SearchRange range, long maxRows, long deadline) {
      this.region = region;
      this.range = range;
      this.maxRows = maxRows;
      this.deadline = deadline;
      byte[] from = range.getStart().toByteArray();
      byte[] first = region.info().getStartKey();
      start = Key.compare(from, first) < 0 ? first : from;
      end = range.getEnd().toByteArray();
      byte[] last = region.info().getEndKey();
      if (end.length == 0 || (last.length > 0 && Key.compare(last, end) < 0)) end = last;
    }

    Cluster.RangeResult search() throws IOException, StatusException, DamagedBytesException {
      position = range.getResume().isEmpty() ? SearchPosition.begin() : SearchPosition.parse(range.getResume());
      // Before the view: an index that is complete now has all its entries in it.
      complete = region.complete();
      boolean done = true;
      try (ReadView opened = new ReadView(region.region)) {
        view = opened;
        while (position.isWithin(branches.size())) {
          done = runBranch();
          if (!done) break;
          position = position.nextBranch();
          cameSomeWay = true;
          if (position.isWithin(branches.size()) && isOutOfTime()) {
            done = false;
            break;
          }
        }
      }
      Cluster.RangeResult.Builder result = Cluster.RangeResult.newBuilder().setRegionId(range.getRegionId())
          .setEpoch(range.getEpoch()).setStart(ByteString.copyFrom(start)).setEnd(ByteString.copyFrom(end));
      if (!done) result.setResume(position.serialize());
      result.addAllRows(rows);
      return result.setCounters(Cluster.SearchCounters.newBuilder().setIndexSeeks(counts.indexSeeks)
          .setEntriesRead(counts.entriesRead).setRowsRead(counts.rowsRead).setRowsReturned(counts.rowsReturned)
          .setScannedRegions(counts.scanned ? 1 : 0).setCellsUndecodable(counts.cellsUndecodable)
          .setRowsUnparsed(counts.rowsUnparsed).addAllUses(uses)).build();
    }

    /** True when the branch is done; else the position tells how far it came. */
    boolean runBranch() throws IOException, StatusException, DamagedBytesException {
      leader = null;
      leaps = new ArrayList<>();
      joinedKeys = new ArrayList<>();
      sampled = 0;
      joinsDone = false;
      rowsBefore = rows.size();
      try (BranchStreams opened = new BranchStreams(view, region, choice, this::isOutOfTime)) {
        streams = opened;
        boolean done = runStreams(branches.get((int) position.branch).streams);
        for (BranchStreams.Stream stream : opened.all()) noteUse(stream);
        return done;
      }
    }

    private boolean runStreams(List<Cluster.IndexStream> plan) throws IOException, StatusException,
        DamagedBytesException {
      boolean byEntry = position.entryOrder;
      boolean begun = byEntry || position.last.length > 0;
      Cluster.IndexStream named = null;
      for (Cluster.IndexStream stream : plan) {
        boolean isNamed = stream.getIndexId() == position.indexId;
        if (isNamed) named = stream;
        Schema.Index index = schema.index(stream.getIndexId());
        if (index == null || !complete.contains(index.id)) continue;
        // A search continues in the order in which it began.
        boolean mayLead = byEntry ? isNamed : !begun || stream.getEquality();
        streams.add(new BranchStreams.Stream(stream, index, region.filters.get(index.id), mayLead,
            byEntry ? start : afterLast(), end, byEntry && isNamed ? position.last : Key.EMPTY));
      }
      if (byEntry && (named == null || named.getEquality())) {
        throw invalid("a continuation counts in the order of an index of another search");
      }
      boolean scanning = begun && position.indexId == 0;
      boolean mayScan = !begun && maxRows >= LEAST_TO_SCAN && choice.byCost;
      if (!scanning) leader = streams.lead(begun ? position.indexId : 0, probe(mayScan));
      if (leader == null && byEntry) return sortRows(named);
      boolean byChoice = scanning ? !streams.all().isEmpty() : leader != null && mayScan && isScanCheaper();
      if (leader == null || byChoice) {
        leader = null;
        counts.scanned |= !byChoice && !plan.isEmpty();
        if (byChoice) uses.add(Cluster.IndexUse.newBuilder().setLed(1).build());
        position = position.byRowKey(0);
        return scanRows();
      }
      leader.led = true;
      if (!begun) leader.expected = Math.max(leader.size, 0);
      position = leader.equality() ? position.byRowKey(leader.index.id) : position.byEntry(leader.index.id);
      return leader.equality() ? walkKeys() : walkEntries();
    }

    private void noteUse(BranchStreams.Stream stream) {
      counts.indexSeeks += stream.read.indexSeeks;
      counts.entriesRead += stream.read.entriesRead;
      if (!stream.led && !stream.joined && stream.read.entriesRead == 0) return;
      uses.add(Cluster.IndexUse.newBuilder().setIndexId(stream.index.id).setLed(stream.led ? 1 : 0)
          .setJoined(stream.joined ? 1 : 0).setEntriesExpected(stream.expected)
          .setEntriesRead(stream.read.entriesRead).build());
    }

    // ---- What costs least

    /**
     * Entries that may be read ahead to see which stream has the fewest: as many as cost what reading the rows does
     * that are wanted, and no more than make a scan cheaper.
     */
    private long probe(boolean mayScan) {
      long most = Math.max(choice.probeEntries, Math.min(PAGE_CANDIDATES,
          ROW_COST * Math.min(maxRows, PAGE_CANDIDATES)));
      long all = mayScan && isWhole() ? rowCount() : -1;
      return all < 0 ? most : Math.min(most, all * SCAN_COST / (1 + ROW_COST) + 1);
    }

    private boolean isWhole() {
      return Key.compare(start, region.info().getStartKey()) <= 0 && Arrays.equals(end, region.info().getEndKey());
    }

    /** The number of rows of the region, as its filters know it; -1: they do not. */
    private long rowCount() {
      long least = -1;
      for (Schema.Index index : schema.indexes) {
        IndexFilter filter = region.filters.get(index.id);
        if (index.skipsNull || filter == null || !complete.contains(index.id) || !filter.isPublished()) continue;
        long entries = filter.entries();
        if (least < 0 || entries < least) least = entries;
      }
      return least;
    }

    /** Whether reading all rows of the range costs less than what the leader finds. */
    private boolean isScanCheaper() throws IOException {
      long all = rowCount();
      if (all < 0) return false;
      long entries = streams.sizeOf(leader, probe(true));
      // Rows that cost as much when they are read in turn.
      long most = (entries * (1 + ROW_COST) + leader.openingCost()) / SCAN_COST;
      if (isWhole()) return all <= most;
      if (entries <= BATCH) return false; // to look how many rows there are costs as much
      if (entries <= choice.probeEntries) return countRows(2 * entries) < 2 * entries;
      byte[] family = table.families.get(0);
      long ofRegion = CellEstimate.of(region.region, family, Collections.singletonList(
          new CellEstimate.Rows(region.info().getStartKey(), region.info().getEndKey()))).likely;
      long ofRange = CellEstimate.of(region.region, family,
          Collections.singletonList(new CellEstimate.Rows(start, end))).likely;
      return ofRegion > 0 && (double) all * ofRange / ofRegion <= most;
    }

    /** Rows of the range, `most` for as many or more. */
    private long countRows(long most) throws IOException {
      long count = 0;
      try (RowCursor cursor = new RowCursor(view.open(rowScan(start).setFilter(new FirstKeyOnlyFilter())))) {
        while (count < most && cursor.next() != null) ++count;
      }
      return count;
    }

    /** Notes in which of the other streams the row has an entry. */
    private void sample(byte[] key, Value[] row) {
      if (leader == null || joinsDone) return;
      ++sampled;
      for (BranchStreams.Stream stream : streams.all()) {
        if (stream == leader) continue;
        byte[] entry = entryOf(stream.index, row, key);
        if (entry != null && isIn(stream.plan, entry)) ++stream.rowsIn;
      }
    }

    /** Joins streams that spare more than they cost, once enough rows were looked at. */
    private void joinStreams() throws IOException, DamagedBytesException {
      if (sampled < SAMPLE || joinsDone || !choice.join) return;
      joinsDone = true;
      List<BranchStreams.Stream> others = new ArrayList<>();
      for (BranchStreams.Stream stream : streams.all()) {
        if (stream != leader && stream.rowsIn * 4 <= sampled * 3) others.add(stream);
      }
      if (others.isEmpty()) return;
      others.sort(Comparator.comparingLong(stream -> stream.rowsIn));
      // The entries of the driving stream that are still to be read for this answer.
      double left = Math.max(0, streams.sizeOf(leader, choice.probeEntries) - sampled);
      left = Math.min(left, PAGE_CANDIDATES);
      if (maxRows > rows.size() && rows.size() > rowsBefore) {
        left = Math.min(left, (double) (maxRows - rows.size()) * sampled / (rows.size() - rowsBefore));
      }
      for (BranchStreams.Stream stream : others) {
        double share = (double) stream.rowsIn / sampled;
        // Half of what it spares, so that little is lost where the first rows are not like the rest.
        long most = Math.min(PAGE_CANDIDATES, (long) (left * (1 - share) * ROW_COST / 2));
        if (most < SAMPLE + stream.openingCost()) continue;
        if (streams.sizeOf(stream, most) > most - stream.openingCost()) continue; // reads so many only if in doubt
        join(stream, most);
        if (stream.joined) left *= share;
      }
    }

    /** An equality beside an equality is leapt along; of any other, all row keys are read, if they are not too many. */
    private void join(BranchStreams.Stream stream, long most) throws IOException, DamagedBytesException {
      streams.open(stream);
      if (leader.equality() && stream.equality()) {
        stream.joined = true;
        leaps.add(stream);
        return;
      }
      Set<Key> keys = new HashSet<>();
      long held = 0; // bytes
      byte[] target = start;
      while (keys.size() <= most && held < EntryQueue.MAX_BYTES && !isOutOfTime()) {
        byte[] key = null;
        if (stream.equality()) {
          key = stream.byKey.seek(target);
          if (key != null) target = Key.after(key);
        } else {
          byte[] entry = stream.byEntry.next();
          if (entry != null) key = rowOf(stream.index, entry);
        }
        if (key == null) {
          stream.joined = true;
          joinedKeys.add(keys);
          return;
        }
        if (keys.add(new Key(key))) held += key.length;
      }
    }

    private boolean isInJoined(byte[] key) {
      for (Set<Key> keys : joinedKeys) {
        if (!keys.contains(new Key(key))) return false;
      }
      return true;
    }

    private byte[] rowOf(Schema.Index index, byte[] entry) throws DamagedBytesException {
      return Arrays.copyOfRange(entry, Codec.rowKeyOffset(schema, index, entry, 0), entry.length);
    }

    private boolean isIn(Cluster.IndexStream stream, byte[] entry) {
      for (Cluster.IndexRange range : stream.getRangesList()) {
        byte[] high = range.getHigh().toByteArray();
        boolean below = high.length == 0 || Key.compare(entry, high) < 0;
        if (below && Key.compare(entry, range.getLow().toByteArray()) >= 0) return true;
      }
      return false;
    }

    // ---- Ways to the rows

    Scan rowScan(byte[] from) {
      // One key: HBase asks the files' filters only where the first row is the last one.
      boolean one = from.length > 0 && from.length <= HConstants.MAX_ROW_LENGTH
          && Arrays.equals(end, Key.after(from));
      Scan scan = (one ? ReadView.scan(from, Key.EMPTY).withStopRow(from, true) : ReadView.scan(from, end))
          .readVersions(1);
      for (byte[] family : table.families) scan.addFamily(family);
      return scan;
    }

    boolean scanRows() throws IOException {
      byte[] from = afterLast();
      if (end.length > 0 && Key.compare(from, end) >= 0) return true;
      try (RowCursor cursor = new RowCursor(view.open(rowScan(from)))) {
        while (!cursor.ended()) {
          if (isFull()) return false;
          List<Cell> cells = cursor.next();
          if (cells == null) break;
          byte[] key = CellUtil.cloneRow(cells.get(0));
          ++candidates;
          ++counts.rowsRead;
          consider(new Candidate(key, key), cells);
          position = position.at(key);
          cameSomeWay = true;
        }
      }
      return true;
    }

    /** By the row keys of the leader that are in all joined streams, in their order. */
    boolean walkKeys() throws IOException, DamagedBytesException {
      final int leastMoves = 16; // so that a request comes some way
      List<Candidate> batch = new ArrayList<>();
      byte[] target = afterLast();
      byte[] passed = Key.EMPTY; // no key up to it is in all streams, but for those in the batch
      int moves = 0;
      boolean ended = false;
      while (!ended) {
        byte[] next = leader.byKey.seek(target); // where the leader, or the next stream that lacks the target, goes on
        ended = next == null;
        boolean everywhere = !ended;
        if (everywhere && !Arrays.equals(next, target)) {
          passed = target;
          target = next;
          ++moves;
        }
        for (int i = 0; everywhere && i < leaps.size(); ++i) {
          next = leaps.get(i).byKey.seek(target);
          everywhere = next != null && Arrays.equals(next, target);
          ended = next == null;
        }
        if (everywhere && !isInJoined(target)) {
          everywhere = false;
          next = Key.after(target);
        }
        if (everywhere) {
          batch.add(new Candidate(target, target));
          target = Key.after(target);
        } else if (!ended) {
          passed = target;
          target = next;
          ++moves;
        }
        boolean stop = !ended && moves >= leastMoves && passed.length > 0 && System.nanoTime() - deadline >= 0;
        if (batch.size() >= BATCH || ended || stop) {
          boolean all = considerBatch(batch);
          if (all && stop && Key.compare(passed, position.last) > 0) position = position.at(passed);
          if (!all || stop || (isFull() && !ended)) return false;
          joinStreams();
        }
      }
      return true;
    }

    Schema.Index indexOf(Cluster.IndexStream stream) throws StatusException {
      Schema.Index index = schema.index(stream.getIndexId());
      // A continuation in the order of an index is of no use without it.
      if (index == null) throw new StatusException(Cluster.Error.Code.UNAVAILABLE, "the index is not known here");
      return index;
    }

    /** By the entries of the leader whose row keys are in all joined streams, in their order. */
    boolean walkEntries() throws IOException, DamagedBytesException {
      List<Candidate> batch = new ArrayList<>();
      long leftOut = 0;
      for (byte[] entry = leader.byEntry.next(); entry != null; entry = leader.byEntry.next()) {
        byte[] key = rowOf(leader.index, entry);
        boolean outside = Key.compare(key, start) < 0 || (end.length > 0 && Key.compare(key, end) >= 0);
        if (outside || !isInJoined(key)) {
          // Many of them must not hold up a reply, and the next one begins behind them.
          if (outside || ++leftOut % ROW_COST == 0) ++candidates;
          if (batch.isEmpty()) {
            position = position.at(entry);
            cameSomeWay = true;
          }
          if (!isFull()) continue;
          considerBatch(batch);
          return false;
        }
        batch.add(new Candidate(key, entry, leader.index));
        if (batch.size() < BATCH) continue;
        if (!considerBatch(batch) || isFull()) return false;
        joinStreams();
      }
      return considerBatch(batch);
    }

    /** The index is not complete here, but the continuation counts in its order: rows are put into that order first. */
    boolean sortRows(Cluster.IndexStream stream) throws IOException, StatusException {
      counts.scanned = true;
      Schema.Index index = indexOf(stream);
      TreeMap<Key, byte[]> sorted = new TreeMap<>(); // entry -> row key; the least ones, as many as may be held
      long keep = Math.max(maxRows, PAGE_CANDIDATES);
      long held = 0; // bytes of entries, which end with their row keys
      boolean dropped = false;
      try (RowCursor cursor = new RowCursor(view.open(rowScan(start)))) {
        for (List<Cell> cells = cursor.next(); cells != null; cells = cursor.next()) {
          byte[] key = CellUtil.cloneRow(cells.get(0));
          if (cameSomeWay && isOutOfTime()) {
            if (!rows.isEmpty()) return false; // of earlier branches, and of the whole range
            // The least entries are known only of the rows up to here: the answer is for those.
            end = key;
            break;
          }
          cameSomeWay = true;
          ++counts.rowsRead;
          Value[] row = decode(key, cells, null);
          byte[] entry = row == null ? null : entryOf(index, row, key);
          if (entry == null || !isIn(stream, entry) || Key.compare(entry, position.last) <= 0) continue;
          sorted.put(new Key(entry), key);
          held += entry.length;
          while (sorted.size() > keep || (held > EntryQueue.MAX_BYTES && sorted.size() > 1)) {
            held -= sorted.pollLastEntry().getKey().bytes().length;
            dropped = true;
          }
        }
      }
      List<Candidate> batch = new ArrayList<>();
      for (Map.Entry<Key, byte[]> entry : sorted.entrySet()) {
        batch.add(new Candidate(entry.getValue(), entry.getKey().bytes()));
        if (batch.size() >= BATCH && !considerBatch(batch)) return false;
      }
      return considerBatch(batch) && !dropped;
    }

    /**
     * Reads the rows of the candidates and takes those that match. False when the page became full before the last of
     * them; the position says what is done, which is at least the first of them.
     */
    boolean considerBatch(List<Candidate> batch) throws IOException {
      if (batch.isEmpty()) return true;
      List<Candidate> taken = new ArrayList<>(batch);
      batch.clear();
      TreeMap<byte[], Boolean> keys = new TreeMap<>(Bytes.BYTES_COMPARATOR);
      for (Candidate candidate : taken) keys.put(candidate.key, true);
      Map<Key, List<Cell>> read = new HashMap<>();
      Scan scan = new Scan().readVersions(1);
      for (byte[] family : table.families) scan.addFamily(family);
      RowReader.seek(view::open, scan, keys, (key, cells) -> read.put(new Key(key), copiesOf(cells)));
      for (Candidate candidate : taken) {
        if (isPageFull()) return false;
        ++candidates;
        ++counts.rowsRead;
        List<Cell> cells = read.get(new Key(candidate.key));
        if (cells != null) consider(candidate, cells);
        position = position.at(candidate.position);
        cameSomeWay = true;
      }
      return true;
    }

    /** Copies the cells of the row's columns; after its scanner moves on, HBase reuses their bytes for other cells. */
    private List<Cell> copiesOf(List<Cell> cells) {
      List<Cell> copies = new ArrayList<>();
      for (Cell cell : cells) {
        if (table.columnOf(cell) >= 0) copies.add(KeyValueUtil.copyToNewKeyValue(cell));
      }
      return copies;
    }

    /** null: no row of the table. Counts only where there is something to count in. */
    Value[] decode(byte[] key, List<Cell> cells, SearchCounts counts) {
      Value[] row = new Value[schema.columns.length];
      if (!KeyFormat.decode(schema, key, row)) {
        if (counts != null) ++counts.rowsUnparsed;
        return null;
      }
      for (Cell cell : cells) {
        int column = table.columnOf(CellUtil.cloneFamily(cell), CellUtil.cloneQualifier(cell));
        if (column < 0 || schema.isKey(column)) continue;
        row[column] = schema.columns[column].encoding.decode(schema.columns[column].type, CellUtil.cloneValue(cell));
        if (row[column] == null && counts != null) ++counts.cellsUndecodable;
      }
      return row;
    }

    void consider(Candidate candidate, List<Cell> cells) {
      byte[] key = candidate.key;
      Value[] row = decode(key, cells, counts);
      if (row == null || !isNamedBy(candidate, row)) return;
      sample(key, row);
      if (!branches.get((int) position.branch).predicate.matches(row)) return;
      for (int i = 0; i < position.branch; ++i) {
        if (branches.get(i).predicate.matches(row)) return;
      }
      ++counts.rowsReturned;
      byte[] encoded = Codec.encodeRow(schema, row, wanted);
      rows.add(Cluster.FoundRow.newBuilder().setKey(ByteString.copyFrom(key)).setRow(ByteString.copyFrom(encoded))
          .build());
      bytes += key.length + encoded.length;
    }

    /**
     * A row has an entry for each state that may come to show behind a tombstone, too; in the order of entries it is
     * returned by the one of the state that it shows.
     */
    private boolean isNamedBy(Candidate candidate, Value[] row) {
      if (candidate.named == null || Fault.ANY_ENTRY_NAMES_ITS_ROW.isOn()) return true;
      return Arrays.equals(candidate.position, entryOf(candidate.named, row, candidate.key));
    }

    boolean isPageFull() {
      return rows.size() >= maxRows || bytes >= PAGE_BYTES;
    }

    /** Or enough work for one request. */
    boolean isFull() {
      return isPageFull() || candidates >= PAGE_CANDIDATES || isOutOfTime();
    }

    /** Never before something is done that need not be done again. */
    boolean isOutOfTime() {
      return cameSomeWay && System.nanoTime() - deadline >= 0;
    }

    byte[] afterLast() {
      if (position.last.length == 0) return start;
      byte[] behind = Key.after(position.last);
      return Key.compare(behind, start) < 0 ? start : behind;
    }
  }
}
