package tamis.hbase;

import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.VersionInfo;
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
 * Fifty plain clients at a time put into a server with two handlers, while coordinators poll it as ours do, by a
 * priority that has handlers of its own. Each put must be acknowledged in the end, and each is of a value that is new,
 * so that it waits for all coordinators: none may leave its region out afterwards. Then all rows are found by key and
 * by the index, and the server's beans tell of just that.
 *
 *   HandlersDrive
 *
 * It ends with 3 when a coordinator leaves out what was acknowledged, with 2 when anything else is wrong: Java itself
 * ends with 1 for many reasons. The cluster is one server with hbase.regionserver.handler.count=2 and
 * hbase.regionserver.info.port=0.
 */
public final class HandlersDrive {
  private static final TableName NAME = TableName.valueOf("tamis_handlers");
  private static final byte[] A = Bytes.toBytes("a");
  private static final int WRITERS = 50;
  private static final int PUTS = 6; // puts of each kind
  private static final int COORDINATORS = 5; // one more than the server holds the polls of
  private static final int REGIONS = 4;
  private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(60);

  private final Connection connection;
  private final List<FeedCopy> copies = new ArrayList<>();
  private final Set<String> acknowledged = new ConcurrentSkipListSet<>();
  private final AtomicLong failed = new AtomicLong();
  private final AtomicLong leftOut = new AtomicLong();
  private final AtomicLong pollsRefused = new AtomicLong(); // polls that queue after the puts
  private final AtomicLong pollsAnswered = new AtomicLong();
  private volatile boolean stop;
  private HRegionLocation any;
  private long searches; // some of them again
  private long wrong;

  private HandlersDrive(Connection connection) {
    this.connection = connection;
  }

  public static void main(String[] args) {
    Configuration conf = HBaseConfiguration.create();
    conf.setInt("hbase.client.retries.number", 1000);
    conf.setInt("hbase.client.pause", 5);
    conf.setInt("hbase.client.pause.server.overloaded", 5);
    conf.setInt("hbase.client.operation.timeout", 120_000);
    DriveEnd.exit(() -> {
      try (Connection connection = ConnectionFactory.createConnection(conf)) {
        return new HandlersDrive(connection).run();
      }
    });
  }

  private static byte[] row(String name) {
    return Bytes.toBytes((char) ('a' + Math.floorMod(name.hashCode(), 20)) + name);
  }

  private static byte[] value(String name) {
    return Bytes.toBytes("value of " + name);
  }

  private static byte[] encoded(byte[] value) {
    ByteWriter out = new ByteWriter();
    Codec.appendIndexed(Value.text(value), out);
    return out.toBytes();
  }

  private static boolean leavesOut(FeedCopy copy, String name) {
    byte[] first = encoded(value(name));
    return copy.excludesRow(IndexedTable.tableId(NAME, 1), row(name), 1, Hash.of(first, 1), first);
  }

  private void poll(FeedCopy copy) {
    while (!stop) {
      try {
        long sent = System.nanoTime();
        Cluster.PollReply reply = Cluster.PollReply.parseFrom(
            ServerCalls.callDirectly(connection, any.getServerName(), any.getRegion().getRegionName(), "Poll",
                copy.request(TimeUnit.MILLISECONDS.toNanos(300)).toByteArray(), ServerCalls.POLL_PRIORITY));
        copy.apply(reply, sent);
        TimeUnit.NANOSECONDS.sleep(reply.getNextPollNs());
      } catch (IOException e) {
        System.out.println("a poll failed: " + e);
      } catch (InterruptedException e) {
        return;
      }
    }
  }

  /** A coordinator that leaves the priority of its polls out. Puts must not wait for it. */
  private void pollBehindPuts() {
    FeedCopy copy = new FeedCopy(99);
    while (!stop) {
      try {
        ServerCalls.callDirectly(
            connection, any.getServerName(), any.getRegion().getRegionName(), "Poll", copy.request(0).toByteArray());
        pollsAnswered.incrementAndGet();
      } catch (IOException e) {
        if (e.toString().contains("send it with a priority above 10")) pollsRefused.incrementAndGet();
      }
    }
  }

  private void write(int writer) {
    try (Table table = connection.getTable(NAME)) {
      for (int i = 0; i < PUTS; ++i) {
        String name = writer + "-" + i;
        try {
          table.put(new Put(row(name)).addColumn(RegionForTest.F, A, value(name)));
        } catch (IOException e) {
          failed.incrementAndGet();
          System.out.println("the put of " + name + " failed: " + e);
          continue;
        }
        acknowledged.add(name);
        for (FeedCopy copy : copies) {
          if (leavesOut(copy, name)) leftOut.incrementAndGet();
        }
      }
    } catch (IOException e) {
      failed.incrementAndGet();
    }
  }

  private static Thread started(Runnable work) {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  private DriveEnd run() throws Exception {
    ServerCalls calls = new ServerCalls(connection, NAME, 1);
    makeTable();
    calls.awaitIndexes(1);
    any = connection.getRegionLocator(NAME).getRegionLocation(row("any"));
    for (int i = 0; i < COORDINATORS; ++i) {
      FeedCopy copy = new FeedCopy(100 + i);
      copies.add(copy);
      started(() -> poll(copy));
    }
    // They know enough to leave out what is not there.
    for (FeedCopy copy : copies) {
      long deadline = System.nanoTime() + PATIENCE_NS;
      while (!leavesOut(copy, "nobody")) {
        if (System.nanoTime() - deadline >= 0) throw new IOException("a coordinator leaves nothing out after a minute");
        Thread.sleep(20);
      }
    }
    List<Thread> writers = new ArrayList<>();
    started(this::pollBehindPuts);
    for (int i = 0; i < WRITERS; ++i) {
      int writer = i;
      writers.add(started(() -> write(writer)));
    }
    for (Thread writer : writers) writer.join();
    System.out.println(acknowledged.size() + " puts acknowledged, " + failed + " failed; left out: " + leftOut);
    if (leftOut.get() > 0) return DriveEnd.ROW_MISSED;
    wrong += failed.get();
    System.out.println(pollsRefused + " polls refused for their priority, " + pollsAnswered + " answered");
    if (pollsRefused.get() == 0 || pollsAnswered.get() > 0) ++wrong;
    lookUpAll();
    Cluster.RegionCheck check = calls.check();
    if (check.getRows() != WRITERS * PUTS || check.getEntries() != WRITERS * PUTS || check.getProblemsCount() > 0
        || check.getMissingEntries() + check.getForeignEntries() + check.getMissingInFilter() + check.getIncomplete()
            > 0) {
      System.out.println("the check is not clean: " + check);
      ++wrong;
    }
    lookAtBeans();
    stop = true;
    System.out.println(wrong == 0 ? "all are found, and the beans tell of it" : wrong + " are WRONG");
    return wrong == 0 ? DriveEnd.GOOD : DriveEnd.FAILED;
  }

  private void makeTable() throws IOException {
    try (Admin admin = connection.getAdmin()) {
      tamis.pb.Table.Schema schema = RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build();
      TableForTest.makeAnew(admin, TableForTest.indexed(TableForTest.plain(NAME), schema), Bytes.toBytes("f"),
          Bytes.toBytes("k"), Bytes.toBytes("p"));
    }
  }

  // ---- Afterwards

  private void lookUpAll() throws Exception {
    List<HRegionLocation> regions = connection.getRegionLocator(NAME).getAllRegionLocations();
    try (Table table = connection.getTable(NAME)) {
      for (String name : acknowledged) {
        byte[] there = table.get(new Get(row(name))).getValue(RegionForTest.F, A);
        Set<String> found = search(regions, value(name));
        boolean right = java.util.Arrays.equals(value(name), there) && found.size() == 1
            && found.contains(Bytes.toString(row(name)));
        if (right) continue;
        ++wrong;
        System.out.println(name + ": by key " + Bytes.toStringBinary(there) + ", by the index " + found);
      }
    }
  }

  /** Again where the server could not answer for all of the regions, as it may. */
  private Set<String> search(List<HRegionLocation> regions, byte[] value) throws Exception {
    byte[] low = encoded(value);
    tamis.pb.Table.Predicate predicate =
        tamis.pb.Table.Predicate.newBuilder()
            .setKind(tamis.pb.Table.Predicate.Kind.COMPARE)
            .setOp(tamis.pb.Table.Predicate.Op.EQ)
            .setColumn(1)
            .addValues(tamis.pb.Table.Value.newBuilder().setText(ByteString.copyFrom(value)))
            .build();
    Cluster.SearchRequest.Builder request =
        Cluster.SearchRequest.newBuilder()
            .setTableId(IndexedTable.tableId(NAME, 1))
            .setSchemaVersion(1)
            .setTimeoutNs(TimeUnit.SECONDS.toNanos(10))
            .addColumns(3) // not in the index, so that rows are read
            .addBranches(Cluster.Branch.newBuilder()
                             .setPredicate(predicate.toByteString())
                             .addStreams(Cluster.IndexStream.newBuilder().setIndexId(1).setEquality(true).addRanges(
                                 Cluster.IndexRange.newBuilder()
                                     .setLow(ByteString.copyFrom(low))
                                     .setHigh(ByteString.copyFrom(Key.prefixEnd(low))))));
    for (HRegionLocation region : regions) {
      request.addRanges(
          Cluster.SearchRange.newBuilder().setRegionId(IndexedRegion.idOf(region.getRegion().getEncodedName())));
    }
    for (long deadline = System.nanoTime() + PATIENCE_NS;; Thread.sleep(20)) {
      ++searches;
      Cluster.SearchReply reply = Cluster.SearchReply.parseFrom(ServerCalls.callDirectly(
          connection, any.getServerName(), any.getRegion().getRegionName(), "Search", request.build().toByteArray()));
      Set<String> found = new TreeSet<>();
      String lacks = reply.getResultsCount() < regions.size() ? "not all regions were searched in time" : null;
      for (Cluster.RangeResult result : reply.getResultsList()) {
        Cluster.Error error = result.getError();
        if (error.getCode() == Cluster.Error.Code.UNAVAILABLE) {
          lacks = error.getMessage();
        } else if (error.getCode() != Cluster.Error.Code.OK) {
          throw new IOException(error.getMessage());
        }
        for (Cluster.FoundRow row : result.getRowsList()) found.add(row.getKey().toStringUtf8());
      }
      if (lacks == null) return found;
      if (System.nanoTime() - deadline >= 0) throw new IOException("a search gets no answer for a minute: " + lacks);
    }
  }

  private String beans() throws IOException {
    return page("jmx?qry=tamis:*");
  }

  /** A page of the server's information server. */
  private String page(String path) throws IOException {
    int port;
    try (Admin admin = connection.getAdmin()) {
      ServerName server = any.getServerName();
      port = admin.getClusterMetrics().getLiveServerMetrics().get(server).getInfoServerPort();
    }
    try (InputStream in = new URL("http://localhost:" + port + "/" + path).openStream();
         Scanner text = new Scanner(in, "UTF-8")) {
      return text.useDelimiter("\\A").next();
    }
  }

  /** null: it is not there. */
  private static Long valueOf(String beans, String name) {
    Matcher found = Pattern.compile("\"" + name + "\"\\s*:\\s*(-?[0-9]+)").matcher(beans);
    return found.find() ? Long.valueOf(found.group(1)) : null;
  }

  private static String prometheusName(String name) {
    return "tamis_" + name.replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
  }

  /** null: it is not there. */
  private static Long exportedValue(String page, String name) {
    Matcher found = Pattern.compile("(?m)^" + prometheusName(name) + "\\{[^}]*\\} (-?[0-9]+)").matcher(page);
    return found.find() ? Long.valueOf(found.group(1)) : null;
  }

  /** Our source among HBase's own metrics, which HBase refreshes every few seconds. */
  private void lookAtExports(String beans) throws Exception {
    String[][] names = {{"writesWaited", "WritesWaited"}, {"writesTurnedAway", "WritesTurnedAway"},
        {"searches", "Searches"}, {"entriesRead", "EntriesRead"}, {"rowsRead", "RowsRead"}, {"regions", "Regions"},
        {"coordinators", "Coordinators"}, {"filterBytesMax", "FilterBytesMax"}};
    boolean exports = !VersionInfo.getVersion().startsWith("2.5.");
    String jmx = "";
    String prometheus = "";
    for (long deadline = System.nanoTime() + PATIENCE_NS; System.nanoTime() - deadline < 0; Thread.sleep(200)) {
      jmx = page("jmx?qry=Hadoop:service=HBase,name=RegionServer,sub=Tamis");
      prometheus = exports ? page("prometheus") : "";
      if (Objects.equals(valueOf(jmx, "searches"), valueOf(beans, "Searches"))) break;
    }
    if (exports && exportedValue(prometheus, "searches") == null) System.out.println(prometheus);
    for (String[] name : names) {
      long value = valueOf(beans, name[1]);
      expect(name[0] + " in /jmx", valueOf(jmx, name[0]), value, value);
      if (exports) expect(prometheusName(name[0]), exportedValue(prometheus, name[0]), value, value);
    }
    long puts = acknowledged.size();
    for (String name : new String[] {"entriesWritten", "filterBytes"}) {
      expect(name + " in /jmx", valueOf(jmx, name), puts, Long.MAX_VALUE);
    }
    expect("writesWaitedMs in /jmx", valueOf(jmx, "writesWaitedMs"), 1, Long.MAX_VALUE);
    expect("leases in /jmx", valueOf(jmx, "leases"), 0, COORDINATORS);
    expect("recounts in /jmx", valueOf(jmx, "recounts"), REGIONS, Long.MAX_VALUE);
    for (String name : new String[] {"regionsBuilding", "regionsFailing", "recountsFailed", "filtersMissing"}) {
      expect(name + " in /jmx", valueOf(jmx, name), 0, 0);
    }
  }

  /** Inclusive bounds. */
  private void expect(String beans, String name, long least, long most) {
    expect(name, valueOf(beans, name), least, most);
  }

  private void expect(String name, Long value, long least, long most) {
    System.out.println("  " + name + " " + (value != null ? value : "is not there"));
    if (value != null && value >= least && value <= most) return;
    System.out.println("  but it should be from " + least + " to " + most);
    ++wrong;
  }

  private void lookAtBeans() throws Exception {
    long puts = acknowledged.size();
    String beans = beans();
    // One whose polls were late for a moment is not counted; it comes back.
    for (long deadline = System.nanoTime() + PATIENCE_NS; System.nanoTime() - deadline < 0; beans = beans()) {
      Long coordinators = valueOf(beans, "Coordinators");
      if (coordinators != null && coordinators == COORDINATORS) break;
      Thread.sleep(100);
    }
    if (!beans.contains("\"tamis:type=RegionServer\"")) System.out.println("no bean of ours: " + beans);
    expect(beans, "Regions", REGIONS, REGIONS);
    expect(beans, "RegionsIncomplete", 0, 0);
    expect(beans, "RegionsWorkedOn", 0, 0);
    expect(beans, "FilterBytesMax", 1 << 20, 1 << 30);
    expect(beans, "FilterBytes", puts, 1 << 30);
    expect(beans, "FeedBytes", 0, 8 << 20);
    expect(beans, "FeedEvents", 0, 1 << 16);
    expect(beans, "Coordinators", COORDINATORS, COORDINATORS);
    expect(beans, "Polls", COORDINATORS, Long.MAX_VALUE);
    expect(beans, "WritesWaiting", 0, 0);
    // How many depends on who listened just then; what was turned away may wait when it comes again.
    expect(beans, "WritesWaited", 1, Long.MAX_VALUE);
    expect(beans, "WritesTurnedAway", 0, Long.MAX_VALUE);
    expect(beans, "WritesNotAcknowledged", 0, 0);
    expect(beans, "Searches", puts, searches);
    expect(beans, "SearchedRanges", puts * REGIONS, searches * REGIONS);
    expect(beans, "SearchesNotProved", 0, Long.MAX_VALUE);
    expect(beans, "ScannedRegions", 0, 0);
    expect(beans, "EntriesRead", puts, searches * REGIONS);
    expect(beans, "RowsRead", puts, searches);
    expect(beans, "RowsReturned", puts, searches);
    lookAtExports(beans);
  }
}
