package tamis.hbase;

import java.io.IOException;
import java.security.PrivilegedExceptionAction;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.security.User;
import org.apache.hadoop.hbase.security.access.AccessControlClient;
import org.apache.hadoop.hbase.security.access.Permission;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.shaded.protobuf.ByteString;
import tamis.table.ByteWriter;
import tamis.table.Codec;
import tamis.table.Key;
import tamis.table.Value;

/**
 * Requests of users with and without rights, on a real cluster that checks them: alice reads and writes, carol reads,
 * dora reads one column, erin reads and administrates, frank writes, bob nothing. The cluster needs
 *
 *   -D hbase.security.authorization=true
 *   -D hbase.coprocessor.master.classes=tamis.hbase.SchemaGuard,ACCESS
 *   -D hbase.coprocessor.region.classes=ACCESS
 *   -D hbase.coprocessor.regionserver.classes=ACCESS
 *
 * where ACCESS is org.apache.hadoop.hbase.security.access.AccessController.
 */
public final class RightsDrive {
  private static final TableName NAME = TableName.valueOf("tamis_rights");
  private static final byte[] A = Bytes.toBytes("a");
  private static final byte[] S = Bytes.toBytes("s");

  private final Configuration conf;
  private int wrong;

  private RightsDrive(Configuration conf) {
    this.conf = conf;
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    conf.setInt("hbase.client.retries.number", 5);
    RightsDrive drive = new RightsDrive(conf);
    drive.run();
    System.out.println(drive.wrong == 0 ? "all users may do what they may, and no more" : drive.wrong + " are WRONG");
    System.exit(drive.wrong == 0 ? 0 : 1);
  }

  /** Says in a word what came of it. */
  private interface Deed {
    String done(Connection connection) throws Exception;
  }

  private void expect(String name, String what, String wanted, Deed deed) throws Exception {
    String came = User.createUserForTesting(conf, name, new String[0]).runAs((PrivilegedExceptionAction<String>) () -> {
      try (Connection connection = ConnectionFactory.createConnection(conf)) {
        return deed.done(connection);
      } catch (IOException e) {
        return e.toString().contains("AccessDenied") ? "denied" : e.toString();
      }
    });
    boolean right = came.equals(wanted);
    if (!right) ++wrong;
    System.out.println((right ? "" : "WRONG: ") + name + ", " + what + ": " + came + (right ? "" : ", not " + wanted));
  }

  private static String outcome(Cluster.Error error) {
    switch (error.getCode()) {
      case OK:
        return "ok";
      case FAILED_PRECONDITION:
        return "denied";
      default:
        return error.getCode() + " " + error.getMessage();
    }
  }

  private static long regionId(Connection connection) throws IOException {
    return IndexedRegion.idOf(
        connection.getRegionLocator(NAME).getRegionLocation(new byte[0], true).getRegion().getEncodedName());
  }

  private static String search(Connection connection, int index, int column, String value) throws Exception {
    ByteWriter low = new ByteWriter();
    Codec.appendIndexed(Value.text(value), low);
    tamis.pb.Table.Predicate predicate = equal(column, value);
    Cluster.SearchRequest request =
        Cluster.SearchRequest.newBuilder()
            .setTableId(IndexedTable.tableId(NAME, 1))
            .setSchemaVersion(1)
            .addRanges(Cluster.SearchRange.newBuilder().setRegionId(regionId(connection)))
            .addBranches(Cluster.Branch.newBuilder()
                             .setPredicate(predicate.toByteString())
                             .addStreams(Cluster.IndexStream.newBuilder().setIndexId(index).setEquality(true).addRanges(
                                 Cluster.IndexRange.newBuilder()
                                     .setLow(ByteString.copyFrom(low.toBytes()))
                                     .setHigh(ByteString.copyFrom(Key.prefixEnd(low.toBytes()))))))
            .build();
    Cluster.RangeResult result =
        Cluster.SearchReply
            .parseFrom(new ServerCalls(connection, NAME, 1).call(new byte[0], "Search", request.toByteArray()))
            .getResults(0);
    String outcome = outcome(result.getError());
    return outcome.equals("ok") ? result.getRowsCount() + " rows" : outcome;
  }

  private static tamis.pb.Table.Predicate equal(int column, String value) {
    return tamis.pb.Table.Predicate.newBuilder()
        .setKind(tamis.pb.Table.Predicate.Kind.COMPARE)
        .setOp(tamis.pb.Table.Predicate.Op.EQ)
        .setColumn(column)
        .addValues(tamis.pb.Table.Value.newBuilder().setText(ByteString.copyFromUtf8(value)))
        .build();
  }

  private static String mutate(Connection connection, Cluster.Mutation.Builder mutation) throws Exception {
    tamis.table.Schema schema = tamis.table.Schema.parse(schema().toByteArray());
    Value[] row = {null, Value.text("by a message"), null, null, null};
    Cluster.MutateRequest request =
        Cluster.MutateRequest.newBuilder()
            .setTableId(IndexedTable.tableId(NAME, 1))
            .setSchemaVersion(1)
            .addRegions(Cluster.RegionMutations.newBuilder()
                            .setRegionId(regionId(connection))
                            .addMutations(mutation.setKey(ByteString.copyFromUtf8("m"))
                                              .setRow(ByteString.copyFrom(Codec.encodeRow(schema, row, null)))))
            .build();
    Cluster.RegionMutateResult result =
        Cluster.MutateReply
            .parseFrom(new ServerCalls(connection, NAME, 1).call(new byte[0], "Mutate", request.toByteArray()))
            .getRegions(0);
    return result.getError().getCode() == Cluster.Error.Code.OK ? outcome(result.getResults(0))
                                                                : outcome(result.getError());
  }

  /** How many regions a coordinator of this user hears of. */
  private static String poll(Connection connection) throws Exception {
    Cluster.PollRequest request = Cluster.PollRequest.newBuilder().setCoordinator(System.nanoTime()).build();
    Cluster.PollReply reply =
        Cluster.PollReply.parseFrom(new ServerCalls(connection, NAME, 1).poll(new byte[0], request.toByteArray()));
    long opened =
        reply.getEventsList()
            .stream()
            .filter(
                e -> e.getKind() == Cluster.Event.Kind.REGION_OPENED && e.getTableId() == IndexedTable.tableId(NAME, 1))
            .count();
    return opened + " regions";
  }

  private static String job(Connection connection, Cluster.StartJobRequest.Kind kind) throws Exception {
    try {
      return new ServerCalls(connection, NAME, 1).job(kind).getRows() + " rows";
    } catch (IOException e) {
      return e.getMessage().contains("nsufficient permissions") || e.getMessage().contains("only some cells")
          ? "denied"
          : e.toString();
    }
  }

  /** The number of entries of the first index in the status that this user gets. */
  private static String status(Connection connection) throws Exception {
    Cluster.StatusRequest request =
        Cluster.StatusRequest.newBuilder().setTableId(IndexedTable.tableId(NAME, 1)).build();
    Cluster.StatusReply reply = Cluster.StatusReply.parseFrom(
        new ServerCalls(connection, NAME, 1).call(new byte[0], "Status", request.toByteArray()));
    boolean named = reply.getCoordinatorsList().stream().anyMatch(coordinator -> coordinator.getCoordinator() != 0);
    return reply.getRegions(0).getIndexes(0).getEntries() + " entries" + (named ? " and numbers of coordinators" : "");
  }

  private static String readEntries(Connection connection) throws Exception {
    try (Table table = connection.getTable(NAME)) {
      table.getScanner(new org.apache.hadoop.hbase.client.Scan().addFamily(IndexedTable.FAMILY)).next();
      return "read";
    } catch (org.apache.hadoop.hbase.DoNotRetryIOException e) {
      return "denied";
    }
  }

  private static tamis.pb.Table.Schema schema() {
    return RegionForTest.schema()
        .addIndexes(RegionForTest.index(1, "by_a", true, 1))
        .addIndexes(RegionForTest.index(2, "by_s", true, 4))
        .build();
  }

  /** A master makes the table of rights after it has begun to answer; no right can be granted before. */
  private static void awaitTableOfRights(Admin admin) throws Exception {
    while (!admin.isTableAvailable(TableName.valueOf("hbase:acl"))) TimeUnit.MILLISECONDS.sleep(100);
  }

  private void run() throws Exception {
    try (Connection connection = ConnectionFactory.createConnection(conf); Admin admin = connection.getAdmin()) {
      awaitTableOfRights(admin);
      TableForTest.makeAnew(admin, TableForTest.indexed(TableForTest.plain(NAME), schema()));
      new ServerCalls(connection, NAME, 1).awaitIndexes(1);
      try (Table table = connection.getTable(NAME)) {
        table.put(new Put(Bytes.toBytes("r")).addColumn(RegionForTest.F, A, A).addColumn(RegionForTest.F, S, S));
      }
      grant(connection, "alice", null, Permission.Action.READ, Permission.Action.WRITE);
      grant(connection, "carol", null, Permission.Action.READ);
      grant(connection, "dora", A, Permission.Action.READ);
      grant(connection, "erin", null, Permission.Action.READ, Permission.Action.ADMIN);
      grant(connection, "frank", null, Permission.Action.WRITE);
    }
    String[] names = {"alice", "carol", "dora", "erin", "frank", "bob"};
    // No other column than the condition's is read.
    String[] byA = {"1 rows", "1 rows", "1 rows", "1 rows", "denied", "denied"};
    String[] byS = {"1 rows", "1 rows", "denied", "1 rows", "denied", "denied"};
    String[] writes = {"ok", "denied", "denied", "denied", "ok", "denied"};
    String[] conditions = {"ok", "denied", "denied", "denied", "denied", "denied"};
    String[] inserts = {"ALREADY_EXISTS a row with this key exists", "denied", "denied", "denied", "denied", "denied"};
    String[] regions = {"1 regions", "1 regions", "0 regions", "1 regions", "0 regions", "0 regions"};
    String[] checks = {"2 rows", "2 rows", "denied", "2 rows", "denied", "denied"};
    String[] rebuilds = {"denied", "denied", "denied", "0 rows", "denied", "denied"}; // a rebuild reports none
    String[] counts = {"2 entries", "2 entries", "0 entries", "2 entries", "0 entries", "0 entries"};
    for (int i = 0; i < names.length; ++i) {
      expect(names[i], "a search by a", byA[i], connection -> search(connection, 1, 1, "a"));
      expect(names[i], "a search by s", byS[i], connection -> search(connection, 2, 4, "s"));
      expect(names[i], "a write", writes[i], connection -> mutate(connection, Cluster.Mutation.newBuilder()));
      expect(names[i], "a write on a condition", conditions[i],
          connection
          -> mutate(connection, Cluster.Mutation.newBuilder().setCondition(equal(1, "by a message").toByteString())));
      expect(names[i], "an insert", inserts[i],
          connection
          -> mutate(connection, Cluster.Mutation.newBuilder().setKind(Cluster.Mutation.Kind.INSERT_IF_ABSENT)));
      expect(names[i], "a poll", regions[i], RightsDrive::poll);
      expect(names[i], "a check", checks[i], connection -> job(connection, Cluster.StartJobRequest.Kind.CHECK));
      expect(names[i], "a rebuild", rebuilds[i], connection -> job(connection, Cluster.StartJobRequest.Kind.REBUILD));
      expect(names[i], "the status", counts[i], RightsDrive::status);
      expect(names[i], "a scan of the entries", "denied", RightsDrive::readEntries);
    }
    // A right that is taken back.
    try (Connection connection = ConnectionFactory.createConnection(conf)) {
      revoke(connection, "carol");
    }
    TimeUnit.SECONDS.sleep(6); // answers about rights are kept for 5
    expect("carol", "a poll afterwards", "0 regions", RightsDrive::poll);
    expect("carol", "a search afterwards", "denied", connection -> search(connection, 1, 1, "a"));
  }

  private static void grant(Connection connection, String user, byte[] qualifier, Permission.Action... actions)
      throws IOException {
    try {
      AccessControlClient.grant(connection, NAME, user, qualifier == null ? null : RegionForTest.F, qualifier, actions);
    } catch (Throwable e) {
      throw new IOException(e);
    }
  }

  private static void revoke(Connection connection, String user) throws IOException {
    try {
      AccessControlClient.revoke(connection, NAME, user, null, null, Permission.Action.READ);
    } catch (Throwable e) {
      throw new IOException(e);
    }
  }
}
