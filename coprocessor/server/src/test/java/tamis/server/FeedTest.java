package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static tamis.hbase.RegionForTest.encoded;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.hbase.RegionTooBusyException;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import tamis.base.Fault;
import tamis.feed.FeedCopy;
import tamis.feed.FeedOptions;
import tamis.feed.FilterFeed;
import tamis.feed.IndexEntry;
import tamis.feed.IndexFilter;
import tamis.filter.ScalableSplitCountingBloomFilter;
import tamis.filter.SplitGeometry;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.table.Hash;

/** A coordinator that listens never leaves out what has been acknowledged. */
class FeedTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

  @AfterEach
  void stopFeed() {
    Fault.only();
    TestServer.stop();
  }

  /** Asks whether the value of index `by_a`, whose seed is 1, would be looked for in the region. */
  private static boolean excludes(FeedCopy copy, IndexedRegion region, String value) {
    return copy.excludes(region.id, 1, Hash.of(encoded(value), 1), encoded(value));
  }

  /** A coordinator that polls until it has the region's bits, and then no more. */
  private static FeedCopy copyThatExcludes(FilterFeed feed, IndexedRegion region, String value) throws Exception {
    FeedCopy copy = new FeedCopy(99);
    for (int i = 0; i < 10 && !excludes(copy, region, value); ++i) {
      copy.apply(feed.poll(copy.request(0), () -> System.nanoTime() + 600 * SECOND), System.nanoTime());
    }
    return copy;
  }

  @Test
  void noAcknowledgedValueIsLeftOut() throws Exception {
    assertNull(play(new FeedOptions(), false));
  }

  @Test
  void noAcknowledgedValueIsLeftOutWhereMemoryIsShort() throws Exception {
    assertNull(play(new FeedOptions(), true));
  }

  /** The lease outlives the test, and the coordinator polls no more once the bits have arrived. */
  @Test
  void aValueIsLeftOutWherePutsDoNotWait() throws Exception {
    Fault.only(Fault.NO_WAIT);
    FeedOptions options = new FeedOptions();
    options.leaseNs = 600 * SECOND;
    FilterFeed feed = TestServer.start(options);
    try (RegionForTest test = newRegion()) {
      IndexedRegion region = test.indexed();
      TestServer.open(region);
      FeedCopy copy = copyThatExcludes(feed, region, "value");
      assertTrue(excludes(copy, region, "value"));
      put(test, Bytes.toBytes("row"), "value");
      assertTrue(excludes(copy, region, "value"), "the put waited, or its bits are known all the same");
    }
  }

  /** While many writes wait, another one queues only if it would wait, too; one that is refused is uncounted. */
  @Test
  void onlyAWriteThatWouldWaitQueues() throws Exception {
    FeedOptions options = new FeedOptions();
    options.patienceNs = 0; // it is refused rather than that it queues
    FilterFeed feed = TestServer.start(options);
    try (RegionForTest test = newRegion()) {
      IndexedRegion region = test.indexed();
      TestServer.open(region);
      byte[] row = Bytes.toBytes("row");
      put(test, row, "known");
      FeedCopy copy = new FeedCopy(99);
      for (int i = 0; i < 3; ++i) { // the last poll acknowledges
        copy.apply(feed.poll(copy.request(0), () -> System.nanoTime() + SECOND), System.nanoTime());
      }
      options.maxWaiting = 0;
      put(test, row, "known");
      IndexFilter filter = region.filters.get(1);
      long entries = filter.entries();
      assertThrows(org.apache.hadoop.hbase.RegionTooBusyException.class, () -> put(test, row, "new"));
      assertEquals(entries, filter.entries());
      copy.apply(feed.poll(copy.request(0), () -> System.nanoTime() + SECOND), System.nanoTime());
      assertTrue(excludes(copy, region, "new"));
      options.maxWaiting = 15;
      put(test, row, "known");
    }
  }

  /** No slot becomes free here: the queued write continues once its flips, which it reports first, are acknowledged. */
  @Test
  void aQueuedWriteGoesOnOnceItsFlipsAreAcknowledged() throws Exception {
    FeedOptions options = new FeedOptions();
    options.maxWaiting = 0;
    options.patienceNs = Long.MAX_VALUE / 4; // none that waits tells of progress
    options.maxQueuedNs = 600 * SECOND;
    options.leaseNs = 600 * SECOND;
    FilterFeed feed = TestServer.start(options);
    try (RegionForTest test = newRegion()) {
      IndexedRegion region = test.indexed();
      TestServer.open(region);
      FeedCopy copy = copyThatExcludes(feed, region, "new");
      boolean[] stop = new boolean[1];
      Thread poller = new Thread(() -> {
        while (!stop[0]) {
          try {
            copy.apply(feed.poll(copy.request(SECOND / 20), () -> System.nanoTime() + 600 * SECOND), System.nanoTime());
          } catch (InterruptedException e) {
            return;
          }
        }
      });
      poller.start();
      put(test, Bytes.toBytes("row"), "new");
      assertFalse(excludes(copy, region, "new"));
      stop[0] = true;
      poller.join();
    }
  }

  /** Clients repeat a write that is refused: nothing may come of the tries. */
  @Test
  void aWriteIsRefusedBeforeItTellsItsFlipsWhileACoordinatorIsStuck() throws Exception {
    FeedOptions options = new FeedOptions();
    options.maxWaiting = 0;
    options.patienceNs = 0;
    options.leaseNs = 600 * SECOND;
    FilterFeed feed = TestServer.start(options);
    try (RegionForTest test = newRegion()) {
      IndexedRegion region = test.indexed();
      TestServer.open(region);
      FeedCopy copy = copyThatExcludes(feed, region, "new");
      assertTrue(excludes(copy, region, "new"));
      long told = feed.last();
      for (int i = 0; i < 3; ++i) {
        assertThrows(RegionTooBusyException.class, () -> put(test, Bytes.toBytes("row"), "new"));
      }
      assertEquals(told, feed.last());
    }
  }

  /** Nothing is acknowledged here: the write leaves the gate since the recount waits for it. */
  @Test
  @Timeout(120)
  void aQueuedWriteGoesOnWhereARecountWaitsForTheGate() throws Exception {
    FeedOptions options = new FeedOptions();
    options.maxWaiting = 0;
    options.patienceNs = Long.MAX_VALUE / 4;
    options.maxQueuedNs = 200 * SECOND; // without the rule the test takes as long, and fails
    options.leaseNs = 600 * SECOND;
    FilterFeed feed = TestServer.start(options);
    try (RegionForTest test = newRegion()) {
      IndexedRegion region = test.indexed();
      TestServer.open(region);
      FeedCopy copy = copyThatExcludes(feed, region, "new");
      long told = feed.last();
      AtomicReference<Throwable> failed = new AtomicReference<>();
      Thread writer = new Thread(() -> {
        try {
          put(test, Bytes.toBytes("row"), "new");
        } catch (Throwable e) {
          failed.set(e);
        }
      });
      writer.start();
      while (feed.last() == told) Thread.yield(); // it is inside of the gate
      boolean[] ran = new boolean[1];
      assertTrue(region.whileQuiet(() -> ran[0] = true));
      assertTrue(ran[0]);
      while (writer.isAlive()) {
        copy.apply(feed.poll(copy.request(0), () -> System.nanoTime() + 600 * SECOND), System.nanoTime());
      }
      assertNull(failed.get());
      assertFalse(excludes(copy, region, "new"));
    }
  }

  private static RegionForTest newRegion() throws Exception {
    tamis.pb.Table.Index.Builder byA = RegionForTest.index(1, "by_a", true, 1).toBuilder().setExpectedValues(64);
    tamis.pb.Table.Schema schema = RegionForTest.schema().addIndexes(byA).build();
    return new RegionForTest(RegionForTest.descriptor(schema, 1));
  }

  private static void put(RegionForTest test, byte[] row, String value) throws java.io.IOException {
    test.region.put(new Put(row).addColumn(RegionForTest.F, Bytes.toBytes("a"), Bytes.toBytes(value)));
  }

  /** Returns the first fault, or null. `bits`: the filter is bits alone. */
  private String play(FeedOptions options, boolean bits) throws Exception {
    Random seeds = new Random(17);
    ServerLife server = TestServer.life(options);
    if (bits) {
      server.maxFilterBytes = ScalableSplitCountingBloomFilter.layerBytes(SplitGeometry.of(0.001, 64)) - 1; // counters
    }
    FilterFeed feed = TestServer.start(server).feed;
    try (RegionForTest test = newRegion()) {
      IndexedRegion region = test.indexed();
      TestServer.open(region);
      FeedCopy copy = new FeedCopy(99);
      AtomicReference<String> wrong = new AtomicReference<>();
      AtomicLong trusted = new AtomicLong();
      boolean[] stop = new boolean[1];
      List<Thread> threads = new ArrayList<>();
      long seed = seeds.nextLong();
      Thread poller = new Thread(() -> {
        Random random = new Random(seed);
        try {
          while (!stop[0]) {
            long sent = System.nanoTime();
            copy.apply(feed.poll(copy.request(SECOND / 20), () -> System.nanoTime() + SECOND), sent);
            if (random.nextInt(400) == 0) Thread.sleep(1200); // the lease ends, and puts go on
          }
        } catch (Throwable e) {
          wrong.compareAndSet(null, e.toString());
        }
      });
      poller.start();
      for (int t = 0; t < 3; ++t) {
        int writer = t;
        long own = seeds.nextLong();
        Thread thread = new Thread(() -> {
          Random random = new Random(own);
          try {
            // Until the coordinator has had a lease and bits often enough, however it is kept waiting.
            for (int i = 0; (i < 250 || trusted.get() <= 100) && wrong.get() == null; ++i) {
              byte[] row = Bytes.toBytes(writer + "-" + random.nextInt(30));
              if (random.nextInt(4) == 0) {
                test.region.delete(new Delete(row));
                continue;
              }
              String value = "v" + random.nextInt(random.nextBoolean() ? 20 : 100_000);
              put(test, row, value);
              // The row is ours alone, and holds the value until we change it.
              if (excludes(copy, region, value)) wrong.compareAndSet(null, value + " is acknowledged and left out");
              if (!excludes(copy, region, "never there")) continue;
              trusted.incrementAndGet();
            }
          } catch (Throwable e) {
            wrong.compareAndSet(null, e.toString());
          }
        });
        thread.start();
        threads.add(thread);
      }
      for (int i = 0; i < 5; ++i) {
        Thread.sleep(100);
        TestServer.count(region); // a new generation while all of this goes on
      }
      for (Thread thread : threads) thread.join();
      stop[0] = true;
      poller.join();
      if (wrong.get() != null) return wrong.get();
      assertEquals(bits, region.filters.get(1).isOfBits());
      // The filter holds exactly the values that stand.
      for (int i = 0; i < 20; ++i) {
        String value = "v" + i;
        IndexFilter filter = region.filters.get(1);
        IndexEntry entry =
            new IndexEntry(region.table.schema.index(1), new byte[0], new byte[][] {encoded(value)}, 0, true);
        boolean stands = false;
        for (byte[] key : test.entries()) {
          byte[] want = region.keys.entry(1, encoded(value), new byte[0]);
          stands |= tamis.table.Key.startsWith(key, want);
        }
        if (stands) assertTrue(filter.mayContain(entry), value);
      }
    }
    return null;
  }

  private static Cluster.PollRequest poll(long coordinator, long startCode, long applied) {
    return Cluster.PollRequest.newBuilder()
        .setCoordinator(coordinator)
        .setStartCode(startCode)
        .setApplied(applied)
        .build();
  }

  private static Cluster.Event.Builder closed(long region) {
    return Cluster.Event.newBuilder().setKind(Cluster.Event.Kind.REGION_CLOSED).setRegionId(region);
  }

  /** The clock is the test's. */
  private static final class Feed {
    long now = 1000 * SECOND;
    final FeedOptions options = new FeedOptions();
    final FilterFeed feed = new FilterFeed("s", 7, options, () -> now, (column, bytes) -> null);

    Cluster.PollReply poll(long coordinator, long applied) throws InterruptedException {
      return feed.poll(FeedTest.poll(coordinator, 7, applied), () -> now + 10 * SECOND);
    }
  }

  @Test
  void aPutWaitsForEachLeaseAndForNoOther() throws Exception {
    Feed f = new Feed();
    long first = f.feed.append(closed(1));
    assertTrue(f.feed.waitAcknowledged(first, f.now));
    assertTrue(f.poll(1, 0).getFull());
    assertTrue(f.poll(1, first).getLeaseNs() > 0);
    long second = f.feed.append(closed(2));
    assertFalse(f.feed.waitAcknowledged(second, f.now));
    assertEquals(1, f.poll(1, first).getEventsCount());
    assertFalse(f.feed.waitAcknowledged(second, f.now)); // sent, not applied
    f.poll(1, second);
    assertTrue(f.feed.waitAcknowledged(second, f.now));
    long third = f.feed.append(closed(3));
    assertFalse(f.feed.waitAcknowledged(third, f.now));
    f.now += f.options.leaseNs + f.options.leaseMarginNs;
    assertTrue(f.feed.waitAcknowledged(third, f.now));
  }

  @Test
  void eventsWithoutAWaitingPutTravelWithOtherEvents() throws Exception {
    Feed f = new Feed();
    f.poll(1, 0);
    long urgent = f.feed.append(closed(1));
    f.feed.append(closed(2), false);
    AtomicReference<Cluster.PollReply> reply = new AtomicReference<>();
    Thread poll = new Thread(() -> {
      try {
        reply.set(f.feed.poll(poll(1, 7, urgent).toBuilder().setWaitNs(SECOND).build(), () -> f.now + 10 * SECOND));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    });
    poll.start();
    while (poll.isAlive() && poll.getState() != Thread.State.TIMED_WAITING) Thread.yield();
    f.feed.append(closed(3));
    poll.join();
    assertEquals(2, reply.get().getEventsCount());
    assertTrue(reply.get().getLeaseNs() > 0);
  }

  // ---- Who may know of some tables only

  private static Cluster.Event.Builder opened(long region, int table) {
    return Cluster.Event.newBuilder().setKind(Cluster.Event.Kind.REGION_OPENED).setRegionId(region).setTableId(table);
  }

  private static Cluster.Event.Builder widened(long region) {
    return Cluster.Event.newBuilder().setKind(Cluster.Event.Kind.RANGE_WIDENED).setRegionId(region);
  }

  private static java.util.Set<Long> regionsOf(Cluster.PollReply reply) {
    java.util.Set<Long> regions = new java.util.TreeSet<>();
    for (Cluster.Event event : reply.getEventsList()) {
      if (event.getRegionId() != 0) regions.add(event.getRegionId());
    }
    return regions;
  }

  @Test
  void pollAnswersOnlyTablesThatTheCallerMayRead() throws Exception {
    Feed f = new Feed();
    java.util.function.LongSupplier sure = () -> f.now + 10 * SECOND;
    java.util.Set<Integer> one = java.util.Collections.singleton(1);
    java.util.Set<Integer> both = new java.util.HashSet<>(java.util.Arrays.asList(1, 2));
    f.feed.append(opened(10, 1));
    f.feed.append(opened(20, 2));
    f.feed.tellTable(1, 5);
    f.feed.tellTable(2, 5);
    assertEquals(both,
        f.poll(9, 0)
            .getEventsList()
            .stream()
            .map(Cluster.Event::getTableId)
            .collect(java.util.stream.Collectors.toSet()));
    Cluster.PollReply first = f.feed.poll(poll(1, 0, 0), sure, readerOf(both));
    assertTrue(first.getFull());
    assertEquals(new java.util.TreeSet<>(java.util.Arrays.asList(10L, 20L)), regionsOf(first));
    f.feed.append(widened(20));
    assertEquals(
        java.util.Collections.singleton(20L), regionsOf(f.feed.poll(poll(1, 7, first.getTo()), sure, readerOf(both))));

    // The user may no longer read table 2: its copy of it must go, also when the answer that says so is lost.
    long applied = f.feed.last();
    assertTrue(f.feed.poll(poll(1, 7, applied), sure, readerOf(one)).getFull());
    f.feed.append(widened(20));
    Cluster.PollReply anew = f.feed.poll(poll(1, 7, applied), sure, readerOf(one));
    assertTrue(anew.getFull());
    assertEquals(java.util.Collections.singleton(10L), regionsOf(anew));
    f.feed.append(widened(20));
    f.feed.append(closed(20));
    f.feed.append(widened(10));
    Cluster.PollReply delta = f.feed.poll(poll(1, 7, anew.getTo()), sure, readerOf(one));
    assertFalse(delta.getFull());
    assertEquals(java.util.Collections.singleton(10L), regionsOf(delta));
    assertEquals(f.feed.last(), delta.getTo());
    assertTrue(f.feed.poll(poll(1, 7, delta.getTo()), sure, readerOf(both)).getFull());
  }

  private static FilterFeed.Reader readerOf(java.util.Set<Integer> tables) {
    return new FilterFeed.Reader("ada", "", tables);
  }

  /** A coordinator's number is not secret enough: any user that polls with it acknowledges its events. */
  @Test
  void coordinatorsNumberBelongsToTheUserWhoFirstUsedIt() throws Exception {
    Feed f = new Feed();
    java.util.function.LongSupplier sure = () -> f.now + 10 * SECOND;
    FilterFeed.Reader ada = new FilterFeed.Reader("ada", "", null);
    FilterFeed.Reader other = new FilterFeed.Reader("other", "", null);
    f.feed.append(opened(10, 1));
    assertTrue(f.feed.poll(poll(1, 7, f.feed.last()), sure, ada).getLeaseNs() > 0);
    long event = f.feed.append(widened(10));
    assertThrows(tamis.base.StatusException.class, () -> f.feed.poll(poll(1, 7, event), sure, other));
    assertTrue(f.feed.acknowledgedFloor() < event);
    assertTrue(f.feed.poll(poll(2, 7, event), sure, other).getLeaseNs() > 0);
    assertTrue(f.feed.acknowledgedFloor() < event);
    Fault.only(Fault.COORDINATOR_OF_ANYBODY);
    f.feed.poll(poll(1, 7, event), sure, other);
    assertEquals(event, f.feed.acknowledgedFloor());
  }

  @Test
  void coordinatorThatDoesNotApplyGetsNoLease() throws Exception {
    Feed f = new Feed();
    f.poll(1, 0);
    f.feed.append(closed(1));
    assertTrue(f.poll(1, 0).getLeaseNs() > 0);
    f.now += 2 * f.options.leaseNs;
    assertEquals(0, f.poll(1, 0).getLeaseNs());
    assertTrue(f.poll(1, f.feed.last()).getLeaseNs() > 0);
  }

  @Test
  void aCutReplyGrantsNothing() throws Exception {
    Feed f = new Feed();
    f.poll(1, 0);
    f.options.replyBytes = 1;
    f.feed.append(closed(1));
    f.feed.append(closed(2));
    Cluster.PollReply cut = f.poll(1, 0);
    assertEquals(1, cut.getTo());
    assertEquals(1, cut.getEventsCount());
    assertEquals(0, cut.getLeaseNs());
    assertTrue(f.poll(1, 1).getLeaseNs() > 0);
  }

  @Test
  void noLeaseOutlivesTheProof() throws Exception {
    Feed f = new Feed();
    assertEquals(5, f.feed.poll(poll(1, 7, 0), () -> f.now + 5).getLeaseNs());
    assertEquals(0, f.feed.poll(poll(1, 7, 0), () -> f.now - 1).getLeaseNs());
  }

  @Test
  void eventsAreKeptOnlyForListenersAndWithinABound() throws Exception {
    Feed f = new Feed();
    for (int i = 0; i < 100; ++i) f.feed.append(closed(i));
    assertEquals(0, f.feed.eventBytes());
    f.poll(1, f.feed.last());
    f.options.maxEvents = 10;
    for (int i = 0; i < 100; ++i) f.feed.append(closed(i));
    assertTrue(f.feed.eventBytes() > 0 && f.feed.eventBytes() < 10 * 20);
    assertTrue(f.poll(1, 100).getFull());
    f.now += 2 * f.options.silenceNs;
    f.feed.append(closed(1));
    assertEquals(0, f.feed.eventBytes());
  }

  private static Cluster.Event.Builder flips(int bit) {
    return Cluster.Event.newBuilder()
        .setKind(Cluster.Event.Kind.FLIPS)
        .setRegionId(5)
        .setIndexId(1)
        .setGeneration(1)
        .addFlips((long) bit << 1 | 1);
  }

  /** A value comes between the bits and the events of a reply: the copy that loads the bits has that, too. */
  @Test
  void newsBehindTheBitsAreInTheCopy() throws Exception {
    tamis.filter.SplitGeometry geometry = new tamis.filter.SplitGeometry(1, 64);
    AtomicReference<FilterFeed> made = new AtomicReference<>();
    byte[] value = encoded("new");
    int bit = (int) geometry.position(Hash.of(value, 1), 0);
    FilterFeed feed = new FilterFeed("s", 7, new FeedOptions(), System::nanoTime, (column, bytes) -> {
      Cluster.Projection projection = Cluster.Projection.newBuilder()
                                          .setRegionId(5)
                                          .setIndexId(1)
                                          .setGeneration(1)
                                          .setAsOf(made.get().last())
                                          .addLayers(tamis.shaded.protobuf.ByteString.copyFrom(new byte[8]))
                                          .setLayerCount(1)
                                          .build();
      made.get().append(flips(bit));
      return projection;
    });
    made.set(feed);
    feed.append(opened(5, 1));
    feed.append(Cluster.Event.newBuilder()
                    .setKind(Cluster.Event.Kind.INDEX_COMPLETE)
                    .setRegionId(5)
                    .setIndexId(1)
                    .setGeneration(1)
                    .setGeometry(Cluster.Geometry.newBuilder().setSlices(1).setSlicePositions(64))
                    .setLayers(1)
                    .setMin(tamis.shaded.protobuf.ByteString.EMPTY)
                    .setMax(tamis.shaded.protobuf.ByteString.copyFrom(new byte[] {(byte) 0xff}))
                    .setHasRange(true));
    FeedCopy copy = new FeedCopy(1);
    for (int i = 0; i < 2; ++i) {
      long sent = System.nanoTime();
      copy.apply(feed.poll(copy.request(0), () -> System.nanoTime() + 1000 * SECOND), sent);
    }
    assertEquals(3, feed.last());
    assertFalse(copy.excludes(5, 1, Hash.of(value, 1), value));
    byte[] other = encoded("other");
    assertTrue(geometry.position(Hash.of(other, 1), 0) != bit);
    assertTrue(copy.excludes(5, 1, Hash.of(other, 1), other));
  }
}
