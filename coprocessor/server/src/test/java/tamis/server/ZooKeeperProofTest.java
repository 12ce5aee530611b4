package tamis.server;

import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.File;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tamis.base.Fault;

/** Three servers of ZooKeeper, one of which is cut off from the others. */
class ZooKeeperProofTest {
  private static final int TICK_MS = 500;
  private static final int SYNC_TICKS = 12; // so long it answers reads that is cut off

  @TempDir
  Path directory;
  private final List<Process> servers = new ArrayList<>();
  private int port;
  private ZooKeeper client;

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    }
  }

  @BeforeEach
  void start() throws Exception {
    StringBuilder all = new StringBuilder(
        "tickTime=" + TICK_MS + "\ninitLimit=60\nsyncLimit=" + SYNC_TICKS + "\nadmin.enableServer=false\n");
    int[] ports = {freePort(), freePort(), freePort()};
    for (int i = 1; i <= 3; ++i) {
      all.append("server.")
          .append(i)
          .append("=127.0.0.1:")
          .append(freePort())
          .append(':')
          .append(freePort())
          .append('\n');
    }
    for (int i = 1; i <= 3; ++i) {
      Path data = Files.createDirectory(directory.resolve("server" + i));
      Files.write(data.resolve("myid"), ("" + i).getBytes());
      Path configuration = data.resolve("zoo.cfg");
      Files.write(configuration, (all + "dataDir=" + data + "\nclientPort=" + ports[i - 1] + "\n").getBytes());
      servers.add(new ProcessBuilder("sh", "-c", "echo $$ > " + data.resolve("pid") + "; exec \"$@\"", "zookeeper",
          System.getProperty("java.home") + "/bin/java", "-Xmx64m", "-cp", System.getProperty("java.class.path"),
          "org.apache.zookeeper.server.quorum.QuorumPeerMain", configuration.toString())
                      .redirectErrorStream(true)
                      .redirectOutput(new File(data.toFile(), "out"))
                      .start());
    }
    port = ports[0];
    client = connect();
    for (String path : new String[] {"/hbase", "/hbase/rs"}) {
      client.create(path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    }
    client.create("/hbase/rs/s,1,2", new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
  }

  private ZooKeeper connect() throws Exception {
    CountDownLatch connected = new CountDownLatch(1);
    ZooKeeper made = new ZooKeeper("127.0.0.1:" + port, 20_000, event -> {
      if (event.getState() == Watcher.Event.KeeperState.SyncConnected) connected.countDown();
    });
    connected.await();
    return made;
  }

  @AfterEach
  void stop() throws Exception {
    Fault.only();
    for (Process server : servers) server.destroyForcibly().waitFor();
    client.close();
  }

  private void suspend(int server) throws Exception {
    String pid = new String(Files.readAllBytes(directory.resolve("server" + server).resolve("pid"))).trim();
    new ProcessBuilder("kill", "-STOP", pid).start().waitFor();
  }

  @Test
  void aServerOfZooKeeperThatIsCutOffProvesNothing() throws Exception {
    ZooKeeperProof proof = new ZooKeeperProof(() -> client, "/hbase", "/hbase/rs", "s,1,2");
    proof.prove();
    suspend(2);
    suspend(3);
    // The others could have ended the session by now.
    Fault.only(Fault.PROOF_BY_A_READ);
    proof.prove();
    Fault.only();
    assertThrows(KeeperException.class, proof::prove);
  }

  /** HBase logs in to a secured ZooKeeper, and its nodes are its own. */
  @Test
  void nodesOfAProofBelongToTheOwnerOfTheServersNode() throws Exception {
    client.addAuthInfo("digest", "hbase:secret".getBytes());
    client.delete("/hbase/rs/s,1,2", -1);
    client.create("/hbase/rs/s,1,2", new byte[0], ZooDefs.Ids.CREATOR_ALL_ACL, CreateMode.EPHEMERAL);
    client.create("/hbase/tamis", new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT); // an older jar's
    new ZooKeeperProof(() -> client, "/hbase", "/hbase/rs", "s,1,2").prove();
    try (ZooKeeper stranger = connect()) {
      assertThrows(KeeperException.NoAuthException.class, () -> stranger.delete("/hbase/tamis/s,1,2", -1));
      assertThrows(KeeperException.NoAuthException.class,
          () -> stranger.setACL("/hbase/tamis", ZooDefs.Ids.OPEN_ACL_UNSAFE, -1));
    }
    Fault.only(Fault.NODES_OPEN_TO_ALL);
    client.delete("/hbase/tamis/s,1,2", -1);
    client.delete("/hbase/tamis", -1);
    new ZooKeeperProof(() -> client, "/hbase", "/hbase/rs", "s,1,2").prove();
    try (ZooKeeper stranger = connect()) {
      stranger.delete("/hbase/tamis/s,1,2", -1);
    }
  }

  @Test
  void aServerWithoutItsNodeProvesNothing() throws Exception {
    ZooKeeperProof proof = new ZooKeeperProof(() -> client, "/hbase", "/hbase/rs", "s,1,2");
    proof.prove();
    client.delete("/hbase/rs/s,1,2", -1);
    assertThrows(KeeperException.NoNodeException.class, proof::prove);
  }
}
