package tamis.server;

import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Predicate;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.feed.IndexFilter;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;

/**
 * The jar's activity on this server, as the bean `tamis:type=RegionServer` shows it, and ServerMetricsSource to HBase's
 * own exports. Threads: safe.
 */
public final class RegionServerMetrics {
  private static final Logger LOG = LoggerFactory.getLogger(RegionServerMetrics.class);
  static final String NAME = "tamis:type=RegionServer";

  /** The attributes of the bean. */
  public interface Bean {
    long getRegions();

    long getRegionsIncomplete();

    long getRegionsFailing();

    long getRegionsWorkedOn();

    long getFilterBytes();

    long getFilterBytesMax();

    long getFiltersOfBits();

    long getFiltersMissing();

    long getFeedEvents();

    long getFeedBytes();

    long getCoordinators();

    long getWritesWaiting();

    long getWritesWaited();

    long getWritesTurnedAway();

    long getWritesNotAcknowledged();

    long getPolls();

    long getSearches();

    long getSearchedRanges();

    long getSearchesNotProved();

    long getScannedRegions();

    long getEntriesRead();

    long getRowsRead();

    long getRowsReturned();
  }

  final LongAdder entriesWritten = new LongAdder();
  final LongAdder entriesRemoved = new LongAdder();
  final LongAdder writesWaited = new LongAdder();
  final LongAdder waitedNs = new LongAdder();
  final LongAdder writesTurnedAway = new LongAdder();
  final LongAdder writesNotAcknowledged = new LongAdder();
  final LongAdder polls = new LongAdder();
  final LongAdder searchesNotProved = new LongAdder();

  final LongAdder searches = new LongAdder();
  final LongAdder searchedRanges = new LongAdder();
  private final LongAdder scannedRegions = new LongAdder();
  private final LongAdder entriesRead = new LongAdder();
  private final LongAdder rowsRead = new LongAdder();
  private final LongAdder rowsReturned = new LongAdder();

  void searched(Cluster.SearchCounters counters) {
    searchedRanges.increment();
    scannedRegions.add(counters.getScannedRegions());
    entriesRead.add(counters.getEntriesRead());
    rowsRead.add(counters.getRowsRead());
    rowsReturned.add(counters.getRowsReturned());
  }

  /** Shows them, with the figures of the state that counts in them. */
  public void register(RegionServerState state) {
    registerBean(state);
    if (state.feed != null) ServerMetricsSource.register(this, state, new Values(state));
  }

  private void registerBean(RegionServerState state) {
    try {
      MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
      ObjectName name = new ObjectName(NAME);
      if (beans.isRegistered(name)) beans.unregisterMBean(name);
      beans.registerMBean(new StandardMBean(new Values(state), Bean.class), name);
    } catch (Exception e) {
      LOG.warn("No metrics are shown", e);
    }
  }

  private final class Values implements Bean {
    private final RegionServerState state;

    Values(RegionServerState state) {
      this.state = state;
    }

    private Cluster.StatusReply status() {
      return state.requests.status(Cluster.StatusRequest.getDefaultInstance());
    }

    private long filters(Predicate<IndexFilter> which) {
      return state.regions.all().stream().flatMap(region -> region.filters.values().stream()).filter(which).count();
    }

    @Override
    public long getRegions() {
      return state.regions.all().size();
    }

    @Override
    public long getRegionsIncomplete() {
      long incomplete = 0;
      for (IndexedRegion region : state.regions.all()) {
        if (region.complete().size() < region.table.schema.indexes.length) ++incomplete;
      }
      return incomplete;
    }

    @Override
    public long getRegionsFailing() {
      return state.regions.failing();
    }

    @Override
    public long getRegionsWorkedOn() {
      return status().getPendingWork();
    }

    @Override
    public long getFilterBytes() {
      return state.filters.bytes();
    }

    @Override
    public long getFilterBytesMax() {
      return RegionFilters.MAX_BYTES;
    }

    @Override
    public long getFiltersOfBits() {
      return filters(IndexFilter::isOfBits);
    }

    @Override
    public long getFiltersMissing() {
      return filters(IndexFilter::isMissing);
    }

    @Override
    public long getFeedEvents() {
      return status().getFeedEvents();
    }

    @Override
    public long getFeedBytes() {
      return status().getFeedBytes();
    }

    @Override
    public long getCoordinators() {
      return status().getCoordinatorsCount();
    }

    @Override
    public long getWritesWaiting() {
      return state.feed == null ? 0 : state.feed.waiting();
    }

    @Override
    public long getWritesWaited() {
      return writesWaited.sum();
    }

    @Override
    public long getWritesTurnedAway() {
      return writesTurnedAway.sum();
    }

    @Override
    public long getWritesNotAcknowledged() {
      return writesNotAcknowledged.sum();
    }

    @Override
    public long getPolls() {
      return polls.sum();
    }

    @Override
    public long getSearches() {
      return searches.sum();
    }

    @Override
    public long getSearchedRanges() {
      return searchedRanges.sum();
    }

    @Override
    public long getSearchesNotProved() {
      return searchesNotProved.sum();
    }

    @Override
    public long getScannedRegions() {
      return scannedRegions.sum();
    }

    @Override
    public long getEntriesRead() {
      return entriesRead.sum();
    }

    @Override
    public long getRowsRead() {
      return rowsRead.sum();
    }

    @Override
    public long getRowsReturned() {
      return rowsReturned.sum();
    }
  }
}
