package tamis.feed;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import tamis.pb.Cluster;
import tamis.pb.Cluster.Event;

/** A feed by a clock of the test's own, with the polls and events of tests. */
abstract class FeedUnderTest {
  static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  static final long START_CODE = 7;
  static final long NEVER = TimeUnit.DAYS.toNanos(1); // options.lookNs: every waiter must be woken

  final FeedOptions options = new FeedOptions();
  volatile long now = 1000 * SECOND;
  final List<Cluster.Projection> projections = new ArrayList<>();
  final FilterFeed feed = new FilterFeed("s", START_CODE, options, () -> now, (column, maxBytes) -> {
    for (Cluster.Projection projection : projections) {
      if (projection.getRegionId() == column.getRegionId()) return projection;
    }
    return null;
  });

  static Cluster.PollRequest.Builder request(long coordinator, long applied) {
    return Cluster.PollRequest.newBuilder().setCoordinator(coordinator).setStartCode(START_CODE).setApplied(applied);
  }

  Cluster.PollReply poll(long coordinator, long applied) throws Exception {
    return poll(request(coordinator, applied), null);
  }

  Cluster.PollReply poll(Cluster.PollRequest.Builder request, Set<Integer> tables) throws Exception {
    return feed.poll(request.build(), () -> now + 100 * SECOND, new FilterFeed.Reader("", "", tables));
  }

  long opened(long region, int table) {
    return feed.append(Event.newBuilder().setKind(Event.Kind.REGION_OPENED).setRegionId(region).setTableId(table));
  }

  long closed(long region) {
    return feed.append(Event.newBuilder().setKind(Event.Kind.REGION_CLOSED).setRegionId(region));
  }

  Cluster.StatusReply status(boolean withNames) {
    Cluster.StatusReply.Builder reply = Cluster.StatusReply.newBuilder();
    feed.describe(reply, withNames);
    return reply.build();
  }
}
