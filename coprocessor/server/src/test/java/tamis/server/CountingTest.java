package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static tamis.hbase.RegionForTest.encoded;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionObserver;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKey;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.feed.FeedCopy;
import tamis.feed.FeedOptions;
import tamis.feed.FilterFeed;
import tamis.feed.FilterRoom;
import tamis.feed.IndexEntry;
import tamis.feed.IndexFilter;
import tamis.filter.ScalableSplitCountingBloomFilter;
import tamis.filter.SplitGeometry;
import tamis.hbase.RegionForTest;
import tamis.index.BatchContext;
import tamis.index.Checker;
import tamis.index.Mutator;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.shaded.protobuf.ByteString;
import tamis.table.Codec;
import tamis.table.Hash;
import tamis.table.Key;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * When entries are counted, and what a write waits for: each rule with it and without it, when an entry stands that the
 * filter says no to, or is acknowledged while a coordinator leaves it out.
 */
class CountingTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final byte[] A = Bytes.toBytes("a");

  private interface Hook {
    void run() throws IOException;
  }

  private static volatile Hook beforeTheLog; // after the hooks that come before a write
  private static volatile Hook afterPut; // after its commit, before the last hook

  /** Another coprocessor, which does what the test says. */
  public static final class Another implements RegionCoprocessor, RegionObserver {
    @Override
    public Optional<RegionObserver> getRegionObserver() {
      return Optional.of(this);
    }

    @Override
    public void preWALAppend(ObserverContext<RegionCoprocessorEnvironment> c, WALKey key, WALEdit edit)
        throws IOException {
      Hook hook = beforeTheLog;
      if (hook != null) hook.run();
    }

    @Override
    public void postPut(ObserverContext<RegionCoprocessorEnvironment> c, Put put, WALEdit edit) throws IOException {
      Hook hook = afterPut;
      if (hook != null) hook.run();
    }
  }

  @AfterEach
  void reset() {
    beforeTheLog = null;
    afterPut = null;
    Fault.only();
    TestServer.stop();
  }

  private static tamis.pb.Table.Schema schema() {
    return RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build();
  }

  /** On a server with a feed, its filter counted. */
  private RegionForTest open(FeedOptions options) throws Exception {
    TestServer.start(options);
    TableDescriptor descriptor = TableDescriptorBuilder.newBuilder(RegionForTest.descriptor(schema(), 1))
                                     .setCoprocessor(Another.class.getName())
                                     .build();
    RegionForTest test = new RegionForTest(descriptor);
    TestServer.open(test.indexed());
    return test;
  }

  private static Put put(String row, String value) {
    return new Put(Bytes.toBytes(row)).addColumn(RegionForTest.F, A, Bytes.toBytes(value));
  }

  /** Entries that stand and that the filter says no to. */
  private static long uncounted(RegionForTest test) throws Exception {
    Cluster.RegionCheck check = Checker.check(test.indexed(), rows -> true);
    assertEquals(0, check.getMissingEntries(), check.toString());
    return check.getMissingInFilter();
  }

  // ---- Before and after the commit

  /** A put whose last hook does not come, and the same once more, which adds no entry and is acknowledged. */
  private long uncountedWhereTheLastHookDoesNotCome() throws Exception {
    try (RegionForTest test = open(new FeedOptions())) {
      afterPut = () -> {
        throw new DoNotRetryIOException("thrown by another coprocessor");
      };
      assertThrows(DoNotRetryIOException.class, () -> test.region.put(put("r", "v")));
      afterPut = null;
      test.region.put(put("r", "v"));
      return uncounted(test);
    }
  }

  @Test
  void anEntryIsCountedBeforeItStands() throws Exception {
    assertEquals(0, uncountedWhereTheLastHookDoesNotCome());
    Fault.only(Fault.COUNTED_AFTER_COMMIT);
    assertEquals(1, uncountedWhereTheLastHookDoesNotCome());
  }

  /** A put over an older value that does not come into the log: the older one stays. */
  private long uncountedWhereTheLogFails() throws Exception {
    try (RegionForTest test = open(new FeedOptions())) {
      test.region.put(put("r", "before"));
      beforeTheLog = () -> {
        throw new DoNotRetryIOException("the log cannot be written");
      };
      assertThrows(DoNotRetryIOException.class, () -> test.region.put(put("r", "after")));
      beforeTheLog = null;
      return uncounted(test);
    }
  }

  @Test
  void anEntryIsUncountedOnceItIsGone() throws Exception {
    assertEquals(0, uncountedWhereTheLogFails());
    Fault.only(Fault.UNCOUNTED_BEFORE_COMMIT);
    assertEquals(1, uncountedWhereTheLogFails());
  }

  // ---- Counting again

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** The filter is counted again while a put has been counted, and has not been written. */
  private long uncountedBesideAWriter() throws Exception {
    try (RegionForTest test = open(new FeedOptions())) {
      IndexedRegion region = test.indexed();
      CountDownLatch inside = new CountDownLatch(1);
      CountDownLatch goOn = new CountDownLatch(1);
      beforeTheLog = () -> {
        inside.countDown();
        await(goOn);
      };
      WatchedThreads threads = new WatchedThreads();
      threads.start(() -> test.region.put(put("r", "v")));
      await(inside);
      Thread counter = threads.start(() -> TestServer.count(region));
      while (counter.isAlive() && !region.gate.hasQueuedThreads()) Thread.yield();
      goOn.countDown();
      threads.join();
      return uncounted(test);
    }
  }

  @Test
  void aFilterIsCountedAnewFromAMomentWithoutWriters() throws Exception {
    assertEquals(0, uncountedBesideAWriter());
    Fault.only(Fault.RECOUNT_AMONG_WRITERS);
    assertEquals(1, uncountedBesideAWriter());
  }

  /** A filter of its own, without a region. */
  private static final class Filter {
    final Schema.Index index;
    final FilterFeed feed;
    final IndexFilter filter;
    IndexFilter told;

    Filter() throws Exception {
      index = Schema.parse(schema().toByteArray()).index(1);
      FeedOptions options = new FeedOptions();
      options.leaseNs = 60 * SECOND;
      feed = new FilterFeed("test", 7, options, System::nanoTime, (column, bytes) -> told.project(column, bytes));
      filter = told = new IndexFilter(feed, index, 1, 1);
    }

    IndexEntry entry(int row) {
      byte[] values = encoded("v" + row);
      return new IndexEntry(index, Key.concat(values, Bytes.toBytes(row)), new byte[][] {values}, 1, true);
    }

    List<IndexEntry> entries(int from, int to) {
      List<IndexEntry> entries = new ArrayList<>();
      for (int row = from; row < to; ++row) entries.add(entry(row));
      return entries;
    }
  }

  /**
   * An entry is removed before the scan that counts it has reached it. Entries counted before fill a layer and look as
   * if it held that entry: those counters belong to others.
   */
  private static long othersUncounted() throws Exception {
    Filter f = new Filter();
    List<IndexEntry> others = f.entries(0, 1100);
    assertTrue(f.filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    f.filter.add(others);
    ScalableSplitCountingBloomFilter same =
        new ScalableSplitCountingBloomFilter(SplitGeometry.of(f.index.fpr, f.index.expectedValues), f.index.seed);
    for (IndexEntry entry : others) same.insert(entry.hashes()[0]);
    assertTrue(same.fill(0) >= 0.5 && same.layers() == 2);
    int alike = others.size();
    while (same.findLayer(f.entry(alike).hashes()[0]) != 0) ++alike;
    List<IndexEntry> gone = Collections.singletonList(f.entry(alike));
    f.filter.remove(gone);
    f.filter.add(f.entries(alike + 1, alike + 100)); // so that the layer is full again
    f.filter.countExisting(gone); // it stood at the instant that is counted
    f.filter.publish();
    return others.stream().filter(entry -> !f.filter.mayContain(entry)).count();
  }

  @Test
  void entryRemovedDuringARecountIsUncountedAtTheEnd() throws Exception {
    assertEquals(0, othersUncounted());
    Fault.only(Fault.REMOVALS_NOT_HELD);
    assertTrue(othersUncounted() > 0);
  }

  // ---- What a write waits for

  private static void applyAll(FilterFeed feed, FeedCopy copy) throws InterruptedException {
    for (int i = 0; i < 3; ++i) {
      copy.apply(feed.poll(copy.request(0), () -> System.nanoTime() + 100 * SECOND), System.nanoTime());
    }
  }

  /** An entry comes while the next filter is counted; its coordinator has the one before, and does not listen. */
  private static boolean leftOutBesideAPublication() throws Exception {
    Filter f = new Filter();
    f.feed.append(Cluster.Event.newBuilder().setKind(Cluster.Event.Kind.REGION_OPENED).setRegionId(1).setEpoch(1));
    assertTrue(f.filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    f.filter.countExisting(f.entries(0, 10));
    f.filter.publish();
    FeedCopy copy = new FeedCopy(3);
    applyAll(f.feed, copy);
    IndexEntry entry = f.entry(5000);
    assertTrue(copy.excludes(1, 1, entry.hashes()[0], entry.first()));
    assertTrue(f.filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    f.filter.add(Collections.singletonList(entry));
    f.filter.countExisting(f.entries(0, 10));
    f.filter.publish();
    boolean acknowledged =
        f.feed.waitAcknowledged(f.filter.waitFor(Collections.singletonList(entry)), System.nanoTime());
    return acknowledged && copy.excludes(1, 1, entry.hashes()[0], entry.first());
  }

  @Test
  void aWriteWaitsForThePublicationOfTheFilterThatCountsIt() throws Exception {
    assertFalse(leftOutBesideAPublication());
    Fault.only(Fault.PUBLICATION_NOT_WAITED_FOR);
    assertTrue(leftOutBesideAPublication());
  }

  /** The number that a put of ours waits for. */
  private static long upserted(IndexedRegion region, String row, String value) {
    Value[] values = new Value[region.table.schema.columns.length];
    values[1] = Value.text(value);
    BatchContext.next().waitFor = 0;
    Cluster.RegionMutateResult result = Mutator.mutate(region,
        Cluster.RegionMutations.newBuilder()
            .setRegionId(region.id)
            .addMutations(Cluster.Mutation.newBuilder()
                              .setKey(ByteString.copyFromUtf8(row))
                              .setRow(ByteString.copyFrom(Codec.encodeRow(region.table.schema, values, null))))
            .build(),
        1);
    assertEquals(Cluster.Error.Code.OK, result.getResults(0).getCode(), result.toString());
    return BatchContext.next().waitFor;
  }

  /**
   * A row is written twice with the same values. The second write counts nothing, but coordinators have not heard of
   * the first one's flips yet.
   */
  private boolean leftOutOnceItIsThere() throws Exception {
    FeedOptions options = new FeedOptions();
    options.leaseNs = 60 * SECOND;
    try (RegionForTest test = open(options)) {
      IndexedRegion region = test.indexed();
      upserted(region, "other", "before");
      FeedCopy copy = new FeedCopy(3);
      applyAll(TestServer.state().feed, copy);
      assertTrue(copy.excludes(region.id, 1, Hash.of(encoded("v"), 1), encoded("v")));
      assertFalse(TestServer.state().feed.waitAcknowledged(upserted(region, "r", "v"), System.nanoTime()));
      boolean acknowledged = TestServer.state().feed.waitAcknowledged(upserted(region, "r", "v"), System.nanoTime());
      return acknowledged && copy.excludes(region.id, 1, Hash.of(encoded("v"), 1), encoded("v"));
    }
  }

  @Test
  void writeWaitsForEventsOfOtherWritesOfItsRow() throws Exception {
    assertFalse(leftOutOnceItIsThere());
    Fault.only(Fault.ONLY_OWN_FLIPS_WAITED_FOR);
    assertTrue(leftOutOnceItIsThere());
  }
}
