package tamis.feed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import tamis.pb.Cluster;
import tamis.pb.Cluster.Event;
import tamis.shaded.protobuf.ByteString;

/** Events and bits that a feed sends: the whole state, and the bounds of replies. */
class FilterFeedEventsTest extends FeedUnderTest {
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
}
