package tamis.hbase;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.TagType;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.util.Pair;
import org.apache.hadoop.hbase.wal.WALEdit;
import tamis.base.Fault;
import tamis.compat.Cells;
import tamis.region.IndexedTable;

/**
 * The limits of clients at an indexed table: they neither read nor write the family of the entries, and they write no
 * cells that the indexes would not contain, or would show to everybody. Threads: pure functions.
 */
final class ClientAccess {
  private static final String VISIBILITY = "VISIBILITY"; // the attribute that HBase's Mutation.setCellVisibility sets

  private ClientAccess() {}

  // ---- Writes

  /** Throws if a client may not carry out the mutation. */
  static void check(Mutation mutation, IndexedTable table) throws IOException {
    if (mutation.getFamilyCellMap().containsKey(IndexedTable.FAMILY)) {
      throw new DoNotRetryIOException("family \"tamis\" holds the entries of the table's indexes; it is not written by"
          + " clients");
    }
    if (mutation.getAttribute(VISIBILITY) != null) {
      throw new DoNotRetryIOException("cells of an indexed table cannot have visibility labels: its indexes and filters"
          + " would show them to every user that may read the columns");
    }
    if (expires(mutation, table)) {
      throw new DoNotRetryIOException("cells of an indexed table cannot expire one by one: its indexes would not"
          + " hear of it; write without a TTL");
    }
  }

  /** True if the mutation has a TTL, or one of its cells has: replication and clients that send tags set those. */
  private static boolean expires(Mutation mutation, IndexedTable table) {
    for (Map.Entry<byte[], List<Cell>> family : mutation.getFamilyCellMap().entrySet()) {
      if (!table.isOurs(family.getKey())) continue;
      if (mutation.getTTL() != Long.MAX_VALUE) return true;
      for (Cell cell : family.getValue()) {
        if (Cells.hasTags(cell) && Cells.tagOf(cell, TagType.TTL_TAG_TYPE).isPresent()) return true;
      }
    }
    return false;
  }

  /**
   * A delete of the whole row arrives as all families, that of the entries among them, which is left out. A delete that
   * names it alone must not become empty: that would mean the whole row.
   */
  static void leaveOutEntries(Delete delete) {
    if (delete.getFamilyCellMap().size() > 1) delete.getFamilyCellMap().remove(IndexedTable.FAMILY);
  }

  /** Throws if a client may not evaluate the condition. */
  static void check(CheckAndMutate check) throws IOException {
    if (check.getFamily() != null && Arrays.equals(check.getFamily(), IndexedTable.FAMILY)) throw unreadable();
  }

  /** Throws if an edit that passed no other hook writes rows of the table or entries. */
  static void check(WALEdit edit, IndexedTable table) throws IOException {
    for (Cell cell : edit.getCells()) {
      byte[] family = CellUtil.cloneFamily(cell);
      boolean ours = table.isOurs(family) || Arrays.equals(family, IndexedTable.FAMILY);
      if (!ours || Fault.ROW_PROCESSORS_TAKEN.isOn()) continue;
      throw new DoNotRetryIOException("a row processor cannot write rows of an indexed table: its indexes would not"
          + " hear of it; write by batchMutate or mutateRowsWithLocks");
    }
  }

  /** Throws if a client may not load the files. Returns whether one of them is of a family of the table's columns. */
  static boolean checkLoad(List<Pair<byte[], String>> files, IndexedTable table) throws IOException {
    boolean concerns = false;
    for (Pair<byte[], String> file : files) {
      if (Arrays.equals(file.getFirst(), IndexedTable.FAMILY)) {
        throw new DoNotRetryIOException("family \"tamis\" holds the entries of the table's indexes; no files"
            + " are loaded"
            + " into it");
      }
      concerns |= table.isOurs(file.getFirst());
    }
    return concerns;
  }

  // ---- Reads

  /** Leaves out the entries. False: nothing is left to be read, which must not be carried out: it would mean all. */
  static boolean leaveOutEntries(Get get, Set<byte[]> families) {
    if (!get.hasFamilies()) {
      for (byte[] family : families) get.addFamily(family);
    }
    get.getFamilyMap().remove(IndexedTable.FAMILY);
    return get.hasFamilies();
  }

  /** Leaves out the entries. Throws if nothing is left to be read. */
  static void leaveOutEntries(Scan scan) throws IOException {
    scan.getFamilyMap().remove(IndexedTable.FAMILY);
    if (!scan.hasFamilies()) throw unreadable();
  }

  private static DoNotRetryIOException unreadable() {
    return new DoNotRetryIOException("family \"tamis\" holds the entries of the table's indexes; it is not read by"
        + " clients");
  }
}
