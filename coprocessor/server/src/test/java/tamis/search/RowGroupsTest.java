package tamis.search;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.pb.Table;
import tamis.shaded.protobuf.ByteString;

/** Equal rows are sent as groups in bounded memory; GoldenScenariosTest compares them with the other engine's. */
class RowGroupsTest {
  private static final int KEY = 1; // ids of columns
  private static final int A = 2;
  private static final int LONG = 8 << 10; // bytes of a text
  private static final int TEXTS = 600;
  private static final int ROWS = 2 * TEXTS;

  private static RegionForTest open() throws Exception {
    Table.Schema schema = RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build();
    return new RegionForTest(RegionForTest.descriptor(schema, 1), new byte[0], new byte[0]);
  }

  private static Cluster.RangeResult search(RegionForTest test, int column, ByteString resume) throws Exception {
    Table.Predicate all = Table.Predicate.newBuilder().setKind(Table.Predicate.Kind.TRUE).build();
    Cluster.SearchRequest request = Cluster.SearchRequest.newBuilder()
                                        .addBranches(Cluster.Branch.newBuilder().setPredicate(all.toByteString()))
                                        .addColumns(column)
                                        .setGroups(true)
                                        .build();
    return new Searcher(request, test.indexed().table, "here")
        .search(test.indexed(),
            Cluster.SearchRange.newBuilder().setRegionId(test.indexed().id).setResume(resume).build(), 1L << 40,
            System.nanoTime() + TimeUnit.MINUTES.toNanos(1));
  }

  /** Each page is full before the texts are twice the bound; together they count each row once. */
  @Test
  void pageEndsBeforeItsGroupsFillTheMemory() throws Exception {
    try (RegionForTest test = open()) {
      for (int i = 0; i < ROWS; ++i) {
        byte[] text = new byte[LONG];
        Arrays.fill(text, (byte) 'x');
        System.arraycopy(Bytes.toBytes(i % TEXTS), 0, text, 0, Integer.BYTES);
        test.region.put(
            new Put(Bytes.toBytes(String.format("r%04d", i))).addColumn(RegionForTest.F, Bytes.toBytes("a"), text));
      }
      Map<ByteString, Long> counts = new HashMap<>();
      int pages = 0;
      ByteString resume = ByteString.EMPTY;
      do {
        Cluster.RangeResult page = search(test, A, resume);
        assertEquals("", page.getError().getMessage());
        assertTrue(page.getSerializedSize() < (4 << 20) + 2 * LONG);
        for (Cluster.FoundRow group : page.getRowsList()) counts.merge(group.getRow(), group.getCount(), Long::sum);
        resume = page.getResume();
        ++pages;
      } while (!resume.isEmpty());
      assertTrue(pages > 1, pages + " pages");
      assertEquals(TEXTS, counts.size());
      for (long count : counts.values()) assertEquals(2, count);
    }
  }

  @Test
  void columnOfTheKeyIsRefused() throws Exception {
    try (RegionForTest test = open()) {
      Exception refused =
          org.junit.jupiter.api.Assertions.assertThrows(Exception.class, () -> search(test, KEY, ByteString.EMPTY));
      assertTrue(refused.getMessage().startsWith("groups of rows have no column of the key"), refused.getMessage());
    }
  }
}
