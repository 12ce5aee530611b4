package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static tamis.hbase.RegionForTest.encoded;

import java.io.IOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.RegionTooBusyException;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.feed.FeedOptions;
import tamis.feed.IndexEntry;
import tamis.index.BatchContext;
import tamis.index.IndexBuilder;
import tamis.region.IndexedRegion;
import tamis.server.TestServer;

/** Rules of regions that open: with an index that lacks entries, behind a dead owner, and under changed settings. */
class RegionOpeningTest extends RuleTestCase {
  // ---- A server without the observer takes rows, and the region comes back

  private static long missedAfterAVisitUnobserved() throws Exception {
    try (RegionForTest test = open(descriptor())) {
      test.region.put(put("early", "v"));
      test.reopenUnobserved();
      test.region.put(put("late", "w"));
      test.reopen();
      return missed(test);
    }
  }

  @Test
  void aRegionDoesNotOpenUnobserved() throws Exception {
    IOException e = assertThrows(IOException.class, RegionOpeningTest::missedAfterAVisitUnobserved);
    assertTrue(e.getMessage().contains("IndexObserver is not loaded"), e.toString());
    Fault.only(Fault.OPENS_UNOBSERVED);
    assertEquals(1, missedAfterAVisitUnobserved());
  }

  // ---- An index is created: regions open with it one after the other

  private static TableDescriptor descriptorOfTwoIndexes() throws IOException {
    return RegionForTest.descriptor(RegionForTest.schema()
                                        .setVersion(2)
                                        .addIndexes(RegionForTest.index(1, "by_a", true, 1))
                                        .addIndexes(RegionForTest.index(2, "by_s", true, 4))
                                        .build(),
        1);
  }

  private static Put putBoth(String row) {
    return put(row, "v").addColumn(RegionForTest.F, Bytes.toBytes("s"), Bytes.toBytes("w"));
  }

  private static long missedByANewIndex() throws Exception {
    try (RegionForTest test = open(descriptor())) {
      for (int i = 0; i < 10; ++i) test.region.put(putBoth("r" + i)); // without entries of the index to come
      test.reopen(descriptorOfTwoIndexes());
      return missed(test);
    }
  }

  @Test
  void anIndexIsBelievedOnlyWhereARegionHasItsEntries() throws Exception {
    assertEquals(0, missedByANewIndex());
    Fault.only(Fault.UNMARKED_BELIEVED);
    assertEquals(10, missedByANewIndex());
  }

  // ---- A region opens whose index lacks entries

  /**
   * Whether entries are made before the region is online: what is written then stands in the log before the region's
   * opening, with numbers below the one that it opens with, and the region may never come to be open here.
   */
  private boolean writesBeforeItIsOnline() throws Exception {
    try (RegionForTest test = open(descriptor())) {
      BatchContext.next().writer = BatchContext.Writer.INDEX;
      test.region.put(put("r", "v")); // without its entry
      BatchContext.next().writer = BatchContext.Writer.CLIENT;
      IndexBuilder.unmark(test.indexed());
      AtomicBoolean online = new AtomicBoolean();
      CountDownLatch asked = new CountDownLatch(1);
      List<Integer> entries = new CopyOnWriteArrayList<>(); // whenever the region is asked whether it is online
      IndexedRegion region = new IndexedRegion(test.region, test.indexed().table, "s,1,2", () -> {
        entries.add(entriesOf(test));
        asked.countDown();
        return online.get();
      }, TestServer.state());
      TestServer.state().opener.opened(region);
      try {
        if (!Fault.WRITTEN_BEFORE_ONLINE.isOn()) {
          asked.await();
          online.set(true);
        }
        while (!region.complete().contains(1)) Thread.yield();
        assertEquals(1, entriesOf(test) - 1); // and the marker
        return !online.get() || entries.get(0) > 0;
      } finally {
        region.setClosed();
        TestServer.close(region);
      }
    }
  }

  private static int entriesOf(RegionForTest test) {
    try {
      return test.entries().size();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  @Test
  void nothingIsWrittenBeforeARegionIsOnline() throws Exception {
    assertFalse(writesBeforeItIsOnline());
    Fault.only(Fault.WRITTEN_BEFORE_ONLINE);
    assertTrue(writesBeforeItIsOnline());
  }

  // ---- A region is opened after an owner that may still be believed

  /** Whether it is acknowledged before the region's opening wait is over. */
  private static boolean comesBeforeItsTime(Act act) throws Exception {
    try (RegionForTest test = open(descriptor())) {
      test.indexed().notBefore = System.nanoTime() + 3600 * SECOND;
      act.on(test);
      return true;
    } catch (RegionTooBusyException e) {
      return false;
    }
  }

  @Test
  void noFileIsLoadedBehindADeadOwner() throws Exception {
    Act load = test
        -> test.region.getCoprocessorHost().preBulkLoadHFile(
            Collections.singletonList(new Pair<>(RegionForTest.F, "/somewhere")));
    assertFalse(comesBeforeItsTime(load));
    Fault.only(Fault.LOAD_WITHOUT_OPENING_WAIT);
    assertTrue(comesBeforeItsTime(load));
  }

  /** A dead owner could still return the old value of the column, in rows that it finds by the index. */
  @Test
  void noColumnIsWrittenBehindADeadOwner() throws Exception {
    byte[] row = Bytes.toBytes("r");
    byte[] s = Bytes.toBytes("s"); // in no index
    Act[] writes = {
        test
        -> test.region.put(new Put(row).addColumn(RegionForTest.F, s, s)),
        test
        -> test.region.put(new Put(row).addColumn(RegionForTest.G, Bytes.toBytes("unmapped"), s)),
        test
        -> test.region.mutateRow(RowMutations.of(Arrays.asList(
            new Put(row).addColumn(RegionForTest.F, s, s), new Put(row).addColumn(RegionForTest.G, s, s)))),
    };
    for (Act write : writes) assertFalse(comesBeforeItsTime(write));
    assertFalse(comesBeforeItsTime(test -> test.region.put(put("r", "v"))));
    Fault.only(Fault.OPENING_WAIT_OF_INDEXES_ONLY);
    for (Act write : writes) assertTrue(comesBeforeItsTime(write));
    assertFalse(comesBeforeItsTime(test -> test.region.put(put("r", "v"))));
  }

  // ---- The settings of a server are read again

  /**
   * HBase makes the observers of the region again; whether its filter, which is published, lacks a value put after
   * that.
   */
  private boolean filterLacksWhatCameAfterAChangeOfSettings() throws Exception {
    TestServer.start(new FeedOptions());
    RegionForTest test = open(descriptor());
    IndexObserver before = test.observer();
    IndexedRegion region = before.indexed();
    try {
      TestServer.open(region);
      Configuration changed = new Configuration(test.conf);
      changed.set("hbase.coprocessor.region.classes", Thrower.class.getName());
      test.region.onConfigurationChange(changed);
      assertNotSame(before, test.observer());
      test.region.put(put("r", "v"));
      return !region.filters.get(1).mayContain(
          new IndexEntry(region.table.schema.index(1), encoded("v"), new byte[][] {encoded("v")}, 1, true));
    } finally {
      test.close();
      assertEquals(!Fault.OBSERVER_BEGINS_ANEW.isOn(), region.isClosed());
      TestServer.close(region);
    }
  }

  @Test
  void aRegionThatGetsItsObserversAnewGoesOn() throws Exception {
    assertFalse(filterLacksWhatCameAfterAChangeOfSettings());
    Fault.only(Fault.OBSERVER_BEGINS_ANEW);
    assertTrue(filterLacksWhatCameAfterAChangeOfSettings());
  }
}
