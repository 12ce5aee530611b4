package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.util.Arrays;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.metrics2.AbstractMetric;
import org.apache.hadoop.metrics2.MetricsRecord;
import org.apache.hadoop.metrics2.MetricsSource;
import org.apache.hadoop.metrics2.impl.MetricsCollectorImpl;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.junit.jupiter.api.Test;
import tamis.feed.FeedOptions;
import tamis.pb.Cluster;

/** Dashboards of users name these metrics: their golden names are here. */
class ServerMetricsSourceTest {
  private static RegionServerState state() {
    ServerLife life = new ServerLife();
    life.name = "s,1";
    life.startCode = 7;
    life.feed = new FeedOptions();
    RegionServerState state = new RegionServerState(life);
    state.metrics.register(state);
    return state;
  }

  private static TreeMap<String, Long> exported() {
    MetricsSource source = DefaultMetricsSystem.instance().getSource("RegionServer,sub=Tamis");
    assertNotNull(source);
    MetricsCollectorImpl collector = new MetricsCollectorImpl();
    source.getMetrics(collector, true);
    MetricsRecord record = collector.getRecords().get(0);
    assertEquals("Tamis", record.name());
    TreeMap<String, Long> values = new TreeMap<>();
    for (AbstractMetric metric : record.metrics()) values.put(metric.name(), metric.value().longValue());
    return values;
  }

  @Test
  void metricsKeepTheirNames() {
    state();
    assertEquals(
        new TreeSet<>(Arrays.asList("coordinators", "entriesRead", "entriesRemoved", "entriesWritten", "feedBytes",
            "feedEvents", "filterBytes", "filterBytesMax", "filtersMissing", "filtersOfBits", "leases", "polls",
            "recounts", "recountsFailed", "regions", "regionsBuilding", "regionsFailing", "regionsIncomplete",
            "rowsRead", "rowsReturned", "scannedRegions", "searchedRanges", "searches", "searchesNotProved",
            "writesNotAcknowledged", "writesTurnedAway", "writesWaited", "writesWaitedMs", "writesWaiting")),
        exported().keySet());
  }

  @Test
  void leasesAndFailedCountsAreExported() throws Exception {
    RegionServerState state = state();
    assertEquals(0, exported().get("leases"));
    Cluster.PollRequest poll = Cluster.PollRequest.newBuilder().setCoordinator(5).build();
    state.feed.poll(poll, () -> Long.MAX_VALUE / 2);
    state.filters.failed.increment();
    assertEquals(1, exported().get("leases"));
    assertEquals(1, exported().get("coordinators"));
    assertEquals(1, exported().get("recountsFailed"));
  }

  @Test
  void laterLifeOfAServerTakesThePlaceOfTheFormerOne() {
    RegionServerState former = state();
    former.wrote(5, 4);
    assertEquals(5, exported().get("entriesWritten"));
    RegionServerState later = state();
    later.wrote(3, 1);
    assertEquals(3, exported().get("entriesWritten"));
    assertEquals(1, exported().get("entriesRemoved"));
  }
}
