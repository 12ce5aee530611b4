package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.Collections;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.hbase.client.Increment;
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
import org.apache.hadoop.hbase.wal.WALEdit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.feed.FeedCopy;
import tamis.feed.FeedOptions;
import tamis.feed.FilterFeed;
import tamis.hbase.RegionForTest;
import tamis.index.Checker;
import tamis.index.IndexBuilder;
import tamis.pb.Table;
import tamis.region.IndexedRegion;
import tamis.table.ByteWriter;
import tamis.table.Codec;
import tamis.table.Hash;
import tamis.table.Value;

/** Another coprocessor writes in the midst of a batch, on its thread. Each test comes with the rule, and without. */
class NestedBatchTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final byte[] A = Bytes.toBytes("a");

  /** Writes `inner` while the row "before" is on its way, or when "behind" has been written. */
  public static final class Meddler implements RegionCoprocessor, RegionObserver {
    static volatile Put inner; // null: nothing

    @Override
    public Optional<RegionObserver> getRegionObserver() {
      return Optional.of(this);
    }

    private static void write(ObserverContext<RegionCoprocessorEnvironment> c) throws IOException {
      if (inner != null) c.getEnvironment().getRegion().put(new Put(inner));
    }

    @Override
    public void preBatchMutate(ObserverContext<RegionCoprocessorEnvironment> c,
        MiniBatchOperationInProgress<Mutation> batch) throws IOException {
      if (Bytes.toString(batch.getOperation(0).getRow()).equals("before")) write(c);
    }

    @Override
    public void postPut(ObserverContext<RegionCoprocessorEnvironment> c, Put put, WALEdit edit) throws IOException {
      if (Bytes.toString(put.getRow()).equals("behind")) write(c);
    }
  }

  @AfterEach
  void reset() {
    Fault.only();
    Meddler.inner = null;
    TestServer.stop();
  }

  private static RegionForTest open(Table.Index... indexes) throws IOException {
    Table.Schema.Builder schema = RegionForTest.schema();
    for (Table.Index index : indexes) schema.addIndexes(index);
    TableDescriptor descriptor = TableDescriptorBuilder.newBuilder(RegionForTest.descriptor(schema.build(), 1))
                                     .setCoprocessor(Meddler.class.getName())
                                     .build();
    return new RegionForTest(descriptor);
  }

  private static Put put(String row, String column, String value) {
    byte[] family = column.equals("b") ? RegionForTest.G : RegionForTest.F;
    return new Put(Bytes.toBytes(row)).addColumn(family, Bytes.toBytes(column), Bytes.toBytes(value));
  }

  private static long missed(RegionForTest test) throws Exception {
    return Checker.check(test.indexed(), rows -> true).getMissingEntries();
  }

  // ---- Between what an increment makes and its entry

  private static long missedAfterAnIncrement() throws Exception {
    try (RegionForTest test = open(RegionForTest.index(1, "by_n", true, 2))) {
      Meddler.inner = put("inner", "b", "x");
      test.region.increment(new Increment(Bytes.toBytes("before")).addColumn(RegionForTest.F, Bytes.toBytes("n"), 5));
      return missed(test);
    }
  }

  @Test
  void anIncrementKeepsItsEntry() throws Exception {
    assertEquals(0, missedAfterAnIncrement());
    Fault.only(Fault.NESTED_BATCH_SHARES_CONTEXT);
    assertEquals(1, missedAfterAnIncrement());
  }

  // ---- Between a commit and its wait

  /** Whether a coordinator with a lease leaves out what was acknowledged. */
  private boolean leftOut() throws Exception {
    FeedOptions options = new FeedOptions();
    options.leaseNs = 60 * SECOND;
    FilterFeed feed = TestServer.start(options);
    try (RegionForTest test = open(RegionForTest.index(1, "by_a", true, 1))) {
      IndexedRegion region = test.indexed();
      TestServer.open(region);
      FeedCopy copy = new FeedCopy(5);
      for (int i = 0; i < 3; ++i) poll(feed, copy, 0);
      assertTrue(excludes(copy, region));
      Meddler.inner = put("inner", "b", "x");
      AtomicReference<IOException> failed = new AtomicReference<>();
      Thread writer = new Thread(() -> {
        try {
          test.region.put(put("behind", "a", "new"));
        } catch (IOException e) {
          failed.set(e);
        }
      });
      long waited = TestServer.state().metrics.writesWaited.sum();
      writer.start();
      while (writer.isAlive() && TestServer.state().metrics.writesWaited.sum() == waited) Thread.yield();
      if (TestServer.state().metrics.writesWaited.sum() == waited) return excludes(copy, region);
      while (writer.isAlive()) poll(feed, copy, 0);
      assertNull(failed.get());
      return excludes(copy, region);
    }
  }

  private static void poll(FilterFeed feed, FeedCopy copy, long waitNs) throws InterruptedException {
    long sent = System.nanoTime();
    copy.apply(feed.poll(copy.request(waitNs), () -> System.nanoTime() + 100 * SECOND), sent);
  }

  private static boolean excludes(FeedCopy copy, IndexedRegion region) {
    ByteWriter out = new ByteWriter();
    Codec.appendIndexed(Value.text("new"), out);
    return copy.excludes(region.id, 1, Hash.of(out.toBytes(), 1), out.toBytes());
  }

  @Test
  void aPutWaitsForWhatItsRowNeeds() throws Exception {
    assertFalse(leftOut());
    Fault.only(Fault.NESTED_BATCH_SHARES_CONTEXT);
    assertTrue(leftOut());
  }

  // ---- In a write of our own

  private static long missedBesideABuilder() throws Exception {
    try (RegionForTest test = open(RegionForTest.index(1, "by_a", true, 1), RegionForTest.index(2, "by_s", true, 4))) {
      Meddler.inner = null;
      test.region.put(put("before", "a", "v"));
      Meddler.inner = put("inner", "a", "w");
      assertTrue(IndexBuilder.build(test.indexed(), Collections.singleton(2), rows -> true));
      return missed(test);
    }
  }

  @Test
  void writeBesideABuilderGetsAllOfItsEntries() throws Exception {
    assertEquals(0, missedBesideABuilder());
    Fault.only(Fault.NESTED_BATCH_SHARES_CONTEXT);
    assertEquals(1, missedBesideABuilder());
  }
}
