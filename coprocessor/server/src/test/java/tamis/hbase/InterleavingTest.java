package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.Collections;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.feed.FeedOptions;
import tamis.feed.FilterFeed;
import tamis.index.Checker;
import tamis.index.Mutator;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.shaded.protobuf.ByteString;

/** Interleavings of writes, polls and crashes that would lose a row if one rule were missing. */
class InterleavingTest extends RuleTestCase {
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

  @Test
  void anAnswerThatWasCutGrantsNoLease() throws Exception {
    assertFalse(cutReplyMisleads());
    Fault.only(Fault.LEASE_FOR_CUT_REPLY);
    assertTrue(cutReplyMisleads());
  }
}
