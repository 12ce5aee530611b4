package tamis.hbase;

import com.google.protobuf.Service;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CoprocessorEnvironment;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionObserver;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.InternalScanner;
import org.apache.hadoop.hbase.regionserver.MiniBatchOperationInProgress;
import org.apache.hadoop.hbase.regionserver.OnlineRegions;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.RegionCoprocessorHost;
import org.apache.hadoop.hbase.regionserver.ScanType;
import org.apache.hadoop.hbase.regionserver.Store;
import org.apache.hadoop.hbase.regionserver.compactions.CompactionLifeCycleTracker;
import org.apache.hadoop.hbase.regionserver.compactions.CompactionRequest;
import org.apache.hadoop.hbase.util.Pair;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKey;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.base.Fault;
import tamis.index.BatchContext;
import tamis.pb.TableAttributes.TableAttributesRequest;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.region.TableAttributes;
import tamis.server.Endpoint;
import tamis.server.RegionServerState;
import tamis.server.RegionServers;
import tamis.table.DamagedBytesException;

/**
 * The hooks that HBase calls in a region of an indexed table. Index entries are stored in a column family of their own,
 * which plain clients can neither read nor write.
 *
 * If a hook throws an exception other than an IOException, HBase acknowledges the write without its entries, or aborts
 * the server. So every hook catches all exceptions, except preCompact, which only makes an object. After a commit, no
 * hook may throw an exception that makes a client repeat the write. postPut and similar hooks must not throw at all:
 * HBase would never end the operation's nonce.
 */
public final class IndexObserver implements RegionCoprocessor, RegionObserver {
  private static final Logger LOG = LoggerFactory.getLogger(IndexObserver.class);
  private static final HookErrors ERRORS = new HookErrors(LOG);

  private RegionServerState state; // null: start() has not set it, or HBase lacks what the jar needs
  private Region region;
  private IndexedTable table;
  private volatile IndexedRegion indexed; // null: the table is not indexed, or its schema cannot be read
  private final RegionWrites writes = new RegionWrites(ERRORS);

  @Override
  public Optional<RegionObserver> getRegionObserver() {
    return Optional.of(this);
  }

  @Override
  public void start(CoprocessorEnvironment environment) {
    try {
      region = ((RegionCoprocessorEnvironment) environment).getRegion();
      String lacking = Linkage.refusal();
      if (lacking == null) state = RegionServers.of((RegionCoprocessorEnvironment) environment);
      writes.begin(region, state);
      if (region.getRegionInfo().getReplicaId() != 0) return;
      if (goesOn()) return;
      table = IndexedTable.of(region.getTableDescriptor());
      if (table == null) return;
      writes.refuse(lacking);
      if (lacking != null) return;
      OnlineRegions regions = ((RegionCoprocessorEnvironment) environment).getOnlineRegions();
      String name = region.getRegionInfo().getEncodedName();
      indexed = new IndexedRegion(region, table,
          regions == null ? "" : ((RegionCoprocessorEnvironment) environment).getServerName().getServerName(),
          () -> regions == null || regions.getRegion(name) != null, state);
      writes.maintain(indexed, table);
    } catch (DamagedBytesException e) {
      String broken = "the schema of the table's indexes cannot be read: " + e.getMessage();
      writes.refuse(broken);
      LOG.error("Region {}: {}; writes are refused", region.getRegionInfo().getEncodedName(), broken);
    } catch (Throwable e) {
      writes.refuse("the indexes cannot be kept: " + e);
      LOG.error("Cannot keep the indexes of a region; writes to it are refused", e);
    }
  }

  /**
   * When HBase reloads its settings, it creates new observers for open regions, and calls neither postOpen nor stop.
   * The new observer then takes over the state of the previous one, and this returns true.
   */
  private boolean goesOn() {
    RegionCoprocessorHost host = region instanceof HRegion ? ((HRegion) region).getCoprocessorHost() : null;
    IndexObserver before = host == null ? null : host.findCoprocessor(IndexObserver.class);
    if (before == null || Fault.OBSERVER_BEGINS_ANEW.isOn()) return false;
    table = before.table;
    indexed = before.indexed;
    writes.takeOver(before.writes);
    return true;
  }

  @Override
  public Iterable<Service> getServices() { // before start
    return InstallationReport.services(
        () -> Arrays.asList(new Endpoint(this::answer), new Endpoint(Endpoint.INDEXED_TABLE, this::describe)));
  }

  private byte[] answer(String method, byte[] request) throws IOException {
    String lacking = Linkage.refusal();
    if (state == null) throw new IOException(lacking == null ? "the server is starting" : lacking);
    return state.requests.call(method, request);
  }

  private byte[] describe(String method, byte[] request) throws IOException {
    TableAttributesRequest.parseFrom(request);
    IndexedRegion readable = indexed;
    if (readable == null) throw new DoNotRetryIOException("this region maintains no indexes");
    return TableAttributes.of(readable).toByteArray();
  }

  RegionServerState state() {
    return state;
  }

  // ---- Life

  @Override
  public void postOpen(ObserverContext<RegionCoprocessorEnvironment> c) {
    ERRORS.quietly("open a region", () -> {
      if (indexed != null) state.opener.opened(indexed);
    });
  }

  /**
   * HBase calls it two or three times for one closing. When a server stops cleanly, its main thread first calls
   * it for all regions. It must not throw: the server would abort. Clients go on writing until the region is closed.
   */
  @Override
  public void preClose(ObserverContext<RegionCoprocessorEnvironment> c, boolean abort) {
    ERRORS.quietly("tell that a region closes", () -> {
      if (indexed != null && !abort) state.opener.closing(indexed);
    });
  }

  @Override
  public void postClose(ObserverContext<RegionCoprocessorEnvironment> c, boolean abort) {
    ERRORS.quietly("close a region", () -> {
      if (indexed != null) state.opener.closed(indexed, !abort);
    });
  }

  @Override
  public void stop(CoprocessorEnvironment environment) {
    ERRORS.quietly("close a region", () -> {
      if (indexed != null) state.opener.closed(indexed, false);
    });
  }

  IndexedRegion indexed() {
    return indexed;
  }

  // ---- Errors

  private IOException failure(String what, Throwable e) {
    return ERRORS.failure(what, e, indexed);
  }

  // ---- Writes

  @Override
  public void prePut(ObserverContext<RegionCoprocessorEnvironment> c, Put put, WALEdit edit) throws IOException {
    try {
      writes.check(put);
    } catch (Throwable e) {
      throw failure("check a put", e);
    }
  }

  @Override
  public void preDelete(ObserverContext<RegionCoprocessorEnvironment> c, Delete delete, WALEdit edit, Durability d)
      throws IOException {
    try {
      writes.checkDelete(delete);
    } catch (Throwable e) {
      throw failure("check a delete", e);
    }
  }

  @Override
  public Result preIncrement(ObserverContext<RegionCoprocessorEnvironment> c, Increment increment, WALEdit edit)
      throws IOException {
    try {
      writes.check(increment);
    } catch (Throwable e) {
      throw failure("check an increment", e);
    }
    return null;
  }

  @Override
  public Result preAppend(ObserverContext<RegionCoprocessorEnvironment> c, Append append, WALEdit edit)
      throws IOException {
    try {
      writes.check(append);
    } catch (Throwable e) {
      throw failure("check an append", e);
    }
    return null;
  }

  @Override
  public CheckAndMutateResult preCheckAndMutate(ObserverContext<RegionCoprocessorEnvironment> c, CheckAndMutate check,
      CheckAndMutateResult result) throws IOException {
    try {
      writes.checkCondition(check);
    } catch (Throwable e) {
      throw failure("check a condition", e);
    }
    return result;
  }

  private List<Pair<Cell, Cell>> keepComputed(Mutation mutation, List<Pair<Cell, Cell>> cells) throws IOException {
    try {
      writes.keepComputed(mutation, cells);
    } catch (Throwable e) {
      throw failure("keep what an increment made", e);
    }
    return cells;
  }

  @Override
  public List<Pair<Cell, Cell>> postIncrementBeforeWAL(ObserverContext<RegionCoprocessorEnvironment> c,
      Mutation mutation, List<Pair<Cell, Cell>> cells) throws IOException {
    return keepComputed(mutation, cells);
  }

  @Override
  public List<Pair<Cell, Cell>> postAppendBeforeWAL(ObserverContext<RegionCoprocessorEnvironment> c, Mutation mutation,
      List<Pair<Cell, Cell>> cells) throws IOException {
    return keepComputed(mutation, cells);
  }

  @Override
  public void postStartRegionOperation(ObserverContext<RegionCoprocessorEnvironment> c, Region.Operation operation)
      throws IOException {
    if (operation != Region.Operation.BATCH_MUTATE) return;
    try {
      BatchContext.begin();
    } catch (Throwable e) {
      throw failure("begin a write", e);
    }
  }

  @Override
  public void preBatchMutate(ObserverContext<RegionCoprocessorEnvironment> c,
      MiniBatchOperationInProgress<Mutation> batch) throws IOException {
    try {
      writes.before(batch);
    } catch (Throwable e) {
      throw failure("keep the indexes of a write", e);
    }
  }

  /** A row processor's edit (HRegion.processRowsWithLocks) passes no other hook, and stands nowhere yet. */
  @Override
  public void preWALAppend(ObserverContext<RegionCoprocessorEnvironment> c, WALKey key, WALEdit edit)
      throws IOException {
    try {
      writes.checkEdit(edit);
    } catch (Throwable e) {
      throw failure("look at what comes into the log", e);
    }
  }

  @Override
  public void postBatchMutateIndispensably(ObserverContext<RegionCoprocessorEnvironment> c,
      MiniBatchOperationInProgress<Mutation> batch, boolean success) throws IOException {
    writes.after(success);
  }

  /** Comes at the end of a batch even where another coprocessor's exception left the hook above out. */
  @Override
  public void postCloseRegionOperation(ObserverContext<RegionCoprocessorEnvironment> c, Region.Operation operation)
      throws IOException {
    if (operation != Region.Operation.BATCH_MUTATE) return; // our own scanners end inside of a batch
    writes.ended();
  }

  /**
   * The rows come without their entries. So before any of them can be seen, no coordinator excludes the region and
   * none of its indexes is believed; after the load the entries are made.
   */
  @Override
  public void preBulkLoadHFile(ObserverContext<RegionCoprocessorEnvironment> c, List<Pair<byte[], String>> files)
      throws IOException {
    try {
      writes.refuseUnread();
      if (indexed == null) return;
      if (ClientAccess.checkLoad(files, table)) state.indexes.beforeLoad(indexed);
    } catch (Throwable e) {
      throw failure("prepare a bulk load", e);
    }
  }

  /** Comes whether files were loaded or not. */
  @Override
  public void postBulkLoadHFile(ObserverContext<RegionCoprocessorEnvironment> c, List<Pair<byte[], String>> files,
      Map<byte[], List<Path>> loaded) {
    ERRORS.quietly("index what was loaded", () -> {
      if (indexed == null) return;
      for (Pair<byte[], String> file : files) {
        if (!table.isOurs(file.getFirst())) continue;
        state.indexes.afterLoad(indexed, indexed.rowsOf(loaded));
        return;
      }
    });
  }

  // ---- Compactions

  @Override
  public InternalScanner preCompact(ObserverContext<RegionCoprocessorEnvironment> c, Store store,
      InternalScanner scanner, ScanType type, CompactionLifeCycleTracker tracker, CompactionRequest request) {
    boolean entries = Arrays.equals(store.getColumnFamilyDescriptor().getName(), IndexedTable.FAMILY);
    return indexed != null && entries ? new EntrySieve(scanner, indexed) : scanner;
  }

  // ---- Reads: the entries are hidden

  @Override
  public void preGetOp(ObserverContext<RegionCoprocessorEnvironment> c, Get get, List<Cell> cells) throws IOException {
    try {
      if (indexed == null) return;
      Set<byte[]> families = region.getTableDescriptor().getColumnFamilyNames();
      if (!ClientAccess.leaveOutEntries(get, families)) c.bypass();
    } catch (Throwable e) {
      throw failure("check a get", e);
    }
  }

  @Override
  public void preScannerOpen(ObserverContext<RegionCoprocessorEnvironment> c, Scan scan) throws IOException {
    try {
      if (indexed != null) ClientAccess.leaveOutEntries(scan);
    } catch (Throwable e) {
      throw failure("check a scan", e);
    }
  }
}
