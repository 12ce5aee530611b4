package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.ServerName;
import org.junit.jupiter.api.Test;
import tamis.pb.Installation.DescribeReply;

class InstallationTest {
  private static final ServerName SERVER = ServerName.valueOf("host", 16020, 7);

  private static Configuration configuration() {
    Configuration conf = new Configuration(false);
    conf.set("fs.file.impl", "org.apache.hadoop.fs.LocalFileSystem");
    conf.set("hbase.rootdir", "file:///tmp/hbase");
    return conf;
  }

  @Test
  void reportsTheSettingsOfTheServer() throws Exception {
    Configuration conf = configuration();
    conf.set("hbase.regionserver.handler.count", "2");
    conf.set("hbase.master.rs.remote.proc.fail.fast.limit", "100000");
    conf.set("hbase.coprocessor.user.enabled", "false");
    conf.set("hfile.block.cache.size", "0.25");
    DescribeReply reply = InstallationReport.describe(conf, SERVER, Collections.emptyList());
    assertEquals(2, reply.getHandlers());
    assertEquals(3, reply.getCloseThreads());
    assertEquals(100000, reply.getFailFastLimit());
    assertTrue(reply.getAbortOnError());
    assertFalse(reply.getUserCoprocessors());
    assertFalse(reply.getLogsHaveLeases());
    assertEquals(Runtime.getRuntime().maxMemory(), reply.getHeapBytes());
    assertEquals(65, reply.getHeapTakenPercent());
    assertTrue(reply.getFilterBytes() > 0 && reply.getFilterBytes() < reply.getHeapBytes() / 7);
    assertEquals("host,16020,7", reply.getServer());
    assertTrue(reply.getJarVersion().matches("[0-9]+\\.[0-9]+.*"), reply.getJarVersion());
  }
}
