package tamis.search;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.pb.Table;
import tamis.region.IndexedTable;
import tamis.shaded.protobuf.ByteString;

/** Rows are made of entries only where those prove them; IndexPropertyTest has the rule of marks. */
class EntryRowsTest {
  private static final int A = 2; // ids of columns
  private static final int B = 4;

  @AfterEach
  void reset() {
    Fault.only();
    EnvironmentEdgeManager.reset();
  }

  private static TableDescriptor descriptor() throws Exception {
    Table.Schema schema = RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build();
    return RegionForTest.descriptor(schema, 1);
  }

  private static TableDescriptor including() throws Exception {
    Table.Schema schema =
        RegionForTest.schema().addIndexes(RegionForTest.including(RegionForTest.index(1, "by_a", true, 1), 3)).build();
    return RegionForTest.descriptor(schema, 1);
  }

  private static void put(RegionForTest test, String row, String a) throws Exception {
    byte[] g = Bytes.toBytes("b");
    test.region.put(new Put(Bytes.toBytes(row))
                        .addColumn(RegionForTest.F, Bytes.toBytes("a"), Bytes.toBytes(a))
                        .addColumn(RegionForTest.G, g, g));
  }

  /** All rows with the column, by the index; then how many were made of entries. */
  private static List<String> search(RegionForTest test, int column) throws Exception {
    Table.Predicate all = Table.Predicate.newBuilder().setKind(Table.Predicate.Kind.TRUE).build();
    Cluster.IndexStream.Builder stream =
        Cluster.IndexStream.newBuilder().setIndexId(1).addRanges(Cluster.IndexRange.newBuilder());
    Cluster.SearchRequest request =
        Cluster.SearchRequest.newBuilder()
            .addBranches(Cluster.Branch.newBuilder().addStreams(stream).setPredicate(all.toByteString()))
            .addColumns(column)
            .build();
    Cluster.RangeResult page =
        new Searcher(request, test.indexed().table, "here")
            .search(test.indexed(), Cluster.SearchRange.newBuilder().setRegionId(test.indexed().id).build(), 100,
                System.nanoTime() + TimeUnit.MINUTES.toNanos(1));
    assertEquals("", page.getError().getMessage());
    List<String> found = new ArrayList<>();
    for (Cluster.FoundRow row : page.getRowsList()) {
      ByteString value = row.getRow();
      found.add(row.getKey().toStringUtf8() + "=" + (value.size() < 2 ? "" : value.substring(2).toStringUtf8()));
    }
    found.add("from entries: " + page.getCounters().getRowsFromEntries());
    return found;
  }

  @Test
  void entriesGiveTheColumnsOfTheirIndexAlone() throws Exception {
    try (RegionForTest test = new RegionForTest(descriptor())) {
      put(test, "r", "x");
      assertEquals(Arrays.asList("r=x", "from entries: 1"), search(test, A));
      assertEquals(Arrays.asList("r=b", "from entries: 0"), search(test, B));
      Fault.only(Fault.ROWS_FROM_ANY_ENTRY);
      assertEquals(Arrays.asList("r=", "from entries: 1"), search(test, B));
    }
  }

  @Test
  void entriesGiveTheirIncludedColumns() throws Exception {
    try (RegionForTest test = new RegionForTest(including())) {
      put(test, "r", "x");
      test.region.put(new Put(Bytes.toBytes("q")).addColumn(RegionForTest.F, Bytes.toBytes("a"), Bytes.toBytes("x")));
      assertEquals(Arrays.asList("q=", "r=b", "from entries: 2"), search(test, B));
      assertEquals(Arrays.asList("q=x", "r=x", "from entries: 2"), search(test, A));
    }
  }

  @Test
  void includedColumnIsNeverCut() throws Exception {
    char[] text = new char[1500];
    Arrays.fill(text, 'x');
    try (RegionForTest test = new RegionForTest(including())) {
      put(test, "r", "x");
      test.region.put(
          new Put(Bytes.toBytes("r")).addColumn(RegionForTest.G, Bytes.toBytes("b"), Bytes.toBytes(new String(text))));
      List<String> found = search(test, B);
      assertEquals("from entries: 1", found.get(1));
      assertEquals("r=".length() + 1500 + 1, found.get(0).length()); // the length has two bytes
    }
  }

  @Test
  void valueThatWasCutIsRead() throws Exception {
    char[] text = new char[1500];
    Arrays.fill(text, 'x');
    try (RegionForTest test = new RegionForTest(descriptor())) {
      put(test, "r", new String(text));
      List<String> whole = search(test, A);
      assertEquals("from entries: 0", whole.get(1));
      Fault.only(Fault.CUT_VALUES_TAKEN);
      List<String> cut = search(test, A);
      assertEquals("from entries: 1", cut.get(1));
      assertEquals(1500 - 1024, whole.get(0).length() - cut.get(0).length());
    }
  }

  @Test
  void expiredRowIsNotMadeOfItsEntry() throws Exception {
    long[] now = {1_700_000_000_000L};
    EnvironmentEdgeManager.injectEdge(() -> now[0]);
    TableDescriptor expiring =
        TableDescriptorBuilder.newBuilder(descriptor())
            .modifyColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(RegionForTest.F).setTimeToLive(10).build())
            .modifyColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(RegionForTest.G).setTimeToLive(10).build())
            .build();
    try (RegionForTest test = new RegionForTest(expiring)) {
      put(test, "r", "x");
      now[0] += 20_000;
      assertEquals(Arrays.asList("from entries: 0"), search(test, A));
      Fault.only(Fault.EXPIRING_ENTRIES_TAKEN);
      assertEquals(Arrays.asList("r=x", "from entries: 1"), search(test, A));
    }
  }

  @Test
  void rowsOfAttachedTablesAreRead() throws Exception {
    TableDescriptor attached = TableDescriptorBuilder.newBuilder(descriptor())
                                   .setValue(IndexedTable.ORIGIN, Bytes.toBytes("attached"))
                                   .build();
    try (RegionForTest test = new RegionForTest(attached)) {
      put(test, "r", "x");
      assertEquals(Arrays.asList("r=x", "from entries: 0"), search(test, A));
      Fault.only(Fault.ENTRIES_OF_ATTACHED_ROWS_TAKEN);
      assertEquals(Arrays.asList("r=x", "from entries: 1"), search(test, A));
    }
  }

  @Test
  void rowsAreReadWhereFilesWereLoaded() throws Exception {
    try (RegionForTest test = new RegionForTest(descriptor())) {
      put(test, "r", "x");
      test.indexed().loaded = true;
      assertEquals(Arrays.asList("r=x", "from entries: 0"), search(test, A));
      Fault.only(Fault.ENTRIES_OF_LOADED_ROWS_TAKEN);
      assertEquals(Arrays.asList("r=x", "from entries: 1"), search(test, A));
    }
  }
}
