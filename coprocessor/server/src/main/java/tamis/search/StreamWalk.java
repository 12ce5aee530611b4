package tamis.search;

import java.io.IOException;
import java.util.Arrays;
import tamis.region.IndexedTable;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * The way along the driving stream of a branch, in its order: to the row keys that are in all joined streams, or, where
 * the entries say to which group their rows belong, to the groups. A driving equality is walked by row key, any other
 * stream by entry. A walk that stops before the end leaves the page's position at the last row, or entry, that is done.
 * Like tamis::StreamWalk. Threads: exclusive access.
 */
final class StreamWalk {
  private final Schema schema;
  private final SearchPlan plan;
  private final SearchCost cost;
  private final SearchPage page;
  private final BranchStreams.Stream driving;
  private final CandidateRows candidates;

  StreamWalk(Schema schema, SearchPlan plan, SearchedRows rows, SearchCost cost, SearchPage page,
      BranchStreams.Stream driving) {
    this.schema = schema;
    this.plan = plan;
    this.cost = cost;
    this.page = page;
    this.driving = driving;
    candidates = new CandidateRows(plan, rows, cost, page);
  }

  /** True at the end of the stream. */
  boolean walk() throws IOException, DamagedBytesException {
    return driving.equality() ? walkKeys() : walkEntries();
  }

  /** By the row keys of the driving stream that are in all joined streams, in their order. */
  private boolean walkKeys() throws IOException, DamagedBytesException {
    final int leastMoves = 16; // so that a request comes some way
    byte[] target = page.afterLast();
    byte[] passed = Key.EMPTY; // no key up to it is in all streams, but for the candidates
    int moves = 0;
    boolean ended = false;
    while (!ended) {
      byte[] next = driving.byKey.seek(target); // where the first stream that lacks the target continues
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
      if (everywhere && candidates.isEmpty() && driving.groups != null) {
        if (page.isPageFull()) return false;
        if (countKey(target)) {
          if (page.isFull()) return false;
          target = Key.after(target);
          continue;
        }
      }
      if (everywhere) {
        Value[] row =
            driving.rows == null ? null : driving.rows.read(driving.byKey.values(), target, driving.byKey.entryValue());
        candidates.add(target, target, null, row);
        target = Key.after(target);
      } else if (!ended) {
        passed = target;
        target = next;
        ++moves;
      }
      boolean stop = !ended && moves >= leastMoves && passed.length > 0 && page.isPastDeadline();
      if (candidates.size() >= CandidateRows.BATCH || ended || stop) {
        boolean all = candidates.take();
        if (all && stop && Key.compare(passed, page.position.last) > 0) page.position = page.position.at(passed);
        if (!all || stop || (page.isFull() && !ended)) return false;
        cost.joinStreams();
      }
    }
    return true;
  }

  /** By the entries of the driving stream whose row keys are in all joined streams, in their order. */
  private boolean walkEntries() throws IOException, DamagedBytesException {
    long batchSize = batchSize(0);
    long considered = 0;
    long leftOut = 0;
    for (byte[] entry = driving.byEntry.next(); entry != null; entry = driving.byEntry.next()) {
      if (candidates.isEmpty() && driving.groups != null) {
        if (page.isPageFull()) return false;
        boolean counted = countEntry(entry);
        if (counted && page.isFull()) return false;
        if (counted) continue;
      }
      byte[] key = Codec.rowKeyOf(schema, driving.index, entry);
      boolean outside = !page.isIn(key);
      if (outside || !cost.isInJoined(key)) {
        // Many of them must not hold up a reply, and the next one begins after them.
        if (outside || ++leftOut % SearchCost.ROW_COST == 0) ++page.candidates;
        if (candidates.isEmpty()) page.comeTo(entry);
        if (!page.isFull()) continue;
        if (candidates.take()) page.comeTo(entry);
        return false;
      }
      Value[] row = driving.rows == null
          ? null
          : driving.rows.read(Arrays.copyOf(entry, entry.length - key.length), key, driving.byEntry.value());
      candidates.add(key, entry, driving.index, row);
      if (candidates.size() < batchSize) continue;
      considered += candidates.size();
      if (!candidates.take() || page.isFull()) return false;
      batchSize = batchSize(considered);
      cost.joinStreams();
    }
    return candidates.take();
  }

  // ---- Counting by entries

  /** Counts the row of an entry where its values say to which group it belongs; else it is false. */
  private boolean countEntry(byte[] entry) throws DamagedBytesException {
    int deciding = driving.groups.decidingBytes(entry);
    int keyAt = driving.groups.keyOffset(entry, deciding);
    if (page.isIn(entry, keyAt)) {
      if (!IndexedTable.isCertain(driving.byEntry.value())) return false;
      EntryGroups.Known known = driving.groups.find(entry, deciding, page.generation());
      if (known == null) {
        known = learn(deciding, Arrays.copyOf(entry, keyAt), Arrays.copyOfRange(entry, keyAt, entry.length));
      }
      if (known == null) return false;
      count(known);
    }
    ++page.candidates;
    page.comeTo(entry);
    return true;
  }

  /** The same for a row key that the driving stream has found. */
  private boolean countKey(byte[] key) throws DamagedBytesException {
    if (!IndexedTable.isCertain(driving.byKey.entryValue())) return false;
    byte[] values = driving.byKey.values();
    int deciding = driving.groups.decidingBytes(values);
    EntryGroups.Known known = driving.groups.find(values, deciding, page.generation());
    if (known == null) known = learn(deciding, values, key);
    if (known == null) return false;
    count(known);
    ++page.candidates;
    page.comeTo(key);
    return true;
  }

  /** Null: the entry does not prove its row. */
  private EntryGroups.Known learn(int deciding, byte[] values, byte[] key) {
    Value[] row = driving.rows.read(values, key, IndexedTable.CERTAIN); // no included column is needed
    if (row == null) return null;
    boolean matches = plan.matches((int) page.position.branch, row);
    RowGroups.Group group = matches ? page.findGroup(plan.encode(row)) : null;
    return driving.groups.remember(values, deciding, group, page.generation());
  }

  private void count(EntryGroups.Known known) {
    ++page.counts.rowsFromEntries;
    if (known.group != null) page.add(known.group);
  }

  /**
   * Candidates that are read at once, after so many. A search in an order is often one for its first rows: no more
   * are read than the page needs if they match as often as those before.
   */
  private long batchSize(long considered) {
    if (!page.inOrder) return CandidateRows.BATCH;
    long missing = Math.max(0, page.maxRows - page.rows());
    return Math.max(1, Math.min(CandidateRows.BATCH, missing * (considered + 1) / (page.rows() + 1)));
  }
}
