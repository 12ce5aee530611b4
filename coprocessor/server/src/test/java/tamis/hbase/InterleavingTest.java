package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.Coprocessor;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.RegionTooBusyException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.CoprocessorDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.coprocessor.MasterCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionObserver;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.ipc.RpcCall;
import org.apache.hadoop.hbase.ipc.RpcServer;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.MiniBatchOperationInProgress;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.compactions.CompactionContext;
import org.apache.hadoop.hbase.regionserver.throttle.NoLimitThroughputController;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CommonFSUtils;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.apache.hadoop.hbase.util.Pair;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.feed.FeedCopy;
import tamis.feed.FeedOptions;
import tamis.feed.FilterFeed;
import tamis.feed.FilterRoom;
import tamis.feed.IndexEntry;
import tamis.feed.IndexFilter;
import tamis.index.BatchContext;
import tamis.index.Checker;
import tamis.index.IndexBuilder;
import tamis.index.Mutator;
import tamis.index.RestoreMark;
import tamis.pb.Cluster;
import tamis.pb.Table;
import tamis.region.EntryKeys;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.server.TestServer;
import tamis.shaded.protobuf.ByteString;
import tamis.table.ByteWriter;
import tamis.table.Codec;
import tamis.table.Hash;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * Interleavings that would lose a row if one rule were missing: each test runs with the rule, and with it switched off,
 * where it sees the row missed.
 */
class InterleavingTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final byte[] A = Bytes.toBytes("a");

  @AfterEach
  void reset() {
    Fault.only();
    TestServer.stop();
  }

  private static TableDescriptor descriptor() throws IOException {
    return TableDescriptorBuilder
        .newBuilder(RegionForTest.descriptor(
            RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build(), 1))
        .setRegionSplitPolicyClassName(IndexSplitPolicy.class.getName())
        .build();
  }

  private static RegionForTest open(TableDescriptor descriptor) throws IOException {
    return new RegionForTest(descriptor, new byte[0], new byte[0]);
  }

  private static byte[] encoded(String value) {
    ByteWriter out = new ByteWriter();
    Codec.appendIndexed(Value.text(value), out);
    return out.toBytes();
  }

  private static Put put(String row, String value) {
    return new Put(Bytes.toBytes(row)).addColumn(RegionForTest.F, A, Bytes.toBytes(value));
  }

  /** An action on a region. */
  private interface Act {
    void on(RegionForTest test) throws IOException;
  }

  /** Rows that no search by the index would find though it is believed to be complete. */
  private static long missed(RegionForTest test) throws Exception {
    return Checker.check(test.indexed(), rows -> true).getMissingEntries();
  }

  // ---- SKIP_WAL: the family of the rows is flushed, the entries are in memory only

  private static long missedAfterACrash() throws Exception {
    try (RegionForTest test = open(descriptor())) {
      for (int i = 0; i < 10; ++i) test.region.put(put("r" + i, "v" + i).setDurability(Durability.SKIP_WAL));
      test.region.flushcache(Collections.singletonList(RegionForTest.F), false,
          org.apache.hadoop.hbase.regionserver.FlushLifeCycleTracker.DUMMY);
      test.crash();
      assertEquals(10, Checker.check(test.indexed(), rows -> true).getRows());
      return missed(test);
    }
  }

  @Test
  void aRowWithoutALogEntryDoesNotOutliveItsIndexEntry() throws Exception {
    assertEquals(0, missedAfterACrash());
    Fault.only(Fault.SKIP_WAL_KEPT);
    assertEquals(10, missedAfterACrash());
  }

  // ---- A snapshot that took the files of the rows later than those of the entries

  private static long missedAfterARestoring(Act restore) throws Exception {
    try (RegionForTest test = open(descriptor())) {
      test.region.put(put("early", "v"));
      // The restored state: the entry is not in the files, the row and the marker are.
      BatchContext.next().writer = BatchContext.Writer.INDEX;
      try {
        IndexedRegion region = test.indexed();
        test.region.delete(
            new org.apache.hadoop.hbase.client.Delete(region.keys.entry(1, encoded("v"), Bytes.toBytes("early")))
                .addColumns(IndexedTable.FAMILY, IndexedTable.QUALIFIER));
      } finally {
        BatchContext.next().writer = BatchContext.Writer.CLIENT;
      }
      restore.on(test);
      test.reopen();
      return missed(test);
    }
  }

  /** The context in which the master calls its hooks. */
  @SuppressWarnings("unchecked")
  private static ObserverContext<MasterCoprocessorEnvironment> master(RegionForTest test) {
    Object environment = Proxy.newProxyInstance(InterleavingTest.class.getClassLoader(),
        new Class<?>[] {MasterCoprocessorEnvironment.class}, (proxy, method, with) -> test.conf);
    return (ObserverContext<MasterCoprocessorEnvironment>) Proxy.newProxyInstance(
        InterleavingTest.class.getClassLoader(), new Class<?>[] {ObserverContext.class},
        (proxy, method, with) -> environment);
  }

  @Test
  void aMarkerFromBeforeARestoringIsNotBelieved() throws Exception {
    SnapshotDescription snapshot = new SnapshotDescription("s", TableName.valueOf("t"));
    TableDescriptor table = descriptor();
    Act[] restorings = {
        test
        -> new SchemaGuard().preRestoreSnapshot(master(test), snapshot, table),
        // It was dropped, and has its name again.
        test -> new SchemaGuard().preCloneSnapshot(master(test), snapshot, table),
    };
    for (Act restore : restorings) assertEquals(0, missedAfterARestoring(restore));
    Fault.only(Fault.RESTORED_MARKER_BELIEVED);
    for (Act restore : restorings) assertEquals(1, missedAfterARestoring(restore));
  }

  @Test
  void aRestoringIsNamedAsNoOtherBefore() throws Exception {
    try (RegionForTest test = open(descriptor())) {
      FileSystem files = test.region.getRegionFileSystem().getFileSystem();
      Path root = CommonFSUtils.getRootDir(test.conf);
      TableName name = TableName.valueOf("t");
      java.util.Set<String> names = new java.util.HashSet<>();
      names.add(RestoreMark.last(files, root, name));
      for (long now : new long[] {5, 7, 7, 6}) { // a clock that is put back
        RestoreMark.restored(files, root, name, now);
        assertTrue(names.add(RestoreMark.last(files, root, name)));
        RestoreMark.cloned(files, root, name, now);
        assertTrue(names.add(RestoreMark.last(files, root, name)));
      }
    }
  }

  // ---- A table is restored, and its schema changed once more

  private static TableDescriptor withIndex(long version, String name, int column) throws IOException {
    return TableDescriptorBuilder
        .newBuilder(RegionForTest.descriptor(RegionForTest.schema()
                                                 .setVersion(version)
                                                 .addIndexes(RegionForTest.index(1, "by_a", true, 1))
                                                 .addIndexes(RegionForTest.index(2, name, true, column))
                                                 .build(),
            1))
        .setRegionSplitPolicyClassName(IndexSplitPolicy.class.getName())
        .build();
  }

  private static TableDescriptor change(RegionForTest test, TableDescriptor from, TableDescriptor to)
      throws IOException {
    TableDescriptor changed = new SchemaGuard().preModifyTable(master(test), from.getTableName(), from, to);
    new SchemaGuard().preModifyTableAction(master(test), from.getTableName(), from, changed);
    return changed;
  }

  /** Whether a coordinator that knows index 2 as it was before the restoring learns that it is another one. */
  private static boolean isToldOfTheIndexBehindARestoring() throws Exception {
    try (RegionForTest test = open(descriptor())) {
      FilterFeed feed = new FilterFeed("s", 7, new FeedOptions(), System::nanoTime, (column, bytes) -> null);
      TableDescriptor before = change(test, descriptor(), withIndex(2, "by_s", 4));
      feed.tellTable(1, IndexedTable.of(before).schema.version);
      new SchemaGuard().preRestoreSnapshot(
          master(test), new SnapshotDescription("s", before.getTableName()), descriptor());
      feed.tellTable(1, IndexedTable.of(descriptor()).schema.version);
      long told = feed.last();
      TableDescriptor behind = change(test, descriptor(), withIndex(2, "by_n", 2));
      assertEquals("by_n", IndexedTable.of(behind).schema.index(2).name);
      feed.tellTable(1, IndexedTable.of(behind).schema.version);
      return feed.last() > told;
    }
  }

  @Test
  void noVersionOfASchemaComesAgain() throws Exception {
    assertTrue(isToldOfTheIndexBehindARestoring());
    Fault.only(Fault.VERSION_COMES_AGAIN);
    assertFalse(isToldOfTheIndexBehindARestoring());
  }

  // ---- A server without the observer takes rows, and the region comes back

  private static long missedAfterAVisitUnobserved() throws Exception {
    try (RegionForTest test = open(descriptor())) {
      test.region.put(put("early", "v"));
      test.reopenUnobserved();
      test.region.put(put("late", "w"));
      test.reopen();
      return missed(test);
    }
  }

  @Test
  void aRegionDoesNotOpenUnobserved() throws Exception {
    IOException e = assertThrows(IOException.class, InterleavingTest::missedAfterAVisitUnobserved);
    assertTrue(e.getMessage().contains("IndexObserver is not loaded"), e.toString());
    Fault.only(Fault.OPENS_UNOBSERVED);
    assertEquals(1, missedAfterAVisitUnobserved());
  }

  // ---- An index is created: regions open with it one after the other

  private static TableDescriptor descriptorOfTwoIndexes() throws IOException {
    return RegionForTest.descriptor(RegionForTest.schema()
                                        .setVersion(2)
                                        .addIndexes(RegionForTest.index(1, "by_a", true, 1))
                                        .addIndexes(RegionForTest.index(2, "by_s", true, 4))
                                        .build(),
        1);
  }

  private static Put putBoth(String row) {
    return put(row, "v").addColumn(RegionForTest.F, Bytes.toBytes("s"), Bytes.toBytes("w"));
  }

  private static long missedByANewIndex() throws Exception {
    try (RegionForTest test = open(descriptor())) {
      for (int i = 0; i < 10; ++i) test.region.put(putBoth("r" + i)); // without entries of the index to come
      test.reopen(descriptorOfTwoIndexes());
      return missed(test);
    }
  }

  @Test
  void anIndexIsBelievedOnlyWhereARegionHasItsEntries() throws Exception {
    assertEquals(0, missedByANewIndex());
    Fault.only(Fault.UNMARKED_BELIEVED);
    assertEquals(10, missedByANewIndex());
  }

  // ---- A region opens whose index lacks entries

  /**
   * Whether entries are made before the region is online: what is written then stands in the log before the region's
   * opening, with numbers below the one that it opens with, and the region may never come to be open here.
   */
  private boolean writesBeforeItIsOnline() throws Exception {
    try (RegionForTest test = open(descriptor())) {
      BatchContext.next().writer = BatchContext.Writer.INDEX;
      test.region.put(put("r", "v")); // without its entry
      BatchContext.next().writer = BatchContext.Writer.CLIENT;
      IndexBuilder.unmark(test.indexed());
      AtomicBoolean online = new AtomicBoolean();
      CountDownLatch asked = new CountDownLatch(1);
      List<Integer> entries = new CopyOnWriteArrayList<>(); // whenever the region is asked whether it is online
      IndexedRegion region = new IndexedRegion(test.region, test.indexed().table, "s,1,2", () -> {
        entries.add(entriesOf(test));
        asked.countDown();
        return online.get();
      }, TestServer.state());
      TestServer.state().opener.opened(region);
      try {
        if (!Fault.WRITTEN_BEFORE_ONLINE.isOn()) {
          asked.await();
          online.set(true);
        }
        while (!region.complete().contains(1)) Thread.yield();
        assertEquals(1, entriesOf(test) - 1); // and the marker
        return !online.get() || entries.get(0) > 0;
      } finally {
        region.setClosed();
        TestServer.close(region);
      }
    }
  }

  private static int entriesOf(RegionForTest test) {
    try {
      return test.entries().size();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  @Test
  void nothingIsWrittenBeforeARegionIsOnline() throws Exception {
    assertFalse(writesBeforeItIsOnline());
    Fault.only(Fault.WRITTEN_BEFORE_ONLINE);
    assertTrue(writesBeforeItIsOnline());
  }

  // ---- A condition refuses a write

  /** Whether a write is acknowledged that is not there. */
  private static boolean refusedWriteIsAcknowledged() throws Exception {
    try (RegionForTest test = open(descriptor())) {
      test.region.put(put("r", "before"));
      IndexedRegion region = test.indexed();
      Cluster.RegionMutateResult result = Mutator.mutate(region,
          Cluster.RegionMutations.newBuilder()
              .setRegionId(region.id)
              .addMutations(Cluster.Mutation.newBuilder()
                                .setKind(Cluster.Mutation.Kind.INSERT_IF_ABSENT)
                                .setKey(ByteString.copyFromUtf8("r")))
              .build(),
          1);
      return result.getResults(0).getCode() == Cluster.Error.Code.OK;
    }
  }

  @Test
  void writeThatAConditionRefusedIsNotAcknowledged() throws Exception {
    assertFalse(refusedWriteIsAcknowledged());
    Fault.only(Fault.REFUSAL_ANSWERED_AS_DONE);
    assertTrue(refusedWriteIsAcknowledged());
  }

  // ---- Another coprocessor changes a write

  /** Puts another value into column `a`. */
  public static final class Changer implements RegionCoprocessor, RegionObserver {
    @Override
    public Optional<RegionObserver> getRegionObserver() {
      return Optional.of(this);
    }

    @Override
    public void preBatchMutate(ObserverContext<RegionCoprocessorEnvironment> c,
        MiniBatchOperationInProgress<Mutation> batch) throws IOException {
      for (int i = 0; i < batch.size(); ++i) {
        List<Cell> cells = batch.getOperation(i).getFamilyCellMap().get(RegionForTest.F);
        if (cells == null) continue;
        cells.replaceAll(cell
            -> new KeyValue(CellUtil.cloneRow(cell), RegionForTest.F, CellUtil.cloneQualifier(cell),
                cell.getTimestamp(), Bytes.toBytes("changed")));
      }
    }
  }

  private static long missedBesideAChanger(int priority) throws Exception {
    TableDescriptor descriptor =
        TableDescriptorBuilder.newBuilder(descriptor())
            .setCoprocessor(
                CoprocessorDescriptorBuilder.newBuilder(Changer.class.getName()).setPriority(priority).build())
            .build();
    SchemaGuard.check(descriptor); // the master does so, too
    try (RegionForTest test = open(descriptor)) {
      test.region.put(put("r", "v"));
      return missed(test);
    }
  }

  @Test
  void theObserverSeesAWriteLast() throws Exception {
    assertEquals(0, missedBesideAChanger(Coprocessor.PRIORITY_USER));
    assertThrows(IOException.class, () -> missedBesideAChanger(Coprocessor.PRIORITY_LOWEST));
    Fault.only(Fault.NOT_THE_LAST_OBSERVER);
    assertEquals(1, missedBesideAChanger(Coprocessor.PRIORITY_LOWEST));
  }

  // ---- Cells that expire

  /** A row whose indexed cell expires, while another cell stays. */
  private static long missedAfterExpiry(boolean sparse) throws Exception {
    TableDescriptor descriptor = new SchemaGuardTest().expiring(sparse);
    SchemaGuard.check(descriptor); // the master does so, too
    try (RegionForTest test = open(descriptor)) {
      test.region.put(put("r", "v").addColumn(RegionForTest.G, Bytes.toBytes("b"), Bytes.toBytes("stays")));
      assertEquals(0, missed(test));
      EnvironmentEdgeManager.injectEdge(() -> System.currentTimeMillis() + TimeUnit.DAYS.toMillis(1));
      return missed(test);
    } finally {
      EnvironmentEdgeManager.reset();
    }
  }

  @Test
  void onlyWhatSurvivesExpiryGoesWithATtl() throws Exception {
    assertEquals(0, missedAfterExpiry(true));
    assertThrows(IOException.class, () -> missedAfterExpiry(false));
    Fault.only(Fault.EXPIRY_NOT_REFUSED);
    assertEquals(1, missedAfterExpiry(false));
  }

  // ---- Another coprocessor throws after the commit

  /** Throws in postPut of one row; and, when told, wherever we would hear of the end. */
  public static final class Thrower implements RegionCoprocessor, RegionObserver {
    @Override
    public Optional<RegionObserver> getRegionObserver() {
      return Optional.of(this);
    }

    @Override
    public void postPut(ObserverContext<RegionCoprocessorEnvironment> c, Put put, WALEdit edit) throws IOException {
      if (Bytes.toString(put.getRow()).equals("bad")) throw new DoNotRetryIOException("thrown by another coprocessor");
    }

    static volatile boolean throwsEverywhere;

    @Override
    public void postBatchMutateIndispensably(ObserverContext<RegionCoprocessorEnvironment> c,
        MiniBatchOperationInProgress<Mutation> batch, boolean success) throws IOException {
      if (throwsEverywhere) throw new DoNotRetryIOException("thrown by another coprocessor");
    }

    @Override
    public void postCloseRegionOperation(ObserverContext<RegionCoprocessorEnvironment> c, Region.Operation operation)
        throws IOException {
      if (throwsEverywhere) throw new DoNotRetryIOException("thrown by another coprocessor");
    }
  }

  /** A client's call: one that is not late, and equal to itself alone. */
  private static RpcCall call() {
    return (RpcCall) Proxy.newProxyInstance(
        RpcCall.class.getClassLoader(), new Class<?>[] {RpcCall.class}, (self, method, arguments) -> {
          switch (method.getName()) {
            case "getDeadline":
              return Long.MAX_VALUE;
            case "disconnectSince":
              return -1L;
            case "hashCode":
              return System.identityHashCode(self);
            case "equals":
              return self == arguments[0];
            default:
              return method.getReturnType() == int.class     ? (Object) 0
                  : method.getReturnType() == long.class     ? (Object) 0L
                  : method.getReturnType() == Optional.class ? Optional.empty()
                                                             : null;
          }
        });
  }

  /**
   * Whether no write is inside of the region after two calls of one handler, of which the first ended without a hook.
   */
  private static boolean freeBehindTheNextCall() throws Exception {
    TableDescriptor descriptor =
        TableDescriptorBuilder.newBuilder(descriptor()).setCoprocessor(Thrower.class.getName()).build();
    try (RegionForTest test = open(descriptor)) {
      boolean[] free = new boolean[2];
      Thread handler = new Thread(() -> {
        ReentrantReadWriteLock gate = test.indexed().gate;
        Thrower.throwsEverywhere = true;
        RpcServer.setCurrentCall(call());
        try {
          test.region.put(put("r", "v"));
        } catch (IOException e) {
          // as it should
        } finally {
          Thrower.throwsEverywhere = false;
        }
        free[0] = gate.getReadHoldCount() == 0;
        RpcServer.setCurrentCall(call());
        try {
          test.region.put(put("s", "v"));
        } catch (IOException e) {
          throw new AssertionError(e);
        }
        free[1] = gate.getReadHoldCount() == 0;
        while (gate.getReadHoldCount() > 0) gate.readLock().unlock(); // so that the region can close
      });
      handler.start();
      handler.join();
      assertFalse(free[0]);
      return free[1];
    }
  }

  @Test
  void locksOfABatchAreFreedByTheNextCallWhereNoHookCame() throws Exception {
    assertTrue(freeBehindTheNextCall());
    Fault.only(Fault.NO_SWEEP);
    assertFalse(freeBehindTheNextCall());
  }

  /** Whether another thread can write the row afterwards. */
  private static boolean rowIsFree() throws Exception {
    TableDescriptor descriptor =
        TableDescriptorBuilder.newBuilder(descriptor()).setCoprocessor(Thrower.class.getName()).build();
    try (RegionForTest test = open(descriptor)) {
      CountDownLatch written = new CountDownLatch(1);
      CountDownLatch looked = new CountDownLatch(1);
      Thread thread = new Thread(() -> {
        try {
          test.region.put(put("bad", "v"));
        } catch (IOException e) {
          // as it should
        }
        written.countDown();
        try {
          looked.await();
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
        // Locks of rows are the process's: one that is not freed would stop a test of another region, some day.
        BatchContext.current().release();
      });
      thread.start();
      written.await();
      IndexedRegion region = test.indexed();
      boolean free = region.gate.writeLock().tryLock();
      if (free) region.gate.writeLock().unlock();
      looked.countDown();
      thread.join();
      return free;
    }
  }

  @Test
  void locksOfABatchAreFreedWhereItsLastHookDoesNotCome() throws Exception {
    assertTrue(rowIsFree());
    Fault.only(Fault.NO_SWEEP);
    assertFalse(rowIsFree());
  }

  // ---- An answer to a poll that was cut

  /** Whether the coordinator would leave out a row that was acknowledged while it had no lease. */
  private static boolean cutReplyMisleads() throws Exception {
    long[] now = {1000 * SECOND};
    FeedOptions options = new FeedOptions();
    FilterFeed feed = new FilterFeed("s", 7, options, () -> now[0], (column, bytes) -> null);
    feed.append(Cluster.Event.newBuilder().setKind(Cluster.Event.Kind.REGION_OPENED).setRegionId(1));
    poll(feed, now, 0);
    options.replyBytes = 1;
    long first = feed.append(Cluster.Event.newBuilder().setKind(Cluster.Event.Kind.RANGE_WIDENED).setRegionId(1));
    long second = feed.append(Cluster.Event.newBuilder().setKind(Cluster.Event.Kind.RANGE_WIDENED).setRegionId(1));
    assertTrue(feed.waitAcknowledged(second, now[0])); // no coordinator has a lease: the put is acknowledged
    Cluster.PollReply cut = poll(feed, now, first - 1);
    return cut.getLeaseNs() > 0 && cut.getTo() < second;
  }

  private static Cluster.PollReply poll(FilterFeed feed, long[] now, long applied) throws InterruptedException {
    return feed.poll(Cluster.PollRequest.newBuilder()
                         .setCoordinator(1)
                         .setStartCode(applied == 0 ? 0 : 7)
                         .setApplied(applied)
                         .build(),
        () -> applied == 0 ? now[0] - 1 : now[0] + 10 * SECOND);
  }

  @Test
  void anAnswerThatWasCutGrantsNoLease() throws Exception {
    assertFalse(cutReplyMisleads());
    Fault.only(Fault.LEASE_FOR_CUT_REPLY);
    assertTrue(cutReplyMisleads());
  }

  // ---- Files are loaded

  private static Path file(RegionForTest test, String... rows) throws IOException {
    FileSystem files = test.region.getRegionFileSystem().getFileSystem();
    Path path =
        new Path(new Path(test.region.getRegionFileSystem().getTableDir(), "load-" + System.nanoTime()), "f/file");
    try (HFile.Writer writer = HFile.getWriterFactory(test.conf, new CacheConfig(test.conf))
                                   .withPath(files, path)
                                   .withFileContext(new HFileContextBuilder().build())
                                   .create()) {
      for (String row : rows) {
        writer.append(new KeyValue(Bytes.toBytes(row), RegionForTest.F, A, 1000, Bytes.toBytes("loaded")));
      }
    }
    return path;
  }

  private static void load(RegionForTest test, Path file) throws IOException {
    List<Pair<byte[], String>> files = Collections.singletonList(new Pair<>(RegionForTest.F, file.toString()));
    test.region.getCoprocessorHost().preBulkLoadHFile(files);
    java.util.Map<byte[], List<Path>> loaded = null;
    try {
      loaded = ((HRegion) test.region).bulkLoadHFiles(files, true, null);
    } finally {
      if (!Fault.LOAD_WITHOUT_TELLING.isOn()) test.region.getCoprocessorHost().postBulkLoadHFile(files, loaded);
    }
  }

  private void awaitBuilt(IndexedRegion region) throws Exception {
    while (!region.complete().contains(1) || !region.filters.get(1).isPublished()) Thread.yield();
  }

  /** Whether a coordinator with a lease leaves out a row that was loaded. */
  private boolean leavesOutWhatWasLoaded(boolean listens) throws Exception {
    FeedOptions options = new FeedOptions();
    options.leaseNs = 60 * SECOND;
    FilterFeed feed = TestServer.start(options);
    try (RegionForTest test = open(descriptor())) {
      IndexedRegion region = test.indexed();
      test.region.put(put("there", "before"));
      TestServer.open(region);
      FeedCopy copy = new FeedCopy(3);
      for (int i = 0; i < 3; ++i) {
        copy.apply(feed.poll(copy.request(0), () -> System.nanoTime() + 100 * SECOND), System.nanoTime());
      }
      assertTrue(copy.excludes(region.id, 1, Hash.of(encoded("loaded"), 1), encoded("loaded")));
      boolean[] stop = new boolean[1];
      Thread poller = new Thread(() -> {
        try {
          while (!stop[0])
            copy.apply(feed.poll(copy.request(SECOND / 50), () -> System.nanoTime() + 100 * SECOND), System.nanoTime());
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      });
      if (listens) poller.start();
      load(test, file(test, "x1", "x2", "x3"));
      boolean left = copy.excludes(region.id, 1, Hash.of(encoded("loaded"), 1), encoded("loaded"));
      if (listens) {
        awaitBuilt(region);
        Cluster.RegionCheck check = Checker.check(region, rows -> true);
        assertEquals(4, check.getEntries(), check.toString());
        assertEquals(0, check.getMissingEntries() + check.getForeignEntries() + check.getMissingInFilter());
        left |= copy.excludes(region.id, 1, Hash.of(encoded("loaded"), 1), encoded("loaded"));
        stop[0] = true;
        poller.join();
      }
      return left;
    }
  }

  @Test
  void loadedRowsAreNotExcluded() throws Exception {
    assertFalse(leavesOutWhatWasLoaded(true));
    Fault.only(Fault.LOAD_WITHOUT_TELLING);
    assertTrue(leavesOutWhatWasLoaded(false));
  }

  /**
   * The filter is dropped while a put is between its counting and its end: how far both of them wait, after the drop.
   */
  private static long[] waitedForBesideADrop() throws Exception {
    long[] now = {1000 * SECOND};
    FilterFeed feed = new FilterFeed("s", 7, new FeedOptions(), () -> now[0], (column, bytes) -> null);
    Schema.Index index =
        Schema.parse(RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build().toByteArray())
            .index(1);
    IndexFilter filter = new IndexFilter(feed, index, 1, 1);
    filter.beginGeneration(() -> true, FilterRoom.ENDLESS);
    filter.publish();
    poll(feed, now, 0);
    assertTrue(poll(feed, now, feed.last()).getLeaseNs() > 0); // it excludes what the filter lacks
    java.util.List<IndexEntry> written =
        Collections.singletonList(new IndexEntry(index, encoded("v"), new byte[][] {encoded("v")}, 1, true));
    filter.add(written);
    long dropped = filter.drop();
    assertEquals(feed.last(), dropped);
    // The put, and who loads beside the first.
    long[] waited = {filter.waitFor(written) - dropped, filter.drop() - dropped};
    filter.beginGeneration(() -> true, FilterRoom.ENDLESS);
    filter.countExisting(written);
    filter.publish();
    assertEquals(waited[0], filter.waitFor(written) - dropped); // one after the load
    poll(feed, now, feed.last());
    assertEquals(0, filter.waitFor(written)); // it knows
    return waited;
  }

  @Test
  void writeOrLoadBesideADropWaitsForIt() throws Exception {
    assertArrayEquals(new long[] {0, 0}, waitedForBesideADrop());
    Fault.only(Fault.DROP_NOT_WAITED_FOR);
    for (long behind : waitedForBesideADrop()) assertTrue(behind < 0);
  }

  private long missedAfterALoad() throws Exception {
    TestServer.start(new FeedOptions());
    try (RegionForTest test = open(descriptor())) {
      IndexedRegion region = test.indexed();
      test.region.put(put("x1", "before"));
      TestServer.open(region);
      load(test, file(test, "x0", "x1", "x2"));
      awaitBuilt(region);
      return missed(test);
    }
  }

  @Test
  void noMarkerOutlivesALoad() throws Exception {
    assertEquals(0, missedAfterALoad());
    Fault.only(Fault.LOAD_WITHOUT_UNMARKING);
    assertEquals(2, missedAfterALoad());
  }

  /** Whether an entry that stands has a mark once a version was loaded under a tombstone of its row. */
  private boolean isMarkedBehindALoad() throws Exception {
    TestServer.start(new FeedOptions());
    Table.Schema schema = RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", false, 1)).build();
    try (RegionForTest test = open(RegionForTest.descriptor(schema, 1))) {
      IndexedRegion region = test.indexed();
      byte[] row = Bytes.toBytes("x");
      test.region.put(new Put(row).addColumn(RegionForTest.F, Bytes.toBytes("s"), 1, row));
      test.region.delete(new Delete(row).addColumns(RegionForTest.F, A, 2000));
      TestServer.open(region);
      load(test, file(test, "x"));
      awaitBuilt(region);
      byte[] nullEntry = region.keys.entry(1, new byte[] {1}, row);
      for (java.util.List<Cell> cells : test.scan(IndexedTable.FAMILY)) {
        if (Arrays.equals(CellUtil.cloneRow(cells.get(0)), nullEntry))
          return !IndexedTable.isCertain(IndexedTable.valueOf(cells.get(0)));
      }
      throw new AssertionError("the row has no entry for NULL");
    }
  }

  @Test
  void entryOfARowWithALoadedHiddenVersionIsMarked() throws Exception {
    assertTrue(isMarkedBehindALoad());
    Fault.only(Fault.REBUILT_ENTRIES_LEFT_UNMARKED);
    assertFalse(isMarkedBehindALoad());
  }

  /** The included column in the entry of a row that was loaded with another value of it, and nothing else. */
  private String includedBehindALoad() throws Exception {
    TestServer.start(new FeedOptions());
    Table.Schema schema =
        RegionForTest.schema().addIndexes(RegionForTest.including(RegionForTest.index(1, "by_s", true, 4), 1)).build();
    try (RegionForTest test = open(RegionForTest.descriptor(schema, 1))) {
      IndexedRegion region = test.indexed();
      byte[] row = Bytes.toBytes("x");
      test.region.put(new Put(row)
                          .addColumn(RegionForTest.F, A, 1, Bytes.toBytes("before"))
                          .addColumn(RegionForTest.F, Bytes.toBytes("s"), 1, row));
      TestServer.open(region);
      load(test, file(test, "x"));
      awaitBuilt(region);
      for (java.util.List<Cell> cells : test.scan(IndexedTable.FAMILY)) {
        if (region.keys.kindOf(region.table.schema, CellUtil.cloneRow(cells.get(0))) != EntryKeys.Kind.ENTRY) continue;
        tamis.table.Value[] values = new tamis.table.Value[region.table.schema.columns.length];
        Codec.decodeRow(region.table.schema, IndexedTable.valueOf(cells.get(0)), values);
        return Bytes.toString(values[1].bytes());
      }
      throw new AssertionError("the row has no entry");
    }
  }

  @Test
  void includedColumnsFollowALoad() throws Exception {
    assertEquals("loaded", includedBehindALoad());
    Fault.only(Fault.REBUILT_COLUMNS_LEFT);
    assertEquals("before", includedBehindALoad());
  }

  // ---- A region is opened after an owner that may still be believed

  /** Whether it is acknowledged before the region's opening wait is over. */
  private static boolean comesBeforeItsTime(Act act) throws Exception {
    try (RegionForTest test = open(descriptor())) {
      test.indexed().notBefore = System.nanoTime() + 3600 * SECOND;
      act.on(test);
      return true;
    } catch (RegionTooBusyException e) {
      return false;
    }
  }

  @Test
  void noFileIsLoadedBehindADeadOwner() throws Exception {
    Act load = test
        -> test.region.getCoprocessorHost().preBulkLoadHFile(
            Collections.singletonList(new Pair<>(RegionForTest.F, "/somewhere")));
    assertFalse(comesBeforeItsTime(load));
    Fault.only(Fault.LOAD_WITHOUT_OPENING_WAIT);
    assertTrue(comesBeforeItsTime(load));
  }

  /** A dead owner could still return the old value of the column, in rows that it finds by the index. */
  @Test
  void noColumnIsWrittenBehindADeadOwner() throws Exception {
    byte[] row = Bytes.toBytes("r");
    byte[] s = Bytes.toBytes("s"); // in no index
    Act[] writes = {
        test
        -> test.region.put(new Put(row).addColumn(RegionForTest.F, s, s)),
        test
        -> test.region.put(new Put(row).addColumn(RegionForTest.G, Bytes.toBytes("unmapped"), s)),
        test
        -> test.region.mutateRow(RowMutations.of(Arrays.asList(
            new Put(row).addColumn(RegionForTest.F, s, s), new Put(row).addColumn(RegionForTest.G, s, s)))),
    };
    for (Act write : writes) assertFalse(comesBeforeItsTime(write));
    assertFalse(comesBeforeItsTime(test -> test.region.put(put("r", "v"))));
    Fault.only(Fault.OPENING_WAIT_OF_INDEXES_ONLY);
    for (Act write : writes) assertTrue(comesBeforeItsTime(write));
    assertFalse(comesBeforeItsTime(test -> test.region.put(put("r", "v"))));
  }

  // ---- The settings of a server are read again

  /**
   * HBase makes the observers of the region again; whether its filter, which is published, lacks a value put after
   * that.
   */
  private boolean filterLacksWhatCameAfterAChangeOfSettings() throws Exception {
    TestServer.start(new FeedOptions());
    RegionForTest test = open(descriptor());
    IndexObserver before = test.observer();
    IndexedRegion region = before.indexed();
    try {
      TestServer.open(region);
      Configuration changed = new Configuration(test.conf);
      changed.set("hbase.coprocessor.region.classes", Thrower.class.getName());
      test.region.onConfigurationChange(changed);
      assertNotSame(before, test.observer());
      test.region.put(put("r", "v"));
      return !region.filters.get(1).mayContain(
          new IndexEntry(region.table.schema.index(1), encoded("v"), new byte[][] {encoded("v")}, 1, true));
    } finally {
      test.close();
      assertEquals(!Fault.OBSERVER_BEGINS_ANEW.isOn(), region.isClosed());
      TestServer.close(region);
    }
  }

  @Test
  void aRegionThatGetsItsObserversAnewGoesOn() throws Exception {
    assertFalse(filterLacksWhatCameAfterAChangeOfSettings());
    Fault.only(Fault.OBSERVER_BEGINS_ANEW);
    assertTrue(filterLacksWhatCameAfterAChangeOfSettings());
  }

  /** A major compaction took the tombstone of a row before a file with the row came, and ends after the building. */
  private long missedBehindACompaction() throws Exception {
    TestServer.start(new FeedOptions());
    try (RegionForTest test = open(descriptor())) {
      IndexedRegion region = test.indexed();
      test.region.put(put("x1", "before"));
      test.region.delete(new Delete(Bytes.toBytes("x1")));
      test.region.flush(true);
      TestServer.open(region);
      HStore store = test.region.getStore(RegionForTest.F);
      store.triggerMajorCompaction();
      CompactionContext compaction = store.requestCompaction().get();
      load(test, file(test, "x1"));
      awaitBuilt(region);
      assertTrue(test.region.get(new Get(Bytes.toBytes("x1"))).isEmpty());
      assertTrue(test.region.compact(compaction, store, NoLimitThroughputController.INSTANCE));
      assertFalse(test.region.get(new Get(Bytes.toBytes("x1"))).isEmpty());
      return missed(test);
    }
  }

  @Test
  void versionLoadedBehindATombstoneIsIndexed() throws Exception {
    assertEquals(0, missedBehindACompaction());
    Fault.only(Fault.HIDDEN_ROWS_NOT_VISITED);
    assertEquals(1, missedBehindACompaction());
  }

  @Test
  void filesAreNotLoadedIntoTheIndexFamily() throws Exception {
    try (RegionForTest test = open(descriptor())) {
      assertThrows(DoNotRetryIOException.class,
          ()
              -> test.region.getCoprocessorHost().preBulkLoadHFile(
                  Collections.singletonList(new Pair<>(IndexedTable.FAMILY, "/nowhere"))));
    }
  }
}
