package tamis.search;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.Cell;
import tamis.base.Fault;
import tamis.table.Codec;
import tamis.table.Key;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * Rows that a branch of a search may return, as an index or a scan finds them. They are read some at a time, checked
 * against the conditions, and put into the page, whose position follows the rows that were looked at. Like
 * tamis::CandidateRows. Threads: exclusive access.
 */
final class CandidateRows {
  static final int BATCH = 32; // rows read at once

  /** A row to look at, and where the search stands once that is done. */
  private static final class Candidate {
    final byte[] key;
    final byte[] position;
    final Schema.Index named; // the index of the entry that is the position; null: the position is no entry
    final Value[] row; // where the entry gives it, or null

    Candidate(byte[] key, byte[] position, Schema.Index named, Value[] row) {
      this.key = key;
      this.position = position;
      this.named = named;
      this.row = row;
    }
  }

  private final SearchPlan plan;
  private final SearchedRows rows;
  private final SearchCost cost;
  private final SearchPage page;
  private final List<Candidate> batch = new ArrayList<>();

  /** The cost sees the rows that are read. */
  CandidateRows(SearchPlan plan, SearchedRows rows, SearchCost cost, SearchPage page) {
    this.plan = plan;
    this.rows = rows;
    this.cost = cost;
    this.page = page;
  }

  boolean isEmpty() {
    return batch.isEmpty();
  }

  int size() {
    return batch.size();
  }

  /**
   * The position is that of the page once this row is done. `named`: the index of which it is an entry; null: it is
   * none. `row`: where the entry gives it, or null.
   */
  void add(byte[] key, byte[] position, Schema.Index named, Value[] row) {
    batch.add(new Candidate(key, position, named, row));
  }

  /** A row that was read already. The page's position stays. */
  void takeStored(byte[] key, List<Cell> cells) {
    consider(new Candidate(key, key, null, null), cells);
  }

  /**
   * Reads the rows of the candidates that lack them, and takes those that match. False when the page became full
   * before the last of them; its position says what is done, which is at least the first of them. The batch is empty
   * afterwards.
   */
  boolean take() throws IOException {
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
   * A row has an entry for each state that may come to show under a tombstone, too; in the order of entries it is
   * returned by the one of the state that it shows.
   */
  private boolean isNamedBy(Candidate candidate, Value[] row) {
    if (candidate.named == null || Fault.ANY_ENTRY_NAMES_ITS_ROW.isOn()) return true;
    return Arrays.equals(candidate.position, Codec.entryOf(candidate.named, row, candidate.key));
  }
}
