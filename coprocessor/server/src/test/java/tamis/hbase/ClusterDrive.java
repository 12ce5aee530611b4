package tamis.hbase;

import com.google.protobuf.ByteString;
import com.google.protobuf.DynamicMessage;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.feed.FeedCopy;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.server.Endpoint;
import tamis.table.ByteWriter;
import tamis.table.Codec;
import tamis.table.Key;
import tamis.table.Value;

/**
 * Plain HBase clients write into an indexed table of a real cluster, while its regions are flushed, compacted, split,
 * merged and moved, and its servers killed; at the end, and now and then, every value is looked up
 * by every index and held against a scan of the rows. The class path has the cluster's configuration.
 *
 *   ClusterDrive SECONDS [SEED [poll [HBASE_LOCAL DIRECTORY]]]
 *
 * With "poll" a coordinator listens to all servers, and after each acknowledged put is asked whether it would leave the
 * row's region out. With a directory of tools/hbase-local, servers, master and ZooKeeper of that cluster fail meanwhile
 * (Outages); a server that has lost its regions goes on answering HBase's own reads for a moment, so that a row just
 * acknowledged may not be there for them: that is counted.
 */
public final class ClusterDrive {
  private static final TableName NAME = TableName.valueOf("tamis_drive");
  private static final int THREADS = 4;
  private static final int KEYS = 400;
  private static final int VALUES = 20;
  private static final int MOST_KEPT = 1000;
  private static final int SOUGHT = 20; // one in so many of those that are kept
  private static final String[] LETTERS = {"a", "s"};

  private final Connection connection;
  private final Random random;
  private final AtomicLong writes = new AtomicLong();
  private final AtomicLong failures = new AtomicLong();
  private final AtomicLong lookups = new AtomicLong();
  private volatile boolean stop;
  private volatile boolean pause;
  private final AtomicLong paused = new AtomicLong();
  private final Outages outages; // null: none
  /**
   * Rows that were acknowledged and are not written again, but deleted after a thousand later ones: the oldest first.
   */
  private final BlockingQueue<String> kept = new LinkedBlockingQueue<>();
  private final AtomicLong keptEver = new AtomicLong();
  private final AtomicLong staleReads = new AtomicLong();

  private ClusterDrive(Connection connection, long seed, LocalCluster cluster) {
    this.connection = connection;
    random = new Random(seed);
    outages = cluster == null ? null : new Outages(cluster, new Random(seed));
  }

  public static void main(String[] args) {
    long seconds = Long.parseLong(args[0]);
    long seed = args.length > 1 ? Long.parseLong(args[1]) : System.nanoTime();
    boolean poll = args.length > 2;
    System.out.println("seed " + seed);
    org.apache.hadoop.conf.Configuration conf = HBaseConfiguration.create();
    conf.setInt("hbase.client.retries.number", 30);
    LocalCluster cluster = args.length > 4 ? new LocalCluster(args[3], args[4]) : null;
    if (cluster != null) conf.setInt("hbase.rpc.timeout", 5000); // one that sleeps is not waited for
    DriveEnd.exit(() -> {
      try (Connection connection = ConnectionFactory.createConnection(conf)) {
        return new ClusterDrive(connection, seed, cluster).run(seconds, poll);
      }
    });
  }

  private static tamis.pb.Table.Schema schema() {
    return RegionForTest.schema()
        .addIndexes(RegionForTest.index(1, "by_a", true, 1))
        .addIndexes(RegionForTest.index(2, "by_n", true, 2))
        .addIndexes(RegionForTest.index(3, "by_s", true, 4))
        .addIndexes(RegionForTest.index(4, "by_ba", false, 3, 1))
        .build();
  }

  private DriveEnd run(long seconds, boolean poll) throws Exception {
    try (Admin admin = connection.getAdmin()) {
      admin.balancerSwitch(false, true);
      TableForTest.makeAnew(admin, TableForTest.indexed(TableForTest.plain(NAME), schema()), key(130), key(260));
      List<Thread> threads = new ArrayList<>();
      if (poll) {
        Thread thread = new Thread(this::pollAll);
        thread.setDaemon(true);
        thread.start();
      }
      for (int i = 0; i < THREADS; ++i) {
        long seed = random.nextLong();
        int writer = i;
        Thread thread = new Thread(() -> write(writer, new Random(seed)));
        thread.start();
        threads.add(thread);
      }
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
      boolean good = true;
      while (good && System.nanoTime() - end < 0) {
        Thread outage = beginOutage();
        for (int i = 0; i < 4; ++i) {
          mishap(admin);
          Thread.sleep(300);
        }
        outage.join();
        if (outageFailed) return DriveEnd.FAILED;
        pause = true;
        while (paused.get() < THREADS) Thread.sleep(5);
        good = check();
        pause = false;
      }
      stop = true;
      pause = false;
      for (Thread thread : threads) thread.join();
      good = good && check() && leftOut.get() == 0;
      if (outages == null) good = good && staleReads.get() == 0;
      System.out.println(keptEver + " rows put once, " + staleReads + " not there for a read at once");
      if (poll) System.out.println(excluded + " times a region could be left out, " + leftOut + " times wrongly");
      System.out.println(writes + " writes, " + failures + " failed or unknown, " + lookups
          + " lookups: " + (good ? "nothing missed, nothing else found" : "WRONG"));
      return good ? DriveEnd.GOOD : DriveEnd.ROW_MISSED;
    }
  }

  private static byte[] key(int i) {
    return Bytes.toBytes(String.format("k%05d", i));
  }

  // ---- Writes

  // ---- A coordinator

  private final Map<String, FeedCopy> copies = new java.util.concurrent.ConcurrentHashMap<>();
  private final AtomicLong excluded = new AtomicLong();
  private final AtomicLong leftOut = new AtomicLong();

  /** A thread for each server, found through the regions. */
  private void pollAll() {
    while (!stop) {
      try {
        Map<String, HRegionLocation> servers = new TreeMap<>();
        for (HRegionLocation location : connection.getRegionLocator(NAME).getAllRegionLocations()) {
          if (location.getServerName() != null) servers.put(location.getServerName().getServerName(), location);
        }
        servers.forEach((server, location) -> regionsOf.put(server, location));
        for (String server : servers.keySet()) {
          if (copies.containsKey(server)) continue;
          FeedCopy copy = new FeedCopy(random.nextLong());
          copies.put(server, copy);
          Thread thread = new Thread(() -> pollOne(server, copy));
          thread.setDaemon(true);
          thread.start();
        }
        Thread.sleep(500);
      } catch (Exception e) {
        // regions are on their way
      }
    }
  }

  private final Map<String, HRegionLocation> regionsOf = new java.util.concurrent.ConcurrentHashMap<>();

  private void pollOne(String server, FeedCopy copy) {
    int failed = 0;
    while (!stop && failed < 200) {
      try {
        long sent = System.nanoTime();
        byte[] reply = new ServerCalls(connection, NAME, 1)
                           .poll(regionsOf.get(server).getRegion().getStartKey(),
                               copy.request(TimeUnit.MILLISECONDS.toNanos(300)).toByteArray());
        Cluster.PollReply parsed = Cluster.PollReply.parseFrom(reply);
        // Any server may have answered, if the region has moved; the copy is of this one.
        if (!server.endsWith("," + parsed.getStartCode())) throw new IOException("another server");
        copy.apply(parsed, sent);
        failed = 0;
      } catch (Throwable e) {
        if (e instanceof AssertionError) e.printStackTrace();
        ++failed;
        try {
          Thread.sleep(100);
        } catch (InterruptedException interrupted) {
          return;
        }
      }
    }
  }

  /**
   * Whether a coordinator would leave out the row, which only its writer writes. Where the same
   * millisecond had a delete before the put, HBase shows that, and the value is rightly not to be found.
   */
  private void ask(Table table, byte[] row, String column, byte[] value) throws IOException {
    if (copies.isEmpty()) return;
    int index = column.equals("a") ? 1 : 3;
    ByteWriter encoded = new ByteWriter();
    Codec.appendIndexed(Value.text(value), encoded);
    byte[] first = encoded.toBytes();
    byte[] absent = Bytes.add(new byte[] {2}, Bytes.toBytes("v1~nothing has it"), new byte[] {0, 1});
    int tableId = IndexedTable.tableId(NAME, 1);
    for (Map.Entry<String, FeedCopy> copy : copies.entrySet()) {
      boolean excluded = copy.getValue().excludesRow(tableId, row, index, tamis.table.Hash.of(first, index), first);
      if (excluded && Arrays.equals(value, table.get(new Get(row)).getValue(RegionForTest.F, Bytes.toBytes(column)))) {
        leftOut.incrementAndGet();
        System.out.println("LEFT OUT by the copy of " + copy.getKey() + ": " + column + " of " + Bytes.toString(row));
      }
      if (copy.getValue().excludesRow(tableId, row, index, tamis.table.Hash.of(absent, index), absent))
        this.excluded.incrementAndGet();
    }
  }

  private void write(int writer, Random random) {
    try (Table table = connection.getTable(NAME)) {
      while (!stop) {
        if (pause) {
          paused.incrementAndGet();
          while (pause && !stop) Thread.sleep(5);
          paused.decrementAndGet();
        }
        try {
          write(table, writer, random);
          writes.incrementAndGet();
        } catch (IOException e) {
          failures.incrementAndGet();
        }
      }
    } catch (Exception e) {
      e.printStackTrace();
    }
  }

  private static Mutation mutation(byte[] row, Random random) {
    if (random.nextInt(3) > 0) {
      Put put = new Put(row);
      put.addColumn(
          RegionForTest.F, Bytes.toBytes(LETTERS[random.nextInt(2)]), Bytes.toBytes("v" + random.nextInt(VALUES)));
      if (random.nextBoolean())
        put.addColumn(RegionForTest.G, Bytes.toBytes("b"), Bytes.toBytes("v" + random.nextInt(VALUES)));
      if (random.nextInt(5) == 0) put.setDurability(Durability.SKIP_WAL);
      return put;
    }
    Delete delete = new Delete(row);
    switch (random.nextInt(5)) {
      case 0:
        break;
      case 1:
        delete.addColumn(RegionForTest.F, Bytes.toBytes("a"));
        break;
      case 2:
        delete.addColumns(RegionForTest.G, Bytes.toBytes("b"));
        break;
      case 3:
        delete.addFamily(RegionForTest.F, System.currentTimeMillis() - random.nextInt(200));
        break;
      default:
        delete.addFamilyVersion(RegionForTest.F, System.currentTimeMillis() - random.nextInt(20));
    }
    return delete;
  }

  /** Rows are one writer's, so that it knows what they hold. */
  private static byte[] key(int writer, Random random) {
    return key(random.nextInt(KEYS / THREADS) * THREADS + writer);
  }

  private void write(Table table, int writer, Random random) throws IOException {
    byte[] row = key(writer, random);
    switch (random.nextInt(8)) {
      case 0:
        table.increment(new Increment(row).addColumn(RegionForTest.F, Bytes.toBytes("n"), 1 + random.nextInt(3)));
        break;
      case 1: {
        RowMutations all = new RowMutations(row);
        for (int i = 0; i < 3; ++i) all.add(mutation(row, random));
        table.mutateRow(all);
        break;
      }
      case 2: {
        List<Mutation> batch = new ArrayList<>();
        for (int i = 0; i < 30; ++i) batch.add(mutation(key(writer, random), random));
        try {
          table.batch(batch, new Object[batch.size()]);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
        break;
      }
      case 3:
        writeOnce(table, row, Bytes.toBytes("v" + random.nextInt(VALUES)));
        break;
      default: {
        Mutation mutation = mutation(row, random);
        if (mutation instanceof Delete) {
          table.delete((Delete) mutation);
          break;
        }
        table.put((Put) mutation);
        for (Cell cell : mutation.getFamilyCellMap().get(RegionForTest.F)) {
          ask(table, row, Bytes.toString(org.apache.hadoop.hbase.CellUtil.cloneQualifier(cell)),
              org.apache.hadoop.hbase.CellUtil.cloneValue(cell));
        }
      }
    }
  }

  /** A value that no other row has: new to every filter. */
  private static byte[] ownOf(String row) {
    return Bytes.toBytes("v1~of " + row);
  }

  /** A row of its own, which is there from now on, for long. */
  private void writeOnce(Table table, byte[] near, byte[] value) throws IOException {
    String row = Bytes.toString(near) + "-" + keptEver.incrementAndGet();
    table.put(new Put(Bytes.toBytes(row))
                  .addColumn(RegionForTest.F, Bytes.toBytes("a"), value)
                  .addColumn(RegionForTest.F, Bytes.toBytes("s"), ownOf(row)));
    try {
      ask(table, Bytes.toBytes(row), "a", value);
      ask(table, Bytes.toBytes(row), "s", ownOf(row));
      if (table.get(new Get(Bytes.toBytes(row))).isEmpty()) staleReads.incrementAndGet();
    } finally {
      kept.add(row); // no sooner: another writer deletes what it finds here
    }
    if (kept.size() <= MOST_KEPT) return;
    String old = kept.poll();
    if (old != null) table.delete(new Delete(Bytes.toBytes(old)));
  }

  // ---- Mishaps

  private volatile boolean outageFailed;

  private Thread beginOutage() {
    Thread thread = new Thread(() -> {
      try {
        if (outages != null) outages.next();
      } catch (Exception e) {
        e.printStackTrace();
        outageFailed = true;
      }
    });
    thread.start();
    return thread;
  }

  private void mishap(Admin admin) {
    try {
      List<org.apache.hadoop.hbase.client.RegionInfo> regions = admin.getRegions(NAME);
      org.apache.hadoop.hbase.client.RegionInfo region = regions.get(random.nextInt(regions.size()));
      switch (random.nextInt(8)) {
        case 0:
          admin.flush(NAME);
          break;
        case 1:
          admin.flush(NAME, random.nextBoolean() ? RegionForTest.F : IndexedTable.FAMILY);
          break;
        case 2:
          admin.majorCompact(NAME);
          break;
        case 3:
          admin.compact(NAME);
          break;
        case 4:
        case 5:
          if (regions.size() < 8)
            admin.splitRegionAsync(region.getRegionName(), key(random.nextInt(KEYS))).get(30, TimeUnit.SECONDS);
          break;
        case 6: {
          int i = random.nextInt(regions.size() - 1);
          admin
              .mergeRegionsAsync(
                  new byte[][] {regions.get(i).getEncodedNameAsBytes(), regions.get(i + 1).getEncodedNameAsBytes()},
                  false)
              .get(30, TimeUnit.SECONDS);
          break;
        }
        default:
          admin.move(region.getEncodedNameAsBytes());
      }
    } catch (Exception e) {
      // A split at a border, a region that is on its way: another one follows.
    }
  }

  // ---- Lookups

  private boolean check() throws Exception {
    for (int tried = 0;; ++tried) {
      try {
        return checkOnce();
      } catch (IOException e) {
        if (tried == 200) throw e;
        Thread.sleep(300);
      }
    }
  }

  private boolean checkOnce() throws IOException {
    Map<String, Map<Value, TreeSet<String>>> wanted = new HashMap<>();
    int rows = 0;
    Set<String> lost = new TreeSet<>(kept);
    try (Table table = connection.getTable(NAME);
         ResultScanner scanner = table.getScanner(new Scan().addFamily(RegionForTest.F).addFamily(RegionForTest.G))) {
      for (Result result : scanner) {
        ++rows;
        lost.remove(Bytes.toString(result.getRow()));
        for (Cell cell : result.rawCells()) {
          String column = Bytes.toString(org.apache.hadoop.hbase.CellUtil.cloneQualifier(cell));
          byte[] bytes = org.apache.hadoop.hbase.CellUtil.cloneValue(cell);
          Value value = column.equals("n") ? Value.int64(Bytes.toLong(bytes)) : Value.text(bytes);
          wanted.computeIfAbsent(column, c -> new TreeMap<>())
              .computeIfAbsent(value, v -> new TreeSet<>())
              .add(Bytes.toString(result.getRow()));
        }
      }
    }
    if (!lost.isEmpty()) {
      System.out.println("acknowledged, and not there: " + lost);
      return false;
    }
    String[] columns = {"a", "n", "b", "s"};
    int[] positions = {1, 2, 3, 4};
    int[] indexes = {1, 2, 4, 3};
    long scanned = 0;
    for (int c = 0; c < columns.length; ++c) {
      Map<Value, TreeSet<String>> values = wanted.getOrDefault(columns[c], Collections.emptyMap());
      for (int v = -1; v < VALUES; ++v) {
        Value value = columns[c].equals("n") ? Value.int64(v) : Value.text("v" + v);
        TreeSet<String> found = new TreeSet<>();
        scanned += search(indexes[c], positions[c], value, found);
        TreeSet<String> expected = values.getOrDefault(value, new TreeSet<>());
        lookups.incrementAndGet();
        if (!expected.equals(found)) {
          System.out.println(columns[c] + " = " + value + ": wanted " + expected + ", found " + found);
          return false;
        }
      }
    }
    for (String row : kept) {
      if (random.nextInt(SOUGHT) > 0) continue;
      TreeSet<String> found = new TreeSet<>();
      scanned += search(3, 4, Value.text(ownOf(row)), found);
      lookups.incrementAndGet();
      if (found.equals(Collections.singleton(row))) continue;
      System.out.println("s of " + row + ": found " + found);
      return false;
    }
    System.out.println(rows + " rows, " + connection.getRegionLocator(NAME).getAllRegionLocations().size()
        + " regions, right; " + scanned + " of the regions asked were scanned");
    return true;
  }

  /** Adds the keys; returns how many regions were scanned. */
  private long search(int index, int column, Value value, TreeSet<String> found) throws IOException {
    ByteWriter low = new ByteWriter();
    Codec.appendIndexed(value, low);
    tamis.shaded.protobuf.ByteString from = tamis.shaded.protobuf.ByteString.copyFrom(low.toBytes());
    Cluster.IndexRange range = Cluster.IndexRange.newBuilder()
                                   .setLow(from)
                                   .setHigh(tamis.shaded.protobuf.ByteString.copyFrom(Key.prefixEnd(low.toBytes())))
                                   .build();
    tamis.pb.Table.Value.Builder constant = tamis.pb.Table.Value.newBuilder();
    if (value.type() == tamis.table.Type.INT64) {
      constant.setInt64(value.number());
    } else {
      constant.setText(tamis.shaded.protobuf.ByteString.copyFrom(value.bytes()));
    }
    tamis.pb.Table.Predicate predicate = tamis.pb.Table.Predicate.newBuilder()
                                             .setKind(tamis.pb.Table.Predicate.Kind.COMPARE)
                                             .setOp(tamis.pb.Table.Predicate.Op.EQ)
                                             .setColumn(column)
                                             .addValues(constant)
                                             .build();
    Cluster.Branch branch =
        Cluster.Branch.newBuilder()
            .setPredicate(predicate.toByteString())
            .addStreams(Cluster.IndexStream.newBuilder().setIndexId(index).setEquality(index != 4).addRanges(range))
            .build();
    long scanned = 0;
    // All regions of a server by one call, on any of its regions.
    Map<String, List<HRegionLocation>> servers = new TreeMap<>();
    for (HRegionLocation location : connection.getRegionLocator(NAME).getAllRegionLocations()) {
      if (location.getServerName() == null) throw new IOException("a region is nowhere");
      servers.computeIfAbsent(location.getServerName().getServerName(), s -> new ArrayList<>()).add(location);
    }
    for (List<HRegionLocation> regions : servers.values()) {
      Map<Long, tamis.shaded.protobuf.ByteString> left = new TreeMap<>();
      for (HRegionLocation location : regions) {
        left.put(IndexedRegion.idOf(location.getRegion().getEncodedName()), tamis.shaded.protobuf.ByteString.EMPTY);
      }
      while (!left.isEmpty()) {
        Cluster.SearchRequest.Builder request = Cluster.SearchRequest.newBuilder()
                                                    .setTableId(IndexedTable.tableId(NAME, 1))
                                                    .setSchemaVersion(1)
                                                    .addBranches(branch)
                                                    .setTimeoutNs(TimeUnit.SECONDS.toNanos(5));
        left.forEach(
            (id, resume) -> request.addRanges(Cluster.SearchRange.newBuilder().setRegionId(id).setResume(resume)));
        for (Cluster.RangeResult result :
            Cluster.SearchReply.parseFrom(call(regions.get(0), "Search", request.build().toByteArray()))
                .getResultsList()) {
          if (result.getError().getCode() != Cluster.Error.Code.OK)
            throw new IOException(result.getError().getMessage());
          for (Cluster.FoundRow row : result.getRowsList()) found.add(row.getKey().toStringUtf8());
          scanned += result.getCounters().getScannedRegions();
          left.remove(result.getRegionId());
          if (!result.getResume().isEmpty()) left.put(result.getRegionId(), result.getResume());
        }
      }
    }
    return scanned;
  }

  private byte[] call(HRegionLocation location, String name, byte[] request) throws IOException {
    byte[] row = location.getRegion().getStartKey();
    try (Table table = connection.getTable(NAME)) {
      com.google.protobuf.Descriptors.MethodDescriptor method =
          new Endpoint(null).getDescriptorForType().findMethodByName(name);
      DynamicMessage message =
          DynamicMessage.newBuilder(Endpoint.PAYLOAD).setField(Endpoint.BYTES, ByteString.copyFrom(request)).build();
      com.google.protobuf.Message answer;
      try {
        answer = table.coprocessorService(row).callBlockingMethod(
            method, null, message, DynamicMessage.getDefaultInstance(Endpoint.PAYLOAD));
      } catch (com.google.protobuf.ServiceException e) {
        throw new IOException(e);
      }
      return ((ByteString) answer.getField(answer.getDescriptorForType().findFieldByName("bytes"))).toByteArray();
    }
  }
}
