package tamis.server;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.lang.reflect.Proxy;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.regionserver.RegionServerServices;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import tamis.base.Fault;
import tamis.feed.FeedCopy;
import tamis.feed.FeedOptions;
import tamis.hbase.IndexObserver;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;

/** The state of a server outlives its regions, as leases do. */
@Timeout(120) // a test that would wait for ever
class RegionServersTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final byte[] A = Bytes.toBytes("a");
  private static int port; // another server for each test

  private RegionForTest test;
  private final ServerName name = ServerName.valueOf("s", ++port, 7);
  private final FeedCopy copy = new FeedCopy(99);

  @AfterEach
  void closeRegion() throws Exception {
    Fault.only();
    test.close();
  }

  /** The server of this name, on which every region is online. */
  private RegionServerServices services() {
    return (RegionServerServices) Proxy.newProxyInstance(RegionServersTest.class.getClassLoader(),
        new Class<?>[] {RegionServerServices.class}, (proxy, method, arguments) -> {
          if (method.getName().equals("getServerName")) return name;
          if (method.getName().equals("getRegion")) return test == null ? null : test.region;
          return method.getReturnType() == boolean.class ? (Object) false : null;
        });
  }

  private RegionServerState state() {
    return test.state();
  }

  /** A server whose ownership is proved at once, and whose leases outlive the test. */
  private RegionServerState started() {
    ServerLife life = TestServer.life(new FeedOptions());
    life.feed.leaseNs = 600 * SECOND;
    life.ownership = new Ownership(() -> {});
    life.raisesFlags = true;
    return new RegionServerState(life);
  }

  /** Waits until the region's filter is published. */
  private void awaitPublished() {
    IndexedRegion region = test.indexed();
    while (region.filters.get(1) == null || !region.filters.get(1).isPublished()) Thread.yield();
  }

  /** Polls as a coordinator until it has applied everything. */
  private void poll(RegionServerState state) throws Exception {
    for (int i = 0; i < 3; ++i) {
      long sent = System.nanoTime();
      copy.apply(Cluster.PollReply.parseFrom(state.requests.call("Poll", copy.request(0).toByteArray())), sent);
    }
  }

  /** Waits until the garbage collector has taken the object. */
  private static void awaitCollected(WeakReference<?> object) {
    while (object.get() != null) System.gc();
  }

  /** Whether a put into a region that was closed and opened again waits for a coordinator with an older lease. */
  private boolean putWaitsBehindReopening(boolean forgets) throws Exception {
    RegionServers.of(name, this::started);
    test = new RegionForTest(
        RegionForTest.descriptor(RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build(), 1),
        new byte[0], new byte[0], services());
    awaitPublished();
    poll(state());
    WeakReference<IndexObserver> observer = new WeakReference<>(test.observer());
    test.region.getCoprocessorHost().preClose(false);
    poll(state()); // it learns of the closing, so that the next opening takes writes at once
    test.region.close();
    if (forgets) {
      Fault.only(Fault.STATE_FORGOTTEN_WITH_LAST_REGION);
      RegionServers.of(name, this::started);
      Fault.only();
    }
    test.reopen();
    awaitCollected(observer);
    awaitPublished();
    AtomicReference<Throwable> failed = new AtomicReference<>();
    Thread writer = new Thread(() -> {
      try {
        test.region.put(new Put(Bytes.toBytes("r")).addColumn(RegionForTest.F, A, Bytes.toBytes("new")));
      } catch (Throwable e) {
        failed.set(e);
      }
    });
    writer.start();
    while (writer.isAlive() && state().feed.waiting() == 0) Thread.yield();
    boolean waits = state().feed.waiting() > 0;
    while (writer.isAlive()) poll(state()); // goes on where the coordinator was: else FeedCopy throws
    assertNull(failed.get());
    return waits;
  }

  @Test
  void leaseAndSequenceOutliveTheLastRegion() throws Exception {
    assertTrue(putWaitsBehindReopening(false));
    assertSame(state(), RegionServers.of(name, () -> null));
  }

  @Test
  void faultStateForgottenLetsAPutSkipTheWait() throws Exception {
    assertFalse(putWaitsBehindReopening(true));
  }

  @Test
  void eachServerOfAProcessHasItsOwnState() throws Exception {
    RegionServerState one = RegionServers.of(name, this::started);
    RegionServerState other = RegionServers.of(ServerName.valueOf("s", ++port, 7), this::started);
    RegionServerState later = RegionServers.of(ServerName.valueOf("s", name.getPort(), 8), this::started);
    assertNotSame(one, other);
    assertNotSame(one, later);
    test = new RegionForTest(
        RegionForTest.descriptor(RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build(), 1),
        new byte[0], new byte[0], services());
    assertSame(one, state());
  }
}
