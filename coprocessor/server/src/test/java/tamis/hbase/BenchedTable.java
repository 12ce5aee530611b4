package tamis.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.table.CellEncoding;
import tamis.table.Type;

/**
 * One of the tables of PutBenchmark: rows of text columns, in two families in turn, of which the first ones are
 * indexed, by the jar, by the client, or not at all.
 */
final class BenchedTable {
  /** The keeper of the indexes. */
  enum Keeper {
    NONE,
    /** The client, as well as any client can: one mutation has the row, the new entries and tombstones of the old. */
    FLOOR,
    TAMIS
  }

  private static final byte[] ENTRIES = Bytes.toBytes("e");
  private static final int ROWS_OF_A_VALUE = 12; // in each region: so many that hardly ever none has it
  private static final AtomicLong NEXT_VALUE = new AtomicLong();
  private static final AtomicLong NEXT_ROW = new AtomicLong();

  final Keeper keeper;
  final int indexes;
  final TableName name;
  private final int rows;
  private final int regions;
  private final int columns;
  private final int values; // that are there

  BenchedTable(Keeper keeper, int indexes, int rows, int regions, int columns) {
    this.keeper = keeper;
    this.indexes = indexes;
    this.rows = rows;
    this.regions = regions;
    this.columns = columns;
    values = Math.max(1, rows / regions / ROWS_OF_A_VALUE);
    name = TableName.valueOf("written_" + label().replace(' ', '_'));
  }

  String label() {
    return keeper == Keeper.NONE ? "none" : keeper.name().toLowerCase(java.util.Locale.ROOT) + " " + indexes;
  }

  private static byte[] family(int column) {
    return column % 2 == 0 ? RegionForTest.F : RegionForTest.G;
  }

  private static byte[] qualifier(int column) {
    return Bytes.toBytes("c" + column);
  }

  private byte[] rowKey(int i) {
    return Bytes.toBytes(String.format("k%07d", i));
  }

  // ---- The table

  void create(Admin admin) throws IOException {
    TableDescriptorBuilder table = TableForTest.plain(name);
    if (keeper == Keeper.FLOOR) {
      table.setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(ENTRIES)
                                .setMaxVersions(Integer.MAX_VALUE)
                                .setNewVersionBehavior(true)
                                .build());
    }
    byte[][] splits = new byte[regions - 1][];
    for (int i = 0; i < splits.length; ++i) splits[i] = rowKey((int) ((long) rows * (i + 1) / regions));
    TableForTest.makeAnew(
        admin, keeper == Keeper.TAMIS ? TableForTest.indexed(table, schema()) : table.build(), splits);
  }

  private tamis.pb.Table.Schema schema() {
    tamis.pb.Table.Schema.Builder schema = RegionForTest.schema().setName(name.getNameAsString());
    while (schema.getColumnsCount() > 1) schema.removeColumns(1);
    for (int i = 0; i < columns; ++i) {
      schema.addColumns(RegionForTest.column(i + 2, "c" + i, Type.TEXT, family(i), CellEncoding.UTF8));
    }
    for (int i = 0; i < indexes; ++i) {
      schema.addIndexes(RegionForTest.index(i + 1, "by_" + i, true, i + 1).toBuilder().setExpectedValues(10_000));
    }
    return schema.setNextColumnId(columns + 2).setNextIndexId(indexes + 1).build();
  }

  void fill(Connection connection) throws IOException {
    Random random = new Random(7);
    try (Table table = connection.getTable(name)) {
      for (int i = 0; i < rows; i += 1000) {
        List<Put> puts = new ArrayList<>();
        for (int j = i; j < Math.min(rows, i + 1000); ++j) puts.add(put(rowKey(j), random, false));
        write(table, puts, false);
      }
    }
  }

  // ---- Writes

  byte[] anyRow(Random random) {
    return rowKey(random.nextInt(rows));
  }

  byte[] newRow(Random random) {
    return Bytes.add(anyRow(random), Bytes.toBytes(NEXT_ROW.incrementAndGet()));
  }

  /** A put of all columns; the values of indexed ones may be new. */
  Put put(byte[] row, Random random, boolean newValues) {
    Put put = new Put(row);
    for (int i = 0; i < columns; ++i) {
      boolean fresh = newValues && i < Math.max(1, indexes);
      put.addColumn(family(i), qualifier(i),
          Bytes.toBytes(fresh ? "n" + NEXT_VALUE.incrementAndGet() : "v" + random.nextInt(values)));
    }
    return put;
  }

  void write(Table table, List<Put> puts, boolean mayExist) throws IOException {
    if (keeper == Keeper.FLOOR) addEntries(table, puts, mayExist);
    if (puts.size() == 1) table.put(puts.get(0));
    else table.put(puts);
  }

  private void addEntries(Table table, List<Put> puts, boolean mayExist) throws IOException {
    List<Get> gets = new ArrayList<>();
    for (Put put : puts) {
      Get get = new Get(put.getRow());
      for (int i = 0; i < indexes; ++i) get.addColumn(family(i), qualifier(i));
      gets.add(get);
    }
    Result[] before = new Result[puts.size()];
    if (mayExist) before = puts.size() == 1 ? new Result[] {table.get(gets.get(0))} : table.get(gets);
    for (int i = 0; i < before.length; ++i) addEntries(puts.get(i), before[i]);
  }

  private void addEntries(Put put, Result before) throws IOException {
    for (int i = 0; i < indexes; ++i) {
      byte[] old = before == null ? null : before.getValue(family(i), qualifier(i));
      byte[] now = CellUtil.cloneValue(put.get(family(i), qualifier(i)).get(0));
      if (Arrays.equals(old, now)) continue;
      put.add(entry(put.getRow(), i, now, KeyValue.Type.Put));
      if (old != null) put.add(entry(put.getRow(), i, old, KeyValue.Type.DeleteColumn));
    }
  }

  /** The bytes that the key of one of our entries has, as the name of a column. */
  private static KeyValue entry(byte[] row, int index, byte[] value, KeyValue.Type type) {
    byte[] key = Bytes.add(Bytes.add(Bytes.toBytes(index + 1), value, new byte[2]), row);
    return new KeyValue(row, ENTRIES, key, HConstants.LATEST_TIMESTAMP, type, HConstants.EMPTY_BYTE_ARRAY);
  }

  // ---- Afterwards

  /** Rows by the values of an indexed column. */
  Map<String, Long> countRows(Connection connection, int index) throws IOException {
    Map<String, Long> counts = new TreeMap<>();
    Scan scan = new Scan().addColumn(family(index), qualifier(index)).setCaching(1000);
    try (Table table = connection.getTable(name); ResultScanner rows = table.getScanner(scan)) {
      for (Result row : rows) {
        for (Cell cell : row.rawCells()) counts.merge(Bytes.toString(CellUtil.cloneValue(cell)), 1L, Long::sum);
      }
    }
    return counts;
  }

  /** Throws unless the coordinator finds each row by the value of each indexed column. */
  long verify(Connection connection, CoordinatorProgram coordinator) throws IOException {
    long values = 0;
    for (int index = 0; index < indexes; ++index) {
      List<String> queries = new ArrayList<>();
      Map<String, Long> counts = countRows(connection, index);
      for (String value : counts.keySet()) {
        queries.add("SELECT count(*) FROM " + name.getNameAsString() + " WHERE c" + index + " = '" + value + "'");
      }
      List<Long> found = queries.isEmpty() ? Collections.emptyList() : coordinator.numbers(queries);
      int i = 0;
      for (Map.Entry<String, Long> wanted : counts.entrySet()) {
        long rows = found.get(i++);
        if (rows == wanted.getValue()) continue;
        throw new IOException(name + ": " + wanted.getValue() + " rows have " + wanted.getKey() + " in column c" + index
            + ", and a search finds " + rows);
      }
      values += counts.size();
    }
    return values;
  }
}
