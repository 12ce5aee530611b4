package tamis.server;

import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.regionserver.RegionServerServices;
import org.apache.hadoop.hbase.zookeeper.ZNodePaths;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import tamis.base.Fault;

/**
 * Proves ownership by a ZooKeeper transaction that fails once this server's node is gone: the master gives the server's
 * regions to others only after that. A read would prove nothing, since a ZooKeeper follower that is cut off answers it
 * as well.
 *
 * It does not cover a master that expires a server whose session lives: hbase.master.rs.remote.proc.fail.fast.limit has
 * to be out of reach where this proof is used.
 */
final class ZooKeeperProof implements Ownership.Proof {
  /** A connection may be made again, in the same session. */
  interface Connection {
    ZooKeeper get() throws Exception;
  }

  private final Connection connection;
  private final String alive;
  private final String parent;
  private final String own;
  private boolean made;

  ZooKeeperProof(RegionServerServices services) {
    this(()
             -> services.getZooKeeper().getRecoverableZooKeeper().getZooKeeper(),
        services.getZooKeeper().getZNodePaths().baseZNode, services.getZooKeeper().getZNodePaths().rsZNode,
        services.getServerName().toString());
  }

  /** The node of `server` below `servers` is the one that the master looks at; `base` is HBase's own. */
  ZooKeeperProof(Connection connection, String base, String servers, String server) {
    this.connection = connection;
    alive = ZNodePaths.joinZNode(servers, server);
    parent = ZNodePaths.joinZNode(base, "tamis");
    own = ZNodePaths.joinZNode(parent, server);
  }

  @Override
  public synchronized void prove() throws Exception {
    ZooKeeper zooKeeper = connection.get();
    if (!made) {
      // The nodes have the rights of the server's own node, which on a secured ZooKeeper is HBase's: a deletion of them
      // makes a proof fail.
      List<ACL> rights = Fault.NODES_OPEN_TO_ALL.isOn() ? ZooDefs.Ids.OPEN_ACL_UNSAFE : zooKeeper.getACL(alive, null);
      create(zooKeeper, parent, rights, CreateMode.PERSISTENT);
      create(zooKeeper, own, rights, CreateMode.EPHEMERAL);
      made = true;
    }
    if (Fault.PROOF_BY_A_READ.isOn()) {
      zooKeeper.getData(alive, false, null);
      return;
    }
    try {
      // HBase's own wrapper refuses checks.
      zooKeeper.multi(Arrays.asList(Op.check(alive, -1), Op.setData(own, new byte[0], -1)));
    } catch (KeeperException.NoNodeException e) {
      made = false;
      throw e;
    }
  }

  private static void create(ZooKeeper zooKeeper, String path, List<ACL> rights, CreateMode mode) throws Exception {
    try {
      zooKeeper.create(path, new byte[0], rights, mode);
    } catch (KeeperException.NodeExistsException e) {
      keepRights(zooKeeper, path, rights);
    }
  }

  /** Older versions of the jar made nodes that everybody could delete. */
  private static void keepRights(ZooKeeper zooKeeper, String path, List<ACL> rights) throws Exception {
    try {
      if (!zooKeeper.getACL(path, null).equals(rights)) zooKeeper.setACL(path, rights, -1);
    } catch (KeeperException.NoAuthException e) {
      // Somebody else has set them.
    }
  }
}
