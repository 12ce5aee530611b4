package tamis.server;

import java.io.IOException;
import java.util.Collection;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.MultiVersionConcurrencyControl;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CommonFSUtils;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.apache.hadoop.hbase.wal.WAL;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKeyImpl;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import tamis.region.IndexedRegion;

/**
 * Proves ownership by appending a marker to the server's write-ahead log and syncing it. Before a region of this server
 * is opened elsewhere, the master, for any reason, takes the leases of all its log files; then a sync
 * fails. So if the sync succeeds, no region of this server was open elsewhere when the append began. (When the sync
 * ended, one may have been: a paused server's last sync has been seen to succeed seconds later.)
 *
 * This works only if the log's file system gives a file to one writer at a time, as HDFS does; the local file system
 * does not.
 */
public final class WalProof implements Ownership.Proof {
  // Replays of the log and replication skip markers that they do not know.
  private static final byte[] QUALIFIER = Bytes.toBytes("TAMIS::PROOF");

  private final Supplier<? extends Collection<IndexedRegion>> regions;

  WalProof(Supplier<? extends Collection<IndexedRegion>> regions) {
    this.regions = regions;
  }

  public static boolean hasLeases(Configuration conf) throws IOException {
    FileSystem logs = CommonFSUtils.getWALFileSystem(conf);
    return logs instanceof DistributedFileSystem;
  }

  @Override
  public void prove() throws Exception {
    for (IndexedRegion region : regions.get()) {
      if (!region.isOnline() || region.isClosing()) continue;
      write((HRegion) region.region);
      return;
    }
    throw new IOException("no region of an indexed table is open here");
  }

  private static void write(HRegion region) throws IOException {
    WAL log = region.getWAL();
    MultiVersionConcurrencyControl versions = region.getMVCC();
    long now = EnvironmentEdgeManager.currentTime();
    byte[] row =
        region.getRegionInfo().getStartKey().length == 0 ? new byte[] {0} : region.getRegionInfo().getStartKey();
    WALEdit edit = new WALEdit().add(new KeyValue(row, WALEdit.METAFAMILY, QUALIFIER, now, new byte[0]));
    WALKeyImpl key = new WALKeyImpl(region.getRegionInfo().getEncodedNameAsBytes(), region.getRegionInfo().getTable(),
        now, versions, new TreeMap<>(Bytes.BYTES_COMPARATOR));
    try {
      log.sync(log.appendMarker(region.getRegionInfo(), key, edit), true);
    } finally {
      if (key.getWriteEntry() != null) versions.complete(key.getWriteEntry());
    }
  }
}
