package tamis.feed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.pb.Cluster;
import tamis.pb.Cluster.Event;
import tamis.shaded.protobuf.ByteString;

/** The bounds of a feed, each at its edge, by a clock of the test's own. */
class FilterFeedTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final long START_CODE = 7;
  private static final long NEVER = TimeUnit.DAYS.toNanos(1); // options.lookNs: every waiter must be woken

  private final FeedOptions options = new FeedOptions();
  private volatile long now = 1000 * SECOND;
  private final List<Cluster.Projection> projections = new ArrayList<>();
  private final FilterFeed feed = new FilterFeed("s", START_CODE, options, () -> now, (column, maxBytes) -> {
    for (Cluster.Projection projection : projections) {
      if (projection.getRegionId() == column.getRegionId()) return projection;
    }
    return null;
  });

  private static Cluster.PollRequest.Builder request(long coordinator, long applied) {
    return Cluster.PollRequest.newBuilder().setCoordinator(coordinator).setStartCode(START_CODE).setApplied(applied);
  }

  private Cluster.PollReply poll(long coordinator, long applied) throws Exception {
    return poll(request(coordinator, applied), null);
  }

  private Cluster.PollReply poll(Cluster.PollRequest.Builder request, Set<Integer> tables) throws Exception {
    return feed.poll(request.build(), () -> now + 100 * SECOND, new FilterFeed.Reader("", "", tables));
  }

  private long opened(long region, int table) {
    return feed.append(Event.newBuilder().setKind(Event.Kind.REGION_OPENED).setRegionId(region).setTableId(table));
  }

  private long closed(long region) {
    return feed.append(Event.newBuilder().setKind(Event.Kind.REGION_CLOSED).setRegionId(region));
  }

  private Cluster.StatusReply status(boolean withNames) {
    Cluster.StatusReply.Builder reply = Cluster.StatusReply.newBuilder();
    feed.describe(reply, withNames);
    return reply.build();
  }

  // ---- Status

  @Test
  void statusTellsOfCoordinatorsAndTheirLeases() throws Exception {
    poll(5, 0);
    closed(1);
    closed(2);
    poll(5, 1);
    Cluster.StatusReply status = status(true);
    assertEquals(START_CODE, status.getStartCode());
    assertEquals(START_CODE, feed.startCode());
    assertEquals("s", status.getServer());
    assertEquals(1, status.getFeedEvents());
    assertTrue(status.getFeedBytes() > 0);
    assertEquals(1, status.getCoordinatorsCount());
    assertEquals(5, status.getCoordinators(0).getCoordinator());
    assertEquals(1, status.getCoordinators(0).getEventsBehind());
    assertEquals(options.leaseNs + options.leaseMarginNs, status.getCoordinators(0).getLeaseLeftNs());
    assertEquals(0, status(false).getCoordinators(0).getCoordinator());
    now += options.leaseNs + options.leaseMarginNs;
    assertEquals(0, status(true).getCoordinators(0).getLeaseLeftNs());
    now += options.silenceNs - options.leaseNs - options.leaseMarginNs - 1;
    assertEquals(1, status(true).getCoordinatorsCount());
    ++now;
    assertEquals(0, status(true).getCoordinatorsCount());
    assertEquals(0, status(true).getFeedEvents(), "no coordinator listens any more");
  }

  @Test
  void statusNamesProgramsOnlyWhereAllUsersHaveAllRights() throws Exception {
    Cluster.PollRequest request = Cluster.PollRequest.newBuilder().setCoordinator(5).build();
    feed.poll(request, () -> now + options.leaseNs, new FilterFeed.Reader("ada", "10.0.0.7", null));
    feed.poll(request, () -> now + options.leaseNs, new FilterFeed.Reader("ada", "10.0.0.8", null));
    Cluster.CoordinatorStatus shown = status(true).getCoordinators(0);
    assertEquals(Arrays.asList("ada", "10.0.0.8"), Arrays.asList(shown.getUser(), shown.getHost()));
    Cluster.CoordinatorStatus hidden = status(false).getCoordinators(0);
    assertEquals(Arrays.asList("", ""), Arrays.asList(hidden.getUser(), hidden.getHost()));
    assertEquals(shown.getLeaseLeftNs(), hidden.getLeaseLeftNs());
  }

  // ---- Coordinators

  @Test
  void coordinatorBeyondTheMostIsNotHeardUntilAnotherIsGone() throws Exception {
    options.maxListeners = 2;
    poll(1, 0);
    now += 1;
    poll(2, 0);
    assertEquals(0, poll(3, 0).getLeaseNs());
    assertEquals(2, status(true).getCoordinatorsCount());
    now += options.leaseNs + options.leaseMarginNs - 2; // the first one's lease still runs
    assertEquals(0, poll(3, 0).getLeaseNs());
    now += 1; // and ends
    assertTrue(poll(3, 0).getLeaseNs() > 0);
    assertEquals(2, status(true).getCoordinatorsCount());
  }

  @Test
  void noMoreCoordinatorsThanTheMostHaveLeases() throws Exception {
    options.maxCoordinators = 2;
    assertTrue(poll(1, 0).getLeaseNs() > 0);
    assertTrue(poll(2, 0).getLeaseNs() > 0);
    assertEquals(0, poll(3, 0).getLeaseNs());
    assertTrue(poll(1, 0).getLeaseNs() > 0, "it goes on");
    now += options.leaseNs + options.leaseMarginNs;
    assertTrue(poll(3, 0).getLeaseNs() > 0);
  }

  @Test
  void coordinatorThatLagsForMoreThanALeaseGetsNone() throws Exception {
    poll(1, 0);
    closed(1);
    assertTrue(poll(1, 0).getLeaseNs() > 0); // sent now
    now += options.leaseNs;
    assertTrue(poll(1, 0).getLeaseNs() > 0);
    ++now;
    assertEquals(0, poll(1, 0).getLeaseNs());
    assertTrue(poll(1, 1).getLeaseNs() > 0);
    now += 2 * options.leaseNs;
    assertTrue(poll(1, 1).getLeaseNs() > 0, "nothing is sent that it has not applied");
    now += 2 * options.leaseNs;
    assertTrue(poll(request(1, 1).setStartCode(0), null).getLeaseNs() > 0, "nor to one that begins anew");
  }

  @Test
  void shorterLeaseDoesNotEndALongerOne() throws Exception {
    poll(1, 0);
    long left = status(true).getCoordinators(0).getLeaseLeftNs();
    assertEquals(10, feed.poll(request(1, 0).build(), () -> now + 10).getLeaseNs());
    assertEquals(left, status(true).getCoordinators(0).getLeaseLeftNs());
    assertEquals(0, feed.poll(request(2, 0).build(), () -> now).getLeaseNs());
    assertEquals(0, status(true).getCoordinators(1).getLeaseLeftNs());
    now += 5;
    poll(1, 0);
    assertEquals(left, status(true).getCoordinators(0).getLeaseLeftNs());
  }

  /** Another life's numbers acknowledge nothing. */
  @Test
  void pollOfAnotherStartCodeAcknowledgesNothing() throws Exception {
    poll(1, 0);
    long number = closed(1);
    assertTrue(poll(request(1, number).setStartCode(START_CODE + 1), null).getFull());
    assertFalse(feed.waitAcknowledged(number, now));
    assertEquals(number - 1, feed.acknowledgedFloor());
    poll(1, number);
    assertTrue(feed.waitAcknowledged(number, now));
    assertEquals(number, feed.acknowledgedFloor());
    poll(1, 0); // a late poll takes nothing back
    assertEquals(number, feed.acknowledgedFloor());
    assertTrue(poll(1, number + 1).getFull(), "more than there is");
  }

  // ---- Events

  @Test
  void repliesAreCutAtTheirBound() throws Exception {
    poll(1, 0);
    poll(2, 0); // the events are kept for this one
    for (int region = 1; region <= 4; ++region) closed(region);
    int bytes =
        Event.newBuilder().setKind(Event.Kind.REGION_CLOSED).setRegionId(1).setSequence(1).build().getSerializedSize();
    options.replyBytes = 2 * bytes;
    Cluster.PollReply cut = poll(1, 0);
    assertEquals(2, cut.getTo());
    assertEquals(0, cut.getLeaseNs(), "puts may be acknowledged whose events it lacks");
    Cluster.PollReply next = poll(1, 1);
    assertEquals(3, next.getTo(), "the event that it has does not count");
    assertEquals(2, next.getEventsCount());
    options.replyBytes = 2 * bytes - 1;
    assertEquals(1, poll(1, 0).getTo());
    options.replyBytes = 0;
    assertEquals(3, poll(1, 2).getTo(), "one goes in any case");
  }

  @Test
  void noMoreEventsThanTheMostAreKept() throws Exception {
    poll(1, 0);
    options.maxEvents = 3;
    for (int region = 1; region <= 3; ++region) closed(region);
    assertFalse(poll(1, 0).getFull());
    assertEquals(3, status(true).getFeedEvents());
    closed(4);
    assertEquals(3, status(true).getFeedEvents());
    assertTrue(poll(1, 0).getFull());
    options.maxEvents = 100;
    options.maxEventBytes = feed.eventBytes();
    poll(1, 1);
    assertEquals(3, status(true).getFeedEvents());
    options.maxEventBytes = feed.eventBytes() - 1;
    assertEquals(2, status(true).getFeedEvents());
  }

  @Test
  void wholeStateHoldsTablesAndRegionsThatTheCallerMayKnow() throws Exception {
    feed.tellTable(1, 3);
    feed.tellTable(1, 3); // known
    feed.tellTable(1, 2); // older
    feed.tellTable(2, 1);
    assertEquals(2, feed.last());
    opened(10, 1);
    opened(20, 2);
    feed.append(Event.newBuilder().setKind(Event.Kind.INDEX_COMPLETE).setRegionId(10).setIndexId(4).setLayers(1));
    feed.append(Event.newBuilder().setKind(Event.Kind.LAYER_ADDED).setRegionId(10).setIndexId(4).setLayers(2));
    feed.append(Event.newBuilder()
                    .setKind(Event.Kind.RANGE_WIDENED)
                    .setRegionId(10)
                    .setIndexId(4)
                    .setHasRange(true)
                    .setMin(ByteString.copyFromUtf8("a"))
                    .setMax(ByteString.copyFromUtf8("b")));
    assertEquals(new HashSet<>(Arrays.asList(10L, 20L)), feed.openRegions());
    Cluster.PollReply all = poll(request(1, 0).setStartCode(0), null);
    assertTrue(all.getFull());
    assertEquals(feed.last(), all.getFrom());
    assertEquals(feed.last(), all.getTo());
    assertEquals(5, all.getEventsCount());
    Cluster.PollReply one = poll(request(2, 0).setStartCode(0), Collections.singleton(1));
    assertEquals(3, one.getEventsCount());
    assertEquals(3, one.getEvents(0).getSchemaVersion());
    assertEquals(10, one.getEvents(1).getRegionId());
    Event complete = one.getEvents(2);
    assertEquals(2, complete.getLayers());
    assertEquals("b", complete.getMax().toStringUtf8());
    feed.append(Event.newBuilder().setKind(Event.Kind.INDEX_DROPPED).setRegionId(10).setIndexId(4));
    feed.tellTable(2, 0);
    closed(20);
    assertEquals(2, poll(request(3, 0).setStartCode(0), null).getEventsCount());
  }

  /** Region 1 in its second opening, whose index 5 has the range b to y in its fourth generation. */
  private void openSecondTime() {
    feed.append(ofOpening(Event.Kind.REGION_OPENED, 2));
    feed.append(range(Event.Kind.INDEX_COMPLETE, 2, 4, "b", "y").setLayers(1));
  }

  private static Event.Builder ofOpening(Event.Kind kind, long epoch) {
    return Event.newBuilder().setKind(kind).setRegionId(1).setEpoch(epoch);
  }

  private static Event.Builder range(Event.Kind kind, long epoch, long generation, String min, String max) {
    return ofOpening(kind, epoch)
        .setIndexId(5)
        .setGeneration(generation)
        .setHasRange(true)
        .setMin(ByteString.copyFromUtf8(min))
        .setMax(ByteString.copyFromUtf8(max));
  }

  private static Event.Builder layers(long epoch, long generation) {
    return ofOpening(Event.Kind.LAYER_ADDED, epoch).setIndexId(5).setGeneration(generation).setLayers(2);
  }

  private String wholeState() throws Exception {
    StringBuilder state = new StringBuilder();
    for (Event event : poll(request(1, 0).setStartCode(0), null).getEventsList()) {
      if (event.getKind() == Event.Kind.REGION_OPENED) state.append("open");
      if (event.getKind() != Event.Kind.INDEX_COMPLETE) continue;
      state.append(", " + event.getMin().toStringUtf8() + " to " + event.getMax().toStringUtf8());
      state.append(", " + event.getLayers());
    }
    return state.toString();
  }

  @Test
  void wholeStateFollowsTheEventsOfTheOpeningAndGeneration() throws Exception {
    openSecondTime();
    assertEquals("open, b to y, 1", wholeState());
    feed.append(range(Event.Kind.RANGE_WIDENED, 2, 4, "a", "z"));
    feed.append(layers(2, 4));
    assertEquals("open, a to z, 2", wholeState());
  }

  /** Otherwise a range of other values could exclude the region. */
  @Test
  void wholeStateKeepsNothingOfAnotherGeneration() throws Exception {
    openSecondTime();
    for (long generation : new long[] {3, 5}) {
      feed.append(range(Event.Kind.RANGE_WIDENED, 2, generation, "m", "m"));
      feed.append(layers(2, generation));
    }
    assertEquals("open, b to y, 1", wholeState());
  }

  @Test
  void wholeStateKeepsNothingOfAnotherOpening() throws Exception {
    openSecondTime();
    for (long epoch : new long[] {1, 3}) {
      feed.append(range(Event.Kind.RANGE_WIDENED, epoch, 4, "m", "m"));
      feed.append(layers(epoch, 4));
      feed.append(range(Event.Kind.INDEX_COMPLETE, epoch, 6, "m", "m"));
      feed.append(range(Event.Kind.INDEX_DROPPED, epoch, 4, "", ""));
      feed.append(ofOpening(Event.Kind.REGION_CLOSED, epoch));
    }
    assertEquals("open, b to y, 1", wholeState());
    feed.append(range(Event.Kind.INDEX_DROPPED, 2, 4, "", ""));
    assertEquals("open", wholeState());
    feed.append(ofOpening(Event.Kind.REGION_CLOSED, 2));
    assertEquals("", wholeState());
  }

  // ---- Bits

  private void project(long region, int bytes) {
    projections.add(Cluster.Projection.newBuilder()
                        .setRegionId(region)
                        .setAsOf(feed.last())
                        .addLayers(ByteString.copyFrom(new byte[bytes]))
                        .build());
  }

  private Cluster.PollReply want(Set<Integer> tables) throws Exception {
    Cluster.PollRequest.Builder request = request(1, feed.last());
    for (long region : new long[] {10, 20, 30}) request.addWanted(Cluster.ColumnId.newBuilder().setRegionId(region));
    return poll(request, tables);
  }

  @Test
  void bitsOfTablesThatTheCallerMayKnowAreSentUpToTheBound() throws Exception {
    opened(10, 1);
    opened(20, 2);
    poll(request(1, feed.last()), null);
    project(10, 16);
    project(20, 16);
    project(30, 16); // the bits of a region that is not open
    assertEquals(3, want(null).getProjectionsCount());
    options.projectionBytes = 16 + 7; // less than a word is left
    assertEquals(1, want(null).getProjectionsCount());
    options.projectionBytes = 16 + 8;
    assertEquals(2, want(null).getProjectionsCount());
    options.projectionBytes = 1 << 20;
    poll(request(1, feed.last()), Collections.singleton(2));
    Cluster.PollReply some = want(Collections.singleton(2));
    assertEquals(1, some.getProjectionsCount());
    assertEquals(20, some.getProjections(0).getRegionId());
    Cluster.PollRequest.Builder wants =
        request(1, feed.last()).addWanted(Cluster.ColumnId.newBuilder().setRegionId(20));
    assertEquals(1, poll(wants, Collections.singleton(2)).getProjectionsCount());
    Cluster.PollReply whole = poll(wants.setStartCode(0), Collections.singleton(2));
    assertTrue(whole.getFull());
    assertEquals(0, whole.getProjectionsCount(), "the copy that they belong to is replaced");
    projections.set(1, projections.get(1).toBuilder().setAsOf(feed.last() + 1).build());
    assertEquals(0, want(Collections.singleton(2)).getProjectionsCount(), "later than the events");
  }

  // ---- Puts

  /** No lease and no patience ends before the test does: a waiter goes on because it is woken. */
  private void waitForEver() {
    options.lookNs = NEVER;
    options.leaseNs = NEVER;
    options.patienceNs = NEVER;
    options.maxQueuedNs = NEVER;
  }

  private Cluster.PollReply pollForEver(long coordinator, long applied) throws InterruptedException {
    return feed.poll(request(coordinator, applied).build(), () -> now + NEVER);
  }

  @Test
  void putsThatWaitCrowdTheServer() throws Exception {
    waitForEver();
    options.maxWaiting = 1;
    assertFalse(feed.isCrowded());
    pollForEver(1, 0);
    long number = closed(1);
    boolean[] acknowledged = new boolean[1];
    Thread put = new Thread(() -> {
      try {
        acknowledged[0] = feed.waitAcknowledged(number, now + NEVER);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    });
    put.start();
    while (feed.waiting() == 0) Thread.yield();
    assertEquals(1, feed.waiting());
    assertTrue(feed.isCrowded());
    pollForEver(1, number);
    put.join();
    assertTrue(acknowledged[0]);
    assertEquals(0, feed.waiting());
    assertFalse(feed.isCrowded());
  }

  /** A thread that runs until it waits for something. */
  private static Thread waiting(Callable<Boolean> work, AtomicReference<Boolean> result) {
    Thread thread = new Thread(() -> {
      try {
        result.set(work.call());
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    });
    thread.start();
    while (thread.getState() != Thread.State.TIMED_WAITING) Thread.yield();
    return thread;
  }

  @Test
  void putBeyondTheMostThatWaitQueuesUntilOneIsAcknowledged() throws Exception {
    waitForEver();
    options.maxWaiting = 1;
    assertTrue(feed.awaitRoom(Long.MAX_VALUE, () -> false));
    pollForEver(1, 0);
    long number = closed(1);
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    AtomicReference<Boolean> room = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(number, now + NEVER), acknowledged);
    now += SECOND;
    Thread queued = waiting(() -> feed.awaitRoom(Long.MAX_VALUE, () -> false), room);
    assertEquals(1, feed.waiting());
    pollForEver(1, number);
    put.join();
    queued.join();
    assertTrue(acknowledged.get());
    assertTrue(room.get());
  }

  @Test
  void queuedPutGoesOnOnceItsOwnEventIsAcknowledged() throws Exception {
    waitForEver();
    options.maxWaiting = 1;
    pollForEver(1, 0);
    long ofQueued = closed(1);
    long ofWaiting = closed(2);
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    AtomicReference<Boolean> goesOn = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(ofWaiting, now + NEVER), acknowledged);
    Thread queued = waiting(() -> feed.awaitRoom(ofQueued, () -> false), goesOn);
    pollForEver(1, ofQueued);
    queued.join();
    assertTrue(goesOn.get());
    assertEquals(1, feed.waiting());
    assertTrue(feed.awaitRoom(ofQueued, () -> false), "nothing to wait for");
    pollForEver(1, ofWaiting);
    put.join();
    assertTrue(acknowledged.get());
  }

  /** Each place that becomes free is another one's, also where one poll frees several. */
  @Test
  void eachFreePlaceWakesAnotherQueuedPut() throws Exception {
    waitForEver();
    options.maxWaiting = 2;
    pollForEver(1, 0);
    long number = closed(1);
    AtomicReference<Boolean> done = new AtomicReference<>();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 2; ++i) threads.add(waiting(() -> feed.waitAcknowledged(number, now + NEVER), done));
    List<AtomicReference<Boolean>> rooms = new ArrayList<>();
    for (int i = 0; i < 2; ++i) {
      AtomicReference<Boolean> room = new AtomicReference<>();
      rooms.add(room);
      threads.add(waiting(() -> feed.awaitRoom(Long.MAX_VALUE, () -> false), room));
    }
    pollForEver(1, number);
    for (Thread thread : threads) thread.join();
    for (AtomicReference<Boolean> room : rooms) assertTrue(room.get());
  }

  @Test
  void coordinatorIsStuckOnceNoPutWasAcknowledgedForAWhile() throws Exception {
    waitForEver();
    options.maxWaiting = 1;
    options.patienceNs = SECOND;
    pollForEver(1, 0);
    long number = closed(1);
    AtomicReference<Boolean> done = new AtomicReference<>();
    assertFalse(feed.isStuck());
    Thread put = waiting(() -> feed.waitAcknowledged(number, now + NEVER), done);
    assertFalse(feed.isStuck());
    now += SECOND;
    assertTrue(feed.isStuck());
    assertFalse(feed.awaitRoom(Long.MAX_VALUE, () -> false));
    pollForEver(1, number);
    put.join();
    assertFalse(feed.isStuck());
  }

  /** The place of the one that waited is free, and the first one that queued does not need it. */
  @Test
  void acknowledgedPutLeavesItsPlaceToTheNextOne() throws Exception {
    waitForEver();
    options.maxWaiting = 1;
    pollForEver(1, 0);
    long ofWaiting = closed(1);
    long ofQueued = closed(2);
    AtomicReference<Boolean> done = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(ofWaiting, now + NEVER), done);
    Thread queued = waiting(() -> feed.awaitRoom(ofQueued, () -> false), done);
    AtomicReference<Boolean> room = new AtomicReference<>();
    Thread next = waiting(() -> feed.awaitRoom(Long.MAX_VALUE, () -> false), room);
    pollForEver(1, ofQueued);
    put.join();
    queued.join();
    next.join();
    assertTrue(room.get());
  }

  @Test
  void onePollAcknowledgesAllPutsThatWait() throws Exception {
    waitForEver();
    pollForEver(1, 0);
    List<AtomicReference<Boolean>> acknowledged = new ArrayList<>();
    List<Thread> puts = new ArrayList<>();
    for (int i = 0; i < 8; ++i) {
      long number = closed(i);
      acknowledged.add(new AtomicReference<>());
      puts.add(waiting(() -> feed.waitAcknowledged(number, now + NEVER), acknowledged.get(i)));
    }
    assertEquals(8, feed.waiting());
    pollForEver(1, feed.last());
    for (Thread put : puts) put.join();
    for (AtomicReference<Boolean> each : acknowledged) assertTrue(each.get());
    assertEquals(0, feed.waiting());
  }

  /** Each wakes the next one; the order in which they began to wait does not matter. */
  @Test
  void putsAreWokenByTheirOwnEvents() throws Exception {
    waitForEver();
    pollForEver(1, 0);
    long[] numbers = {closed(1), closed(2), closed(3)};
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    Thread[] puts = new Thread[3];
    for (int i : new int[] {2, 0, 1}) {
      puts[i] = waiting(() -> feed.waitAcknowledged(numbers[i], now + NEVER), acknowledged);
    }
    for (int i = 0; i < 3; ++i) {
      pollForEver(1, numbers[i]);
      puts[i].join();
      assertEquals(2 - i, feed.waiting());
    }
  }

  @Test
  void putsThatQueueAreWokenOneAfterTheOther() throws Exception {
    waitForEver();
    options.maxWaiting = 1;
    pollForEver(1, 0);
    AtomicReference<Boolean> result = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(closed(1), now + NEVER), result);
    List<Thread> queued = new ArrayList<>();
    for (int i = 0; i < 3; ++i) {
      long region = i + 2;
      queued.add(waiting(
          ()
              -> feed.awaitRoom(Long.MAX_VALUE, () -> false) && feed.waitAcknowledged(closed(region), now + NEVER),
          result));
    }
    for (Thread next : queued) {
      pollForEver(1, feed.last());
      put.join();
      put = next;
      while (feed.waiting() == 0) Thread.yield();
      assertEquals(1, feed.waiting());
    }
    pollForEver(1, feed.last());
    put.join();
    assertTrue(feed.awaitRoom(Long.MAX_VALUE, () -> false));
  }

  /** Returns whether a put is refused while another one waits for a coordinator that says nothing. */
  private boolean isRefusedBehindAStuckOne() throws Exception {
    options.maxWaiting = 1;
    poll(1, 0);
    poll(2, 0);
    long number = closed(1);
    long later = closed(2);
    poll(2, number); // only one of them is stuck
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(number, now + SECOND), acknowledged);
    now += options.patienceNs;
    poll(2, later); // which acknowledges no put
    AtomicReference<Boolean> room = new AtomicReference<>(true);
    Thread queued = new Thread(() -> {
      try {
        room.set(feed.awaitRoom(Long.MAX_VALUE, () -> false));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    });
    queued.start();
    while (queued.isAlive() && queued.getState() != Thread.State.TIMED_WAITING) Thread.yield();
    poll(1, number);
    put.join();
    queued.join();
    return !room.get();
  }

  @Test
  void noPutQueuesWhileACoordinatorIsStuck() throws Exception {
    assertTrue(isRefusedBehindAStuckOne());
  }

  @Test
  void putQueuesForAStuckCoordinatorWithoutTheRule() throws Exception {
    Fault.only(Fault.QUEUED_FOR_THE_STUCK);
    try {
      assertFalse(isRefusedBehindAStuckOne());
    } finally {
      Fault.only();
    }
  }

  @Test
  void putQueuesForABoundedTime() throws Exception {
    options.maxWaiting = 0;
    options.patienceNs = 100 * SECOND;
    options.maxQueuedNs = 0;
    assertFalse(feed.awaitRoom(Long.MAX_VALUE, () -> false));
  }

  @Test
  void putQueuesUntilItsLongestTimeIsOver() throws Exception {
    options.lookNs = 1_000_000;
    options.maxWaiting = 0;
    options.patienceNs = 100_000 * SECOND;
    AtomicReference<Boolean> room = new AtomicReference<>();
    Thread queued = waiting(() -> feed.awaitRoom(Long.MAX_VALUE, () -> false), room);
    now += options.maxQueuedNs;
    queued.join();
    assertFalse(room.get());
  }

  /** A put waits no longer than the lease that keeps it waiting. */
  @Test
  void putIsAcknowledgedWhenTheLeaseOfTheSilentEnds() throws Exception {
    options.lookNs = NEVER;
    feed.poll(request(1, 0).build(), () -> now + 1_000_000);
    poll(2, 0);
    long number = closed(1);
    poll(2, number);
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(number, now + 100_000 * SECOND), acknowledged);
    now += 1_000_000 + options.leaseMarginNs;
    put.join();
    assertTrue(acknowledged.get());
  }

  @Test
  void aPutThatIsAcknowledgedShowsThatNoCoordinatorIsStuck() throws Exception {
    options.maxWaiting = 1;
    poll(1, 0);
    long first = closed(1);
    long second = closed(2);
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(first, now + SECOND), acknowledged);
    Thread other = waiting(() -> feed.waitAcknowledged(second, now + SECOND), acknowledged);
    now += options.patienceNs - 1;
    poll(1, first);
    put.join();
    now += 1;
    AtomicReference<Boolean> room = new AtomicReference<>();
    Thread queued = waiting(() -> feed.awaitRoom(Long.MAX_VALUE, () -> false), room);
    poll(1, second);
    other.join();
    queued.join();
    assertTrue(room.get());
  }

  /** A put whose event is acknowledged before it waits shows nothing: no coordinator has said anything. */
  @Test
  void aPutThatNeedNotWaitIsNoSignOfProgress() throws Exception {
    options.maxWaiting = 1;
    poll(1, 0);
    long number = closed(1);
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(number, now + SECOND), acknowledged);
    now += options.patienceNs;
    assertTrue(feed.waitAcknowledged(number - 1, now));
    assertFalse(feed.awaitRoom(Long.MAX_VALUE, () -> false));
    poll(1, number);
    put.join();
  }

  /** Another thread that needs the lock would wait for ever. */
  private void assertIsFree() throws Exception {
    CompletableFuture.supplyAsync(feed::last).get(60, TimeUnit.SECONDS);
  }

  @Test
  void noCallKeepsTheLock() throws Exception {
    feed.last();
    assertIsFree();
    feed.tellTable(1, 1);
    assertIsFree();
    feed.tellTable(1, 1); // known
    assertIsFree();
    poll(1, 0);
    assertIsFree();
    assertThrows(StatusException.class,
        () -> feed.poll(request(1, 0).build(), () -> now, new FilterFeed.Reader("other", "", null)));
    assertIsFree();
    status(true);
    assertIsFree();
    assertTrue(feed.awaitRoom(0, () -> false));
    assertIsFree();
    assertTrue(feed.waitAcknowledged(0, now));
    assertIsFree();
    assertFalse(feed.waitAcknowledged(feed.last(), now));
    assertIsFree();
  }

  @Test
  void pollThatCannotBeParkedGetsATimeToRetry() throws Exception {
    options.maxParked = 0;
    assertEquals(0, poll(1, 0).getNextPollNs(), "it does not want to wait");
    Cluster.PollReply reply = poll(request(1, 0).setWaitNs(SECOND), null);
    assertEquals(options.nextPollNs, reply.getNextPollNs());
    closed(1); // with news it is answered
    assertEquals(0, poll(request(1, 0).setWaitNs(SECOND), null).getNextPollNs());
  }

  // ---- Parked polls

  private static final class Parked {
    final Thread thread;
    volatile Cluster.PollReply reply;

    Parked(FilterFeed feed, Cluster.PollRequest request, java.util.function.LongSupplier verifiedUntil) {
      thread = new Thread(() -> {
        try {
          reply = feed.poll(request, verifiedUntil);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      });
      thread.start();
    }

    Cluster.PollReply reply() throws InterruptedException {
      thread.join();
      return reply;
    }
  }

  /** Its thread waits in the feed. */
  private Parked park(long coordinator, long waitNs) {
    Cluster.PollRequest request = request(coordinator, feed.last()).setWaitNs(waitNs).build();
    Parked parked = new Parked(feed, request, () -> now + 100 * SECOND);
    while (waitNs >= SECOND && parked.thread.getState() != Thread.State.TIMED_WAITING) Thread.yield();
    return parked;
  }

  @Test
  void eventsWakeParkedPolls() throws Exception {
    options.lookNs = NEVER;
    options.maxParkedNs = 1000 * SECOND;
    poll(1, 0);
    Parked parked = park(1, 500 * SECOND);
    closed(1);
    assertEquals(1, parked.reply().getEventsCount());
  }

  @Test
  void laterPollOfACoordinatorEndsTheEarlierOne() throws Exception {
    options.lookNs = NEVER;
    options.maxParkedNs = 1000 * SECOND;
    poll(1, 0);
    Parked earlier = park(1, 500 * SECOND);
    Parked later = park(1, 500 * SECOND);
    assertEquals(0, earlier.reply().getEventsCount());
    assertTrue(later.thread.isAlive());
    closed(1);
    assertEquals(1, later.reply().getEventsCount());
  }

  @Test
  void noMorePollsThanTheMostAreParked() throws Exception {
    options.maxParked = 2;
    options.maxParkedNs = 1000 * SECOND;
    for (long coordinator = 1; coordinator <= 3; ++coordinator) poll(coordinator, 0);
    Parked first = park(1, 500 * SECOND);
    Parked second = park(2, 500 * SECOND);
    assertEquals(options.nextPollNs, poll(request(3, 0).setWaitNs(SECOND), null).getNextPollNs());
    closed(1);
    assertEquals(1, first.reply().getEventsCount());
    assertEquals(1, second.reply().getEventsCount());
  }

  /** Its poll stands open: the coordinator is there, whatever the time. */
  @Test
  void eventsAreKeptForAParkedPollHoweverLongAndNoLonger() throws Exception {
    options.lookNs = NEVER;
    options.maxParkedNs = 1000 * SECOND;
    options.maxListeners = 1;
    poll(1, 0);
    Parked earlier = park(1, 500 * SECOND);
    Parked parked = park(1, 500 * SECOND);
    earlier.reply();
    now += 2 * options.silenceNs;
    assertEquals(0, poll(2, 0).getLeaseNs(), "it has not gone");
    feed.append(Event.newBuilder().setKind(Event.Kind.FLIPS).setRegionId(1), false);
    assertTrue(feed.eventBytes() > 0);
    closed(1);
    assertFalse(parked.reply().getFull());
    assertEquals(2, parked.reply().getEventsCount());
    now += 2 * options.silenceNs;
    closed(2);
    assertEquals(0, feed.eventBytes(), "it has gone");
  }

  @Test
  void eventsGoWithThePollThatAcknowledgesThem() throws Exception {
    poll(1, 0);
    long number = closed(1);
    assertTrue(feed.eventBytes() > 0);
    poll(1, number);
    assertEquals(0, feed.eventBytes());
    closed(2);
    now += 2 * options.silenceNs;
    status(true);
    assertEquals(0, feed.eventBytes());
  }

  @Test
  void parkedPollEndsWithItsWaitOrTheLongestThatIsAllowed() throws Exception {
    for (long[] waits : new long[][] {{1000, SECOND}, {SECOND / 2, 1000}}) {
      options.maxParkedNs = waits[1];
      poll(1, 0);
      long began = now;
      Parked parked = park(1, waits[0]);
      while (parked.thread.isAlive()) {
        now += 10;
        Thread.yield();
      }
      assertTrue(now - began >= 1000, now - began + " ns");
      assertEquals(0, parked.reply().getEventsCount());
      assertEquals(0, parked.reply().getNextPollNs());
    }
    options.maxParked = 1; // none is parked any more
    options.maxParkedNs = 0;
    assertEquals(0, poll(request(1, feed.last()).setWaitNs(SECOND), null).getNextPollNs());
  }

  @Test
  void eventsThatAreNotUrgentWakeNoPollUntilTheyAreMany() throws Exception {
    poll(1, 0);
    Event.Builder flips = Event.newBuilder().setKind(Event.Kind.FLIPS).setRegionId(1);
    feed.append(flips, false);
    options.replyBytes = (int) (4 * feed.eventBytes());
    long applied = feed.last() - 1;
    options.maxParked = 0;
    Cluster.PollRequest.Builder lacksOne = request(1, applied).setWaitNs(SECOND);
    assertEquals(options.nextPollNs, poll(lacksOne, null).getNextPollNs(), "it would be parked");
    feed.append(flips, false); // half of a reply
    assertEquals(options.nextPollNs, poll(lacksOne, null).getNextPollNs());
    feed.append(flips, false);
    assertEquals(0, poll(lacksOne, null).getNextPollNs());
  }

  // ---- Users and listeners

  @Test
  void coordinatorBelongsToTheUserOfItsFirstPoll() throws Exception {
    poll(1, 0);
    FilterFeed.Reader other = new FilterFeed.Reader("other", "", null);
    assertThrows(StatusException.class, () -> feed.poll(request(1, 0).build(), () -> now, other));
    assertEquals(0, feed.poll(request(2, 0).build(), () -> now + SECOND, other).getEventsCount());
  }

  @Test
  void eventsAreKeptForACoordinatorThatHasPolledLately() throws Exception {
    feed.poll(request(1, 0).build(), () -> now); // it has no lease
    assertEquals(0, feed.leases());
    closed(1);
    assertEquals(1, status(true).getFeedEvents());
    now += options.silenceNs - 1;
    closed(2);
    assertEquals(2, status(true).getFeedEvents());
    now += 1;
    closed(3);
    assertEquals(0, status(true).getFeedEvents());
    poll(2, 0);
    assertEquals(1, feed.leases());
  }

  @Test
  void coordinatorWithoutALeaseMakesRoomAfterALeasesTime() throws Exception {
    options.maxListeners = 1;
    feed.poll(request(1, 0).build(), () -> now);
    now += options.leaseNs - 1;
    assertEquals(0, poll(2, 0).getLeaseNs());
    now += 1;
    assertTrue(poll(2, 0).getLeaseNs() > 0);
    assertEquals(2, status(true).getCoordinators(0).getCoordinator());
  }

  @Test
  void eventsOfTablesThatTheCallerMayNotKnowAreLeftOut() throws Exception {
    Set<Integer> tables = Collections.singleton(1);
    poll(request(1, 0), tables);
    long before = feed.last();
    opened(10, 1);
    opened(20, 2);
    feed.tellTable(1, 1);
    feed.tellTable(2, 1);
    closed(10);
    closed(20);
    closed(30); // it was not open
    StringBuilder heard = new StringBuilder();
    for (Event event : poll(request(1, before), tables).getEventsList()) {
      heard.append(event.getKind() + " " + event.getRegionId() + " " + event.getTableId() + "; ");
    }
    assertEquals("REGION_OPENED 10 1; TABLE_CHANGED 0 1; REGION_CLOSED 10 0; ", heard.toString());
    assertEquals(2, poll(request(1, before + 1), tables).getEventsCount());
    options.replyBytes = 0;
    assertEquals(0, poll(request(1, before + 1), tables).getEventsCount(), "the next one is of the other table");
    assertEquals(before + 2, poll(request(1, before + 1), tables).getTo());
  }
}
