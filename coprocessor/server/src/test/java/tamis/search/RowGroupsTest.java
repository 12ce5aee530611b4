package tamis.search;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.pb.Table;
import tamis.shaded.protobuf.ByteString;
import tamis.table.ByteWriter;
import tamis.table.Codec;
import tamis.table.Value;

/** Equal rows are sent as groups in bounded memory; GoldenScenariosTest compares them with the other engine's. */
class RowGroupsTest {
  private static final int KEY = 1; // ids of columns
  private static final int A = 2;
  private static final int B = 4;
  private static final int LONG = 8 << 10; // bytes of a text
  private static final int TEXTS = 600;
  private static final int ROWS = 2 * TEXTS;

  private static RegionForTest open() throws Exception {
    Table.Schema schema = RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build();
    return new RegionForTest(RegionForTest.descriptor(schema, 1));
  }

  private static Cluster.RangeResult search(RegionForTest test, int column, ByteString resume) throws Exception {
    return search(test, request().addColumns(column), resume);
  }

  private static Cluster.SearchRequest.Builder request() {
    Table.Predicate all = Table.Predicate.newBuilder().setKind(Table.Predicate.Kind.TRUE).build();
    return Cluster.SearchRequest.newBuilder()
        .addBranches(Cluster.Branch.newBuilder().setPredicate(all.toByteString()))
        .setGroups(true);
  }

  private static Cluster.RangeResult search(
      RegionForTest test, Cluster.SearchRequest.Builder request, ByteString resume) throws Exception {
    Cluster.RangeResult page =
        new Searcher(request.build(), test.indexed().table, "here")
            .search(test.indexed(),
                Cluster.SearchRange.newBuilder().setRegionId(test.indexed().id).setResume(resume).build(), 1L << 40,
                System.nanoTime() + TimeUnit.MINUTES.toNanos(1));
    assertEquals("", page.getError().getMessage());
    return page;
  }

  /** Two rows of each text. */
  private static void putTexts(RegionForTest test) throws Exception {
    for (int i = 0; i < ROWS; ++i) {
      test.region.put(new Put(Bytes.toBytes(String.format("r%04d", i)))
                          .addColumn(RegionForTest.F, Bytes.toBytes("a"), text(i % TEXTS)));
    }
  }

  private static byte[] text(int i) {
    byte[] text = new byte[LONG];
    Arrays.fill(text, (byte) 'x');
    System.arraycopy(Bytes.toBytes(i), 0, text, 0, Integer.BYTES);
    return text;
  }

  /** Returns how many rows of each text all pages have. */
  private static Map<ByteString, Long> countInPages(RegionForTest test) throws Exception {
    Map<ByteString, Long> counts = new HashMap<>();
    int pages = 0;
    ByteString resume = ByteString.EMPTY;
    do {
      Cluster.RangeResult page = search(test, A, resume);
      assertTrue(page.getSerializedSize() < (4 << 20) + 2 * LONG);
      for (Cluster.FoundRow group : page.getRowsList()) counts.merge(group.getRow(), group.getCount(), Long::sum);
      resume = page.getResume();
      ++pages;
    } while (!resume.isEmpty());
    assertTrue(pages > 1, pages + " pages");
    return counts;
  }

  /** Each page is full before the texts are twice the bound; together they count each row once. */
  @Test
  void pageEndsBeforeItsGroupsFillTheMemory() throws Exception {
    try (RegionForTest test = open()) {
      putTexts(test);
      Map<ByteString, Long> counts = countInPages(test);
      assertEquals(TEXTS, counts.size());
      for (long count : counts.values()) assertEquals(2, count);
      Fault.only(Fault.GROUP_LOST_BETWEEN_PAGES);
      long rows = countInPages(test).values().stream().mapToLong(Long::longValue).sum();
      assertTrue(rows < ROWS, rows + " rows");
    } finally {
      Fault.only();
    }
  }

  /** The texts alone would fill more than a page. */
  @Test
  void totalsOfManyValuesTakeOnePage() throws Exception {
    try (RegionForTest test = open()) {
      putTexts(test);
      Cluster.RangeResult page = search(test, request().addColumns(A).addColumns(B).addTotals(A), ByteString.EMPTY);
      assertTrue(page.getTotals());
      assertEquals(ByteString.EMPTY, page.getResume());
      assertEquals(1, page.getRowsCount());
      assertEquals(ROWS, page.getRows(0).getCount());
      Cluster.Totals totals = page.getRows(0).getTotals(0);
      assertEquals(ROWS, totals.getValues());
      ByteWriter least = new ByteWriter();
      Codec.appendOrdered(Value.text(text(0)), least);
      assertEquals(ByteString.copyFrom(least.toBytes()), totals.getLeast());
    }
  }

  @Test
  void totalsOfAColumnThatIsNotWantedAreRefused() throws Exception {
    try (RegionForTest test = open()) {
      Cluster.SearchRequest.Builder request = request().addColumns(A).addTotals(B);
      Exception refused = assertThrows(Exception.class, () -> search(test, request, ByteString.EMPTY));
      assertEquals("totals are wanted of column 4, which is none of the wanted columns", refused.getMessage());
    }
  }

  @Test
  void columnOfTheKeyIsRefused() throws Exception {
    try (RegionForTest test = open()) {
      Exception refused = assertThrows(Exception.class, () -> search(test, KEY, ByteString.EMPTY));
      assertTrue(refused.getMessage().startsWith("groups of rows have no column of the key"), refused.getMessage());
    }
  }
}
