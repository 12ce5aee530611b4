package tamis.hbase;

import java.io.IOException;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.SnapshotType;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.pb.Cluster;
import tamis.region.IndexedTable;

/**
 * Changes of tables and their indexes, on a real cluster, while plain clients write: a table with rows becomes an
 * indexed one, gets and loses indexes, is split and merged, truncated, restored, cloned, loaded with files. After each
 * step a check compares all rows, entries and filters. The class path has the cluster's configuration.
 *
 *   DefinitionDrive [SEED]
 */
public final class DefinitionDrive {
  private static final TableName NAME = TableName.valueOf("tamis_definitions");
  private static final TableName CLONE = TableName.valueOf("tamis_definitions_clone");
  private static final String SNAPSHOT = "tamis_definitions_snapshot";
  private static final int ROWS = 3000;
  private static final byte[] A = Bytes.toBytes("a");
  private static final byte[] B = Bytes.toBytes("b");

  private final Connection connection;
  private final Admin admin;
  private final Random random;
  private final ServerCalls calls;
  private final AtomicReference<String> broken = new AtomicReference<>();
  private volatile boolean stop;
  private long version;

  private DefinitionDrive(Connection connection, Admin admin, long seed) {
    this.connection = connection;
    this.admin = admin;
    random = new Random(seed);
    calls = new ServerCalls(connection, NAME, 1);
  }

  public static void main(String[] args) throws Exception {
    long seed = args.length > 0 ? Long.parseLong(args[0]) : System.nanoTime();
    System.out.println("seed " + seed);
    org.apache.hadoop.conf.Configuration conf = HBaseConfiguration.create();
    conf.setInt("hbase.client.retries.number", 30);
    try (Connection connection = ConnectionFactory.createConnection(conf); Admin admin = connection.getAdmin()) {
      new DefinitionDrive(connection, admin, seed).run();
    }
    System.out.println("nothing is missing, nothing is over");
    System.exit(0);
  }

  private static byte[] key(int i) {
    return Bytes.toBytes(String.format("k%05d", i));
  }

  private Put put(int row) {
    return new Put(key(row))
        .addColumn(RegionForTest.F, A, Bytes.toBytes("v" + random.nextInt(50)))
        .addColumn(RegionForTest.G, B, Bytes.toBytes("w" + random.nextInt(5)));
  }

  private static tamis.pb.Table.Index index(int id) {
    switch (id) {
      case 1:
        return RegionForTest.index(1, "by_a", true, 1);
      case 2:
        return RegionForTest.index(2, "by_ba", false, 3, 1);
      default:
        return RegionForTest.index(id, "by_b", true, 3);
    }
  }

  /** The next version of the schema, with these indexes. */
  private tamis.pb.Table.Schema schema(int... indexes) {
    tamis.pb.Table.Schema.Builder schema = RegionForTest.schema().setVersion(++version);
    for (int id : indexes) schema.addIndexes(index(id));
    return schema.build();
  }

  private void change(int... indexes) throws IOException {
    admin.modifyTable(TableDescriptorBuilder.newBuilder(admin.getDescriptor(NAME))
                          .setValue(IndexedTable.SCHEMA, schema(indexes).toByteArray())
                          .build());
  }

  private static void refused(String what, Attempt attempt) throws Exception {
    try {
      attempt.run();
    } catch (IOException e) {
      System.out.println("refused, as it should be: " + what + ": " + e.getMessage().split("\n")[0]);
      return;
    }
    throw new IllegalStateException(what + " was not refused");
  }

  private interface Attempt {
    void run() throws Exception;
  }

  /** All indexes complete; as many entries as rows and indexes together say, or any number (-1). */
  private void expect(String after, ServerCalls calls, long rows, long entries) throws Exception {
    calls.awaitIndexes(version);
    Cluster.RegionCheck check = calls.check();
    System.out.println(after + ": " + check.getRows() + " rows, " + check.getEntries() + " entries, "
        + check.getFilterLookups() + " filter lookups, " + check.getGarbage() + " garbage");
    boolean sound = check.getMissingEntries() + check.getForeignEntries() + check.getMissingInFilter() == 0
        && check.getIncomplete() == 0 && check.getFilterLookups() == check.getEntries();
    boolean whole = (rows < 0 || check.getRows() == rows) && (entries < 0 || check.getEntries() == entries);
    if (!sound || !whole) throw new IllegalStateException("wrong after " + after + ": " + check);
    if (broken.get() != null) throw new IllegalStateException(broken.get());
  }

  private Thread writer(int from, int to) {
    long seed = random.nextLong();
    Thread thread = new Thread(() -> {
      Random random = new Random(seed);
      try (Table table = connection.getTable(NAME)) {
        while (!stop) {
          int row = from + random.nextInt(to - from);
          try {
            if (random.nextInt(5) == 0) {
              table.delete(new Delete(key(row)));
            } else {
              table.put(put(row));
            }
          } catch (org.apache.hadoop.hbase.TableNotEnabledException e) {
            return;
          } catch (IOException e) {
            // regions move
          }
        }
      } catch (Exception e) {
        broken.compareAndSet(null, e.toString());
      }
    });
    thread.setDaemon(true); // a failure ends the drive
    thread.start();
    return thread;
  }

  private void run() throws Exception {
    admin.balancerSwitch(false, true);
    TableForTest.drop(admin, CLONE);
    admin.deleteSnapshots(java.util.regex.Pattern.compile(SNAPSHOT));
    TableForTest.makeAnew(admin, TableForTest.plain(NAME).build(), key(ROWS / 3), key(ROWS / 3 * 2));
    try (Table table = connection.getTable(NAME)) {
      List<Put> puts = new java.util.ArrayList<>();
      for (int i = 0; i < ROWS; ++i) puts.add(put(i));
      table.put(puts);
    }
    admin.modifyTable(TableForTest.indexed(TableDescriptorBuilder.newBuilder(admin.getDescriptor(NAME)), schema(1)));
    expect("attach", calls, ROWS, ROWS);

    Thread one = writer(0, ROWS / 2);
    Thread two = writer(ROWS / 2, ROWS);
    change(1, 2);
    expect("index create, while others write", calls, -1, -1);
    byte[] stale = RegionForTest.schema().setVersion(version).addIndexes(index(1)).build().toByteArray();
    refused("a schema that does not follow",
        ()
            -> admin.modifyTable(TableDescriptorBuilder.newBuilder(admin.getDescriptor(NAME))
                                     .setValue(IndexedTable.SCHEMA, stale)
                                     .build()));
    calls.job(Cluster.StartJobRequest.Kind.REBUILD);
    expect("rebuild, while others write", calls, -1, -1);
    RegionInfo middle = admin.getRegions(NAME).get(1);
    admin.splitRegionAsync(middle.getRegionName(), key(ROWS / 2)).get();
    expect("split, while others write", calls, -1, -1);
    change(2, 3);
    expect("index drop and create, while others write", calls, -1, -1);
    List<RegionInfo> regions = admin.getRegions(NAME);
    admin
        .mergeRegionsAsync(
            new byte[][] {regions.get(1).getEncodedNameAsBytes(), regions.get(2).getEncodedNameAsBytes()}, false)
        .get();
    expect("merge, while others write", calls, -1, -1);

    refused("a snapshot without a flush", () -> admin.snapshot(SNAPSHOT, NAME, SnapshotType.SKIPFLUSH));
    admin.snapshot(SNAPSHOT, NAME);
    System.out.println("snapshot, while others write");
    loadFiles();
    expect("bulk load, while others write", calls, -1, -1);
    stop = true;
    one.join();
    two.join();
    Cluster.RegionCheck before = calls.check();

    admin.cloneSnapshot(SNAPSHOT, CLONE);
    ServerCalls clones = new ServerCalls(connection, CLONE, 1);
    expect("clone", clones, -1, -1);
    long cloned = clones.check().getRows();
    admin.disableTable(NAME);
    admin.restoreSnapshot(SNAPSHOT);
    admin.enableTable(NAME);
    expect("restore", calls, cloned, -1);
    if (before.getRows() == cloned) System.out.println("(the load is not in the snapshot)");
    admin.disableTable(NAME);
    admin.truncateTable(NAME, true);
    expect("truncate", calls, 0, 0);
    try (Table table = connection.getTable(NAME)) {
      for (int i = 0; i < 100; ++i) table.put(put(i));
    }
    expect("puts", calls, 100, 200);
    TableForTest.drop(admin, CLONE);
    admin.deleteSnapshot(SNAPSHOT);
    admin.snapshot(SNAPSHOT, NAME);
    TableForTest.drop(admin, NAME);
    admin.cloneSnapshot(SNAPSHOT, NAME);
    expect("clone under the name that the table had", calls, 100, 200);
    long last = version;
    change(2, 4);
    version = IndexedTable.of(admin.getDescriptor(NAME)).schema.version;
    if (version <= last + 1) throw new IllegalStateException("version " + version + " may have been there before");
    expect("index drop and create behind it", calls, 100, 200);
    TableForTest.drop(admin, NAME);
    admin.deleteSnapshot(SNAPSHOT);
  }

  /** Files with rows of all regions, some of them there already. */
  private void loadFiles() throws Exception {
    org.apache.hadoop.conf.Configuration conf = connection.getConfiguration();
    Path directory =
        new Path(org.apache.hadoop.hbase.util.CommonFSUtils.getRootDir(conf), "tamis-load-" + System.nanoTime());
    FileSystem files = directory.getFileSystem(conf);
    try (HFile.Writer writer = HFile.getWriterFactory(conf, new CacheConfig(conf))
                                   .withPath(files, new Path(directory, "f/file"))
                                   .withFileContext(new HFileContextBuilder().build())
                                   .create()) {
      for (int i = 0; i < ROWS * 2; i += 7) {
        writer.append(
            new KeyValue(key(i), RegionForTest.F, A, System.currentTimeMillis(), Bytes.toBytes("loaded" + i)));
      }
    }
    BulkLoadHFiles.create(conf).bulkLoad(NAME, directory);
    files.delete(directory, true);
  }
}
