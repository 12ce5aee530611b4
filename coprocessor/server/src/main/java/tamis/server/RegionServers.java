package tamis.server;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessorEnvironment;
import org.apache.hadoop.hbase.regionserver.RegionServerServices;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.base.Fault;
import tamis.feed.FeedOptions;

/**
 * The states of the region servers of this process, mostly one: each from the first opening of a region of an indexed
 * table until the process ends, under the name of that life of the server.
 *
 * They are static because nothing that HBase offers lives as long as they must. A coordinator believes in a feed by its
 * start code and sequence numbers while it has a lease; a second feed of the same life would acknowledge writes that
 * this coordinator does not know. But HBase's shared data of coprocessors refers to values weakly: it forgets them some
 * time after the last indexed region was closed. A ServerReport need not be configured, and where the server's list of
 * coprocessors changes while it runs (HRegionServer.onConfigurationChange), HBase makes another one, or none, and drops
 * the first without a stop. Where the server stops, it calls stop first of all, while regions still take writes.
 *
 * This holds while the jar is on the class path of the server, as docs/HBASE.md demands: a table that names a jar of
 * its own has classes, and static state, of its own. Threads: safe.
 */
public final class RegionServers {
  private static final Logger LOG = LoggerFactory.getLogger(RegionServers.class);
  private static final Map<ServerName, RegionServerState> STATES = new HashMap<>();
  private static RegionServerState withoutServer = new RegionServerState(new ServerLife());

  private RegionServers() {}

  /** The state of the region's server. */
  public static RegionServerState of(RegionCoprocessorEnvironment region) {
    if (region.getOnlineRegions() == null) return withoutServer();
    return of(region.getServerName(), () -> start(region));
  }

  static synchronized RegionServerState of(ServerName server, Supplier<RegionServerState> start) {
    RegionServerState state = STATES.get(server);
    boolean forgotten = state != null && state.regions.all().isEmpty() && Fault.STATE_FORGOTTEN_WITH_LAST_REGION.isOn();
    if (state != null && !forgotten) return state;
    state = start.get();
    STATES.put(server, state);
    state.metrics.register(state);
    return state;
  }

  /** The state of regions without a server around them, as tools open them. */
  static synchronized RegionServerState withoutServer() {
    return withoutServer;
  }

  /** Gives regions without a server that are opened from now on another state. */
  static synchronized void setWithoutServer(RegionServerState state) {
    withoutServer = state;
  }

  private static RegionServerState start(RegionCoprocessorEnvironment environment) {
    Configuration conf = environment.getConfiguration();
    String faults = conf.get(Fault.SETTING, "");
    if (!faults.isEmpty()) {
      LOG.warn("{} = {}: ROWS WILL BE MISSED. This is for tests only", Fault.SETTING, faults);
      Fault.only(faults);
    }
    RegionServerServices services = (RegionServerServices) environment.getOnlineRegions();
    OpenRegions regions = new OpenRegions(true);
    ServerName name = environment.getServerName();
    ServerLife server = new ServerLife();
    server.name = name.getHostname() + "," + name.getPort();
    server.startCode = name.getStartcode();
    server.feed = new FeedOptions();
    server.feed.maxWaiting = Math.max(1, conf.getInt("hbase.regionserver.handler.count", 30) / 2);
    server.secured = conf.getBoolean("hbase.security.authorization", false);
    server.ownership = new Ownership(proofFor(services, conf, regions), Ownership.PATIENCE_NS);
    server.raisesFlags = true;
    server.aborts = services::isAborted;
    server.ending = () -> services.isAborted() || services.isStopping() || services.isStopped();
    return new RegionServerState(server, regions);
  }

  /** By the log where its file system lets one owner write it, else by ZooKeeper. */
  private static Ownership.Proof proofFor(RegionServerServices services, Configuration conf, OpenRegions regions) {
    boolean leases = false;
    try {
      leases = WalProof.hasLeases(conf);
    } catch (IOException e) {
      LOG.warn("Cannot see where the logs lie", e);
    }
    leases &= !Fault.PROOF_WITHOUT_FENCE.isOn();
    LOG.info("Ownership of regions is proved by {}", leases ? "the log" : "ZooKeeper");
    return leases ? new WalProof(regions::all) : new ZooKeeperProof(services);
  }
}
