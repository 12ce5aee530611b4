package tamis.server;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.apache.hadoop.metrics2.MetricsCollector;
import org.apache.hadoop.metrics2.MetricsInfo;
import org.apache.hadoop.metrics2.MetricsRecordBuilder;
import org.apache.hadoop.metrics2.MetricsSource;
import org.apache.hadoop.metrics2.MetricsSystem;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.metrics2.lib.Interns;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.region.IndexedRegion;

/**
 * The jar's activity on this server as a source of Hadoop's metrics2. HBase exports it as the bean
 * `Hadoop:service=HBase,name=RegionServer,sub=Tamis` in /jmx, as `tamis_...` in /prometheus, and to sinks.
 * docs/HBASE.md says what each metric means. Threads: safe.
 */
final class ServerMetricsSource implements MetricsSource {
  private static final Logger LOG = LoggerFactory.getLogger(ServerMetricsSource.class);
  static final String NAME = "RegionServer,sub=Tamis";
  private static final String RECORD = "Tamis";
  private static final String DESCRIPTION = "Indexes of Tamis";

  /** One metric. */
  private static final class Metric {
    final MetricsInfo info;
    final LongSupplier value;

    Metric(String name, String description, LongSupplier value) {
      info = Interns.info(name, description);
      this.value = value;
    }
  }

  private final List<Metric> counters = new ArrayList<>();
  private final List<Metric> gauges = new ArrayList<>();

  private ServerMetricsSource(RegionServerMetrics counted, RegionServerState state, RegionServerMetrics.Bean bean) {
    counter("entriesWritten", "index entries that writes and builds made", counted.entriesWritten::sum);
    counter("entriesRemoved", "index entries that writes and builds removed", counted.entriesRemoved::sum);
    counter("writesWaited", "waits of writes for coordinators", bean::getWritesWaited);
    counter("writesWaitedMs", "milliseconds that these waits took together",
        () -> TimeUnit.NANOSECONDS.toMillis(counted.waitedNs.sum()));
    counter("writesTurnedAway", "writes refused since too many wait", bean::getWritesTurnedAway);
    counter("writesNotAcknowledged", "waits that ran out of time", bean::getWritesNotAcknowledged);
    counter("recounts", "filters counted, for the first time or anew", state.filters.counted::sum);
    counter("recountsFailed", "counts of a region's filters that failed", state.filters.failed::sum);
    counter("polls", "polls of coordinators", bean::getPolls);
    counter("searches", "search requests", bean::getSearches);
    counter("searchedRanges", "ranges of regions that these searched", bean::getSearchedRanges);
    counter("searchesNotProved", "requests not answered for lack of a proof of ownership", bean::getSearchesNotProved);
    counter("scannedRegions", "ranges that were searched without an index", bean::getScannedRegions);
    counter("entriesRead", "index entries that searches read", bean::getEntriesRead);
    counter("rowsRead", "rows that searches read", bean::getRowsRead);
    counter("rowsReturned", "rows that searches returned", bean::getRowsReturned);

    gauge("writesWaiting", "writes that wait for coordinators now", bean::getWritesWaiting);
    gauge("coordinators", "coordinators that poll", bean::getCoordinators);
    gauge("leases", "coordinators with a live lease", () -> state.feed.leases());
    gauge("feedEvents", "events kept for coordinators", bean::getFeedEvents);
    gauge("feedBytes", "bytes of these events", bean::getFeedBytes);
    gauge("filterBytes", "bytes of filters", bean::getFilterBytes);
    gauge("filterBytesMax", "bytes that filters with counters may take", bean::getFilterBytesMax);
    gauge("filtersOfBits", "filters without counters", bean::getFiltersOfBits);
    gauge("filtersMissing", "indexes of regions without a filter, for lack of memory", bean::getFiltersMissing);
    gauge("regions", "open regions of indexed tables", bean::getRegions);
    gauge("regionsBuilding", "regions whose entries or filters are being made or counted", () -> building(state));
    gauge("regionsIncomplete", "regions with an index that is not complete", bean::getRegionsIncomplete);
    gauge("regionsFailing", "regions whose indexes cannot be made or counted", bean::getRegionsFailing);
  }

  private void counter(String name, String description, LongSupplier value) {
    counters.add(new Metric(name, description, value));
  }

  private void gauge(String name, String description, LongSupplier value) {
    gauges.add(new Metric(name, description, value));
  }

  private static long building(RegionServerState state) {
    return state.regions.all().stream().filter(IndexedRegion::isWorkedOn).count();
  }

  static void register(RegionServerMetrics counted, RegionServerState state, RegionServerMetrics.Bean bean) {
    try {
      MetricsSystem system = DefaultMetricsSystem.instance();
      system.unregisterSource(NAME); // the source of an earlier life of this server
      system.register(NAME, DESCRIPTION, new ServerMetricsSource(counted, state, bean));
    } catch (RuntimeException e) {
      LOG.warn("HBase exports no metrics of Tamis", e);
    }
  }

  @Override
  public void getMetrics(MetricsCollector collector, boolean all) {
    MetricsRecordBuilder record = collector.addRecord(RECORD).setContext("regionserver");
    for (Metric metric : counters) record.addCounter(metric.info, metric.value.getAsLong());
    for (Metric metric : gauges) record.addGauge(metric.info, metric.value.getAsLong());
  }
}
