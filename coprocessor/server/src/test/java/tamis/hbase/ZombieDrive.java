package tamis.hbase;

import java.io.IOException;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Hbck;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.master.procedure.RSProcedureDispatcher;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.feed.FeedCopy;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.shaded.protobuf.ByteString;
import tamis.table.ByteWriter;
import tamis.table.Codec;
import tamis.table.Hash;
import tamis.table.Key;
import tamis.table.Value;

/**
 * A server loses its regions without knowing it: paused beyond its session, or cut off from the master, who then
 * expires it although its session lives, or is told to. Meanwhile one client puts a new value after the other, and two
 * others speak to the old server alone: one searches it for the last value that was acknowledged, one is a coordinator
 * that listens to it. An answer without that value, or a region left out, is a row missed.
 *
 *   ZombieDrive HBASE_LOCAL DIRECTORY pause|cut
 *
 * The cluster needs --hdfs, and --cuts for "cut"; a long hbase.regionserver.msginterval keeps a server from hearing of
 * its end by its own report.
 */
public final class ZombieDrive {
  private static final TableName NAME = TableName.valueOf("tamis_zombie");

  private final LocalCluster cluster;
  private final Connection connection;
  private final AtomicLong acknowledged = new AtomicLong();
  private final AtomicLong answers = new AtomicLong();
  private final AtomicLong refusals = new AtomicLong();
  private final AtomicLong late = new AtomicLong();
  private final AtomicLong missed = new AtomicLong();
  private final AtomicLong leases = new AtomicLong();
  private final AtomicLong leftOut = new AtomicLong();
  private final FeedCopy copy = new FeedCopy(11);
  private volatile boolean stop;
  private volatile boolean hold; // a write that fails in the log would end the zombie
  private volatile long movedAt; // number of values when the region was elsewhere
  private HRegionLocation old;

  private ZombieDrive(LocalCluster cluster, Connection connection) {
    this.cluster = cluster;
    this.connection = connection;
  }

  public static void main(String[] args) {
    org.apache.hadoop.conf.Configuration conf = HBaseConfiguration.create();
    conf.setInt("hbase.client.retries.number", 50);
    conf.setInt("hbase.rpc.timeout", 4000);
    DriveEnd.exit(() -> {
      try (Connection connection = ConnectionFactory.createConnection(conf)) {
        return new ZombieDrive(new LocalCluster(args[0], args[1]), connection).run(args[2]);
      }
    });
  }

  private static byte[] value(long n) {
    return Bytes.toBytes("x" + n);
  }

  private static byte[] encoded(byte[] value) {
    ByteWriter out = new ByteWriter();
    Codec.appendIndexed(Value.text(value), out);
    return out.toBytes();
  }

  private void put() {
    try (Table table = connection.getTable(NAME)) {
      while (!stop) {
        if (hold) {
          pause();
          continue;
        }
        long n = acknowledged.get() + 1;
        try {
          table.put(new Put(value(n)).addColumn(RegionForTest.F, Bytes.toBytes("a"), value(n)));
        } catch (IOException e) {
          continue;
        }
        acknowledged.set(n);
        byte[] first = encoded(value(n));
        if (!copy.excludes(IndexedRegion.idOf(old.getRegion().getEncodedName()), 1, Hash.of(first, 1), first)) continue;
        leftOut.incrementAndGet();
      }
    } catch (IOException e) {
      e.printStackTrace();
    }
  }

  private byte[] ask(String method, byte[] request) throws IOException {
    return ServerCalls.callDirectly(connection, old.getServerName(), old.getRegion().getRegionName(), method, request);
  }

  private Cluster.SearchRequest search(long n) {
    byte[] low = encoded(value(n));
    Cluster.IndexRange range = Cluster.IndexRange.newBuilder()
                                   .setLow(ByteString.copyFrom(low))
                                   .setHigh(ByteString.copyFrom(Key.prefixEnd(low)))
                                   .build();
    tamis.pb.Table.Predicate predicate =
        tamis.pb.Table.Predicate.newBuilder()
            .setKind(tamis.pb.Table.Predicate.Kind.COMPARE)
            .setOp(tamis.pb.Table.Predicate.Op.EQ)
            .setColumn(1)
            .addValues(tamis.pb.Table.Value.newBuilder().setText(ByteString.copyFrom(value(n))))
            .build();
    return Cluster.SearchRequest.newBuilder()
        .setTableId(IndexedTable.tableId(NAME, 1))
        .setSchemaVersion(1)
        .setTimeoutNs(TimeUnit.SECONDS.toNanos(3))
        .addRanges(Cluster.SearchRange.newBuilder().setRegionId(IndexedRegion.idOf(old.getRegion().getEncodedName())))
        .addBranches(Cluster.Branch.newBuilder()
                         .setPredicate(predicate.toByteString())
                         .addStreams(Cluster.IndexStream.newBuilder().setIndexId(1).setEquality(true).addRanges(range)))
        .build();
  }

  private void search() {
    while (!stop) {
      long n = acknowledged.get();
      if (n == 0) continue;
      try {
        Cluster.RangeResult result =
            Cluster.SearchReply.parseFrom(ask("Search", search(n).toByteArray())).getResults(0);
        if (result.getError().getCode() != Cluster.Error.Code.OK) {
          refusals.incrementAndGet();
          continue;
        }
        answers.incrementAndGet();
        if (movedAt > 0) late.incrementAndGet();
        // More may follow where its time was over.
        if (result.getRowsCount() == 0 && result.getResume().isEmpty()) missed.incrementAndGet();
      } catch (IOException e) {
        pause();
      }
    }
  }

  private static void pause() {
    try {
      Thread.sleep(20);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void poll() {
    while (!stop) {
      try {
        long sent = System.nanoTime();
        Cluster.PollReply reply = Cluster.PollReply.parseFrom(
            ServerCalls.callDirectly(connection, old.getServerName(), old.getRegion().getRegionName(), "Poll",
                copy.request(TimeUnit.MILLISECONDS.toNanos(100)).toByteArray(), ServerCalls.POLL_PRIORITY));
        copy.apply(reply, sent);
        if (reply.getLeaseNs() > 0) leases.incrementAndGet();
      } catch (IOException e) {
        pause();
      }
    }
  }

  private HRegionLocation where() throws IOException {
    return connection.getRegionLocator(NAME).getRegionLocation(new byte[0], true);
  }

  private DriveEnd run(String how) throws Exception {
    try (Admin admin = connection.getAdmin()) {
      admin.balancerSwitch(false, true);
      tamis.pb.Table.Schema schema = RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build();
      TableForTest.makeAnew(admin, TableForTest.indexed(TableForTest.plain(NAME), schema));
      // Not beside hbase:meta, without which no client finds the region again.
      ServerName meta =
          connection.getRegionLocator(TableName.META_TABLE_NAME).getRegionLocation(new byte[0]).getServerName();
      for (ServerName server : admin.getRegionServers()) {
        if (server.equals(meta) || !where().getServerName().equals(meta)) continue;
        admin.move(where().getRegion().getEncodedNameAsBytes(), server);
      }
      new ServerCalls(connection, NAME, 1).awaitIndexes(1);
      old = where();
      String role = cluster.roleOf(old.getServerName().getPort());
      List<Thread> threads = new ArrayList<>();
      for (Runnable work : new Runnable[] {this::put, this::search, this::poll}) {
        Thread thread = new Thread(work);
        thread.start();
        threads.add(thread);
      }
      while (answers.get() < 20 || leases.get() < 5) Thread.sleep(20);
      if (how.equals("pause")) {
        cluster.run("pause", role);
      } else {
        hold = true;
        cluster.run("cut", "master", role);
        if (mastersGiveUp()) {
          admin.move(old.getRegion().getEncodedNameAsBytes()); // the master cannot tell it this
        } else {
          expire(old.getServerName());
        }
      }
      awaitMove();
      long before = acknowledged.get();
      movedAt = before;
      hold = false;
      while (acknowledged.get() < before + 5) Thread.sleep(20);
      if (how.equals("pause")) cluster.run("resume", role);
      Thread.sleep(8000); // it may go on answering
      stop = true;
      for (Thread thread : threads) thread.join(20_000);
      if (how.equals("cut")) cluster.run("heal");
      if (!cluster.stateOf(role).equals("up")) cluster.run("start", role);
      System.out.println(acknowledged + " values acknowledged, " + before
          + " of them before the region was elsewhere; the"
          + " old server answered " + answers + " searches, " + late + " of them after that, and refused " + refusals
          + "; it granted " + leases + " leases; missed by searches: " + missed + ", left out: " + leftOut);
      return missed.get() + leftOut.get() == 0 ? DriveEnd.GOOD : DriveEnd.ROW_MISSED;
    }
  }

  /** Whether this version's master expires a server that it cannot reach, although its session lives. */
  private static boolean mastersGiveUp() {
    for (Class<?> call : RSProcedureDispatcher.class.getDeclaredClasses()) {
      for (Field field : call.getDeclaredFields()) {
        if (field.getName().equals("RS_REMOTE_PROC_FAIL_FAST_LIMIT")) return true;
      }
    }
    return false;
  }

  /** HBCK2 does the same. */
  private void expire(ServerName server) throws IOException {
    try (Hbck hbck = connection.getHbck()) {
      hbck.scheduleServerCrashProcedures(Collections.singletonList(server));
    }
  }

  private void awaitMove() throws Exception {
    while (true) {
      try {
        HRegionLocation now = where();
        if (now.getServerName() != null && !now.getServerName().equals(old.getServerName())) return;
      } catch (IOException e) {
        // it is on its way
      }
      Thread.sleep(50);
    }
  }
}
