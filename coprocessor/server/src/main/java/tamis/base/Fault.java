package tamis.base;

import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;

/**
 * For tests only. Each constant switches one rule off, so that a test can show that it finds the fault that the rule
 * prevents; its comment says what the server does without the rule. A cluster for tests names faults in the setting
 * `tamis.faults`; tests in the same process call `only`.
 */
public enum Fault {
  /** Puts do not wait for coordinators. */
  NO_WAIT,
  /** Puts queue after those that wait for a coordinator that is stuck. */
  QUEUED_FOR_THE_STUCK,
  /** A poll that queues after the puts that wait for it is answered. */
  POLLS_OF_ANY_PRIORITY,
  /** A mutation with SKIP_WAL is not written to the log. */
  SKIP_WAL_KEPT,
  /** An index marker is believed also after a snapshot was restored or cloned. */
  RESTORED_MARKER_BELIEVED,
  /** The schema of a restored table is given version numbers that it had before. */
  VERSION_COMES_AGAIN,
  /** A region opens without its observer. */
  OPENS_UNOBSERVED,
  /** A table with cells that expire may have any indexes. */
  EXPIRY_NOT_REFUSED,
  /** A poll's answer that was cut short grants a lease. */
  LEASE_FOR_CUT_REPLY,
  /** The server does not notice that the machine slept. */
  SLEEP_NOT_NOTICED,
  /** The region's filters stay in use while files are loaded. */
  LOAD_WITHOUT_TELLING,
  /** A load of files that finds the filter dropped already does not wait until coordinators know of the drop. */
  DROP_NOT_WAITED_FOR,
  /** The index is believed while files are loaded. */
  LOAD_WITHOUT_UNMARKING,
  /** After several loads of files only the rows of the last one get their entries. */
  LOADS_BEFORE_FORGOTTEN,
  /** Rows that tombstones hide wholly get no entries after a load of files. */
  HIDDEN_ROWS_NOT_VISITED,
  /** The locks of a batch whose last hook was not called are not released. */
  NO_SWEEP,
  /** A batch inside of a batch uses the context of the outer batch. */
  NESTED_BATCH_SHARES_CONTEXT,
  /** ZooKeeper proves ownership though the log has a fence. */
  PROOF_WITHOUT_FENCE,
  /** A proof counts from its end. */
  PROOF_AS_OF_ITS_END,
  /** A region whose owner died acknowledges writes as soon as it is opened. */
  NO_OPENING_WAIT,
  /** It loads files at once, without the opening wait. */
  LOAD_WITHOUT_OPENING_WAIT,
  /** It acknowledges at once writes of columns that no index reads. */
  OPENING_WAIT_OF_INDEXES_ONLY,
  /** When HBase creates the observers of a region anew, ours forgets the state of its predecessor. */
  OBSERVER_BEGINS_ANEW,
  /** A region waits only for the former owners of the parents that it knows. */
  UNKNOWN_PARENTS_NOT_FEARED,
  /** The closing of a region is not reported. */
  CLOSING_NOT_TOLD,
  /** A close within the opening wait counts as clean. */
  FLAG_LOWERED_BEFORE_ITS_WAIT,
  /** A close counts as clean although some coordinator does not know of it. */
  FLAG_LOWERED_BEFORE_ALL_KNOW,
  /** A close removes the flags of other openings, too. */
  EVERY_FLAG_LOWERED,
  /** A region is searched and reported before its flag exists. */
  BELIEVED_BEFORE_ITS_FLAG,
  /** A flag that was raised late counts without a later proof of ownership. */
  LATE_FLAG_WITHOUT_PROOF,
  /** A read of ZooKeeper proves ownership. */
  PROOF_BY_A_READ,
  /** Everybody may delete the nodes of ZooKeeper by which a server proves ownership. */
  NODES_OPEN_TO_ALL,
  /** A write that a condition refused is answered as HBase's own call for one row does. */
  REFUSAL_ANSWERED_AS_DONE,
  /** An index without a marker is believed. */
  UNMARKED_BELIEVED,
  /** A region takes its parent's filters even if there were writes in between. */
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
  /** An entry that may come from a hidden version is believed. */
  UNCERTAIN_ENTRIES_TAKEN_FOR_THERE,
  /** Versions of a condition's column that may become visible are ignored. */
  HIDDEN_CONDITIONS_OVERLOOKED,
  /** The included columns of an entry whose key stays are not updated. */
  INCLUDED_COLUMNS_LEFT,
  /** An entry with included columns has the time stamp of its indexed cells. */
  INCLUDED_AT_THEIR_TIMESTAMPS,
  /** Building an index does not update the included columns of existing entries. */
  REBUILT_COLUMNS_LEFT,
  /** An entry is certain although an included column may show another value without a write. */
  DOUBTFUL_COLUMNS_INCLUDED,
  /** A row is made from an entry with a value that was cut. */
  CUT_VALUES_TAKEN,
  /** The last group of each page but the last is left out. */
  GROUP_LOST_BETWEEN_PAGES,
  /** A row is made from an entry that may stand for a state that the row does not show. */
  MARKED_ENTRIES_TAKEN,
  /** A row is made from an entry although its cells may have expired. */
  EXPIRING_ENTRIES_TAKEN,
  /** A row is made from an entry although the jar did not see how the row was written. */
  ENTRIES_OF_ATTACHED_ROWS_TAKEN,
  /** Likewise, where files were loaded. */
  ENTRIES_OF_LOADED_ROWS_TAKEN,
  /** Building an index does not mark existing entries, even if the row has changed. */
  REBUILT_ENTRIES_LEFT_UNMARKED,
  /** The observer is not the last one that is called for a write. */
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
  /** The snapshot of a recount may lack writes of unknown outcome that have ended. */
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
  /** A version that becomes visible again is not written again. */
  UNCOVERED_LEFT_ALONE,
  /** Tombstones of whole families are ignored when a row is read without a scan. */
  FAMILY_TOMBSTONES_OVERLOOKED,
  /** Files that are older than a cell of the row are not read, even if it lacks columns. */
  OLDER_FILES_NOT_READ,
  /** Several writes of one row in a batch are applied in the opposite order. */
  LATER_WRITES_OF_A_ROW_FIRST,
  /** The writes of a request are judged by the row as it was before the request, not as those before them left it. */
  FORMER_ROW_JUDGED,
  /** A write is acknowledged although no time stamp is left with which it would be visible. */
  LAST_TIMESTAMPS_TAKEN,
  /** A failure in a region that closes is reported as if it proved something about the request. */
  FAILURE_OF_A_CLOSING_REGION_TOLD,
  /** Not a rule: reads fail like those of a store whose files are closed meanwhile. */
  STREAM_CLOSED_IN_READ,
  /** Likewise, after the conditions of a write were evaluated. */
  STREAM_CLOSED_BEHIND_CONDITIONS,
  /** Likewise, in a call that concerns no region. */
  STREAM_CLOSED_IN_CALL,
  /** A filter stays in use though memory ran out before its bits were reported. */
  SPOILT_FILTER_KEPT,
  /** Not a rule: memory runs out, at the places that `allocate` counts. */
  OUT_OF_MEMORY,
  /** A region may split at an entry. */
  SPLITS_AT_ENTRIES,
  /** Row processors, which bypass the hooks of batches, are allowed. */
  ROW_PROCESSORS_TAKEN,
  /** The state of a server is forgotten with its last region. */
  STATE_FORGOTTEN_WITH_LAST_REGION,
  /** Not a rule: HBase lacks a method that the jar calls. */
  HBASE_LACKS_A_METHOD;

  /** For faults that stand for an event in HBase instead of a rule. */
  public void happen() {
    if (!isOn()) return;
    throw new NullPointerException("Cannot invoke \"FSInputStream.read(long, byte[], int, int)\": \"this.in\" is null");
  }

  private static final AtomicLong LEFT = new AtomicLong();
  private static volatile long failures;

  /** Memory runs out at the n-th place from now on, and at the places after it, `times` in all. */
  public static void exhaustMemory(long n, long times) {
    failures = times;
    LEFT.set(n);
  }

  /** True if memory ran out at least once. */
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

  /** Switches on these faults and no others. */
  public static void only(Fault... faults) {
    Set<Fault> set = EnumSet.noneOf(Fault.class);
    for (Fault fault : faults) set.add(fault);
    on = set;
  }
}
