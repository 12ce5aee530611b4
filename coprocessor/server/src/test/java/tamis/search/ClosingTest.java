package tamis.search;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.pb.Table;
import tamis.region.IndexedRegion;
import tamis.region.ReadView;
import tamis.table.Key;
import tamis.table.Value;

/** A scanner that stays open keeps what it sees from being dropped, as long as the region is open. */
class ClosingTest {
  private int open;

  private static Object call(Object to, Method method, Object[] with) throws Throwable {
    try {
      return method.invoke(to, with);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  /** Its scanners close, and throw nevertheless; but for the first, which is the view's. */
  private Region breaking(Region region) {
    open = -1;
    return (Region) Proxy.newProxyInstance(
        Region.class.getClassLoader(), new Class<?>[] {Region.class}, (proxy, method, with) -> {
          Object made = call(region, method, with);
          if (!method.getName().equals("getScanner") || ++open == 0) return made;
          int number = open;
          return Proxy.newProxyInstance(
              Region.class.getClassLoader(), new Class<?>[] {RegionScanner.class}, (scanner, called, arguments) -> {
                Object result = call(made, called, arguments);
                if (!called.getName().equals("close")) return result;
                --open;
                throw new IOException("scanner " + number + " is broken");
              });
        });
  }

  @Test
  void allScannersAreClosedThoughOneOfThemThrows() throws Exception {
    Table.Schema schema = RegionForTest.schema()
                              .addIndexes(RegionForTest.index(1, "by_a", true, 1))
                              .addIndexes(RegionForTest.index(2, "by_n", true, 2))
                              .build();
    try (RegionForTest test = new RegionForTest(RegionForTest.descriptor(schema, 1))) {
      IndexedRegion region = test.indexed();
      for (String row : new String[] {"r1", "r2"}) {
        test.region.put(new Put(Bytes.toBytes(row))
                            .addColumn(RegionForTest.F, Bytes.toBytes("a"), Bytes.toBytes(row))
                            .addColumn(RegionForTest.F, Bytes.toBytes("n"), Bytes.toBytes(5L)));
      }
      Cluster.IndexStream values =
          SearchTest.stream(1, SearchTest.equal(Value.text("r1")), SearchTest.equal(Value.text("r2")));
      Cluster.IndexStream range =
          SearchTest.stream(2, SearchTest.equal(Value.int64(5))).toBuilder().setEquality(false).build();
      try (ReadView view = new ReadView(breaking(test.region))) {
        BranchStreams streams = new BranchStreams(view, region, new BranchStreams.Choice(), () -> false);
        for (Cluster.IndexStream plan : new Cluster.IndexStream[] {values, range}) {
          BranchStreams.Stream stream = new BranchStreams.Stream(
              plan, region.table.schema.index(plan.getIndexId()), null, true, Key.EMPTY, Key.EMPTY, Key.EMPTY, false);
          streams.add(stream);
          assertEquals(2, streams.sizeOf(stream, 100));
        }
        assertEquals(3, open);
        IOException thrown = assertThrows(IOException.class, streams::close);
        assertEquals(0, open);
        assertEquals("scanner 1 is broken", thrown.getMessage());
      }
    }
  }
}
