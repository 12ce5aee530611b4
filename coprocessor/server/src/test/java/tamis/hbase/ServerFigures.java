package tamis.hbase;

import java.io.IOException;
import java.util.Set;
import java.util.TreeMap;
import javax.management.JMException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.util.CommonFSUtils;

/** The counters of a region server's process on this machine, and the bytes of its logs. */
final class ServerFigures {
  /** One reading, or the difference of two. */
  static final class Reading {
    final double cpuNs;
    final double allocatedBytes; // by the threads that live
    final double logBytes;
    final long turnedAway; // writes
    final long polls;

    Reading(double cpuNs, double allocatedBytes, double logBytes, long turnedAway, long polls) {
      this.cpuNs = cpuNs;
      this.allocatedBytes = allocatedBytes;
      this.logBytes = logBytes;
      this.turnedAway = turnedAway;
      this.polls = polls;
    }

    Reading since(Reading before) {
      return new Reading(cpuNs - before.cpuNs, allocatedBytes - before.allocatedBytes, logBytes - before.logBytes,
          turnedAway - before.turnedAway, polls - before.polls);
    }
  }

  private final MBeanServerConnection beans;
  private final Admin admin;
  private final ServerName server;
  private final Path root;
  private final FileSystem files;

  ServerFigures(String pid, Admin admin, Configuration conf) throws Exception {
    // By name: Java 8 has the class in another jar.
    Class<?> machine = Class.forName("com.sun.tools.attach.VirtualMachine");
    Object attached = machine.getMethod("attach", String.class).invoke(null, pid);
    String address = (String) machine.getMethod("startLocalManagementAgent").invoke(attached);
    beans = JMXConnectorFactory.connect(new JMXServiceURL(address)).getMBeanServerConnection();
    this.admin = admin;
    server = admin.getRegionServers().iterator().next();
    root = CommonFSUtils.getWALRootDir(conf);
    files = root.getFileSystem(conf);
  }

  /** With the log rolled, so that the files of all that was written have their final sizes. */
  Reading read() throws Exception {
    rollLog();
    double allocated = 0;
    ObjectName threads = new ObjectName("java.lang:type=Threading");
    Object ids = beans.getAttribute(threads, "AllThreadIds");
    String[] signature = {long[].class.getName()};
    for (long bytes : (long[]) beans.invoke(threads, "getThreadAllocatedBytes", new Object[] {ids}, signature)) {
      allocated += Math.max(0, bytes);
    }
    long cpu = (Long) beans.getAttribute(new ObjectName("java.lang:type=OperatingSystem"), "ProcessCpuTime");
    double log = 0;
    for (long bytes : logs().values()) log += bytes;
    return new Reading(cpu, allocated, log, count("WritesTurnedAway"), count("Polls"));
  }

  /** A counter of the jar; 0 while it has no region. */
  private long count(String attribute) throws IOException, JMException {
    Set<ObjectName> ours = beans.queryNames(new ObjectName("tamis:type=RegionServer,*"), null);
    return ours.isEmpty() ? 0 : (Long) beans.getAttribute(ours.iterator().next(), attribute);
  }

  private void rollLog() throws Exception {
    Set<String> before = logs().keySet();
    admin.rollWALWriter(server);
    TreeMap<String, Long> now = logs();
    while (before.containsAll(now.keySet())) now = logs();
    for (TreeMap<String, Long> last = null; !now.equals(last); now = logs()) {
      last = now;
      Thread.sleep(50); // HBase closes the former file on a thread of its own
    }
  }

  /** Bytes, by file name; a file that is no longer needed moves. */
  private TreeMap<String, Long> logs() throws IOException {
    TreeMap<String, Long> sizes = new TreeMap<>();
    Path[] directories = {new Path(new Path(root, HConstants.HREGION_LOGDIR_NAME), server.toString()),
        new Path(root, HConstants.HREGION_OLDLOGDIR_NAME)};
    for (Path directory : directories) {
      for (FileStatus file : files.listStatus(directory)) {
        if (!file.getPath().getName().contains(".meta")) sizes.put(file.getPath().getName(), file.getLen());
      }
    }
    return sizes;
  }
}
