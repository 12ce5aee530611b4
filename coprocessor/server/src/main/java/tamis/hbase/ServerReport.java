package tamis.hbase;

import org.apache.hadoop.hbase.CoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionServerCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionServerCoprocessorEnvironment;

/**
 * Says that a region server has the jar, before any table is indexed, and what the server was configured with.
 * hbase.coprocessor.regionserver.classes loads it, so that a server without the jar does not start.
 */
public final class ServerReport implements RegionServerCoprocessor {
  private volatile RegionServerCoprocessorEnvironment environment;

  @Override
  public void start(CoprocessorEnvironment started) {
    environment = (RegionServerCoprocessorEnvironment) started;
    Linkage.missing(); // the log has it from the start
  }

  @Override
  public Iterable<com.google.protobuf.Service> getServices() {
    return InstallationReport.service(
        ()
            -> InstallationReport.describe(environment.getConfiguration(), environment.getServerName(),
                environment.getOnlineRegions().getRegions()));
  }
}
