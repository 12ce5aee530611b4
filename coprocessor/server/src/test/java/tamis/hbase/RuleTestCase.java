package tamis.hbase;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.coprocessor.MasterCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import tamis.base.Fault;
import tamis.feed.FilterFeed;
import tamis.index.Checker;
import tamis.pb.Cluster;
import tamis.server.TestServer;

/**
 * The region that tests of rules share: its table has an index by column `a`. Each test runs with its rule, and with it
 * switched off, where it sees what would be lost.
 */
abstract class RuleTestCase {
  static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  static final byte[] A = Bytes.toBytes("a");

  @AfterEach
  void reset() {
    Fault.only();
    TestServer.stop();
  }

  static TableDescriptor descriptor() throws IOException {
    return TableDescriptorBuilder
        .newBuilder(RegionForTest.descriptor(
            RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build(), 1))
        .setRegionSplitPolicyClassName(IndexSplitPolicy.class.getName())
        .build();
  }

  static RegionForTest open(TableDescriptor descriptor) throws IOException {
    return new RegionForTest(descriptor);
  }

  static Put put(String row, String value) {
    return new Put(Bytes.toBytes(row)).addColumn(RegionForTest.F, A, Bytes.toBytes(value));
  }

  /** An action on a region. */
  interface Act {
    void on(RegionForTest test) throws IOException;
  }

  /** Rows that no search by the index would find though it is believed to be complete. */
  static long missed(RegionForTest test) throws Exception {
    return Checker.check(test.indexed(), rows -> true).getMissingEntries();
  }

  /** The context in which the master calls its hooks. */
  @SuppressWarnings("unchecked")
  static ObserverContext<MasterCoprocessorEnvironment> master(RegionForTest test) {
    Object environment = Proxy.newProxyInstance(RuleTestCase.class.getClassLoader(),
        new Class<?>[] {MasterCoprocessorEnvironment.class}, (proxy, method, with) -> test.conf);
    return (ObserverContext<MasterCoprocessorEnvironment>) Proxy.newProxyInstance(RuleTestCase.class.getClassLoader(),
        new Class<?>[] {ObserverContext.class}, (proxy, method, with) -> environment);
  }

  static Cluster.PollReply poll(FilterFeed feed, long[] now, long applied) throws InterruptedException {
    return feed.poll(Cluster.PollRequest.newBuilder()
                         .setCoordinator(1)
                         .setStartCode(applied == 0 ? 0 : 7)
                         .setApplied(applied)
                         .build(),
        () -> applied == 0 ? now[0] - 1 : now[0] + 10 * SECOND);
  }
}
