package tamis.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
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
 * Answers ranges of a search request in one region each, from one instant; tamis::Searcher tells how. What is parsed
 * here is parsed once for all regions of a request that follow the same schema. Threads: exclusive access.
 */
final class Searcher {
  static final long PAGE_ROWS = 1000;
  static final long PAGE_BYTES = 4 << 20;
  private static final long PAGE_CANDIDATES = 20_000;
  private static final int MAX_BRANCHES = 1024;
  private static final int BATCH = 32; // rows read at once

  /** A branch of the request. */
  private static final class Branch {
    final Predicate predicate;
    /**
     * All equalities, which are in the order of row keys, or else one range. What matches is in every stream of the plan, so
     * that the others may be left out; and a continuation goes on in the same order, whichever indexes are complete.
     */
    final List<Cluster.IndexStream> streams = new ArrayList<>();

    Branch(Predicate predicate, Cluster.Branch plan) {
      this.predicate = predicate;
      for (Cluster.IndexStream stream : plan.getStreamsList()) {
        if (stream.getEquality()) streams.add(stream);
      }
      if (streams.isEmpty() && plan.getStreamsCount() > 0) streams.add(plan.getStreams(0));
    }
  }

  private final IndexedTable table;
  private final Schema schema;
  private final List<Branch> branches = new ArrayList<>();
  private final boolean[] wanted;
  private final boolean[] read; // columns of conditions, indexes and output

  Searcher(Cluster.SearchRequest request, IndexedTable table, String server) throws StatusException {
    this.table = table;
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
          .setError(StatusException.errorOf(e)).build();
    }
  }

  /** A row to look at, and where the search stands once that is done. */
  private static final class Candidate {
    final byte[] key;
    final byte[] position;

    Candidate(byte[] key, byte[] position) {
      this.key = key;
      this.position = position;
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
    SearchPosition position;
    ReadView view;
    Set<Integer> complete;
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
        while (position.branch < branches.size()) {
          done = runBranch();
          if (!done) break;
          position = position.nextBranch();
          cameSomeWay = true;
          if (position.branch < branches.size() && isOutOfTime()) {
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
          .setRowsUnparsed(counts.rowsUnparsed)).build();
    }

    /** True when the branch is done; else the position tells how far it came. */
    boolean runBranch() throws IOException, StatusException, DamagedBytesException {
      List<Cluster.IndexStream> streams = branches.get((int) position.branch).streams;
      List<Cluster.IndexStream> usable = new ArrayList<>();
      for (Cluster.IndexStream stream : streams) {
        if (complete.contains(stream.getIndexId())) usable.add(stream);
      }
      boolean inIndexOrder = streams.size() == 1 && !streams.get(0).getEquality();
      if (inIndexOrder && position.entryOrder) {
        return usable.isEmpty() ? sortRows(streams.get(0)) : walkEntries(streams.get(0));
      }
      if (inIndexOrder && !usable.isEmpty() && position.last.length == 0) {
        position = position.inEntryOrder();
        return walkEntries(streams.get(0));
      }
      if (inIndexOrder || usable.isEmpty()) {
        counts.scanned |= !streams.isEmpty();
        return scanRows();
      }
      return intersect(usable);
    }

    Scan rowScan(byte[] from) {
      Scan scan = new Scan().withStartRow(from).readVersions(1);
      for (byte[] family : table.families) scan.addFamily(family);
      if (end.length > 0) scan.withStopRow(end);
      return scan;
    }

    boolean scanRows() throws IOException {
      byte[] from = afterLast();
      if (end.length > 0 && Key.compare(from, end) >= 0) return true;
      try (RegionScanner scanner = view.open(rowScan(from))) {
        List<Cell> cells = new ArrayList<>();
        boolean more = true;
        while (more) {
          if (isFull()) return false;
          cells.clear();
          more = scanner.nextRaw(cells);
          if (cells.isEmpty()) continue;
          byte[] key = CellUtil.cloneRow(cells.get(0));
          ++candidates;
          ++counts.rowsRead;
          consider(key, cells);
          position = position.at(key);
          cameSomeWay = true;
        }
      }
      return true;
    }

    boolean intersect(List<Cluster.IndexStream> streams) throws IOException {
      List<KeyStream> keys = new ArrayList<>();
      try {
        for (Cluster.IndexStream stream : streams) {
          keys.add(new KeyStream(view, region.keys.index(stream.getIndexId()), stream, counts));
        }
        return intersectKeys(keys);
      } finally {
        for (KeyStream stream : keys) stream.close();
      }
    }

    private boolean intersectKeys(List<KeyStream> keys) throws IOException {
      final int leastMoves = 16; // so that a request comes some way
      List<Candidate> batch = new ArrayList<>();
      byte[] target = afterLast();
      int agreeing = 0;   // streams that have shown the target
      byte[] passed = Key.EMPTY; // no key up to it is in all streams, but for those in the batch
      int moves = 0;
      boolean ended = false;
      for (int i = 0; !ended; i = (i + 1) % keys.size()) {
        byte[] key = keys.get(i).seek(target);
        if (key == null || (end.length > 0 && Key.compare(key, end) >= 0)) {
          ended = true;
        } else if (agreeing > 0 && Arrays.equals(key, target)) {
          ++agreeing;
        } else {
          if (Key.compare(key, target) > 0) {
            passed = target;
            ++moves;
          }
          target = key;
          agreeing = 1;
        }
        if (!ended && agreeing == keys.size()) {
          batch.add(new Candidate(target, target));
          target = Key.after(target);
          agreeing = 0;
        }
        boolean stop = !ended && moves >= leastMoves && passed.length > 0 && System.nanoTime() - deadline >= 0;
        if (batch.size() >= BATCH || ended || stop) {
          boolean all = considerBatch(batch);
          if (all && stop && Key.compare(passed, position.last) > 0) position = position.at(passed);
          if (!all || stop || (isFull() && !ended)) return false;
        }
      }
      return true;
    }

    boolean inRange(Cluster.IndexRange range, byte[] entry) {
      byte[] high = range.getHigh().toByteArray();
      return Key.compare(entry, range.getLow().toByteArray()) >= 0 && (high.length == 0 || Key.compare(entry, high) < 0);
    }

    Schema.Index indexOf(Cluster.IndexStream stream) throws StatusException {
      Schema.Index index = schema.index(stream.getIndexId());
      // A continuation in the order of an index is of no use without it.
      if (index == null) throw new StatusException(Cluster.Error.Code.UNAVAILABLE, "the index is not known here");
      return index;
    }

    boolean walkEntries(Cluster.IndexStream stream) throws IOException, StatusException, DamagedBytesException {
      Schema.Index index = indexOf(stream);
      byte[] prefix = region.keys.index(stream.getIndexId());
      List<Candidate> batch = new ArrayList<>();
      for (Cluster.IndexRange range : stream.getRangesList()) {
        byte[] low = range.getLow().toByteArray();
        byte[] high = range.getHigh().toByteArray();
        if (high.length > 0 && Key.compare(position.last, high) >= 0) continue;
        byte[] behind = position.last.length == 0 ? position.last : Key.after(position.last);
        byte[] from = Key.concat(prefix, Key.compare(low, behind) < 0 ? behind : low);
        byte[] to = high.length > 0 ? Key.concat(prefix, high) : Key.prefixEnd(prefix);
        if (Key.compare(from, to) >= 0 && to.length > 0) continue;
        Scan scan = new Scan().addFamily(IndexedTable.FAMILY).withStartRow(from);
        if (to.length > 0) scan.withStopRow(to);
        ++counts.indexSeeks;
        try (RegionScanner scanner = view.open(scan)) {
          List<Cell> cells = new ArrayList<>();
          boolean more = true;
          while (more) {
            cells.clear();
            more = scanner.nextRaw(cells);
            if (cells.isEmpty()) continue;
            byte[] row = CellUtil.cloneRow(cells.get(0));
            byte[] entry = Arrays.copyOfRange(row, prefix.length, row.length);
            ++counts.entriesRead;
            byte[] key = Arrays.copyOfRange(entry, Codec.rowKeyOffset(schema, index, entry, 0), entry.length);
            if (Key.compare(key, start) < 0 || (end.length > 0 && Key.compare(key, end) >= 0)) {
              // Many of them must not hold up a reply, and the next one begins behind them.
              ++candidates;
              if (batch.isEmpty()) {
                position = position.at(entry);
                cameSomeWay = true;
              }
              if (!isFull()) continue;
              considerBatch(batch);
              return false;
            }
            batch.add(new Candidate(key, entry));
            if (batch.size() < BATCH) continue;
            if (!considerBatch(batch) || isFull()) return false;
          }
        }
      }
      return considerBatch(batch);
    }

    /** The index is not complete here, but the continuation counts in its order: rows are put into that order first. */
    boolean sortRows(Cluster.IndexStream stream) throws IOException, StatusException {
      counts.scanned = true;
      Schema.Index index = indexOf(stream);
      TreeMap<Key, byte[]> sorted = new TreeMap<>(); // entry -> row key; the least ones
      long keep = Math.max(maxRows, PAGE_CANDIDATES);
      boolean dropped = false;
      try (RegionScanner scanner = view.open(rowScan(start))) {
        List<Cell> cells = new ArrayList<>();
        boolean more = true;
        while (more) {
          cells.clear();
          more = scanner.nextRaw(cells);
          if (cells.isEmpty()) continue;
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
          if (row == null || Codec.isSkipped(index, row)) continue;
          byte[][] prefixes = Codec.indexPrefixes(index, row);
          byte[] entry = Key.concat(prefixes[prefixes.length - 1], key);
          boolean inStream = false;
          for (Cluster.IndexRange range : stream.getRangesList()) inStream |= inRange(range, entry);
          if (!inStream || Key.compare(entry, position.last) <= 0) continue;
          sorted.put(new Key(entry), key);
          if (sorted.size() > keep) {
            sorted.pollLastEntry();
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
      RowReader.seek(view::open, scan, keys, (key, cells) -> read.put(new Key(key), new ArrayList<>(cells)));
      for (Candidate candidate : taken) {
        if (isPageFull()) return false;
        ++candidates;
        ++counts.rowsRead;
        List<Cell> cells = read.get(new Key(candidate.key));
        if (cells != null) consider(candidate.key, cells);
        position = position.at(candidate.position);
        cameSomeWay = true;
      }
      return true;
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

    void consider(byte[] key, List<Cell> cells) {
      Value[] row = decode(key, cells, counts);
      if (row == null || !branches.get((int) position.branch).predicate.matches(row)) return;
      for (int i = 0; i < position.branch; ++i) {
        if (branches.get(i).predicate.matches(row)) return;
      }
      ++counts.rowsReturned;
      byte[] encoded = Codec.encodeRow(schema, row, wanted);
      rows.add(Cluster.FoundRow.newBuilder().setKey(ByteString.copyFrom(key)).setRow(ByteString.copyFrom(encoded))
          .build());
      bytes += key.length + encoded.length;
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
