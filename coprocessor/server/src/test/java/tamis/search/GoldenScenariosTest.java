package tamis.search;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tamis.feed.FeedOptions;
import tamis.golden.GoldenFile;
import tamis.hbase.RegionForTest;
import tamis.index.Mutator;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.server.TestServer;
import tamis.shaded.protobuf.ByteString;
import tamis.table.Codec;
import tamis.table.Key;
import tamis.table.KeyFormat;
import tamis.table.Schema;
import tamis.table.Value;

/** A region does with searches and writes what the embedded cluster's region server does (tests/golden). */
class GoldenScenariosTest {
  private static final int BATCH = 500; // rows written at once, as the embedded cluster does

  private RegionForTest test;
  private IndexedRegion region;

  @BeforeEach
  void start() {
    TestServer.start(new FeedOptions());
  }

  @AfterEach
  void stop() throws Exception {
    close();
    TestServer.stop();
  }

  private void open(String schema) throws Exception {
    close();
    TableDescriptor descriptor = TableDescriptorBuilder.newBuilder(TableName.valueOf("t"))
                                     .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(RegionForTest.F).build())
                                     .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(RegionForTest.G).build())
                                     .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(IndexedTable.FAMILY)
                                                          .setMaxVersions(Integer.MAX_VALUE)
                                                          .setNewVersionBehavior(true)
                                                          .build())
                                     .setValue(IndexedTable.SCHEMA, GoldenFile.bytes(schema))
                                     .setCoprocessor(RegionForTest.observerDescriptor())
                                     .build();
    test = new RegionForTest(descriptor);
    region = test.indexed();
    TestServer.open(region);
  }

  private void close() throws IOException {
    if (region == null) return;
    TestServer.close(region);
    test.close();
    region = null;
  }

  private Schema schema() {
    return region.table.schema;
  }

  private Cluster.RegionMutateResult mutate(List<Cluster.Mutation> mutations) {
    return Mutator.mutate(region,
        Cluster.RegionMutations.newBuilder().setRegionId(region.id).addAllMutations(mutations).build(),
        schema().version);
  }

  private void put(List<Value[]> rows) throws Exception {
    boolean[] all = new boolean[schema().columns.length];
    Arrays.fill(all, true);
    for (int i = 0; i < rows.size(); i += BATCH) {
      List<Cluster.Mutation> puts = new ArrayList<>();
      for (Value[] row : rows.subList(i, Math.min(rows.size(), i + BATCH))) {
        puts.add(Cluster.Mutation.newBuilder()
                     .setKey(ByteString.copyFrom(KeyFormat.encode(schema(), row)))
                     .setRow(ByteString.copyFrom(Codec.encodeRow(schema(), row, all)))
                     .build());
      }
      Cluster.RegionMutateResult result = mutate(puts);
      assertEquals(Cluster.Error.Code.OK, result.getError().getCode(), result.getError().getMessage());
      for (Cluster.Error outcome : result.getResultsList()) {
        assertEquals(Cluster.Error.Code.OK, outcome.getCode(), outcome.getMessage());
      }
    }
    rows.clear();
  }

  /** The lines F, P and N of a search. */
  private List<String> search(Cluster.SearchRequest asked, long limit, String start, String end) throws Exception {
    Cluster.SearchRequest request =
        asked.toBuilder().setTableId(region.table.tableId).setSchemaVersion(schema().version).build();
    List<String> lines = new ArrayList<>();
    ByteString resume = ByteString.EMPTY;
    do {
      Cluster.RangeResult page = new Searcher(request, region.table, "here")
                                     .search(region,
                                         Cluster.SearchRange.newBuilder()
                                             .setRegionId(region.id)
                                             .setStart(ByteString.copyFrom(GoldenFile.bytes(start)))
                                             .setEnd(ByteString.copyFrom(GoldenFile.bytes(end)))
                                             .setResume(resume)
                                             .build(),
                                         limit, System.nanoTime() + TimeUnit.MINUTES.toNanos(1));
      StringBuilder rows = new StringBuilder("F");
      assertEquals(request.getGroups(), page.getGroups());
      for (Cluster.FoundRow found : page.getRowsList()) {
        if (page.getGroups()) {
          rows.append(" ").append(found.getCount()).append("*").append(GoldenFile.hex(found.getRow().toByteArray()));
          for (Cluster.Totals totals : found.getTotalsList()) {
            rows.append("/").append(GoldenFile.hex(totals.toByteArray()));
          }
          continue;
        }
        Value[] key = new Value[schema().columns.length];
        assertTrue(KeyFormat.decode(schema(), found.getKey().toByteArray(), key));
        rows.append(" ").append(GoldenFile.text(key[schema().key[0]]));
        if (request.getColumnsCount() > 0) rows.append("=").append(GoldenFile.hex(found.getRow().toByteArray()));
      }
      lines.add(rows.toString());
      Cluster.SearchCounters counters = page.getCounters();
      StringBuilder last = new StringBuilder("P " + page.getError().getCodeValue() + " " + counters.getEntriesRead()
          + " " + counters.getRowsRead() + " " + counters.getRowsFromEntries() + " " + counters.getRowsReturned() + " "
          + counters.getScannedRegions());
      for (Cluster.IndexUse use : counters.getUsesList()) {
        last.append(" ")
            .append(use.getIndexId())
            .append(":")
            .append(use.getLed())
            .append(":")
            .append(use.getJoined())
            .append(":")
            .append(use.getEntriesExpected())
            .append(":")
            .append(use.getEntriesRead());
      }
      lines.add(last.toString());
      resume = page.getResume();
      if (!resume.isEmpty()) {
        SearchPosition position = SearchPosition.parse(resume);
        lines.add("N " + position.branch + " " + SearchPositionTest.text(position) + " " + position.indexId + " "
            + GoldenFile.hex(position.last));
      }
    } while (!resume.isEmpty());
    return lines;
  }

  /** The lines O, R and E of a request to write. */
  private List<String> write(Cluster.RegionMutations mutations) throws Exception {
    List<String> lines = new ArrayList<>();
    Cluster.RegionMutateResult result = mutate(mutations.getMutationsList());
    lines.add("O " + result.getError().getCodeValue()
        + result.getResultsList().stream().map(outcome -> " " + outcome.getCodeValue()).collect(Collectors.joining()));
    Cluster.SearchRequest.Builder all =
        Cluster.SearchRequest.newBuilder()
            .setTableId(region.table.tableId)
            .setSchemaVersion(schema().version)
            .addBranches(Cluster.Branch.newBuilder().setPredicate(tamis.pb.Table.Predicate.newBuilder()
                                                                      .setKind(tamis.pb.Table.Predicate.Kind.TRUE)
                                                                      .build()
                                                                      .toByteString()));
    for (Schema.Column column : schema().columns) all.addColumns((int) column.id);
    Cluster.RangeResult rows = new Searcher(all.build(), region.table, "here")
                                   .search(region, Cluster.SearchRange.newBuilder().setRegionId(region.id).build(),
                                       1000, System.nanoTime() + TimeUnit.MINUTES.toNanos(1));
    for (Cluster.FoundRow found : rows.getRowsList()) {
      Value[] row = new Value[schema().columns.length];
      assertTrue(KeyFormat.decode(schema(), found.getKey().toByteArray(), row));
      Codec.decodeRow(schema(), found.getRow().toByteArray(), row);
      lines.add("R " + Arrays.stream(row).map(GoldenFile::text).collect(Collectors.joining(" ")));
    }
    List<List<Cell>> entries = test.scan(IndexedTable.FAMILY);
    for (Schema.Index index : schema().indexes) {
      byte[] prefix = region.keys.index(index.id);
      for (List<Cell> cells : entries) {
        byte[] entry = CellUtil.cloneRow(cells.get(0));
        if (!Key.startsWith(entry, prefix)) continue;
        lines.add("E " + index.id + " " + GoldenFile.hex(Arrays.copyOfRange(entry, prefix.length, entry.length)) + " "
            + GoldenFile.hex(IndexedTable.valueOf(cells.get(0))));
      }
    }
    return lines;
  }

  /** The lines from `at` on that tell what a request did. */
  private static List<String> outcome(List<String[]> lines, int at, String kinds) {
    List<String> outcome = new ArrayList<>();
    for (int i = at; i < lines.size() && kinds.contains(lines.get(i)[0]); ++i) {
      outcome.add(String.join(" ", lines.get(i)));
    }
    return outcome;
  }

  @Test
  void searches() throws Exception {
    List<String[]> lines = GoldenFile.lines("searches.txt");
    List<Value[]> rows = new ArrayList<>();
    for (int i = 0; i < lines.size(); ++i) {
      String[] line = lines.get(i);
      if (line[0].equals("T")) {
        open(line[1]);
      } else if (line[0].equals("R")) {
        rows.add(GoldenFile.row(line, 1, schema().columns.length));
      } else if (line[0].equals("S")) {
        put(rows);
        Cluster.SearchRequest request = Cluster.SearchRequest.parseFrom(GoldenFile.bytes(line[4]));
        assertEquals(String.join("\n", outcome(lines, i + 1, "FPN")),
            String.join("\n", search(request, Long.parseLong(line[1]), line[2], line[3])), "search " + i);
      }
    }
  }

  @Test
  void writes() throws Exception {
    List<String[]> lines = GoldenFile.lines("writes.txt");
    for (int i = 0; i < lines.size(); ++i) {
      String[] line = lines.get(i);
      if (line[0].equals("T")) {
        open(line[1]);
      } else if (line[0].equals("M")) {
        Cluster.RegionMutations mutations = Cluster.RegionMutations.parseFrom(GoldenFile.bytes(line[1]));
        assertEquals(
            String.join("\n", outcome(lines, i + 1, "ORE")), String.join("\n", write(mutations)), "request " + i);
      }
    }
  }
}
