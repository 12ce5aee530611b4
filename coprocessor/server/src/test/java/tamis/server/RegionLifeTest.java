package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Collections;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CommonFSUtils;
import org.apache.hadoop.hbase.wal.WALSplitUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.feed.FeedOptions;
import tamis.feed.FilterFeed;
import tamis.feed.FilterRoom;
import tamis.feed.IndexFilter;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;

/** Servers that open one region after the other, or believe that they have it still. The clock is the test's. */
class RegionLifeTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

  private long now = 1000 * SECOND;
  private RegionForTest test;

  /** One life of a server. */
  private final class Server {
    final FilterFeed feed = new FilterFeed("s", 7, new FeedOptions(), () -> now, (column, bytes) -> null);
    final RegionLife life = new RegionLife(feed, () -> now, () -> false);

    /** Opens it as far as postOpen. */
    IndexedRegion open() {
      IndexedRegion region =
          new IndexedRegion(test.region, test.indexed().table, "s,1,2", () -> true, TestServer.state());
      life.opened(region);
      return region;
    }

    /** Once it is online. */
    void tell(IndexedRegion region) {
      region.told = true;
      feed.append(Cluster.Event.newBuilder()
                      .setKind(Cluster.Event.Kind.REGION_OPENED)
                      .setRegionId(region.id)
                      .setEpoch(region.epoch));
    }

    void close(IndexedRegion region) throws InterruptedException {
      life.closing(region);
      region.setClosed();
      life.closed(region, true);
    }

    /** Applies everything that is reported to a coordinator; true: it has a lease. */
    boolean poll(long applied) throws InterruptedException {
      return feed.poll(Cluster.PollRequest.newBuilder().setCoordinator(1).setStartCode(7).setApplied(applied).build(),
                     () -> now + 10 * SECOND)
                 .getLeaseNs()
          > 0;
    }
  }

  @BeforeEach
  void openRegion() throws Exception {
    test = RegionForTest.of(1, RegionForTest.index(1, "by_a", true, 1));
  }

  @AfterEach
  void closeRegion() throws Exception {
    Fault.only();
    test.close();
  }

  private boolean waits(IndexedRegion region) {
    return region.notBefore - now > 0;
  }

  private void waitOut(Server server, IndexedRegion region) throws Exception {
    assertEquals(Ownership.OPENING_WAIT_NS, server.life.settle(region));
    now += Ownership.OPENING_WAIT_NS;
    assertEquals(0, server.life.settle(region));
  }

  private int flags() throws Exception {
    Path directory = new Path(test.region.getRegionFileSystem().getRegionDir(), ".tamis");
    FileSystem files = test.region.getRegionFileSystem().getFileSystem();
    return files.exists(directory) ? files.listStatus(directory).length : 0;
  }

  @Test
  void regionThatWasClosedCleanlyOpensAtOnce() throws Exception {
    Server a = new Server();
    IndexedRegion first = a.open();
    assertFalse(waits(first));
    assertEquals(1, flags());
    a.tell(first);
    a.close(first);
    assertEquals(0, flags());
    assertFalse(waits(new Server().open()));
  }

  /** False: the rule is off, and the next owner acknowledges while a zombie may still be believed. */
  private boolean waitsBehindTheDead() throws Exception {
    new Server().open();
    Server b = new Server();
    IndexedRegion second = b.open();
    if (!waits(second)) return false;
    waitOut(b, second);
    assertFalse(waits(second));
    assertEquals(1, flags());
    return true;
  }

  @Test
  void openingBehindADeadOwnerWaits() throws Exception {
    assertTrue(waitsBehindTheDead());
  }

  @Test
  void faultNoOpeningWaitAcknowledgesAtOnce() throws Exception {
    Fault.only(Fault.NO_OPENING_WAIT);
    assertFalse(waitsBehindTheDead());
  }

  /** A dies, B opens and is closed within its wait: C must wait all the same. */
  private boolean thirdOwnerWaits() throws Exception {
    new Server().open();
    Server b = new Server();
    b.close(b.open());
    return waits(new Server().open());
  }

  @Test
  void regionClosedWithinItsWaitLeavesItToTheNextOwner() throws Exception {
    assertTrue(thirdOwnerWaits());
  }

  @Test
  void faultFlagLoweredBeforeItsWaitLetsTheThirdOwnerSkipTheWait() throws Exception {
    Fault.only(Fault.FLAG_LOWERED_BEFORE_ITS_WAIT);
    assertFalse(thirdOwnerWaits());
  }

  /** A is expelled without knowing, B opens the region, A closes it: B's flag stays, and C waits when B dies. */
  private boolean zombiesCloseLeavesTheFlag() throws Exception {
    Server a = new Server();
    IndexedRegion first = a.open();
    Server b = new Server();
    IndexedRegion second = b.open();
    waitOut(b, second);
    a.close(first);
    return waits(new Server().open());
  }

  @Test
  void eachTakesDownItsOwnFlagOnly() throws Exception {
    assertTrue(zombiesCloseLeavesTheFlag());
  }

  @Test
  void aZombieThatTakesDownAllFlagsHidesTheNextOwnersDeath() throws Exception {
    Fault.only(Fault.EVERY_FLAG_LOWERED);
    assertFalse(zombiesCloseLeavesTheFlag());
  }

  /** A coordinator has a lease, and has not heard of the closing: the next owner must wait. */
  private boolean waitsForWhoDoesNotKnow() throws Exception {
    Server a = new Server();
    IndexedRegion region = a.open();
    a.tell(region);
    assertTrue(a.poll(a.feed.last()));
    a.close(region);
    return waits(new Server().open());
  }

  @Test
  void theFlagStaysWhileACoordinatorDoesNotKnowOfTheClosing() throws Exception {
    assertTrue(waitsForWhoDoesNotKnow());
    Server b = new Server();
    IndexedRegion region = b.open();
    waitOut(b, region);
    b.tell(region);
    assertTrue(b.poll(b.feed.last()));
    b.life.closing(region);
    b.poll(b.feed.last()); // it knows
    b.life.closed(region, true);
    assertFalse(waits(new Server().open()));
  }

  @Test
  void faultClosingNotToldLetsTheNextOwnerSkipTheWait() throws Exception {
    Fault.only(Fault.CLOSING_NOT_TOLD);
    assertFalse(waitsForWhoDoesNotKnow());
  }

  @Test
  void withoutItsAcknowledgementTheNextOwnerWouldNotWait() throws Exception {
    Fault.only(Fault.FLAG_LOWERED_BEFORE_ALL_KNOW);
    assertFalse(waitsForWhoDoesNotKnow());
  }

  /** A is about to close the region, and stops: it is expelled without knowing, and answers searches as before. */
  private boolean waitsBehindWhoWasAboutToClose() throws Exception {
    Server a = new Server();
    IndexedRegion first = a.open();
    a.tell(first);
    a.life.closing(first);
    a.life.closing(first);
    return waits(new Server().open());
  }

  @Test
  void theFlagStaysUntilTheRegionIsClosed() throws Exception {
    assertTrue(waitsBehindWhoWasAboutToClose());
  }

  @Test
  void faultFlagLoweredInPreCloseHidesAZombie() throws Exception {
    Fault.only(Fault.FLAG_LOWERED_IN_PRECLOSE);
    assertFalse(waitsBehindWhoWasAboutToClose());
  }

  @Test
  void anAbortedRegionLeavesItsFlag() throws Exception {
    Server a = new Server();
    IndexedRegion region = a.open();
    region.setClosed();
    a.life.closed(region, false);
    assertTrue(waits(new Server().open()));
  }

  /** A count that goes on publishes nothing, and no clearer narrows the range. */
  @Test
  void filtersOfARegionThatWasClosedWithoutPreCloseAreRetired() throws Exception {
    Server a = new Server();
    IndexedRegion region = a.open();
    IndexFilter filter = new IndexFilter(a.feed, region.table.schema.index(1), region.id, region.epoch);
    region.filters = Collections.singletonMap(1, filter);
    a.tell(region);
    assertTrue(filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    region.setClosed();
    a.life.closed(region, false);
    filter.publish();
    assertFalse(filter.isPublished());
  }

  /** Whether a search of all rows is. */
  private static boolean isAnswered(IndexedRegion region) {
    tamis.pb.Table.Predicate every =
        tamis.pb.Table.Predicate.newBuilder().setKind(tamis.pb.Table.Predicate.Kind.TRUE).build();
    Cluster.SearchReply reply = TestServer.state().requests.search(
        Cluster.SearchRequest.newBuilder()
            .setTableId(region.table.tableId)
            .setSchemaVersion(1)
            .addRanges(Cluster.SearchRange.newBuilder().setRegionId(region.id))
            .addBranches(Cluster.Branch.newBuilder().setPredicate(every.toByteString()))
            .build());
    return reply.getResults(0).getError().getCode() == Cluster.Error.Code.OK;
  }

  /** The mark of a region that was made of others: their last number. */
  private void makeOfOthers() throws Exception {
    WALSplitUtil.writeRegionSequenceIdFile(
        CommonFSUtils.getWALFileSystem(test.conf), test.region.getWALRegionDir(), 17);
  }

  /** A parent that was closed within its wait left its flag with itself, and no file of it names it here. */
  private boolean waitsBehindAParentWithoutFiles() throws Exception {
    makeOfOthers();
    Server a = new Server();
    IndexedRegion region = a.open();
    if (!waits(region)) return false;
    assertEquals(0, a.life.settle(region)); // there are no flags to take down
    now = region.notBefore;
    assertFalse(waits(region));
    a.close(region);
    assertFalse(waits(new Server().open())); // its own opening is known
    return true;
  }

  @Test
  void regionThatMayHaveAnUnknownParentWaits() throws Exception {
    assertTrue(waitsBehindAParentWithoutFiles());
  }

  @Test
  void faultUnknownParentsNotFearedSkipsTheWait() throws Exception {
    Fault.only(Fault.UNKNOWN_PARENTS_NOT_FEARED);
    assertFalse(waitsBehindAParentWithoutFiles());
  }

  private static RegionInfo region(String start, String end) {
    return RegionInfoBuilder.newBuilder(TableName.valueOf("t"))
        .setStartKey(Bytes.toBytes(start))
        .setEndKey(Bytes.toBytes(end))
        .build();
  }

  /** Keys that none of them had are those of a parent that left no file. */
  @Test
  void parentsThatAreKnownHaveAllKeysOfARegion() {
    assertTrue(RegionLife.covered(region("b", "d"), Arrays.asList(region("a", ""))));
    assertTrue(RegionLife.covered(region("", ""), Arrays.asList(region("m", ""), region("", "m"))));
    assertTrue(
        RegionLife.covered(region("a", "d"), Arrays.asList(region("a", "b"), region("b", "c"), region("c", "d"))));
    assertFalse(RegionLife.covered(region("a", "d"), Arrays.asList(region("a", "b"), region("c", "d"))));
    assertFalse(RegionLife.covered(region("a", "d"), Arrays.asList(region("b", "d"))));
    assertFalse(RegionLife.covered(region("a", ""), Arrays.asList(region("a", "d"))));
    assertFalse(RegionLife.covered(region("", ""), Collections.emptyList()));
  }

  /** All regions of a table that is attached are like this. */
  @Test
  void regionWithFilesOfItsOwnOpensAtOnce() throws Exception {
    makeOfOthers();
    test.region.put(new Put(Bytes.toBytes("row")).addColumn(RegionForTest.F, Bytes.toBytes("a"), Bytes.toBytes("v")));
    test.region.flush(true);
    assertFalse(waits(new Server().open()));
  }

  @Test
  void regionClosedWithinTheWaitForUnknownParentsLeavesItToTheNextOwner() throws Exception {
    makeOfOthers();
    Server a = new Server();
    a.close(a.open());
    assertTrue(waits(new Server().open()));
  }

  /** A's flag cannot be written; it is expelled without knowing, and B opens the region and finds no flag. */
  private boolean believedBesideTheNextOwner() throws Exception {
    ServerLife server = TestServer.life(new FeedOptions());
    server.ownership = new Ownership(() -> {}); // its last proof still holds
    FilterFeed feed = TestServer.start(server).feed;
    Path directory = new Path(test.region.getRegionFileSystem().getRegionDir(), ".tamis");
    FileSystem files = test.region.getRegionFileSystem().getFileSystem();
    files.create(directory).close(); // a file stands in the way
    IndexedRegion first = new Server().open();
    assertTrue(waits(first));
    TestServer.tell(first);
    files.delete(directory, false);
    try {
      assertFalse(waits(new Server().open())); // it acknowledges at once
      boolean answers = isAnswered(first);
      assertEquals(answers, feed.openRegions().contains(first.id));
      return answers;
    } finally {
      TestServer.close(first);
      TestServer.stop();
    }
  }

  @Test
  void regionWithoutItsFlagIsNeitherSearchedNorAnnounced() throws Exception {
    assertFalse(believedBesideTheNextOwner());
  }

  @Test
  void faultBelievedBeforeItsFlagSearchesTheRegion() throws Exception {
    Fault.only(Fault.BELIEVED_BEFORE_ITS_FLAG);
    assertTrue(believedBesideTheNextOwner());
  }

  // ---- Searches that take long

  /** Searched on a server that proves by `ownership`; what happens to the region meanwhile is `meanwhile`. */
  private boolean isAnsweredThough(Ownership ownership, java.util.function.Consumer<IndexedRegion> meanwhile)
      throws Exception {
    ServerLife server = TestServer.life(new FeedOptions());
    server.ownership = ownership;
    TestServer.start(server);
    IndexedRegion[] region = new IndexedRegion[1];
    region[0] = new IndexedRegion(test.region, test.indexed().table, "s,1,2", () -> {
      meanwhile.accept(region[0]);
      return true;
    }, TestServer.state());
    new Server().life.opened(region[0]);
    TestServer.tell(region[0]);
    try {
      return isAnswered(region[0]);
    } finally {
      TestServer.close(region[0]);
      TestServer.stop();
    }
  }

  /** It takes longer than a proof holds, and the region is another server's meanwhile. */
  private boolean answersPastItsProof() throws Exception {
    boolean[] expelled = new boolean[1];
    Ownership ownership = new Ownership(() -> {
      if (expelled[0]) throw new java.io.IOException("another one has the regions");
    }, () -> now, () -> now / 1_000_000);
    return isAnsweredThough(ownership, region -> {
      expelled[0] = true;
      now += Ownership.OPENING_WAIT_NS;
    });
  }

  @Test
  void aSearchIsAnsweredOnAProofThatHoldsAtItsEnd() throws Exception {
    assertFalse(answersPastItsProof());
    Fault.only(Fault.NO_PROOF_AT_THE_END);
    assertTrue(answersPastItsProof());
  }

  /** The region is closed meanwhile, and another server may have opened it at once. */
  private boolean answersForAClosedRegion() throws Exception {
    return isAnsweredThough(new Ownership(() -> {}), IndexedRegion::setClosed);
  }

  @Test
  void aSearchOfARegionThatWasClosedMeanwhileIsNotAnswered() throws Exception {
    assertFalse(answersForAClosedRegion());
    Fault.only(Fault.CLOSED_REGION_ANSWERS);
    assertTrue(answersForAClosedRegion());
  }

  /** A's flag is raised late: while the region is still A's, or when A has lost it to B without knowing. */
  private boolean believedWithALateFlag(boolean owns) throws Exception {
    boolean[] lost = new boolean[1];
    Ownership ownership = new Ownership(() -> {
      if (lost[0]) throw new java.io.IOException("another one has the regions");
    }, () -> now, () -> now / 1_000_000);
    assertTrue(ownership.ensure()); // which holds
    ++now;
    Path directory = new Path(test.region.getRegionFileSystem().getRegionDir(), ".tamis");
    FileSystem files = test.region.getRegionFileSystem().getFileSystem();
    files.create(directory).close(); // a file stands in the way
    Server a = new Server();
    IndexedRegion region = a.open();
    assertFalse(a.life.raiseLate(region, ownership::proveAnew));
    files.delete(directory, false);
    lost[0] = !owns;
    if (!owns) assertFalse(waits(new Server().open())); // it acknowledges at once
    boolean raised = a.life.raiseLate(region, ownership::proveAnew);
    assertEquals(raised, region.flag != null);
    assertTrue(waits(region));
    return raised;
  }

  @Test
  void aFlagThatCouldNotBeRaisedIsRaisedLater() throws Exception {
    assertTrue(believedWithALateFlag(true));
    assertEquals(1, flags());
    assertTrue(waits(new Server().open())); // when A has died
  }

  @Test
  void aLateFlagIsGoodOnlyBehindAProof() throws Exception {
    assertFalse(believedWithALateFlag(false));
  }

  @Test
  void faultLateFlagWithoutProofBelievesAZombie() throws Exception {
    Fault.only(Fault.LATE_FLAG_WITHOUT_PROOF);
    assertTrue(believedWithALateFlag(false));
  }

  // ---- Proofs

  /** The machine sleeps: its clock stands still, the wall's does not. */
  private boolean believesAfterSleep() {
    long[] wallMs = {1_000_000};
    boolean[] fails = new boolean[1];
    Ownership ownership = new Ownership(() -> {
      if (fails[0]) throw new java.io.IOException("another one has the regions");
    }, () -> now, () -> wallMs[0]);
    assertTrue(ownership.ensure());
    fails[0] = true;
    assertTrue(ownership.ensure()); // the last one holds
    wallMs[0] += 10_000;
    return ownership.ensure();
  }

  @Test
  void proofFromBeforeASleepIsNotBelieved() {
    assertFalse(believesAfterSleep());
  }

  @Test
  void faultSleepNotNoticedBelievesTheProof() {
    Fault.only(Fault.SLEEP_NOT_NOTICED);
    assertTrue(believesAfterSleep());
  }

  /** The log's last sync ends long after it began, when the region may be open elsewhere already. */
  private boolean believesASlowProof() {
    Ownership ownership = new Ownership(() -> now += 3 * SECOND, () -> now, () -> now / 1_000_000);
    return ownership.ensure();
  }

  @Test
  void aProofCountsFromItsBegin() {
    assertFalse(believesASlowProof());
    Fault.only(Fault.PROOF_AS_OF_ITS_END);
    assertTrue(believesASlowProof());
  }
}
