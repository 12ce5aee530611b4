package tamis.server;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import tamis.feed.FeedOptions;
import tamis.feed.FilterFeed;
import tamis.region.IndexedRegion;
import tamis.table.Schema;

/** The server of regions that tests open. Each start makes another one, for regions that are opened from then on. */
public final class TestServer {
  private TestServer() {}

  /** A server with a feed, by which nothing is proved and no flag is raised. */
  static ServerLife life(FeedOptions options) {
    ServerLife life = new ServerLife();
    life.name = "test";
    life.startCode = 7;
    life.feed = options;
    life.clearDelayNs = TimeUnit.HOURS.toNanos(1); // tests call clear
    return life;
  }

  public static FilterFeed start(FeedOptions options) {
    return start(life(options)).feed;
  }

  public static RegionServerState start(ServerLife life) {
    RegionServerState state = new RegionServerState(life);
    RegionServers.setWithoutServer(state);
    return state;
  }

  /** Regions that are opened from now on have no server around them. */
  public static void stop() {
    start(new ServerLife());
  }

  /** The server of regions that are opened from now on. */
  public static RegionServerState state() {
    return RegionServers.withoutServer();
  }

  private static RegionServerState of(IndexedRegion region) {
    return (RegionServerState) region.host;
  }

  /** Tells of the region as once it is online, and nothing more. */
  static void tell(IndexedRegion region) {
    tell(region, 0);
  }

  /** `opened`: the number that it was opened with. */
  static void tell(IndexedRegion region, long opened) {
    of(region).regions.add(region);
    of(region).opener.tellOpened(region, opened);
  }

  public static void open(IndexedRegion region) throws IOException, InterruptedException {
    tell(region);
    RegionIndexes.complete(region);
    count(region);
  }

  public static void close(IndexedRegion region) {
    of(region).regions.remove(region);
  }

  /** Clears what the filters may clear now. */
  public static void clear(IndexedRegion region) throws IOException {
    for (Schema.Index index : region.table.schema.indexes) {
      of(region).clearer.clear(region, index, region.filters.get(index.id));
    }
  }

  static void count(IndexedRegion region) throws IOException, InterruptedException {
    for (Schema.Index index : region.table.schema.indexes) of(region).filters.count(region, index);
  }
}
