package tamis.hbase;

import java.util.Arrays;
import org.apache.hadoop.hbase.regionserver.RegionServerServices;
import org.apache.hadoop.hbase.zookeeper.ZKWatcher;
import org.apache.hadoop.hbase.zookeeper.ZNodePaths;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/**
 * A transaction of ZooKeeper that fails once this server's node is gone: the master gives its regions away only after
 * that. A read would prove nothing, since a follower that is cut off answers as well.
 *
 * It says nothing of a master that expires a server whose session lives (hbase.master.rs.remote.proc.fail.fast.limit):
 * that limit has to be out of reach where this is the proof.
 */
final class ZooKeeperProof implements Ownership.Proof {
  private final RegionServerServices services;
  private boolean made;

  ZooKeeperProof(RegionServerServices services) {
    this.services = services;
  }

  @Override
  public synchronized void prove() throws Exception {
    ZKWatcher watcher = services.getZooKeeper();
    String alive = ZNodePaths.joinZNode(watcher.getZNodePaths().rsZNode, services.getServerName().toString());
    String parent = ZNodePaths.joinZNode(watcher.getZNodePaths().baseZNode, "tamis");
    String own = ZNodePaths.joinZNode(parent, services.getServerName().toString());
    ZooKeeper zooKeeper = watcher.getRecoverableZooKeeper().getZooKeeper();
    if (!made) {
      create(zooKeeper, parent, CreateMode.PERSISTENT);
      create(zooKeeper, own, CreateMode.EPHEMERAL);
      made = true;
    }
    try {
      // HBase's own wrapper refuses checks.
      zooKeeper.multi(Arrays.asList(Op.check(alive, -1), Op.setData(own, new byte[0], -1)));
    } catch (KeeperException.NoNodeException e) {
      made = false;
      throw e;
    }
  }

  private static void create(ZooKeeper zooKeeper, String path, CreateMode mode) throws Exception {
    try {
      zooKeeper.create(path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, mode);
    } catch (KeeperException.NodeExistsException e) {
      // of an earlier time
    }
  }
}
