package tamis.feed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Collections;
import java.util.Set;
import org.junit.jupiter.api.Test;
import tamis.base.StatusException;
import tamis.pb.Cluster;
import tamis.pb.Cluster.Event;

/** Coordinators of a feed: their leases, users and status, each bound at its edge. */
class FilterFeedTest extends FeedUnderTest {
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
