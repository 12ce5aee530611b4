package tamis.index;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.HConstants.OperationStatusCode;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.RegionTooBusyException;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.regionserver.MiniBatchOperationInProgress;
import org.apache.hadoop.hbase.regionserver.OperationStatus;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import tamis.base.Fault;
import tamis.feed.IndexEntry;
import tamis.feed.IndexFilter;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.table.Key;

/**
 * Maintains the index entries of a mini-batch. It locks the rows, reads the old rows, computes the net effect of the
 * batch on each row's entries, and adds these changes to the batch. So the log has rows and entries in one edit.
 *
 * For the net effect, the entries of a row before the whole batch are compared once with those after it, so that one
 * edit never both puts and deletes an entry. A deleted entry gets a tombstone with the last time stamp that there is,
 * which covers all of its versions. The column family of the entries has HBase's new version behaviour: a tombstone
 * masks only cells that were written before it.
 *
 * Threads: safe; the state of a mini-batch is in the BatchContext of its thread.
 */
public final class IndexMaintenance {
  /** Shorter than HBase's timeout for its own row locks, and than a client's timeout for a call. */
  private static final long LOCK_TIMEOUT_NS = TimeUnit.SECONDS.toNanos(5);
  /** Short, since the gate is closed only for moments, and HBase holds the region's lock of updates during the wait. */
  private static final long GATE_TIMEOUT_NS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final int LOOK_AT_FILTERS = 256; // mini-batches between two checks of the filters

  /** The changes of a batch to one row. */
  private static final class RowWrites {
    final byte[] row;
    int[] operations; // in the order of the batch
    boolean raw; // one of them deletes a single version of a cell
    boolean conditional; // one of them comes from a Tamis request and has conditions
    RowImage before;

    RowWrites(byte[] row, int operation) {
      this.row = row;
      operations = new int[] {operation};
    }

    /** Adds the later operations of another one on the same row. */
    void append(RowWrites later) {
      int size = operations.length;
      operations = Arrays.copyOf(operations, size + later.operations.length);
      System.arraycopy(later.operations, 0, operations, size, later.operations.length);
      raw |= later.raw;
      conditional |= later.conditional;
    }

    /** Sorts them by row, each row once. */
    static List<RowWrites> byRow(List<RowWrites> writes) {
      if (Fault.LATER_WRITES_OF_A_ROW_FIRST.isOn()) Collections.reverse(writes);
      writes.sort((a, b) -> Bytes.compareTo(a.row, b.row)); // keeps the order of writes of the same row
      List<RowWrites> rows = new ArrayList<>(writes.size());
      for (RowWrites each : writes) {
        RowWrites last = rows.isEmpty() ? null : rows.get(rows.size() - 1);
        if (last != null && Arrays.equals(last.row, each.row)) last.append(each);
        else rows.add(each);
      }
      return rows;
    }
  }

  private IndexMaintenance() {}

  /**
   * Makes HBase log the mutation even if the client asked it not to. Otherwise a crash could lose the row and keep its
   * entry, which costs a needless read, or keep the row and lose its entry, and then searches would miss the row.
   */
  public static void keepInLog(Mutation mutation) {
    if (mutation.getDurability() == Durability.SKIP_WAL && !Fault.SKIP_WAL_KEPT.isOn()) {
      mutation.setDurability(Durability.SYNC_WAL);
    }
  }

  public static void before(IndexedRegion region, MiniBatchOperationInProgress<Mutation> batch) throws IOException {
    BatchContext context = BatchContext.current();
    context.take(region);
    boolean building = context.caller.writer == BatchContext.Writer.BUILDER;
    List<RowWrites> all = new ArrayList<>(batch.size());
    boolean ofTable = false;
    for (int i = 0; i < batch.size(); ++i) {
      if (batch.getOperationStatus(i).getOperationStatusCode() != OperationStatusCode.NOT_RUN) continue;
      Mutation mutation = batch.getOperation(i);
      keepInLog(mutation);
      ofTable |= isOfTable(region.table, mutation);
      boolean conditional = context.caller.conditions != null && context.caller.conditions.of(mutation) != null;
      if (!building && !conditional && !concerns(region.table, mutation, context)) continue;
      RowWrites writes = new RowWrites(mutation.getRow(), i);
      writes.raw = deletesVersions(mutation);
      writes.conditional = conditional;
      all.add(writes);
    }
    List<RowWrites> rows = RowWrites.byRow(all);
    // A search also reads columns without an index: a former owner of the region would answer with their old values. So
    // writes to such columns are refused, too.
    boolean read = !rows.isEmpty() || (ofTable && !Fault.OPENING_WAIT_OF_INDEXES_ONLY.isOn());
    if (read && !building) region.refuseBeforeItsTime();
    if (rows.isEmpty()) return;
    try {
      // Once a condition of a request is evaluated, it can no longer be said that nothing was done.
      if (context.caller.conditions != null && !region.host.awaitRoom(Long.MAX_VALUE, () -> false)) {
        throw tooMany(region);
      }
      if (!region.gate.readLock().tryLock(GATE_TIMEOUT_NS, TimeUnit.NANOSECONDS)) {
        throw refused(region, "a check or a recount of its indexes begins");
      }
      context.inside = true;
      context.locks = RowLocks.acquire(region.id, rowsOf(rows), LOCK_TIMEOUT_NS);
      if (context.locks == null) {
        throw refused(region, "other writes lock the rows for too long");
      }
      Fault.allocate();
      new Effect(region, batch, context, rows, building).run();
      Fault.allocate();
      boolean mayQueue = !building && context.caller.conditions == null;
      // Clients try again and again: each try would tell its flips, and take them back.
      if (mayQueue && region.host.isStuck() && wouldWait(context)
          && !region.host.awaitRoom(Long.MAX_VALUE, () -> false)) {
        throw tooMany(region);
      }
      // New entries are counted before a reader can see them.
      if (!Fault.COUNTED_AFTER_COMMIT.isOn()) count(context);
      if (mayQueue && region.host.isCrowded()) queue(context);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new java.io.InterruptedIOException("interrupted while waiting for other writes");
    }
    if (Fault.UNCOUNTED_BEFORE_COMMIT.isOn()) uncount(context, context.removed);
  }

  private static List<byte[]> rowsOf(List<RowWrites> writes) {
    List<byte[]> rows = new ArrayList<>(writes.size());
    for (RowWrites each : writes) rows.add(each.row);
    return rows;
  }

  /**
   * Queues the write, which is counted, if it has to wait for coordinators while as many writes wait as may. Its flips
   * are reported already, so one round of polls is for the writes that wait and for those that queue: a queued write
   * whose flips are acknowledged goes on, and does not wait again after its commit. One whose region is to be recounted
   * or checked, which waits for the gate, goes on, too, and waits after its commit. One that is refused is uncounted.
   */
  private static void queue(BatchContext context) throws IOException, InterruptedException {
    boolean goesOn = false;
    try {
      goesOn = context.region.host.awaitRoom(waitsFor(context), context.region::isGateClosing);
    } finally {
      if (!goesOn) uncount(context, context.added);
    }
    if (!goesOn) throw tooMany(context.region);
  }

  private static RegionTooBusyException tooMany(IndexedRegion region) {
    return refused(region, "too many writes wait for coordinators");
  }

  /** Whether the write will wait for coordinators, as far as its filters know before it is counted. */
  private static boolean wouldWait(BatchContext context) {
    for (Map.Entry<Integer, List<IndexEntry>> ofIndex : byIndex(context.held).entrySet()) {
      IndexFilter filter = context.region.filters.get(ofIndex.getKey());
      if (filter != null && filter.wouldWait(ofIndex.getValue())) return true;
    }
    return false;
  }

  /** The number of the event that coordinators must have applied before the write is acknowledged; 0: there is none. */
  private static long waitsFor(BatchContext context) {
    long[] sequence = {context.region.acknowledgeAfter.get()};
    byIndex(Fault.ONLY_OWN_FLIPS_WAITED_FOR.isOn() ? context.added : context.held).forEach((id, entries) -> {
      IndexFilter filter = context.region.filters.get(id);
      if (filter != null) sequence[0] = Math.max(sequence[0], filter.waitFor(entries));
    });
    return sequence[0];
  }

  private static void count(BatchContext context) {
    byIndex(context.added).forEach((id, entries) -> {
      IndexFilter filter = context.region.filters.get(id);
      if (filter != null) context.count(filter, entries);
    });
  }

  private static void uncount(BatchContext context, List<IndexEntry> gone) {
    IndexedRegion region = context.region;
    byIndex(gone).forEach((id, entries) -> {
      IndexFilter filter = region.filters.get(id);
      if (filter != null && filter.remove(entries)) region.host.clearLater(region, entries.get(0).index);
    });
  }

  private static Map<Integer, List<IndexEntry>> byIndex(List<IndexEntry> entries) {
    Map<Integer, List<IndexEntry>> byIndex = new HashMap<>();
    for (IndexEntry entry : entries) byIndex.computeIfAbsent(entry.index.id, id -> new ArrayList<>()).add(entry);
    return byIndex;
  }

  /**
   * After the commit and its MVCC number, with the locks held: leaves the filters, uncounts removed entries, and
   * returns the number of the event that coordinators must have applied before the write is acknowledged. Entries that
   * may or may not stand stay counted.
   */
  public static long after(BatchContext context) {
    IndexedRegion region = context.region;
    Fault.allocate();
    if (Fault.COUNTED_AFTER_COMMIT.isOn()) count(context);
    context.leave();
    if (!Fault.UNCOUNTED_BEFORE_COMMIT.isOn()) uncount(context, context.removed);
    long sequence = waitsFor(context);
    region.host.wrote(context.added.size(), context.removed.size());
    if (region.writes.incrementAndGet() % LOOK_AT_FILTERS == 0) region.host.lookAtFilters(region);
    return sequence;
  }

  private static boolean isOfTable(IndexedTable table, Mutation mutation) {
    for (byte[] family : mutation.getFamilyCellMap().keySet()) {
      if (table.isOurs(family)) return true;
    }
    return false;
  }

  private static RegionTooBusyException refused(IndexedRegion region, String why) {
    return new RegionTooBusyException(
        "cannot write to region " + region.info().getEncodedName() + ": " + why + "; nothing was done; retry");
  }

  /** True if the mutation may change an entry. */
  private static boolean concerns(IndexedTable table, Mutation mutation, BatchContext context) {
    if (mutation instanceof Increment || mutation instanceof Append) {
      return context.computed.containsKey(mutation);
    }
    for (Map.Entry<byte[], List<Cell>> family : mutation.getFamilyCellMap().entrySet()) {
      if (!table.isOurs(family.getKey()) || family.getValue().isEmpty()) continue;
      if (mutation instanceof Delete || table.indexesNull) return true;
      for (Cell cell : family.getValue()) {
        int column = table.columnOf(cell);
        if (column >= 0 && table.isIndexed(column)) return true;
      }
    }
    return false;
  }

  private static boolean deletesVersions(Mutation mutation) {
    if (!(mutation instanceof Delete)) return false;
    for (List<Cell> cells : mutation.getFamilyCellMap().values()) {
      for (Cell cell : cells) {
        if (cell.getType() == Cell.Type.Delete || cell.getType() == Cell.Type.DeleteFamilyVersion) return true;
      }
    }
    return false;
  }

  /** One mini-batch, with the locks held. */
  private static final class Effect {
    final IndexedRegion region;
    final IndexedTable table;
    final MiniBatchOperationInProgress<Mutation> batch;
    final BatchContext context;
    final List<RowWrites> rows; // by row
    final boolean building;
    final List<List<Mutation>> more; // by operation; null: none
    final List<List<Cell>> cells; // cells of entries, by operation; null: none
    final TreeMap<byte[], IndexEntry> gone = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    final Map<Key, Integer> goneWith = new HashMap<>();
    final TreeMap<byte[], IndexEntry> missing = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    final Map<Key, Integer> missingWith = new HashMap<>();

    Effect(IndexedRegion region, MiniBatchOperationInProgress<Mutation> batch, BatchContext context,
        List<RowWrites> rows, boolean building) {
      this.region = region;
      this.table = region.table;
      this.batch = batch;
      this.context = context;
      this.rows = rows;
      this.building = building;
      more = new ArrayList<>(Collections.nCopies(batch.size(), null));
      cells = new ArrayList<>(Collections.nCopies(batch.size(), null));
    }

    void run() throws IOException {
      readRows();
      for (RowWrites row : rows) {
        RowImage before = row.before;
        RowImage after = before.copy();
        int last = -1; // the last that is written: HBase drops what comes with one that is vetoed
        for (int i : row.operations) {
          if (apply(i, before, after)) last = i;
        }
        if (last < 0) continue;
        region.newest.note(row.row, after.newest());
        if (before.isRaw() && !Fault.UNCOVERED_LEFT_ALONE.isOn()) {
          for (Cell cell : before.uncovered(after)) {
            if (!table.isOurs(CellUtil.cloneFamily(cell))) continue;
            add(last, new Put(row.row).add(copy(cell)));
          }
        }
        if (after.hasHidden()) region.setHiding(row.row);
        if (!region.hasEntries) continue;
        if (building) {
          rebuild(last, row.row, after);
        } else {
          compare(last, before, after);
        }
      }
      Fault.STREAM_CLOSED_BEHIND_CONDITIONS.happen();
      deleteGone();
      putMissing();
      for (int i = 0; i < batch.size(); ++i) {
        if (cells.get(i) != null) {
          // One mutation for all of them, of the row that they are for: HBase locks the row of each, and this one is
          // locked.
          Delete entryDelete = new Delete(batch.getOperation(i).getRow());
          entryDelete.getFamilyCellMap().put(IndexedTable.FAMILY, cells.get(i));
          add(i, entryDelete);
        }
        List<Mutation> all = more.get(i);
        if (all == null) continue;
        Mutation[] others = batch.getOperationsFromCoprocessors(i);
        if (others != null) all.addAll(0, Arrays.asList(others));
        batch.addOperationsFromCP(i, all.toArray(new Mutation[0]));
      }
    }

    /** Most rows need one seek for each family; the maps are for the others. */
    private void readRows() throws IOException {
      TreeMap<byte[], RowWrites> raw = new TreeMap<>(Bytes.BYTES_COMPARATOR);
      TreeMap<byte[], RowWrites> hard = new TreeMap<>(Bytes.BYTES_COMPARATOR);
      TreeMap<byte[], RowWrites> put = new TreeMap<>(Bytes.BYTES_COMPARATOR);
      boolean foreign = building && region.hasLoadedCells();
      boolean conditional = context.caller.conditions != null;
      List<byte[]> sorted = rowsOf(rows);
      long since = Long.MAX_VALUE;
      try (NewestCells cells = NewestCells.open(region, sorted.get(0), sorted.get(sorted.size() - 1), conditional)) {
        for (RowWrites row : rows) {
          if (row.raw || region.isHiding(row.row) || foreign) {
            raw.put(row.row, row);
            continue;
          }
          row.before = cells == null ? null : cells.read(row.row);
          if (row.before == null) hard.put(row.row, row);
          // Puts at or below a tombstone do not show: what stands at their time stamps or above?
          long oldest = oldestPut(row);
          if (oldest == Long.MAX_VALUE || !region.newest.mayStand(region, row.row, oldest)) continue;
          put.put(row.row, row);
          since = Math.min(since, oldest);
        }
      }
      take(RowReader.readSeen(region.region::getScanner, table, hard, conditional), hard);
      Map<byte[], RowImage> images = new TreeMap<>(Bytes.BYTES_COMPARATOR);
      put.forEach((key, row) -> images.put(key, row.before));
      RowReader.addSince(region.region::getScanner, table, put, since, images);
      take(RowReader.readRaw(region.region::getScanner, table, raw), raw);
    }

    private void take(Map<byte[], RowImage> images, Map<byte[], RowWrites> rows) {
      rows.forEach((key, row) -> row.before = images.get(key));
    }

    /** Time stamp of the oldest cell that is put; Long.MAX_VALUE when none is. */
    private long oldestPut(RowWrites writes) {
      long oldest = writes.conditional ? EnvironmentEdgeManager.currentTime() : Long.MAX_VALUE;
      for (int i : writes.operations) {
        Mutation mutation = batch.getOperation(i);
        if (mutation instanceof Delete) continue;
        List<Cell> made = context.computed.get(mutation);
        if (made != null) {
          for (Cell cell : made) oldest = Math.min(oldest, cell.getTimestamp());
        } else if (!(mutation instanceof Increment || mutation instanceof Append)) {
          for (List<Cell> cells : mutation.getFamilyCellMap().values()) {
            for (Cell cell : cells) oldest = Math.min(oldest, cell.getTimestamp());
          }
        }
      }
      return oldest;
    }

    /** `image`: the row as the writes before this one leave it. False: vetoed. */
    private boolean apply(int i, RowImage before, RowImage image) throws IOException {
      Mutation mutation = batch.getOperation(i);
      ConditionalWrites.Write write = context.caller.conditions == null ? null : context.caller.conditions.of(mutation);
      if (write != null) {
        RowImage judged = Fault.FORMER_ROW_JUDGED.isOn() ? before : image;
        if (!ConditionalWrites.allows(write, table.schema, judged) || !ConditionalWrites.isPlaceable(write, image)) {
          boolean done = write.outcome.getCode() == tamis.pb.Cluster.Error.Code.OK;
          batch.setOperationStatus(i,
              new OperationStatus(
                  done ? OperationStatusCode.SUCCESS : OperationStatusCode.FAILURE, "refused by a condition"));
          return false;
        }
        long timestamp = ConditionalWrites.timestamp(write, image, stampOf(mutation));
        ConditionalWrites.stamp(mutation, timestamp);
        for (Mutation rest : ConditionalWrites.rest(write, table.schema, image, timestamp)) {
          add(i, rest);
          for (List<Cell> cells : rest.getFamilyCellMap().values()) cells.forEach(image::addWritten);
        }
      }
      if (mutation instanceof Increment || mutation instanceof Append) {
        List<Cell> made = context.computed.remove(mutation);
        if (made != null) {
          for (Cell cell : made) addShown(image, cell);
        }
        return true;
      }
      // Its time stamp is ours, or it puts nothing.
      boolean placed = write != null || building || !(mutation instanceof Put);
      for (Map.Entry<byte[], List<Cell>> family : mutation.getFamilyCellMap().entrySet()) {
        if (!table.isOurs(family.getKey())) continue;
        for (Cell cell : family.getValue()) {
          if (placed) image.addWritten(cell);
          else addShown(image, cell);
        }
      }
      return true;
    }

    /**
     * A client's cell, of which HBase would tell the client that it is written. It is refused where no read would ever
     * show it, and where HBase made it of one at the last time stamp: the next one would then be put below it.
     */
    private static void addShown(RowImage image, Cell cell) throws DoNotRetryIOException {
      image.addWritten(cell);
      if (Fault.LAST_TIMESTAMPS_TAKEN.isOn()) return;
      String why = cell.getTimestamp() > RowImage.LAST_TIMESTAMP ? "the result of the cell at time stamp "
              + RowImage.LAST_TIMESTAMP + " in " + RowImage.place(cell) + " would need a greater one, and there is none"
                                                                 : image.neverShows(cell);
      if (why == null) return;
      throw new DoNotRetryIOException("cannot write row \"" + image.rowText() + "\": " + why + "; " + RowImage.WAY_OUT);
    }

    private static long stampOf(Mutation mutation) {
      for (List<Cell> cells : mutation.getFamilyCellMap().values()) {
        for (Cell cell : cells) return cell.getTimestamp();
      }
      return EnvironmentEdgeManager.currentTime();
    }

    private void add(int operation, Mutation mutation) {
      if (more.get(operation) == null) more.set(operation, new ArrayList<>());
      more.get(operation).add(mutation);
    }

    private static Cell copy(Cell cell) {
      return org.apache.hadoop.hbase.CellBuilderFactory.create(org.apache.hadoop.hbase.CellBuilderType.SHALLOW_COPY)
          .setRow(CellUtil.cloneRow(cell))
          .setFamily(CellUtil.cloneFamily(cell))
          .setQualifier(CellUtil.cloneQualifier(cell))
          .setTimestamp(cell.getTimestamp())
          .setType(Cell.Type.Put)
          .setValue(CellUtil.cloneValue(cell))
          .build();
    }

    private void add(int operation, IndexEntry entry, long timestamp, KeyValue.Type type, byte[] value) {
      if (cells.get(operation) == null) cells.set(operation, new ArrayList<>());
      cells.get(operation).add(
          new KeyValue(entry.key, IndexedTable.FAMILY, IndexedTable.QUALIFIER, timestamp, type, value));
    }

    private void put(int operation, IndexEntry entry, long timestamp) {
      // Its included columns change without the time stamps of the indexed cells: whatever these are, the entry that is
      // written last shows.
      boolean carries = entry.index.include.length > 0 && !Fault.INCLUDED_AT_THEIR_TIMESTAMPS.isOn();
      add(operation, entry, carries ? RowImage.LAST_TIMESTAMP : timestamp, KeyValue.Type.Put, valueOf(entry));
    }

    private byte[] valueOf(IndexEntry entry) {
      return entry.certain ? entry.included : IndexedTable.UNCERTAIN;
    }

    /** Whether an entry with this value is to be written again for its included columns. */
    private boolean isOutdated(byte[] value, IndexEntry wanted) {
      return wanted.index.include.length > 0 && !Arrays.equals(value, valueOf(wanted));
    }

    private void compare(int operation, RowImage before, RowImage after) {
      Map<Key, IndexEntry> old = before.entries(region.keys);
      Map<Key, IndexEntry> now = after.entries(region.keys);
      for (Map.Entry<Key, IndexEntry> entry : now.entrySet()) {
        IndexEntry wanted = entry.getValue();
        context.held.add(wanted);
        IndexEntry there = old.get(entry.getKey());
        boolean complete = region.complete().contains(wanted.index.id);
        // A hidden version may have lost its entry when another one came to show: whether it stands is read.
        if (there != null && complete && !there.certain && !Fault.UNCERTAIN_ENTRIES_TAKEN_FOR_THERE.isOn()) {
          missing.put(wanted.key, wanted);
          missingWith.put(entry.getKey(), operation);
          continue;
        }
        // Where cells expire, an entry is as young as its youngest cell.
        boolean younger = there != null && table.expires && there.timestamp < wanted.timestamp;
        boolean doubtful = there != null && there.certain && !wanted.certain;
        boolean outdated = there != null && isOutdated(valueOf(there), wanted) && !Fault.INCLUDED_COLUMNS_LEFT.isOn();
        if (there != null && complete && !younger && !doubtful && !outdated) continue;
        // The mark that an entry is doubtful must be the visible version, whatever the time of the version that it was
        // certain by.
        put(operation, wanted, doubtful ? RowImage.LAST_TIMESTAMP : wanted.timestamp);
        if (there == null || !complete) context.added.add(wanted);
      }
      for (Map.Entry<Key, IndexEntry> entry : old.entrySet()) {
        if (now.containsKey(entry.getKey())) continue;
        gone.put(entry.getValue().key, entry.getValue());
        goneWith.put(entry.getKey(), operation);
      }
    }

    /** For the indexes that are built: adds the entries that the row lacks, and removes the others. */
    private void rebuild(int operation, byte[] row, RowImage image) {
      Map<Key, IndexEntry> now = image.entries(region.keys);
      for (Map.Entry<Key, IndexEntry> entry : now.entrySet()) {
        if (!context.caller.indexes.contains(entry.getValue().index.id)) continue;
        context.held.add(entry.getValue());
        missing.put(entry.getValue().key, entry.getValue());
        missingWith.put(entry.getKey(), operation);
      }
      for (IndexEntry suspect : context.caller.suspects.getOrDefault(new Key(row), Collections.emptyList())) {
        Key key = new Key(suspect.key);
        if (now.containsKey(key)) continue;
        gone.put(suspect.key, suspect);
        goneWith.put(key, operation);
      }
    }

    private void putMissing() throws IOException {
      if (missing.isEmpty()) return;
      RowReader.seek(region.region::getScanner, new Scan().addFamily(IndexedTable.FAMILY), new TreeMap<>(missing),
          (key, cells) -> {
            // Where cells expire, an entry is as young as its youngest cell.
            boolean old = table.expires && cells.get(0).getTimestamp() < missing.get(key).timestamp;
            if (old) return;
            IndexEntry entry = missing.remove(key);
            byte[] value = IndexedTable.valueOf(cells.get(0));
            boolean doubtful = IndexedTable.isCertain(value) && !entry.certain;
            boolean marked = doubtful && !Fault.REBUILT_ENTRIES_LEFT_UNMARKED.isOn();
            if (marked || (isOutdated(value, entry) && !Fault.REBUILT_COLUMNS_LEFT.isOn())) {
              put(missingWith.get(new Key(entry.key)), entry, RowImage.LAST_TIMESTAMP);
            }
          });
      for (IndexEntry entry : missing.values()) {
        put(missingWith.get(new Key(entry.key)), entry, entry.timestamp);
        context.added.add(entry);
      }
    }

    /** For an entry that the row gave: every row has its entry in an index that is complete. */
    private boolean stands(IndexEntry entry) {
      return !building && entry.certain && region.complete().contains(entry.index.id) && !table.expires
          && !region.loaded;
    }

    /**
     * Only what stands is deleted and uncounted: a filter must not lose one that it never counted. Whether it stands is
     * read, but where it cannot be otherwise: that costs as much as reading the rows does.
     */
    private void deleteGone() throws IOException {
      if (gone.isEmpty()) return;
      Set<Key> there = new HashSet<>();
      TreeMap<byte[], IndexEntry> doubtful = new TreeMap<>(Bytes.BYTES_COMPARATOR);
      for (IndexEntry entry : gone.values()) {
        if (entry.key.length > HConstants.MAX_ROW_LENGTH) continue; // it never stood: the row is older than the index
        if (stands(entry)) there.add(new Key(entry.key));
        else doubtful.put(entry.key, entry);
      }
      if (!doubtful.isEmpty()) {
        RowReader.seek(region.region::getScanner, new Scan().addFamily(IndexedTable.FAMILY), doubtful,
            (key, cells) -> there.add(new Key(key)));
      }
      for (IndexEntry entry : gone.values()) {
        Key key = new Key(entry.key);
        if (!there.contains(key)) continue;
        add(goneWith.get(key), entry, RowImage.LAST_TIMESTAMP, KeyValue.Type.DeleteColumn, HConstants.EMPTY_BYTE_ARRAY);
        // It is not known whether an entry that no row gave was counted. A builder's work is counted again.
        if (!building) context.removed.add(entry);
      }
    }
  }
}
