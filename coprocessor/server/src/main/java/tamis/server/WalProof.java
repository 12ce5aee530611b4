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
 * A marker in the log that was synced: whoever opens a region of this server elsewhere has taken the leases of all its
 * logs first, whatever made the master do so. When the marker was begun, nothing of ours was open elsewhere. (When the
 * sync ended, it may have been: a paused server's last sync has been seen to succeed seconds later.)
 *
 * Only where the log's file system lets one writer hold a file. The local one does not.
 */
public final class WalProof implements Ownership.Proof {
  // Replays and replication skip what they do not know.
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
