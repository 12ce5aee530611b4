package tamis.hbase;

import com.google.protobuf.ByteString;
import com.google.protobuf.DynamicMessage;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.DirectStub;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.ipc.CoprocessorRpcUtils;
import org.apache.hadoop.hbase.ipc.HBaseRpcControllerImpl;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.server.Endpoint;

/** Our messages to the servers of a table of a real cluster, by a plain client. */
final class ServerCalls {
  static final int POLL_PRIORITY = 100;
  private static final Random RANDOM = new Random();

  private final Connection connection;
  private final TableName name;
  private final int tableId;

  ServerCalls(Connection connection, TableName name, int schemaId) {
    this.connection = connection;
    this.name = name;
    tableId = IndexedTable.tableId(name, schemaId);
  }

  byte[] call(byte[] row, String method, byte[] request) throws IOException {
    try (Table table = connection.getTable(name)) {
      com.google.protobuf.Descriptors.MethodDescriptor descriptor =
          new Endpoint(null).getDescriptorForType().findMethodByName(method);
      DynamicMessage message =
          DynamicMessage.newBuilder(Endpoint.PAYLOAD).setField(Endpoint.BYTES, ByteString.copyFrom(request)).build();
      com.google.protobuf.Message answer;
      try {
        answer = table.coprocessorService(row).callBlockingMethod(
            descriptor, null, message, DynamicMessage.getDefaultInstance(Endpoint.PAYLOAD));
      } catch (com.google.protobuf.ServiceException e) {
        throw e.getCause() instanceof IOException ? (IOException) e.getCause() : new IOException(e);
      }
      return ((ByteString) answer.getField(answer.getDescriptorForType().findFieldByName("bytes"))).toByteArray();
    }
  }

  /** Polls the server of the row's region by the priority that polls need: one call, not repeated. */
  byte[] poll(byte[] row, byte[] request) throws IOException {
    HRegionLocation region = connection.getRegionLocator(name).getRegionLocation(row, true);
    if (region.getServerName() == null) throw new IOException("the region is nowhere");
    return callDirectly(
        connection, region.getServerName(), region.getRegion().getRegionName(), "Poll", request, POLL_PRIORITY);
  }

  /** Sends one call to this server, even if hbase:meta names another one for the region; does not repeat it. */
  static byte[] callDirectly(Connection connection, ServerName server, byte[] regionName, String method, byte[] request)
      throws IOException {
    return callDirectly(
        connection, server, regionName, method, request, org.apache.hadoop.hbase.HConstants.PRIORITY_UNSET);
  }

  static byte[] callDirectly(Connection connection, ServerName server, byte[] regionName, String method, byte[] request,
      int priority) throws IOException {
    HBaseRpcControllerImpl controller = new HBaseRpcControllerImpl();
    controller.setPriority(priority);
    com.google.protobuf.Descriptors.MethodDescriptor descriptor =
        new Endpoint(null).getDescriptorForType().findMethodByName(method);
    DynamicMessage message =
        DynamicMessage.newBuilder(Endpoint.PAYLOAD).setField(Endpoint.BYTES, ByteString.copyFrom(request)).build();
    try {
      return ((ByteString) CoprocessorRpcUtils
                  .getResponse(DirectStub.execService(connection, server, controller,
                                   CoprocessorRpcUtils.getCoprocessorServiceRequest(
                                       descriptor, message, new byte[0], regionName)),
                      DynamicMessage.getDefaultInstance(Endpoint.PAYLOAD))
                  .getField(Endpoint.BYTES))
          .toByteArray();
    } catch (org.apache.hbase.thirdparty.com.google.protobuf.ServiceException e) {
      throw e.getCause() instanceof IOException ? (IOException) e.getCause() : new IOException(e);
    }
  }

  /** By server. */
  Map<String, List<HRegionLocation>> regions() throws IOException {
    Map<String, List<HRegionLocation>> servers = new TreeMap<>();
    for (HRegionLocation location : connection.getRegionLocator(name).getAllRegionLocations()) {
      if (location.getServerName() == null) throw new IOException("a region is nowhere");
      servers.computeIfAbsent(location.getServerName().getServerName(), s -> new ArrayList<>()).add(location);
    }
    return servers;
  }

  private static long id(HRegionLocation location) {
    return IndexedRegion.idOf(location.getRegion().getEncodedName());
  }

  /** Until all regions follow the version of the schema, and all of their indexes are complete and reported. */
  void awaitIndexes(long version) throws Exception {
    for (int tried = 0; !haveIndexes(version); ++tried) {
      if (tried == 600) throw new IOException("the indexes are not complete after minutes");
      Thread.sleep(200);
    }
  }

  private boolean haveIndexes(long version) throws IOException {
    Set<Long> here = new HashSet<>();
    Map<Long, HRegionLocation> wanted = new HashMap<>();
    try {
      connection.clearRegionLocationCache();
      for (List<HRegionLocation> regions : regions().values()) {
        for (HRegionLocation region : regions) wanted.put(id(region), region);
        Cluster.StatusReply status = Cluster.StatusReply.parseFrom(call(regions.get(0).getRegion().getStartKey(),
            "Status", Cluster.StatusRequest.newBuilder().setTableId(tableId).build().toByteArray()));
        for (Cluster.RegionStatus region : status.getRegionsList()) {
          if (region.getSchemaVersion() != version) return false;
          for (Cluster.IndexStatus index : region.getIndexesList()) {
            if (!index.getComplete() || !index.getPublished()) return false;
          }
          here.add(region.getRegionId());
        }
      }
    } catch (org.apache.hadoop.hbase.DoNotRetryIOException e) {
      throw e;
    } catch (IOException e) {
      return false; // on their way
    }
    return here.containsAll(wanted.keySet());
  }

  /** A job in all regions, each of them done once. */
  Cluster.RegionCheck job(Cluster.StartJobRequest.Kind kind) throws Exception {
    Cluster.RegionCheck.Builder sum = Cluster.RegionCheck.newBuilder();
    for (int tried = 0; tried < 100; ++tried) {
      sum.clear();
      boolean all = true;
      for (List<HRegionLocation> regions : regions().values()) all &= job(kind, regions, sum);
      if (all) return sum.build();
      connection.clearRegionLocationCache();
      Thread.sleep(200);
    }
    throw new IOException("the regions do not stay");
  }

  private boolean job(Cluster.StartJobRequest.Kind kind, List<HRegionLocation> regions, Cluster.RegionCheck.Builder sum)
      throws Exception {
    Cluster.StartJobRequest.Builder request =
        Cluster.StartJobRequest.newBuilder().setJob(RANDOM.nextLong()).setKind(kind).setTableId(tableId);
    for (HRegionLocation region : regions) request.addRegionIds(id(region));
    byte[] row = regions.get(0).getRegion().getStartKey();
    Cluster.StartJobReply started =
        Cluster.StartJobReply.parseFrom(call(row, "StartJob", request.build().toByteArray()));
    if (started.getError().getCode() != Cluster.Error.Code.OK) throw new IOException(started.getError().getMessage());
    while (true) {
      Cluster.GetJobReply reply = Cluster.GetJobReply.parseFrom(
          call(row, "GetJob", Cluster.GetJobRequest.newBuilder().setJob(request.getJob()).build().toByteArray()));
      if (reply.getError().getCode() == Cluster.Error.Code.NOT_FOUND) return false; // another server answers
      if (!reply.getEnded()) {
        Thread.sleep(20);
        continue;
      }
      for (Cluster.RegionJobResult result : reply.getResultsList()) {
        if (result.getError().getCode() == Cluster.Error.Code.UNAVAILABLE) return false;
        if (result.getError().getCode() != Cluster.Error.Code.OK) throw new IOException(result.getError().getMessage());
        add(result.getCheck(), sum);
      }
      return true;
    }
  }

  private static void add(Cluster.RegionCheck one, Cluster.RegionCheck.Builder sum) {
    sum.setRows(sum.getRows() + one.getRows())
        .setEntries(sum.getEntries() + one.getEntries())
        .setFilterLookups(sum.getFilterLookups() + one.getFilterLookups())
        .setGarbage(sum.getGarbage() + one.getGarbage())
        .setIncomplete(sum.getIncomplete() + one.getIncomplete())
        .setMissingEntries(sum.getMissingEntries() + one.getMissingEntries())
        .setForeignEntries(sum.getForeignEntries() + one.getForeignEntries())
        .setMissingInFilter(sum.getMissingInFilter() + one.getMissingInFilter())
        .addAllProblems(one.getProblemsList());
  }

  /** Which regions were not there is for the caller to see: by rows and entries. */
  Cluster.RegionCheck check() throws Exception {
    return job(Cluster.StartJobRequest.Kind.CHECK);
  }
}
