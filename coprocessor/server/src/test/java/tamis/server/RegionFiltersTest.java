package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionObserver;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.ScanOptions;
import org.apache.hadoop.hbase.regionserver.Store;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tamis.feed.FeedOptions;
import tamis.feed.IndexFilter;
import tamis.filter.ScalableSplitCountingBloomFilter;
import tamis.filter.SplitGeometry;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.pb.Table;
import tamis.region.IndexedRegion;

/** The filters of three regions, for which there is no room together. */
class RegionFiltersTest {
  private static final byte[] A = Bytes.toBytes("a");
  private static final long COUNTERS = ScalableSplitCountingBloomFilter.layerBytes(SplitGeometry.of(0.001, 64));

  private final List<RegionForTest> tests = new ArrayList<>();
  private final List<IndexedRegion> open = new ArrayList<>();
  private final ArrayDeque<Runnable> work = new ArrayDeque<>();
  private long now;
  private long tick; // the time that each look at the clock takes
  private long limit = COUNTERS + 16;
  private final RegionFilters filters = new RegionFilters(() -> open, work::add, () -> limit, () -> now += tick);

  @BeforeEach
  void openRegions() throws Exception {
    TestServer.start(new FeedOptions());
    Table.Index index = RegionForTest.index(1, "by_a", true, 1).toBuilder().setExpectedValues(64).build();
    TableDescriptor table =
        TableDescriptorBuilder.newBuilder(RegionForTest.descriptor(RegionForTest.schema().addIndexes(index).build(), 1))
            .setCoprocessor(Unreadable.class.getName())
            .build();
    for (String start : new String[] {"a", "b", "c"}) {
      RegionForTest test = new RegionForTest(table, Bytes.toBytes(start), Bytes.toBytes(start + "z"));
      tests.add(test);
      test.region.put(new Put(Bytes.toBytes(start)).addColumn(RegionForTest.F, A, A));
      IndexedRegion region = test.indexed();
      TestServer.tell(region);
      open.add(region);
      filters.count(region, region.table.schema.index(1));
    }
  }

  @AfterEach
  void closeRegions() throws Exception {
    Unreadable.on = false;
    for (RegionForTest test : tests) {
      TestServer.close(test.indexed());
      test.close();
    }
    TestServer.stop();
  }

  private static IndexFilter filter(IndexedRegion region) {
    return region.filters.get(1);
  }

  private void giveRoom() {
    filters.giveRoom();
    work();
  }

  private void lookAt(IndexedRegion region) {
    filters.lookAt(region);
    work();
  }

  private void work() {
    while (!work.isEmpty()) work.poll().run();
  }

  @Test
  void filterWithoutRoomIsCountedOnceThereIsSome() throws Exception {
    assertTrue(filter(open.get(0)).isCounted() && !filter(open.get(0)).isOfBits());
    assertTrue(filter(open.get(1)).isCounted() && filter(open.get(1)).isOfBits());
    IndexedRegion last = open.get(2);
    assertTrue(filter(last).isMissing());
    giveRoom();
    assertTrue(filter(last).isMissing());
    open.remove(0); // it closes
    giveRoom();
    assertFalse(filter(last).isMissing());
    assertTrue(filter(last).isCounted() && filter(last).isOfBits());
    assertEquals(1, filter(last).entries());
  }

  /** Another coprocessor, by which no entry can be read while that is so. */
  public static final class Unreadable implements RegionCoprocessor, RegionObserver {
    static volatile boolean on;

    @Override
    public Optional<RegionObserver> getRegionObserver() {
      return Optional.of(this);
    }

    @Override
    public void preStoreScannerOpen(ObserverContext<RegionCoprocessorEnvironment> c, Store store, ScanOptions options)
        throws IOException {
      if (on && store.getColumnFamilyName().equals("tamis")) throw new IOException("a block of the file is missing");
    }
  }

  /** However often it is looked at: each time the whole index is read up to there. */
  @Test
  void unreadableFilterIsRetriedWithGrowingPauses() throws Exception {
    IndexedRegion region = open.get(2);
    Unreadable.on = true;
    open.remove(0); // there is room
    for (int failed = 1; failed <= 4; ++failed) {
      for (int i = 0; i < 3; ++i) lookAt(region);
      giveRoom();
      assertEquals(failed, region.recounts.failures());
      assertTrue(filter(region).isMissing());
      now += TimeUnit.SECONDS.toNanos(1) << (failed - 1);
    }
    Unreadable.on = false;
    lookAt(region);
    assertTrue(filter(region).isCounted());
    assertEquals(0, region.recounts.failures());
  }

  /** Each value that goes stays in bits alone, and who is counted again makes writers wait until that is known. */
  @Test
  void filterThatWearsSoonRestsAfterACount() throws Exception {
    IndexedRegion region = open.get(1);
    assertTrue(filter(region).isOfBits());
    limit = COUNTERS * 19 / 10; // room for more bits, and for no counters
    tick = TimeUnit.SECONDS.toNanos(1);
    long first = generation(region);
    putAndDelete(region, 200);
    lookAt(region);
    assertEquals(first + 1, generation(region));
    putAndDelete(region, 200);
    lookAt(region);
    assertEquals(first + 1, generation(region));
    now += TimeUnit.SECONDS.toNanos(20);
    lookAt(region);
    assertEquals(first + 2, generation(region));
  }

  private static long generation(IndexedRegion region) {
    return filter(region).project(Cluster.ColumnId.getDefaultInstance(), 8).getGeneration();
  }

  /** In two batches: who writes often looks at the filters. */
  private static void putAndDelete(IndexedRegion region, int rows) throws IOException {
    Mutation[] puts = new Mutation[rows];
    Mutation[] deletes = new Mutation[rows];
    for (int i = 0; i < rows; ++i) {
      byte[] row = Bytes.toBytes("b" + i);
      puts[i] = new Put(row).addColumn(RegionForTest.F, A, Bytes.toBytes(i));
      deletes[i] = new Delete(row);
    }
    ((HRegion) region.region).batchMutate(puts);
    ((HRegion) region.region).batchMutate(deletes);
  }

  /** A put is never turned away for that, and adds a layer where it must. */
  @Test
  void filterThatGrowsBeyondAllRoomIsGivenUp() throws Exception {
    IndexedRegion region = open.get(1);
    long most = (COUNTERS + 16) / 4 * 5;
    for (int i = 0; filters.bytes() <= 3 * most; ++i) { // others are smaller
      assertTrue(i < 100_000);
      Mutation[] puts = new Mutation[100];
      for (int row = 0; row < puts.length; ++row) {
        byte[] value = Bytes.toBytes(i * puts.length + row);
        puts[row] = new Put(Bytes.add(Bytes.toBytes("b"), value)).addColumn(RegionForTest.F, A, value);
      }
      ((HRegion) region.region).batchMutate(puts);
    }
    lookAt(region);
    assertTrue(filters.bytes() <= most, filters.bytes() + " bytes");
    assertTrue(filter(region).isMissing());
    limit = 100 * COUNTERS;
    giveRoom();
    assertTrue(filter(region).isCounted());
  }

  @Test
  void bitsAloneGetCountersAgain() throws Exception {
    IndexedRegion region = open.get(1);
    lookAt(region);
    assertTrue(filter(region).isOfBits());
    limit = 4 * COUNTERS;
    lookAt(region);
    assertFalse(filter(region).isOfBits());
    assertEquals(1, filter(region).entries());
    assertTrue(filter(open.get(2)).isCounted()); // on the way
    limit = COUNTERS + 16; // and memory is short again
    for (IndexedRegion each : open) lookAt(each);
    assertTrue(filters.bytes() <= COUNTERS + 16);
  }
}
