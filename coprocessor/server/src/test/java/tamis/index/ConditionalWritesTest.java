package tamis.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.shaded.protobuf.ByteString;

/** Writes by our own messages: what is answered is what was done. */
class ConditionalWritesTest {
  private static final byte[] ROW = Bytes.toBytes("r");

  @Test
  void aRowWhoseCellsHaveTimeStampZeroIsDeleted() throws Exception {
    try (RegionForTest test = RegionForTest.of(1, RegionForTest.index(1, "by_a", true, 1))) {
      IndexedRegion region = test.indexed();
      test.region.put(new Put(ROW).addColumn(RegionForTest.F, Bytes.toBytes("a"), 0, Bytes.toBytes("v")));
      assertEquals(1, Checker.check(region, rows -> true).getEntries());
      Cluster.RegionMutateResult result = Mutator.mutate(region,
          Cluster.RegionMutations.newBuilder()
              .setRegionId(region.id)
              .addMutations(
                  Cluster.Mutation.newBuilder().setKind(Cluster.Mutation.Kind.DELETE).setKey(ByteString.copyFrom(ROW)))
              .build(),
          1);
      assertEquals(Cluster.Error.Code.OK, result.getResults(0).getCode());
      assertTrue(test.region.get(new Get(ROW)).isEmpty());
      Cluster.RegionCheck check = Checker.check(region, rows -> true);
      assertEquals(0, check.getRows() + check.getEntries() + check.getMissingEntries());
    }
  }
}
