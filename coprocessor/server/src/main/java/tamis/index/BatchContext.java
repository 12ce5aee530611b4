package tamis.index;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.ipc.RpcCall;
import org.apache.hadoop.hbase.ipc.RpcServer;
import tamis.base.Fault;
import tamis.feed.IndexEntry;
import tamis.feed.IndexFilter;
import tamis.region.IndexedRegion;
import tamis.table.Key;

/**
 * The state of the batch that a thread carries out: HBase runs all hooks of a batch on the thread that began it. A
 * coprocessor may begin another batch on the same thread in the middle of one: the inner batch has a context of its
 * own. Threads: one context each.
 */
public final class BatchContext {
  /** The origin of a write. */
  public enum Writer {
    CLIENT,
    /** Entries and markers of our own: no hook looks at them. */
    INDEX,
    /** Rows that are given their entries although nothing of them changes. */
    BUILDER
  }

  /** The origin of a batch, and what it needs to know. */
  public static final class Caller {
    public Writer writer = Writer.CLIENT;
    /** For a builder: ids of the indexes to build, and entries that may belong to no row, by the row that they name. */
    Set<Integer> indexes = Collections.emptySet();
    Map<Key, List<IndexEntry>> suspects = Collections.emptyMap();
    /** The conditions of our own writes; null: a plain client's. */
    public ConditionalWrites conditions;
    /** The feed event that our own writes wait for, once for the whole request. */
    public long waitFor;
  }

  /** The mini-batch is registered in a filter. */
  private static final class Registration {
    final IndexFilter filter;
    final long ticket;

    Registration(IndexFilter filter, long ticket) {
      this.filter = filter;
      this.ticket = ticket;
    }
  }

  private static final ThreadLocal<BatchContext> CURRENT = ThreadLocal.withInitial(() -> new BatchContext(null));

  private final BatchContext outer; // null: no batch is under way
  private BatchContext inner; // kept, since batches are many
  private RpcCall call; // null: none of a client's
  private final Caller next = new Caller();

  /** The origin of this batch. */
  public final Caller caller;
  /** Cells that increments and appends made, until the batch has them. */
  public final Map<Mutation, List<Cell>> computed = new IdentityHashMap<>();

  // For the mini-batch that is under way.
  IndexedRegion region;
  long began; // nanoTime
  RowLocks.Held locks;
  boolean inside;
  private boolean outcomeKnown;
  private List<Registration> registrations = Collections.emptyList();
  List<IndexEntry> added = Collections.emptyList();
  List<IndexEntry> removed = Collections.emptyList();
  List<IndexEntry> held = Collections.emptyList();

  private BatchContext(BatchContext outer) {
    this.outer = outer;
    caller = outer == null ? next : outer.next;
  }

  public static BatchContext current() {
    return CURRENT.get();
  }

  /** The caller of this thread's next batch: a client, unless the code that begins the batch sets another one here. */
  public static Caller next() {
    return current().next;
  }

  /** Where it throws, the batch must not begin: it would take the one around it for its own. */
  public static void begin() {
    Fault.allocate();
    if (Fault.NESTED_BATCH_SHARES_CONTEXT.isOn()) return;
    RpcCall call = RpcServer.getCurrentCall().orElse(null);
    BatchContext outer = current();
    // A batch of another call is over, though other coprocessors' exceptions left out all hooks that would have said
    // so.
    while (call != null && outer.outer != null && outer.call != call && !Fault.NO_SWEEP.isOn()) {
      outer.release();
      outer = outer.outer;
    }
    if (outer.inner == null) outer.inner = new BatchContext(outer);
    outer.inner.call = call;
    CURRENT.set(outer.inner);
  }

  /** Takes no memory. */
  public static void end() {
    BatchContext ended = current();
    ended.computed.clear();
    if (ended.outer != null) CURRENT.set(ended.outer);
  }

  /** Begins a mini-batch. */
  void take(IndexedRegion region) {
    added = new ArrayList<>();
    removed = new ArrayList<>();
    held = new ArrayList<>();
    registrations = new ArrayList<>();
    outcomeKnown = false;
    began = System.nanoTime();
    this.region = region;
  }

  void count(IndexFilter filter, List<IndexEntry> entries) {
    registrations.add(new Registration(filter, filter.add(entries)));
  }

  /**
   * The entries of the mini-batch are committed, and every scanner that is opened from now on sees them; or they never
   * will be. A mini-batch that is released without that has an unknown outcome: it stays registered.
   */
  public void leave() {
    for (Registration each : registrations) each.filter.leave(each.ticket);
    registrations = Collections.emptyList();
    outcomeKnown = true;
  }

  /**
   * Frees the locks and counts of the mini-batch. A second call does nothing. Takes no memory, which may have run out.
   */
  public void release() {
    computed.clear();
    if (locks != null) {
      RowLocks.Held ended = locks;
      locks = null;
      ended.release();
    }
    if (inside) {
      inside = false;
      if (!outcomeKnown) region.outcomeUnknown();
      region.gate.readLock().unlock();
    }
    region = null;
    registrations = Collections.emptyList();
    added = Collections.emptyList();
    removed = Collections.emptyList();
    held = Collections.emptyList();
  }

  public boolean isUnderWay() {
    return region != null;
  }
}
