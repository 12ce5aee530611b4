package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Random;
import java.util.UUID;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeyValueUtil;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionObserver;
import org.apache.hadoop.hbase.regionserver.OperationStatus;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKey;
import org.apache.hadoop.hbase.wal.WALKeyImpl;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import tamis.feed.FeedOptions;
import tamis.index.Checker;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.server.TestServer;

/** The part of an indexed table's log that HBase ships to another cluster, and its effect on an indexed table there. */
class ReplicationTest {
  private static final byte[] A = Bytes.toBytes("a");
  private static final byte[] N = Bytes.toBytes("n");

  /** The log's edits, as far as their families are shipped; null: nothing is recorded. */
  private static volatile List<List<Cell>> shipped;

  /** Hears of the log of its region. */
  public static final class Source implements RegionCoprocessor, RegionObserver {
    @Override
    public Optional<RegionObserver> getRegionObserver() {
      return Optional.of(this);
    }

    /** HBase takes out the cells of families that the edit's key names no scope of. */
    @Override
    public void preWALAppend(ObserverContext<RegionCoprocessorEnvironment> c, WALKey key, WALEdit edit) {
      NavigableMap<byte[], Integer> scopes = ((WALKeyImpl) key).getReplicationScopes();
      List<Cell> cells = new ArrayList<>();
      for (Cell cell : edit.getCells()) {
        if (scopes != null && scopes.containsKey(CellUtil.cloneFamily(cell))) {
          cells.add(KeyValueUtil.copyToNewKeyValue(cell));
        }
      }
      if (shipped != null && !cells.isEmpty()) shipped.add(cells);
    }
  }

  @AfterEach
  void reset() {
    shipped = null;
    EnvironmentEdgeManager.reset();
    TestServer.stop();
  }

  private static TableDescriptor target() throws IOException {
    return RegionForTest.descriptor(RegionForTest.schema()
                                        .addIndexes(RegionForTest.index(1, "by_a", true, 1))
                                        .addIndexes(RegionForTest.index(2, "by_na", false, 2, 1))
                                        .build(),
        1);
  }

  /** Its rows are shipped. */
  private static TableDescriptor source() throws IOException {
    TableDescriptor target = target();
    TableDescriptorBuilder source = TableDescriptorBuilder.newBuilder(target).setCoprocessor(Source.class.getName());
    for (byte[] family : new byte[][] {RegionForTest.F, RegionForTest.G}) {
      source.modifyColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(target.getColumnFamily(family))
                                    .setScope(HConstants.REPLICATION_SCOPE_GLOBAL)
                                    .build());
    }
    return source.build();
  }

  private static void write(RegionForTest source, Random random) throws IOException {
    byte[] row = Bytes.toBytes("r" + random.nextInt(6));
    byte[] value = Bytes.toBytes("v" + random.nextInt(3));
    switch (random.nextInt(8)) {
      case 0:
        source.region.delete(new Delete(row));
        break;
      case 1:
        source.region.delete(new Delete(row).addColumns(RegionForTest.F, A));
        break;
      case 2:
        source.region.delete(new Delete(row).addColumn(RegionForTest.F, A)); // the newest version
        break;
      case 3:
        source.region.increment(new Increment(row).addColumn(RegionForTest.F, N, 1));
        break;
      default:
        source.region.put(
            new Put(row).addColumn(RegionForTest.F, A, value).addColumn(RegionForTest.G, Bytes.toBytes("b"), value));
    }
  }

  /** Like HBase's sink: one mutation for each row and kind of cell, all of them at once. */
  private static void apply(RegionForTest target, List<List<Cell>> edits) throws IOException {
    List<Mutation> mutations = new ArrayList<>();
    for (List<Cell> edit : edits) {
      Cell last = null;
      for (Cell cell : edit) {
        boolean same = last != null && last.getTypeByte() == cell.getTypeByte() && CellUtil.matchingRows(last, cell);
        byte[] row = CellUtil.cloneRow(cell);
        if (!same) mutations.add(CellUtil.isDelete(cell) ? new Delete(row) : new Put(row));
        Mutation mutation = mutations.get(mutations.size() - 1);
        mutation.setClusterIds(Collections.singletonList(new UUID(1, 2)));
        if (mutation instanceof Delete) ((Delete) mutation).add(cell);
        else ((Put) mutation).add(cell);
        last = cell;
      }
    }
    for (OperationStatus status : target.region.batchMutate(mutations.toArray(new Mutation[0]))) {
      assertEquals(HConstants.OperationStatusCode.SUCCESS, status.getOperationStatusCode(), status.getExceptionMsg());
    }
  }

  private static List<String> rows(RegionForTest test) throws IOException {
    List<String> rows = new ArrayList<>();
    for (List<Cell> cells : test.scan(RegionForTest.F, RegionForTest.G)) {
      for (Cell cell : cells) {
        rows.add(Bytes.toString(CellUtil.cloneRow(cell)) + " " + RegionForTest.text(cell).replaceAll("#\\d+", ""));
      }
    }
    return rows;
  }

  private static void replicate(long seed) throws Exception {
    Random random = new Random(seed);
    long[] now = {1_700_000_000_000L};
    EnvironmentEdgeManager.injectEdge(() -> now[0]);
    TestServer.start(new FeedOptions());
    try (RegionForTest source = new RegionForTest(source()); RegionForTest target = new RegionForTest(target())) {
      IndexedRegion indexed = target.indexed();
      TestServer.open(indexed);
      for (int i = 0; i < 40; ++i) {
        shipped = new ArrayList<>();
        for (int k = random.nextInt(4); k >= 0; --k, ++now[0]) write(source, random);
        List<List<Cell>> edits = shipped;
        shipped = null;
        for (List<Cell> edit : edits) {
          for (Cell cell : edit) assertFalse(CellUtil.matchingFamily(cell, IndexedTable.FAMILY));
        }
        apply(target, edits);
        if (random.nextInt(4) == 0) apply(target, edits); // a client that got no answer sends it again
        if (random.nextInt(5) == 0) target.region.flush(true);
        tamis.pb.Cluster.RegionCheck check = Checker.check(indexed, rows -> true);
        String what = "seed " + seed + " step " + i + ": " + check;
        assertEquals(0, check.getMissingEntries() + check.getForeignEntries() + check.getMissingInFilter(), what);
        assertEquals(rows(source), rows(target), what);
      }
      assertTrue(target.entries().size() > 4);
    }
  }

  @Test
  void rowsAreShippedWithoutEntriesAndIndexedWhereTheyArrive() throws Exception {
    for (long seed = 1; seed <= 6; ++seed) replicate(seed);
  }
}
