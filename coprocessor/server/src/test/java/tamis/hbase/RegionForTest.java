package tamis.hbase;

import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.Coprocessor;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeyValueUtil;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CoprocessorDescriptor;
import org.apache.hadoop.hbase.client.CoprocessorDescriptorBuilder;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.RegionCoprocessorHost;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import org.apache.hadoop.hbase.regionserver.RegionServerServices;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CommonFSUtils;
import org.apache.hadoop.hbase.wal.WALFactory;
import tamis.pb.Table;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.server.RegionIndexes;
import tamis.server.RegionServerState;
import tamis.shaded.protobuf.ByteString;
import tamis.table.ByteWriter;
import tamis.table.CellEncoding;
import tamis.table.CellMap;
import tamis.table.Codec;
import tamis.table.Type;
import tamis.table.Value;

/** A real HRegion of an indexed table, on this machine's disk, without a server around it. */
public final class RegionForTest implements AutoCloseable {
  public static final byte[] F = Bytes.toBytes("f");
  public static final byte[] G = Bytes.toBytes("g");

  public final Configuration conf;
  private TableDescriptor descriptor;
  private final java.nio.file.Path directory;
  private final Path root;
  private final RegionInfo info;
  private WALFactory wals;
  private final RegionServerServices server; // null: none
  public HRegion region;

  public RegionForTest(TableDescriptor descriptor, byte[] start, byte[] end) throws IOException {
    this(descriptor, start, end, null);
  }

  /** The only region of a table. */
  public RegionForTest(TableDescriptor descriptor) throws IOException {
    this(descriptor, new byte[0], new byte[0]);
  }

  /** The only region of a table with these indexes, which keeps so many versions. */
  public static RegionForTest of(int versions, Table.Index... indexes) throws IOException {
    return new RegionForTest(descriptor(schema().addAllIndexes(Arrays.asList(indexes)).build(), versions));
  }

  /** A text as index entries and filters have it. */
  public static byte[] encoded(String value) {
    ByteWriter out = new ByteWriter();
    Codec.appendIndexed(Value.text(value), out);
    return out.toBytes();
  }

  /** A region whose coprocessors find this server around it. */
  public RegionForTest(TableDescriptor descriptor, byte[] start, byte[] end, RegionServerServices server)
      throws IOException {
    this.descriptor = descriptor;
    this.server = server;
    SpoiltBuffers.use();
    // In memory where there is such a place: a log that is synced for each write waits for the disk of the machine.
    java.nio.file.Path memory = java.nio.file.Paths.get("/dev/shm");
    directory = Files.isWritable(memory) ? Files.createTempDirectory(memory, "tamis-region")
                                         : Files.createTempDirectory("tamis-region");
    conf = HBaseConfiguration.create();
    root = new Path("file://" + directory);
    conf.set("hbase.rootdir", root.toString());
    conf.setBoolean("hbase.unsafe.stream.capability.enforce", false);
    conf.setBoolean("hbase.hregion.memstore.mslab.enabled", false);
    conf.set("hbase.wal.provider", "filesystem");
    conf.setInt("hbase.hstore.compaction.min", 2);
    info = RegionInfoBuilder.newBuilder(descriptor.getTableName()).setStartKey(start).setEndKey(end).build();
    FileSystem.get(root.toUri(), conf)
        .mkdirs(new Path(CommonFSUtils.getTableDir(root, descriptor.getTableName()), info.getEncodedName()));
    open();
  }

  void open() throws IOException {
    wals = new WALFactory(conf, "test-" + System.nanoTime());
    region = HRegion.newHRegion(CommonFSUtils.getTableDir(root, descriptor.getTableName()), wals.getWAL(info),
        FileSystem.get(root.toUri(), conf), conf, info, descriptor, null);
    region.setCoprocessorHost(new RegionCoprocessorHost(region, server, conf));
    region.getMVCC().advanceTo(region.initialize()); // a server does so
    if (observer().indexed() != null) RegionIndexes.complete(observer().indexed());
  }

  public IndexObserver observer() {
    return region.getCoprocessorHost().findCoprocessor(IndexObserver.class);
  }

  public IndexedRegion indexed() {
    return observer().indexed();
  }

  /** The state of the region's server. */
  public RegionServerState state() {
    return observer().state();
  }

  public void reopen() throws IOException {
    region.close();
    wals.close();
    open();
  }

  /** Models a server on which the observer is not loaded. */
  void reopenUnobserved() throws IOException {
    region.close();
    wals.close();
    wals = new WALFactory(conf, "test-" + System.nanoTime());
    region = HRegion.newHRegion(CommonFSUtils.getTableDir(root, descriptor.getTableName()), wals.getWAL(info),
        FileSystem.get(root.toUri(), conf), conf, info, descriptor, null);
    region.initialize();
  }

  /** Drops the memory; the log brings back what it has. */
  void crash() throws IOException {
    wals.shutdown();
    Path logs = new Path(root, "WALs");
    FileSystem files = FileSystem.get(root.toUri(), conf);
    for (org.apache.hadoop.fs.FileStatus server : files.listStatus(logs)) {
      org.apache.hadoop.hbase.wal.WALSplitter.split(
          root, server.getPath(), new Path(root, "oldWALs"), files, conf, wals);
    }
    open();
  }

  public void reopen(TableDescriptor changed) throws IOException {
    descriptor = changed;
    reopen();
  }

  @Override
  public void close() throws IOException {
    region.close();
    wals.close();
    FileSystem.get(root.toUri(), conf).delete(root, true);
  }

  private static List<Cell> copiesOf(List<Cell> cells) {
    List<Cell> copies = new ArrayList<>();
    for (Cell cell : cells) copies.add(KeyValueUtil.copyToNewKeyValue(cell));
    return copies;
  }

  public List<List<Cell>> scan(byte[]... families) throws IOException {
    Scan scan = new Scan();
    for (byte[] family : families) scan.addFamily(family);
    List<List<Cell>> rows = new ArrayList<>();
    try (RegionScanner scanner = region.getScanner(scan)) {
      boolean more = true;
      while (more) {
        List<Cell> cells = new ArrayList<>();
        more = scanner.next(cells);
        if (!cells.isEmpty()) rows.add(copiesOf(cells));
      }
    }
    return rows;
  }

  /** "f:a@1003=v1", with the sequence id where it has one. */
  static String text(Cell cell) {
    String time = cell.getTimestamp() > 2_000_000_000_000L ? "MAX" : "" + cell.getTimestamp() % 1_000_000;
    return (cell.getType() == Cell.Type.Put ? "" : cell.getType() + " ") + Bytes.toString(CellUtil.cloneFamily(cell))
        + ":" + Bytes.toStringBinary(CellUtil.cloneQualifier(cell)) + "@" + time + "#" + cell.getSequenceId() + "="
        + Bytes.toStringBinary(CellUtil.cloneValue(cell));
  }

  /** All versions and tombstones of the row. */
  public String raw(byte[] row) throws IOException {
    Scan scan = new Scan().withStartRow(row).withStopRow(row, true).setRaw(true).readAllVersions();
    StringBuilder out = new StringBuilder();
    try (RegionScanner scanner = region.getScanner(scan)) {
      List<Cell> cells = new ArrayList<>();
      scanner.next(cells);
      for (Cell cell : cells) out.append(text(cell)).append(", ");
    }
    return out.toString();
  }

  public List<byte[]> entries() throws IOException {
    List<byte[]> keys = new ArrayList<>();
    for (List<Cell> row : scan(IndexedTable.FAMILY)) keys.add(CellUtil.cloneRow(row.get(0)));
    return keys;
  }

  static Table.Column column(int id, String name, Type type, byte[] family, CellEncoding encoding) {
    return Table.Column.newBuilder()
        .setId(id)
        .setName(name)
        .setType(Table.ColumnType.forNumber(type.number))
        .setFamily(ByteString.copyFrom(family))
        .setQualifier(ByteString.copyFromUtf8(name))
        .setEncodingValue(encoding.ordinal())
        .build();
  }

  /** The first two characters of a text. */
  public static Table.Column computed(int id, String name, int source) {
    return Table.Column.newBuilder()
        .setId(id)
        .setName(name)
        .setType(Table.ColumnType.COMPUTED)
        .setExpression(
            Table.Expression.newBuilder().setFunction(Table.Expression.Function.SUBSTR).setSource(source).setLength(2))
        .build();
  }

  public static Table.Index index(int id, String name, boolean skipsNull, Integer... columns) {
    return Table.Index.newBuilder()
        .setId(id)
        .setName(name)
        .addAllColumns(java.util.Arrays.asList(columns))
        .setFpr(0.001)
        .setExpectedValues(1000)
        .setSeed(id)
        .setNullsValue(skipsNull ? 1 : 0)
        .build();
  }

  /** The index with included columns. */
  public static Table.Index including(Table.Index index, Integer... columns) {
    return index.toBuilder()
        .setNulls(Table.Index.Nulls.EXTENDED)
        .setExtension(Table.Index.Extension.newBuilder()
                          .addRequired(Table.Index.Extension.Feature.INCLUDE)
                          .setNulls(index.getNulls())
                          .addAllInclude(java.util.Arrays.asList(columns)))
        .build();
  }

  /** The index with cells for ranges. */
  public static Table.Index withCells(Table.Index index, CellMap map) {
    return index.toBuilder()
        .setNulls(Table.Index.Nulls.EXTENDED)
        .setExtension(Table.Index.Extension.newBuilder()
                          .addRequired(Table.Index.Extension.Feature.RANGES)
                          .setNulls(index.getNulls())
                          .setCellMap(ByteString.copyFrom(map.toBytes())))
        .build();
  }

  /** The index, of the rows alone in which the condition is true. */
  public static Table.Index where(Table.Index index, Table.Predicate condition) {
    return index.toBuilder()
        .setNulls(Table.Index.Nulls.EXTENDED)
        .setExtension(Table.Index.Extension.newBuilder()
                          .addRequired(Table.Index.Extension.Feature.WHERE)
                          .setNulls(index.getNulls())
                          .setWhere(condition))
        .build();
  }

  /** The condition that a text column has the value. */
  public static Table.Predicate equal(int column, String value) {
    return Table.Predicate.newBuilder()
        .setKind(Table.Predicate.Kind.COMPARE)
        .setOp(Table.Predicate.Op.EQ)
        .setColumn(column)
        .addValues(Table.Value.newBuilder().setText(ByteString.copyFromUtf8(value)))
        .build();
  }

  public static Table.Predicate isNull(int column) {
    return Table.Predicate.newBuilder().setKind(Table.Predicate.Kind.IS_NULL).setColumn(column).build();
  }

  /** Key `k` of all bytes; a, s in f, n in f, b in g. */
  public static Table.Schema.Builder schema() {
    return Table.Schema.newBuilder()
        .setId(1)
        .setName("t")
        .setVersion(1)
        .setCells(true)
        .setNextColumnId(6)
        .setNextIndexId(10)
        .addColumns(Table.Column.newBuilder().setId(1).setName("k").setType(Table.ColumnType.BYTES).setNotNull(true))
        .addColumns(column(2, "a", Type.TEXT, F, CellEncoding.UTF8))
        .addColumns(column(3, "n", Type.INT64, F, CellEncoding.LONG))
        .addColumns(column(4, "b", Type.TEXT, G, CellEncoding.UTF8))
        .addColumns(column(5, "s", Type.TEXT, F, CellEncoding.UTF8))
        .addKey(0)
        .addKeyParts(
            Table.KeyPart.newBuilder().setForm(Table.KeyPart.Form.REST).setEncoding(Table.Column.Encoding.RAW));
  }

  public static CoprocessorDescriptor observerDescriptor() {
    return CoprocessorDescriptorBuilder.newBuilder(IndexObserver.class.getName())
        .setPriority(Coprocessor.PRIORITY_LOWEST)
        .build();
  }

  public static TableDescriptor descriptor(Table.Schema schema, int versions) throws IOException {
    return TableDescriptorBuilder.newBuilder(TableName.valueOf("t"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(F).setMaxVersions(versions).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(G).setMaxVersions(1).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(IndexedTable.FAMILY)
                             .setMaxVersions(Integer.MAX_VALUE)
                             .setNewVersionBehavior(true)
                             .build())
        .setValue(IndexedTable.SCHEMA, schema.toByteArray())
        .setCoprocessor(observerDescriptor())
        .build();
  }
}
