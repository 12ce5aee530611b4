package tamis.server;

import java.util.Collections;
import java.util.List;
import java.util.function.BooleanSupplier;
import tamis.feed.FilterFeed;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.RegionHost;
import tamis.table.Schema;

/**
 * The state that the regions of indexed tables share on one server, for one life of it: the feed with its start code,
 * sequence numbers and coordinators, and the work on regions. RegionServers keeps it. Threads: safe.
 */
public final class RegionServerState implements RegionHost {
  final ServerLife server;
  final OpenRegions regions;
  final FilterFeed feed; // null: no server is around
  final RegionServerMetrics metrics = new RegionServerMetrics();
  public final Acknowledgements acknowledgements;
  final RegionFilters filters;
  final FilterClearer clearer;
  public final RegionIndexes indexes;
  public final RegionOpener opener;
  final TableReaders readers = new TableReaders();
  public final ServerRequests requests;
  private final ParentFilters keptFilters = new ParentFilters(RegionFilters.MAX_BYTES / 4);

  public RegionServerState(ServerLife server) {
    this(server, new OpenRegions(server.ownership != null));
  }

  RegionServerState(ServerLife server, OpenRegions regions) {
    this.server = server;
    this.regions = regions;
    feed = server.feed == null ? null
                               : new FilterFeed(server.name, server.startCode, server.feed, System::nanoTime, regions);
    Workers workers = Workers.threads();
    acknowledgements = new Acknowledgements(feed, metrics);
    filters = new RegionFilters(regions::all, workers.counts, () -> server.maxFilterBytes);
    clearer = new FilterClearer(workers.steps, workers.clears, server.clearDelayNs);
    indexes = new RegionIndexes(acknowledgements, filters, workers);
    RegionLife life = server.raisesFlags ? new RegionLife(feed, System::nanoTime, server.aborts) : null;
    opener = new RegionOpener(regions, feed, life, server.ownership, workers, keptFilters, filters, indexes);
    requests = new ServerRequests(this);
  }

  /** Whether the server owns its regions, as far as it can prove that now. */
  boolean isOwner() {
    boolean owner = server.ownership == null || server.ownership.ensure();
    if (!owner) metrics.searchesNotProved.increment();
    return owner;
  }

  long filterBytes() {
    return filters.bytes() + keptFilters.bytes();
  }

  /** The programs that poll this server. */
  public List<Cluster.CoordinatorStatus> coordinators() {
    return feed == null ? Collections.emptyList() : feed.coordinators();
  }

  @Override
  public boolean isEnding() {
    return server.ending.getAsBoolean();
  }

  @Override
  public boolean isCrowded() {
    return acknowledgements.isCrowded();
  }

  @Override
  public boolean isStuck() {
    return acknowledgements.isStuck();
  }

  @Override
  public boolean awaitRoom(long sequence, BooleanSupplier hurry) throws InterruptedException {
    return acknowledgements.awaitRoom(sequence, hurry);
  }

  @Override
  public void hurryQueued() {
    acknowledgements.hurryQueued();
  }

  @Override
  public void wrote(int added, int removed) {
    metrics.entriesWritten.add(added);
    metrics.entriesRemoved.add(removed);
  }

  @Override
  public void lookAtFilters(IndexedRegion region) {
    filters.lookAt(region);
  }

  @Override
  public void clearLater(IndexedRegion region, Schema.Index index) {
    clearer.enqueue(region, index);
  }
}
