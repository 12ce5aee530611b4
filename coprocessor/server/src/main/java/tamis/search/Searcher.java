package tamis.search;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import tamis.base.StatusException;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.region.ReadView;
import tamis.region.Rights;
import tamis.region.RowCursor;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;

/**
 * Answers ranges of a search request in one region each, from one snapshot; described at tamis::Searcher. SearchPlan is
 * the request, parsed once for all of its regions that follow the same schema; SearchCost chooses what is read,
 * StreamWalk goes along the driving stream, CandidateRows are read and checked, SearchPage holds
 * what was found and the limits. Threads: exclusive access.
 */
public final class Searcher {
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

  /** Ends soon after the deadline (nanoTime) with a continuation, but not before at least one entry or row. */
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

  /** The search of one region in one snapshot. */
  private final class Run {
    private final IndexedRegion region;
    private final SearchPage page;
    private ReadView view;
    private SearchedRows rows;
    private Set<Integer> complete;
    private SearchCost cost; // the cost of the branch that is under way

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
        throw SearchPlan.invalid("the continuation belongs to a search by another index");
      }
      BranchStreams.Stream driving = cost.lead();
      if (driving == null && byEntry) {
        page.counts.scanned = true;
        return takeLeast(new EntrySort(rows, page, schema, named).ofRows());
      }
      if (driving == null) {
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
      page.position = driving.equality() ? position.byRowKey(driving.index.id) : position.byEntry(driving.index.id);
      return new StreamWalk(schema, plan, rows, cost, page, driving).walk();
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
      CandidateRows candidates = new CandidateRows(plan, rows, cost, page);
      try (RowCursor cursor = opened) {
        while (!cursor.ended()) {
          if (page.isFull()) return false;
          List<Cell> cells = cursor.next();
          if (cells == null) break;
          byte[] key = CellUtil.cloneRow(cells.get(0));
          ++page.candidates;
          ++page.counts.rowsRead;
          candidates.takeStored(key, cells);
          page.comeTo(key);
        }
      }
      return true;
    }

    /** Null: the time is over. */
    private boolean takeLeast(LeastEntries least) throws IOException {
      if (least == null) return false;
      CandidateRows candidates = new CandidateRows(plan, rows, cost, page);
      for (Map.Entry<Key, byte[]> entry : least.inOrder()) {
        candidates.add(entry.getValue(), entry.getKey().bytes(), null, null);
        if (candidates.size() >= CandidateRows.BATCH && !candidates.take()) return false;
      }
      return candidates.take() && !least.dropped();
    }
  }
}
