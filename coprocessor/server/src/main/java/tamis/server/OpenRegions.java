package tamis.server;

import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import tamis.base.StatusException;
import tamis.feed.FilterFeed;
import tamis.feed.IndexFilter;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;

/** The regions of indexed tables that are open on a server. Threads: safe. */
final class OpenRegions implements FilterFeed.Projections {
  private final Map<Long, IndexedRegion> regions = new ConcurrentHashMap<>();
  private final boolean needFlags;

  /** `needFlags`: requests find only regions whose opening flag was raised. */
  OpenRegions(boolean needFlags) {
    this.needFlags = needFlags;
  }

  /** False: another one has its id. */
  boolean add(IndexedRegion region) {
    return regions.putIfAbsent(region.id, region) == null;
  }

  void remove(IndexedRegion region) {
    regions.remove(region.id, region);
  }

  /** A live view of the regions. */
  Collection<IndexedRegion> all() {
    return regions.values();
  }

  /** The region that a request asks for; epoch 0: any opening of it. Null: not here. */
  IndexedRegion find(long id, long epoch, int tableId) {
    IndexedRegion region = regions.get(id);
    boolean here =
        region != null && isHere(region) && region.table.tableId == tableId && (epoch == 0 || epoch == region.epoch);
    return here ? region : null;
  }

  /** Whether requests may reach the region. */
  boolean isHere(IndexedRegion region) {
    return region.isOnline() && (!needFlags || region.flag != null);
  }

  static Cluster.Error notHere(long id) {
    return StatusException.error(
        Cluster.Error.Code.UNAVAILABLE, "region " + Long.toUnsignedString(id) + " is not open here");
  }

  /** The number of regions whose indexes could not be built; the work is retried. */
  long failing() {
    return all().stream().filter(region -> region.failure != null).count();
  }

  @Override
  public Cluster.Projection project(Cluster.ColumnId column, long maxBytes) {
    IndexedRegion region = regions.get(column.getRegionId());
    IndexFilter filter = region == null || region.closing ? null : region.filters.get(column.getIndexId());
    return filter == null ? null : filter.project(column, maxBytes);
  }
}
