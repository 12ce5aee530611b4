package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionObserver;
import org.apache.hadoop.hbase.regionserver.MiniBatchOperationInProgress;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import tamis.feed.FeedOptions;
import tamis.feed.FilterFeed;
import tamis.feed.IndexFilter;
import tamis.filter.ScalableSplitCountingBloomFilter;
import tamis.filter.SplitGeometry;
import tamis.hbase.InstallationReport;
import tamis.hbase.RegionForTest;
import tamis.index.BatchContext;
import tamis.index.IndexBuilder;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.table.Schema;

/** Regions whose indexes are made complete and counted: in which order, and what comes of those that fail. */
@Timeout(60) // a test that would wait for ever
class RegionIndexesTest {
  private static final byte[] A = Bytes.toBytes("a");

  private RegionServerState state;
  private final List<RegionForTest> tests = new ArrayList<>();
  private FilterFeed feed;

  @BeforeEach
  void startFeed() {
    feed = TestServer.start(new FeedOptions());
    state = TestServer.state();
  }

  @AfterEach
  void closeRegions() throws Exception {
    Failing.on = false;
    for (IndexedRegion region : state.regions.all()) state.opener.closed(region, false);
    for (RegionForTest test : tests) test.close();
    TestServer.stop();
  }

  /** One row, and a complete index. */
  private RegionForTest open(String start, String end) throws Exception {
    TableDescriptor table =
        RegionForTest.descriptor(RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build(), 1);
    RegionForTest test =
        new RegionForTest(TableDescriptorBuilder.newBuilder(table).setCoprocessor(Failing.class.getName()).build(),
            Bytes.toBytes(start), Bytes.toBytes(end));
    tests.add(test);
    test.region.put(new Put(Bytes.toBytes(start)).addColumn(RegionForTest.F, A, A));
    return test;
  }

  /** The region as a server that opens it has it. */
  private IndexedRegion region(String start, String end) throws Exception {
    RegionForTest test = open(start, end);
    return new IndexedRegion(test.region, test.indexed().table, "s,1,2", () -> true, state);
  }

  /** Another coprocessor, by which no index can be built while that is so. */
  public static final class Failing implements RegionCoprocessor, RegionObserver {
    static volatile boolean on;
    static final AtomicInteger failed = new AtomicInteger();

    @Override
    public Optional<RegionObserver> getRegionObserver() {
      return Optional.of(this);
    }

    @Override
    public void preBatchMutate(ObserverContext<RegionCoprocessorEnvironment> c,
        MiniBatchOperationInProgress<Mutation> batch) throws IOException {
      if (!on || BatchContext.current().caller.writer != BatchContext.Writer.BUILDER) return;
      failed.incrementAndGet();
      throw new IOException("the disk is full");
    }
  }

  /** Workers that work when the test calls them, by a clock of their own. */
  private static final class Told {
    long now;
    final ArrayDeque<Runnable> ready = new ArrayDeque<>();
    final TreeMap<Long, Runnable> later = new TreeMap<>();
    final Workers workers = new Workers(
        (step, afterNs) -> assertNull(later.put(now + afterNs, step)), ready::add, ready::add, ready::add, ready::add);

    void work() {
      while (!ready.isEmpty()) ready.poll().run();
    }

    /** Until the next step is due: so long it took. */
    long passPause() {
      long pause = later.firstKey() - now;
      now = later.firstKey();
      later.pollFirstEntry().getValue().run();
      work();
      return pause;
    }
  }

  private static void await(BooleanSupplier done) throws InterruptedException {
    while (!done.getAsBoolean()) {
      if (Thread.interrupted()) throw new InterruptedException();
      Thread.yield();
    }
  }

  private static boolean isPublished(IndexedRegion region) {
    IndexFilter filter = region.filters.get(1);
    return filter != null && filter.isPublished();
  }

  @Test
  void regionIsAnnouncedAndCountedWhileOthersAreBuilt() throws Exception {
    IndexedRegion[] built = {region("a", "b"), region("b", "c"), region("c", "d")};
    for (IndexedRegion region : built) region.building.lock(); // a builder holds it
    try {
      for (IndexedRegion region : built) state.opener.opened(region);
      await(()
                -> built[0].building.getQueueLength() + built[1].building.getQueueLength()
                  + built[2].building.getQueueLength()
              >= 2);
      IndexedRegion later = region("d", "e");
      state.opener.opened(later);
      await(() -> isPublished(later));
      assertEquals(1, later.filters.get(1).entries());
      await(() -> built[2].told);
      assertTrue(feed.openRegions().contains(later.id) && feed.openRegions().contains(built[2].id));
    } finally {
      for (IndexedRegion region : built) region.building.unlock();
    }
    for (IndexedRegion region : built) await(() -> isPublished(region));
  }

  // ---- What fails

  /** Nothing says that its index is complete. */
  private IndexedRegion incomplete(RegionForTest test) throws Exception {
    IndexedRegion region = test.indexed();
    IndexBuilder.unmark(region);
    region.setComplete(Collections.emptySet());
    TestServer.tell(region);
    return region;
  }

  private static List<String> problems(RegionForTest test) throws Exception {
    List<String> problems = new ArrayList<>();
    InstallationReport.describe(test.conf, ServerName.valueOf("s", 1, 2), Collections.singletonList(test.region))
        .getProblemsList()
        .forEach(problem -> problems.add(problem.getProblem()));
    return problems;
  }

  /** The state of the region as its server reports it. */
  private Cluster.RegionStatus reported(IndexedRegion region) {
    return state.requests.status(Cluster.StatusRequest.newBuilder().setTableId(region.table.tableId).build())
        .getRegionsList()
        .stream()
        .filter(status -> status.getRegionId() == region.id)
        .findFirst()
        .get();
  }

  @Test
  void failedBuildIsRetriedWithGrowingPauses() throws Exception {
    RegionForTest test = open("a", "b");
    IndexedRegion region = incomplete(test);
    Told told = new Told();
    RegionIndexes indexes = new RegionIndexes(state.acknowledgements, state.filters, told.workers);
    Failing.failed.set(0);
    Failing.on = true;
    indexes.completeAndCount(region);
    told.work();
    long[] pauses = {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};
    for (int i = 0; i < pauses.length; ++i) {
      assertEquals(i + 1, Failing.failed.get());
      assertEquals(1, state.regions.failing());
      assertTrue(problems(test).toString().contains("the disk is full"), problems(test).toString());
      Cluster.BuildFailure reported = reported(region).getFailure();
      assertEquals(i + 1, reported.getAttempts());
      assertTrue(reported.getError().getMessage().contains("the disk is full"), reported.toString());
      assertFalse(reported.getGivenUp());
      assertEquals(1, told.later.size());
      assertEquals(TimeUnit.SECONDS.toNanos(pauses[i]), told.passPause());
    }
    assertTrue(region.complete().isEmpty());
    Failing.on = false;
    told.passPause();
    assertEquals(Collections.singleton(1), region.complete());
    assertEquals(1, region.filters.get(1).entries());
    assertEquals(0, state.regions.failing());
    assertTrue(problems(test).isEmpty() && told.later.isEmpty());
    assertFalse(reported(region).hasFailure());
  }

  /** The failures before a success do not count. */
  @Test
  void attemptsOfAFailedBuildAreCountedSinceTheLastSuccess() throws Exception {
    IndexedRegion region = incomplete(open("a", "b"));
    Told told = new Told();
    RegionIndexes indexes = new RegionIndexes(state.acknowledgements, state.filters, told.workers);
    for (int i = 0; i < 2; ++i) {
      assertFalse(reported(region).hasFailure());
      Failing.on = true;
      IndexBuilder.unmark(region);
      indexes.completeAndCount(region);
      told.work();
      told.passPause();
      assertEquals(2, reported(region).getFailure().getAttempts());
      Failing.on = false;
      told.passPause();
    }
  }

  @Test
  void regionWithoutRoomForEntriesSaysSo() throws Exception {
    RegionForTest test = open("a", "a\0");
    IndexedRegion region = test.indexed();
    assertFalse(region.hasEntries);
    state.regions.add(region);
    Cluster.BuildFailure failure = reported(region).getFailure();
    assertTrue(failure.getGivenUp());
    assertTrue(failure.getError().getMessage().contains("leaves no room for index entries"), failure.toString());
  }

  /** It has few values when it opens. */
  @Test
  void aFilterIsMadeForTheValuesThatItsIndexExpects() throws Exception {
    IndexedRegion region = incomplete(open("a", "b"));
    Told told = new Told();
    RegionFilters filters =
        new RegionFilters(() -> Collections.singletonList(region), Runnable::run, () -> Long.MAX_VALUE / 8);
    new RegionIndexes(state.acknowledgements, filters, told.workers).completeAndCount(region);
    told.work();
    Schema.Index index = region.table.schema.index(1);
    assertTrue(isPublished(region));
    assertEquals(ScalableSplitCountingBloomFilter.layerBytes(SplitGeometry.of(index.fpr, index.expectedValues)),
        region.filters.get(1).sizeBytes());
  }

  @Test
  void failedBuildOfAClosingRegionIsNotRetried() throws Exception {
    IndexedRegion region = incomplete(open("a", "b"));
    Told told = new Told();
    RegionIndexes indexes = new RegionIndexes(state.acknowledgements, state.filters, told.workers);
    Failing.failed.set(0);
    Failing.on = true;
    indexes.completeAndCount(region);
    told.work();
    region.closing = true;
    told.passPause();
    assertEquals(1, Failing.failed.get());
    assertTrue(told.later.isEmpty());
  }

  /** Two loads, one after the other: the first one's building goes on as the second one's. */
  @Test
  void failedBuildAfterALoadIsRetried() throws Exception {
    RegionForTest test = open("a", "b");
    IndexedRegion region = test.indexed();
    TestServer.open(region);
    Told told = new Told();
    RegionIndexes indexes = new RegionIndexes(state.acknowledgements, state.filters, told.workers);
    Failing.failed.set(0);
    Failing.on = true;
    for (int i = 0; i < 2; ++i) {
      told.now += 1; // two steps at one time would be one
      indexes.beforeLoad(region);
      indexes.afterLoad(region, null);
      told.work();
    }
    assertEquals(2, Failing.failed.get());
    told.passPause();
    assertEquals(2, Failing.failed.get());
    assertTrue(region.complete().isEmpty() && !isPublished(region));
    Failing.on = false;
    told.passPause();
    assertEquals(Collections.singleton(1), region.complete());
    assertTrue(isPublished(region) && told.later.isEmpty());
  }
}
