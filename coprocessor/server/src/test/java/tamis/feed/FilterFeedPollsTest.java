package tamis.feed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import tamis.pb.Cluster;
import tamis.pb.Cluster.Event;

/** Polls that are parked in a feed. */
class FilterFeedPollsTest extends FeedUnderTest {
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

  /** Its poll ends only when it is woken. */
  private Parked parkForEver(long coordinator) throws Exception {
    options.lookNs = NEVER;
    options.maxParkedNs = 1000 * SECOND;
    poll(coordinator, 0);
    return park(coordinator, 500 * SECOND);
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

  @Test
  void parkedPollEndsWhenItsCoordinatorLeaves() throws Exception {
    Parked parked = parkForEver(1);
    poll(request(1, 0).setLeaves(true), null);
    assertEquals(0, parked.reply().getLeaseNs());
  }

  @Test
  void eventsWakeParkedPolls() throws Exception {
    Parked parked = parkForEver(1);
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
}
