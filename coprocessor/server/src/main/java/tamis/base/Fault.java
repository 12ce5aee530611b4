package tamis.base;

import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;

/**
 * For tests only. Each switches one rule off, so that a test can show that it would find what is lost without the rule.
 * Named in the setting `tamis.faults` of a cluster that is there for tests, or switched on by a test of this package.
 */
public enum Fault {
  /** Puts do not wait for coordinators. */
  NO_WAIT,
  /** Puts queue after those that wait for a coordinator that is stuck. */
  QUEUED_FOR_THE_STUCK,
  /** A poll that queues after the puts that wait for it is answered. */
  POLLS_OF_ANY_PRIORITY,
  /** A mutation without a log entry stays one. */
  SKIP_WAL_KEPT,
  /** A marker is believed after a snapshot was restored or cloned, too. */
  RESTORED_MARKER_BELIEVED,
  /** The schema of a table that was restored has versions that it had before. */
  VERSION_COMES_AGAIN,
  /** A region opens without its observer. */
  OPENS_UNOBSERVED,
  /** A table with cells that expire may have any indexes. */
  EXPIRY_NOT_REFUSED,
  /** A poll's answer that was cut grants a lease. */
  LEASE_FOR_CUT_REPLY,
  /** Does not notice that the machine slept. */
  SLEEP_NOT_NOTICED,
  /** The region's filters stay while files are loaded. */
  LOAD_WITHOUT_TELLING,
  /** A load of files that finds the filter dropped already does not wait until coordinators know of the drop. */
  DROP_NOT_WAITED_FOR,
  /** The index is believed while files are loaded. */
  LOAD_WITHOUT_UNMARKING,
  /** Rows that tombstones hide wholly get no entries after a load of files. */
  HIDDEN_ROWS_NOT_VISITED,
  /** Does not free the locks of a batch whose last hook did not come. */
  NO_SWEEP,
  /** A batch inside of a batch shares what the thread knows of it. */
  NESTED_BATCH_SHARES_CONTEXT,
  /** ZooKeeper proves ownership though the log has a fence. */
  PROOF_WITHOUT_FENCE,
  /** A proof counts from its end. */
  PROOF_AS_OF_ITS_END,
  /** A region opened after a dead owner acknowledges at once. */
  NO_OPENING_WAIT,
  /** It loads files at once. */
  LOAD_WITHOUT_OPENING_WAIT,
  /** It acknowledges at once what no index reads. */
  OPENING_WAIT_OF_INDEXES_ONLY,
  /** Where HBase makes the observers of a region again, ours knows nothing of what the one before it did. */
  OBSERVER_BEGINS_ANEW,
  /** A region waits for the former owners of those alone that it knows it was made of. */
  UNKNOWN_PARENTS_NOT_FEARED,
  /** The closing of a region is not reported. */
  CLOSING_NOT_TOLD,
  /** A close within the opening wait is clean. */
  FLAG_LOWERED_BEFORE_ITS_WAIT,
  /** A close is clean though a coordinator does not know of it. */
  FLAG_LOWERED_BEFORE_ALL_KNOW,
  /** A close takes down all flags that exist. */
  EVERY_FLAG_LOWERED,
  /** A region is searched and reported before its flag stands. */
  BELIEVED_BEFORE_ITS_FLAG,
  /** A flag that is raised late is good without a proof behind it. */
  LATE_FLAG_WITHOUT_PROOF,
  /** A read of ZooKeeper proves ownership. */
  PROOF_BY_A_READ,
  /** Everybody may delete the nodes of ZooKeeper by which a server proves ownership. */
  NODES_OPEN_TO_ALL,
  /** A write that a condition refused is answered as HBase's own call for one row does. */
  REFUSAL_ANSWERED_AS_DONE,
  /** An index without a marker is believed. */
  UNMARKED_BELIEVED,
  /** A region takes its parent's filters even if something was written in between. */
  INHERITED_WHATEVER_CAME,
  /** A removal clears the bits of a filter that has no counters. */
  BITS_CLEARED,
  /** A user that may read only some cells is answered like one that may read all. */
  FILTERED_READ_ALLOWED,
  /** A user that may read no column of a table gets its schema. */
  SCHEMA_FOR_ALL,
  /** A write of the column that an indexed one is computed from concerns no index. */
  SOURCES_NOT_INDEXED,
  /** Does not check whether a writer may read the columns of its conditions. */
  CONDITION_FOR_WRITERS,
  /** Does not check whether a user may read the columns of the condition of a partial index that a search uses. */
  INDEX_CONDITION_FOR_READERS,
  /** A user that may read a table may have its indexes rebuilt. */
  REBUILD_FOR_READERS,
  /** The result of a job is given to every caller that knows its number. */
  JOB_FOR_ANYBODY,
  /** A user may poll with the number of another user's coordinator. */
  COORDINATOR_OF_ANYBODY,
  /** A row is returned for each of its entries. */
  ANY_ENTRY_NAMES_ITS_ROW,
  /** A row is made from an entry that lacks a column that the search needs. */
  ROWS_FROM_ANY_ENTRY,
  /** A write that touches only included columns writes no entry. */
  INCLUDED_COLUMNS_NOT_USED,
  /** A write that touches only columns of conditions of indexes writes no entry. */
  CONDITION_COLUMNS_NOT_USED,
  /** An entry that a hidden version may have given is taken for one that stands. */
  UNCERTAIN_ENTRIES_TAKEN_FOR_THERE,
  /** A version of a condition's column that may come to show is not looked at. */
  HIDDEN_CONDITIONS_OVERLOOKED,
  /** An entry whose key stays keeps its included columns. */
  INCLUDED_COLUMNS_LEFT,
  /** An entry with included columns has the time stamp of its indexed cells. */
  INCLUDED_AT_THEIR_TIMESTAMPS,
  /** Building an index leaves the included columns of the entries that stand. */
  REBUILT_COLUMNS_LEFT,
  /** An entry is certain although an included column may show another value without a write. */
  DOUBTFUL_COLUMNS_INCLUDED,
  /** A row is made from an entry with a value that was cut. */
  CUT_VALUES_TAKEN,
  /** The last group of a page that another one follows is left out. */
  GROUP_LOST_BETWEEN_PAGES,
  /** A row is made from an entry that may stand for a state that the row does not show. */
  MARKED_ENTRIES_TAKEN,
  /** A row is made from an entry although its cells may have expired. */
  EXPIRING_ENTRIES_TAKEN,
  /** A row is made from an entry although the jar did not see how the row was written. */
  ENTRIES_OF_ATTACHED_ROWS_TAKEN,
  /** Likewise, where files were loaded. */
  ENTRIES_OF_LOADED_ROWS_TAKEN,
  /** Building an index leaves the entries that stand unmarked, even if the row has changed. */
  REBUILT_ENTRIES_LEFT_UNMARKED,
  /** The observer is not the last one that sees a write. */
  NOT_THE_LAST_OBSERVER,
  /** A region's indexes are made before it is online. */
  WRITTEN_BEFORE_ONLINE,
  /** A clean close ends before the region is closed. */
  FLAG_LOWERED_IN_PRECLOSE,
  /** An entry is counted after the commit that makes it. */
  COUNTED_AFTER_COMMIT,
  /** An entry is uncounted before the commit that removes it. */
  UNCOUNTED_BEFORE_COMMIT,
  /** A filter is counted again while writers are between commit and count. */
  RECOUNT_AMONG_WRITERS,
  /** The snapshot of a recount need not show the writes of unknown outcome that have ended. */
  RECOUNT_BEFORE_WRITES_SHOW,
  /** A write is registered no longer than it takes to count its entries: rule (a) of clearing (tamis::IndexFilter). */
  LEFT_BEFORE_COMMIT,
  /** Cells are cleared for which writes are registered: (b). */
  CLEARED_AMID_WRITES,
  /** The snapshot in which a clearer looks for entries is taken before the cells are named: (c). */
  CLEARED_BY_OLD_SNAPSHOT,
  /** A cell is empty where the search for its entries gave up: (c). */
  UNDECIDED_IS_EMPTY,
  /** Cells are cleared though writes have registered for them meanwhile: (d). */
  CLEARED_DESPITE_WRITES,
  /** Cells are cleared while entries of rows may be missing in the index: (e). */
  CLEARED_WHILE_INCOMPLETE,
  /** Cells are cleared while a new generation is built: (e). */
  CLEARED_BESIDE_A_RECOUNT,
  /** Cells are cleared in a filter that was copied from a region's parent, which may lack entries: (e). */
  PARENTS_CELLS_CLEARED,
  /** A write does not wait until coordinators know that the cell of its value is occupied. */
  CELL_FLIPS_NOT_WAITED_FOR,
  /** A removal during a recount is counted at once. */
  REMOVALS_NOT_HELD,
  /** While a filter is counted again, no removal cancels with an addition of the same values. */
  REMOVALS_NOT_PAIRED,
  /** A write does not wait for the filter that it was counted in. */
  PUBLICATION_NOT_WAITED_FOR,
  /** A write waits for its own flips alone, not for all that its row needs. */
  ONLY_OWN_FLIPS_WAITED_FOR,
  /** A search is answered without a proof that holds at its end. */
  NO_PROOF_AT_THE_END,
  /** A search is answered though the region was closed meanwhile. */
  CLOSED_REGION_ANSWERS,
  /** A version that shows again is not put again. */
  UNCOVERED_LEFT_ALONE,
  /** Tombstones of whole families are not looked at where a row is read without a scan. */
  FAMILY_TOMBSTONES_OVERLOOKED,
  /** Files that are older than a cell of the row are not read, even if it lacks columns. */
  OLDER_FILES_NOT_READ,
  /** Several writes of one row in a batch are looked at in the opposite order. */
  LATER_WRITES_OF_A_ROW_FIRST,
  /** The writes of a request are judged by the row as it was before the request, not as those before them left it. */
  FORMER_ROW_JUDGED,
  /** A write is acknowledged where no time stamp is left that would show it. */
  LAST_TIMESTAMPS_TAKEN,
  /** A failure in a region that closes is reported as if it proved something about the request. */
  FAILURE_OF_A_CLOSING_REGION_TOLD,
  /** No rule: reads fail as those of a store do whose files are closed under them. */
  STREAM_CLOSED_IN_READ,
  /** Likewise, once the conditions of a write have been asked. */
  STREAM_CLOSED_BEHIND_CONDITIONS,
  /** Likewise, where a call is answered that is of no region. */
  STREAM_CLOSED_IN_CALL,
  /** A filter stays in use though memory ran out before its bits were reported. */
  SPOILT_FILTER_KEPT,
  /** No rule: memory runs out, at the places that `allocate` counts. */
  OUT_OF_MEMORY,
  /** A region may split at an entry. */
  SPLITS_AT_ENTRIES,
  /** Rows are written past the hooks of batches. */
  ROW_PROCESSORS_TAKEN,
  /** The state of a server is forgotten with its last region. */
  STATE_FORGOTTEN_WITH_LAST_REGION,
  /** No rule: HBase has not all methods that the jar calls. */
  HBASE_LACKS_A_METHOD;

  /** For faults that are no rules but events that may happen to HBase. */
  public void happen() {
    if (!isOn()) return;
    throw new NullPointerException("Cannot invoke \"FSInputStream.read(long, byte[], int, int)\": \"this.in\" is null");
  }

  private static final AtomicLong LEFT = new AtomicLong();
  private static volatile long failures;

  /** The n-th of the places to come finds no memory, and so do the ones after it, `times` altogether. */
  public static void exhaustMemory(long n, long times) {
    failures = times;
    LEFT.set(n);
  }

  /** At least one place found none. */
  public static boolean hasExhaustedMemory() {
    return LEFT.get() <= 0;
  }

  /** A place where a hook takes memory. */
  public static void allocate() {
    if (!OUT_OF_MEMORY.isOn()) return;
    long left = LEFT.decrementAndGet();
    if (left <= 0 && left > -failures) throw new OutOfMemoryError("for a test");
  }

  public static final String SETTING = "tamis.faults";

  private static volatile Set<Fault> on = EnumSet.noneOf(Fault.class);

  /** Switches on the faults that the setting names; throws for an unknown one. */
  public static void only(String names) {
    Set<Fault> faults = EnumSet.noneOf(Fault.class);
    for (String name : names.split(",")) {
      if (!name.trim().isEmpty()) faults.add(valueOf(name.trim()));
    }
    on = faults;
  }

  public boolean isOn() {
    Set<Fault> faults = on;
    return !faults.isEmpty() && faults.contains(this);
  }

  /** These and no others. */
  public static void only(Fault... faults) {
    Set<Fault> set = EnumSet.noneOf(Fault.class);
    for (Fault fault : faults) set.add(fault);
    on = set;
  }
}
