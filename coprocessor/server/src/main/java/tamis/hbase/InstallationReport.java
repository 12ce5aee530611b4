package tamis.hbase;

import java.io.IOException;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.coprocessor.CoprocessorHost;
import org.apache.hadoop.hbase.io.util.MemorySizeUtil;
import org.apache.hadoop.hbase.ipc.RpcServer;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.RegionCoprocessorHost;
import org.apache.hadoop.hbase.util.CommonFSUtils;
import org.apache.hadoop.hbase.util.VersionInfo;
import tamis.feed.FilterRoom;
import tamis.pb.Cluster.CoordinatorStatus;
import tamis.pb.Installation.DescribeReply;
import tamis.pb.Installation.DescribeRequest;
import tamis.pb.Installation.ListeningCoordinator;
import tamis.pb.Installation.RegionProblem;
import tamis.region.BuildFailure;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.server.Endpoint;
import tamis.server.RegionFilters;
import tamis.server.WalProof;
import tamis.table.DamagedBytesException;
import tamis.table.Schema;

/** This process's report for the examination of an installation: the service `tamis.pb.Installation`. */
public final class InstallationReport {
  private static final int MOST_PROBLEMS = 20;

  private InstallationReport() {}

  /** Makes a report; called for each request, since HBase takes services before it starts their coprocessor. */
  interface Source {
    DescribeReply report() throws IOException;
  }

  static Iterable<com.google.protobuf.Service> service(Source source) {
    return services(() -> Collections.singletonList(new Endpoint(Endpoint.INSTALLATION, (method, request) -> {
      DescribeRequest.parseFrom(request);
      return source.report().toByteArray();
    })));
  }

  /** The endpoints for HBase to register; none where HBase could not. */
  static Iterable<com.google.protobuf.Service> services(Supplier<List<com.google.protobuf.Service>> endpoints) {
    return Linkage.hasOurEndpoints() ? endpoints.get() : Collections.emptyList();
  }

  /** `regions` are those that are open here; none at a master. */
  public static DescribeReply describe(Configuration conf, ServerName server, List<? extends Region> regions)
      throws IOException {
    DescribeReply.Builder reply =
        DescribeReply.newBuilder()
            .setJarVersion(JarVersion.version())
            .setHbaseVersion(VersionInfo.getVersion())
            .addAllMissing(Linkage.missing())
            .addAllIndexFeatures(Schema.supportedFeatures())
            .setServer(server.toString())
            .setUser(RpcServer.getRequestUserName().orElse(""))
            .setAuthorization(conf.getBoolean("hbase.security.authorization", false))
            .setExecChecks(conf.getBoolean("hbase.security.authorization", false)
                && conf.getBoolean("hbase.security.exec.permission.checks", false))
            .setLogFileSystem(CommonFSUtils.getWALFileSystem(conf).getClass().getName())
            .setLogsHaveLeases(WalProof.hasLeases(conf))
            .setHandlers(
                conf.getInt(HConstants.REGION_SERVER_HANDLER_COUNT, HConstants.DEFAULT_REGION_SERVER_HANDLER_COUNT))
            .setCloseThreads(conf.getInt("hbase.regionserver.executor.closeregion.threads", 3))
            .setFailFastLimit(conf.getInt("hbase.master.rs.remote.proc.fail.fast.limit", 5))
            .setAbortOnError(
                conf.getBoolean(CoprocessorHost.ABORT_ON_ERROR_KEY, CoprocessorHost.DEFAULT_ABORT_ON_ERROR))
            .setUserCoprocessors(conf.getBoolean(CoprocessorHost.COPROCESSORS_ENABLED_CONF_KEY, true)
                && conf.getBoolean(CoprocessorHost.USER_COPROCESSORS_ENABLED_CONF_KEY, true))
            .setHeapBytes(Runtime.getRuntime().maxMemory())
            .setHeapTakenPercent(Math.round(100
                * (MemorySizeUtil.getGlobalMemStoreHeapPercent(conf, false)
                    + MemorySizeUtil.getBlockCacheHeapPercent(conf))))
            .setFilterBytes(FilterRoom.mostBytes(RegionFilters.MAX_BYTES))
            .setSessionTimeoutMs(conf.getInt(HConstants.ZK_SESSION_TIMEOUT, HConstants.DEFAULT_ZK_SESSION_TIMEOUT));
    long[] indexed = new long[1];
    for (Region region : regions) {
      look(region, problem -> {
        if (reply.getProblemsCount() < MOST_PROBLEMS) reply.addProblems(problem);
      }, indexed);
    }
    addCoordinators(reply, regions);
    return reply.setIndexedRegions(indexed[0]).build();
  }

  /** All regions have one feed. */
  private static void addCoordinators(DescribeReply.Builder reply, List<? extends Region> regions) {
    for (Region region : regions) {
      IndexObserver observer = observerOf(region);
      if (observer == null || observer.state() == null) continue;
      for (CoordinatorStatus each : observer.state().coordinators()) {
        reply.addCoordinators(ListeningCoordinator.newBuilder()
                                  .setUser(each.getUser())
                                  .setHost(each.getHost())
                                  .setEventsBehind(each.getEventsBehind())
                                  .setLeaseLeftNs(each.getLeaseLeftNs()));
      }
      return;
    }
  }

  private static IndexObserver observerOf(Region region) {
    RegionCoprocessorHost host = region instanceof HRegion ? ((HRegion) region).getCoprocessorHost() : null;
    return host == null ? null : host.findCoprocessor(IndexObserver.class);
  }

  private static void look(Region region, Consumer<RegionProblem> problems, long[] indexed) {
    TableDescriptor descriptor = region.getTableDescriptor();
    if (descriptor.getValue(IndexedTable.SCHEMA) == null || region.getRegionInfo().getReplicaId() != 0) return;
    ++indexed[0];
    RegionProblem.Builder problem = RegionProblem.newBuilder()
                                        .setTable(descriptor.getTableName().getNameAsString())
                                        .setRegion(region.getRegionInfo().getEncodedName());
    IndexObserver observer = observerOf(region);
    IndexedRegion observed = observer == null ? null : observer.indexed();
    if (observer == null) {
      problems.accept(problem
                          .setProblem("it takes writes without their index entries, since tamis.hbase.IndexObserver"
                              + " is not loaded")
                          .build());
    }
    BuildFailure failure = observed == null ? null : observed.failure;
    if (failure != null) {
      problems.accept(problem
                          .setProblem("its indexes cannot be made or counted, so searches scan or ask it; "
                              + (failure.isGivenUp() ? "not retried while it is open: " : "retried again and again: ")
                              + failure.reason)
                          .build());
    }
    try {
      IndexedTable.of(descriptor);
    } catch (DamagedBytesException e) {
      problems.accept(
          problem.setProblem("the schema that it was opened with cannot be read: " + e.getMessage()).build());
    }
  }
}
