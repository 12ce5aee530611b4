package tamis.search;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.region.ReadView;
import tamis.region.Rights;
import tamis.region.RowCursor;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * Answers ranges of a search request in one region each, from one snapshot; described at tamis::Searcher. SearchPlan is
 * the request, parsed once for all of its regions that follow the same schema; SearchCost chooses what is read,
 * SearchPage holds what was found and the limits. Threads: exclusive access.
 */
public final class Searcher {
  private static final int BATCH = 32; // rows read at once

  private final IndexedTable table;
  private final Schema schema;
  private final SearchPlan plan;
  private final BranchStreams.Choice choice;

  public Searcher(Cluster.SearchRequest request, IndexedTable table, String server) throws StatusException {
    this(request, table, server, new BranchStreams.Choice());
  }

  Searcher(Cluster.SearchRequest request, IndexedTable table, String server, BranchStreams.Choice choice)
      throws StatusException {
    this.table = table;
    this.choice = choice;
    schema = table.schema;
    plan = new SearchPlan(request, schema, server);
  }

  /** Ends soon after the deadline (nanoTime) with a continuation, but not before it has come some way. */
  public Cluster.RangeResult search(IndexedRegion region, Cluster.SearchRange range, long maxRows, long deadline) {
    try {
      Rights.mayRead(region, plan.read());
      SearchPosition position = range.getResume().isEmpty() ? plan.begin() : SearchPosition.parse(range.getResume());
      boolean inOrder = plan.order() != null && position.isIn(plan.order());
      if (position.isDescending() && !inOrder) {
        throw SearchPlan.invalid("a continuation is of a search in another order");
      }
      SearchPage page = new SearchPage(region, range, position, plan, maxRows, deadline);
      page.inOrder = inOrder;
      return new Run(region, page).search();
    } catch (Throwable e) {
      return Cluster.RangeResult.newBuilder()
          .setRegionId(range.getRegionId())
          .setEpoch(range.getEpoch())
          .setError(StatusException.errorOf(e, region.isLeaving()))
          .build();
    }
  }

  /** A row to look at, and where the search stands once that is done. */
  private static final class Candidate {
    final byte[] key;
    final byte[] position;
    final Schema.Index named; // of the entry that is the position; null: that is none
    final Value[] row; // where the entry gives it, or null

    Candidate(byte[] key, byte[] position, Schema.Index named, Value[] row) {
      this.key = key;
      this.position = position;
      this.named = named;
      this.row = row;
    }
  }

  /** One region, one instant. */
  private final class Run {
    private final IndexedRegion region;
    private final SearchPage page;
    private ReadView view;
    private SearchedRows rows;
    private Set<Integer> complete;
    private SearchCost cost; // of the branch that is under way

    Run(IndexedRegion region, SearchPage page) {
      this.region = region;
      this.page = page;
    }

    Cluster.RangeResult search() throws IOException, StatusException, DamagedBytesException {
      // Before the view: an index that is complete now has all its entries in it.
      complete = region.complete();
      boolean done = true;
      try (ReadView opened = new ReadView(region.region)) {
        view = opened;
        rows = new SearchedRows(view, table);
        while (done && page.position.isWithin(plan.branches())) {
          done = runBranch();
          if (!done) break;
          page.finishBranch();
          done = !page.position.isWithin(plan.branches()) || !page.isOutOfTime();
        }
      }
      return page.result(done);
    }

    /** True when the branch is done; else the page's position tells how far it came. */
    private boolean runBranch() throws IOException, StatusException, DamagedBytesException {
      try (BranchStreams streams = new BranchStreams(view, region, choice, page::isOutOfTime)) {
        cost = new SearchCost(region, complete, rows, page, streams, choice);
        boolean done = runStreams(plan.streams((int) page.position.branch), streams);
        for (BranchStreams.Stream stream : streams.all()) page.noteUse(stream);
        return done;
      }
    }

    private boolean runStreams(List<Cluster.IndexStream> planned, BranchStreams streams)
        throws IOException, StatusException, DamagedBytesException {
      SearchPosition position = page.position;
      if (position.order == SearchPosition.Order.ROW_KEY_DESCENDING) return scanRowsDown();
      boolean byEntry = position.isByEntry();
      Cluster.IndexStream named = null;
      for (Cluster.IndexStream stream : planned) {
        boolean isNamed = stream.getIndexId() == position.indexId;
        if (isNamed) named = stream;
        Schema.Index index = schema.index(stream.getIndexId());
        if (index == null || !complete.contains(index.id)) continue;
        // A search continues in the order in which it began.
        boolean mayLead = byEntry ? isNamed : !position.isBegun() || stream.getEquality();
        BranchStreams.Stream added = new BranchStreams.Stream(stream, index, region.filters.get(index.id), mayLead,
            byEntry ? page.start : page.afterLast(), page.end, byEntry && isNamed ? position.last : Key.EMPTY,
            isNamed && position.isDescending());
        added.rows = EntryRows.of(region, index, plan.needed((int) position.branch));
        if (plan.groups() && added.rows != null) {
          added.groups = EntryGroups.of(schema, index, plan.needed((int) position.branch));
        }
        streams.add(added);
      }
      if (byEntry && (named == null || named.getEquality())) {
        throw SearchPlan.invalid("a continuation counts in the order of an index of another search");
      }
      BranchStreams.Stream leader = cost.lead();
      if (leader == null && byEntry) {
        page.counts.scanned = true;
        return takeLeast(new EntrySort(rows, page, schema, named).ofRows());
      }
      if (leader == null) {
        if (cost.scansByChoice()) page.noteScan();
        else page.counts.scanned |= !planned.isEmpty();
        page.position = position.byRowKey(0);
        return scanRows();
      }
      if (page.inOrder) {
        BranchStreams.Stream few = cost.streamToSort();
        if (few != null) return takeLeast(new EntrySort(rows, page, schema, named).ofStream(few));
        if (cost.isSortOfRowsCheaper()) {
          page.noteScan();
          return takeLeast(new EntrySort(rows, page, schema, named).ofRows());
        }
      }
      page.position = leader.equality() ? position.byRowKey(leader.index.id) : position.byEntry(leader.index.id);
      return leader.equality() ? walkKeys(leader) : walkEntries(leader);
    }

    // ---- Ways to the rows

    private boolean scanRows() throws IOException {
      byte[] from = page.afterLast();
      if (page.end.length > 0 && Key.compare(from, page.end) >= 0) return true;
      return takeRows(rows.scan(from, page.end));
    }

    /** From the last row to the first. */
    private boolean scanRowsDown() throws IOException {
      byte[] end =
          page.position.last.length > 0 && page.isBeforeEnd(page.position.last) ? page.position.last : page.end;
      if (end.length > 0 && Key.compare(page.start, end) >= 0) return true;
      return takeRows(rows.scanDown(page.start, end));
    }

    private boolean takeRows(RowCursor opened) throws IOException {
      try (RowCursor cursor = opened) {
        while (!cursor.ended()) {
          if (page.isFull()) return false;
          List<Cell> cells = cursor.next();
          if (cells == null) break;
          byte[] key = CellUtil.cloneRow(cells.get(0));
          ++page.candidates;
          ++page.counts.rowsRead;
          consider(new Candidate(key, key, null, null), cells);
          page.comeTo(key);
        }
      }
      return true;
    }

    /** By the row keys of the leader that are in all joined streams, in their order. */
    private boolean walkKeys(BranchStreams.Stream leader) throws IOException, DamagedBytesException {
      final int leastMoves = 16; // so that a request comes some way
      List<Candidate> batch = new ArrayList<>();
      byte[] target = page.afterLast();
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
        for (int i = 0; everywhere && i < cost.leaps().size(); ++i) {
          next = cost.leaps().get(i).byKey.seek(target);
          everywhere = next != null && Arrays.equals(next, target);
          ended = next == null;
        }
        if (everywhere && !cost.isInJoined(target)) {
          everywhere = false;
          next = Key.after(target);
        }
        if (everywhere && batch.isEmpty() && leader.groups != null) {
          if (page.isPageFull()) return false;
          if (countKey(leader, target)) {
            if (page.isFull()) return false;
            target = Key.after(target);
            continue;
          }
        }
        if (everywhere) {
          Value[] row =
              leader.rows == null ? null : leader.rows.read(leader.byKey.values(), target, leader.byKey.entryValue());
          batch.add(new Candidate(target, target, null, row));
          target = Key.after(target);
        } else if (!ended) {
          passed = target;
          target = next;
          ++moves;
        }
        boolean stop = !ended && moves >= leastMoves && passed.length > 0 && page.isPastDeadline();
        if (batch.size() >= BATCH || ended || stop) {
          boolean all = considerBatch(batch);
          if (all && stop && Key.compare(passed, page.position.last) > 0) page.position = page.position.at(passed);
          if (!all || stop || (page.isFull() && !ended)) return false;
          cost.joinStreams();
        }
      }
      return true;
    }

    /** By the entries of the leader whose row keys are in all joined streams, in their order. */
    private boolean walkEntries(BranchStreams.Stream leader) throws IOException, DamagedBytesException {
      List<Candidate> batch = new ArrayList<>();
      long batchSize = batchSize(0);
      long considered = 0;
      long leftOut = 0;
      for (byte[] entry = leader.byEntry.next(); entry != null; entry = leader.byEntry.next()) {
        if (batch.isEmpty() && leader.groups != null) {
          if (page.isPageFull()) return false;
          boolean counted = countEntry(leader, entry);
          if (counted && page.isFull()) return false;
          if (counted) continue;
        }
        byte[] key = Codec.rowKeyOf(schema, leader.index, entry);
        boolean outside = !page.isIn(key);
        if (outside || !cost.isInJoined(key)) {
          // Many of them must not hold up a reply, and the next one begins behind them.
          if (outside || ++leftOut % SearchCost.ROW_COST == 0) ++page.candidates;
          if (batch.isEmpty()) page.comeTo(entry);
          if (!page.isFull()) continue;
          considerBatch(batch);
          return false;
        }
        Value[] row = leader.rows == null
            ? null
            : leader.rows.read(Arrays.copyOf(entry, entry.length - key.length), key, leader.byEntry.value());
        batch.add(new Candidate(key, entry, leader.index, row));
        if (batch.size() < batchSize) continue;
        considered += batch.size();
        if (!considerBatch(batch) || page.isFull()) return false;
        batchSize = batchSize(considered);
        cost.joinStreams();
      }
      return considerBatch(batch);
    }

    // ---- Counting by entries

    /** Counts the row of an entry where its values say to which group it belongs; else it is false. */
    private boolean countEntry(BranchStreams.Stream leader, byte[] entry) throws DamagedBytesException {
      int deciding = leader.groups.decidingBytes(entry);
      int keyAt = leader.groups.keyOffset(entry, deciding);
      if (page.isIn(entry, keyAt)) {
        if (!IndexedTable.isCertain(leader.byEntry.value())) return false;
        EntryGroups.Known known = leader.groups.find(entry, deciding, page.generation());
        if (known == null) {
          known = learn(leader, deciding, Arrays.copyOf(entry, keyAt), Arrays.copyOfRange(entry, keyAt, entry.length));
        }
        if (known == null) return false;
        count(known);
      }
      ++page.candidates;
      page.comeTo(entry);
      return true;
    }

    /** The same for a row key that the leader has found. */
    private boolean countKey(BranchStreams.Stream leader, byte[] key) throws DamagedBytesException {
      if (!IndexedTable.isCertain(leader.byKey.entryValue())) return false;
      byte[] values = leader.byKey.values();
      int deciding = leader.groups.decidingBytes(values);
      EntryGroups.Known known = leader.groups.find(values, deciding, page.generation());
      if (known == null) known = learn(leader, deciding, values, key);
      if (known == null) return false;
      count(known);
      ++page.candidates;
      page.comeTo(key);
      return true;
    }

    /** Null: the entry does not prove its row. */
    private EntryGroups.Known learn(BranchStreams.Stream leader, int deciding, byte[] values, byte[] key) {
      Value[] row = leader.rows.read(values, key, IndexedTable.CERTAIN); // no included column is needed
      if (row == null) return null;
      boolean matches = plan.matches((int) page.position.branch, row);
      RowGroups.Group group = matches ? page.findGroup(plan.encode(row)) : null;
      return leader.groups.remember(values, deciding, group, page.generation());
    }

    private void count(EntryGroups.Known known) {
      ++page.counts.rowsFromEntries;
      if (known.group != null) page.add(known.group);
    }

    /** Null: the time is over. */
    private boolean takeLeast(LeastEntries least) throws IOException {
      if (least == null) return false;
      List<Candidate> batch = new ArrayList<>();
      for (Map.Entry<Key, byte[]> entry : least.inOrder()) {
        batch.add(new Candidate(entry.getValue(), entry.getKey().bytes(), null, null));
        if (batch.size() >= BATCH && !considerBatch(batch)) return false;
      }
      return considerBatch(batch) && !least.dropped();
    }

    /**
     * Candidates that are read at once, after so many. A search in an order is often one for its first rows: no more
     * are read than the page needs if they match as often as those before.
     */
    private long batchSize(long considered) {
      if (!page.inOrder) return BATCH;
      long missing = Math.max(0, page.maxRows - page.rows());
      return Math.max(1, Math.min(BATCH, missing * (considered + 1) / (page.rows() + 1)));
    }

    // ---- Rows

    /**
     * Reads the rows of the candidates that lack them, and takes those that match. False when the page became full
     * before the last of them; its position says what is done, which is at least the first of them.
     */
    private boolean considerBatch(List<Candidate> batch) throws IOException {
      if (batch.isEmpty()) return true;
      List<Candidate> taken = new ArrayList<>(batch);
      batch.clear();
      List<byte[]> keys = new ArrayList<>();
      for (Candidate candidate : taken) {
        if (candidate.row == null) keys.add(candidate.key);
      }
      Map<Key, List<Cell>> read = keys.isEmpty() ? Collections.emptyMap() : rows.read(keys);
      for (Candidate candidate : taken) {
        if (page.isPageFull()) return false;
        ++page.candidates;
        if (candidate.row != null) {
          ++page.counts.rowsFromEntries;
          takeIfMatching(candidate.key, candidate.row);
        } else {
          ++page.counts.rowsRead;
          List<Cell> cells = read.get(new Key(candidate.key));
          if (cells != null) consider(candidate, cells);
        }
        page.comeTo(candidate.position);
      }
      return true;
    }

    private void consider(Candidate candidate, List<Cell> cells) {
      byte[] key = candidate.key;
      Value[] row = rows.decode(key, cells, page.counts);
      if (row == null || !isNamedBy(candidate, row)) return;
      cost.sample(key, row);
      takeIfMatching(key, row);
    }

    private void takeIfMatching(byte[] key, Value[] row) {
      if (plan.matches((int) page.position.branch, row)) page.add(key, plan.encode(row));
    }

    /**
     * A row has an entry for each state that may come to show behind a tombstone, too; in the order of entries it is
     * returned by the one of the state that it shows.
     */
    private boolean isNamedBy(Candidate candidate, Value[] row) {
      if (candidate.named == null || Fault.ANY_ENTRY_NAMES_ITS_ROW.isOn()) return true;
      return Arrays.equals(candidate.position, Codec.entryOf(candidate.named, row, candidate.key));
    }
  }
}
