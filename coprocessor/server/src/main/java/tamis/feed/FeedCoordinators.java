package tamis.feed;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.pb.Cluster;

/**
 * The coordinators that poll a feed, and their leases; like tamis::FeedCoordinators. While a lease lives, no put is
 * acknowledged whose events its coordinator has not applied (`floor`). A coordinator that does not apply the replies is
 * granted no lease, so that it cannot hold up puts for ever. Threads: REQUIRES the feed's lock.
 */
final class FeedCoordinators {
  private final FeedOptions options;
  private final Map<Long, FeedCoordinator> coordinators = new HashMap<>();

  FeedCoordinators(FeedOptions options) {
    this.options = options;
  }

  /** Null: it is unknown, for it has not polled or there was no room for it. */
  FeedCoordinator get(long number) {
    return coordinators.get(number);
  }

  /**
   * The coordinator that polls. The number of a coordinator belongs to the user of its first poll. Null: there is no
   * room for another one.
   */
  FeedCoordinator hear(long number, String user, long now) throws StatusException {
    FeedCoordinator coordinator = coordinators.get(number);
    if (coordinator != null && !coordinator.isOf(user) && !Fault.COORDINATOR_OF_ANYBODY.isOn()) {
      throw new StatusException(Cluster.Error.Code.FAILED_PRECONDITION,
          "the number of this coordinator belongs to another user: poll with a number of your own");
    }
    if (coordinator == null) {
      if (coordinators.size() >= options.maxListeners) {
        coordinators.values().removeIf(other -> !other.listens(now, options.leaseNs));
        if (coordinators.size() >= options.maxListeners) return null;
      }
      coordinator = new FeedCoordinator(user);
      coordinators.put(number, coordinator);
    }
    return coordinator;
  }

  /** The coordinator says that it uses its lease no longer. */
  void leave(long number) {
    coordinators.remove(number);
  }

  /** The number up to which every coordinator that listens has applied the events; `last`: none lacks any. */
  long appliedByAll(long last, long now) {
    long applied = last;
    for (FeedCoordinator coordinator : coordinators.values()) {
      if (coordinator.listens(now, options.silenceNs)) applied = Math.min(applied, coordinator.acked());
    }
    return applied;
  }

  /** The number up to which every coordinator with a live lease has applied the events; `last`: none lacks any. */
  long floor(long last, long now) {
    long floor = last;
    for (FeedCoordinator coordinator : coordinators.values()) {
      if (coordinator.hasLease(now)) floor = Math.min(floor, coordinator.acked());
    }
    return floor;
  }

  /** The number of coordinators with a live lease. */
  int leases(long now) {
    int leases = 0;
    for (FeedCoordinator coordinator : coordinators.values()) leases += coordinator.hasLease(now) ? 1 : 0;
    return leases;
  }

  /**
   * Grants a lease with a reply that holds all events up to `last`; it ends no later than `sureUntil`. Returns how long
   * the coordinator may use it; 0: none is granted.
   */
  long grantLease(long number, long last, long now, long sureUntil) {
    FeedCoordinator coordinator = coordinators.get(number);
    if (coordinator == null) return 0;
    if (!coordinator.hasLease(now) && leases(now) >= options.maxCoordinators) return 0;
    if (!coordinator.send(last, now, options.leaseNs)) return 0;
    long lease = Math.min(options.leaseNs, sureUntil - now);
    if (lease <= 0) return 0;
    coordinator.lease(now + lease + options.leaseMarginNs);
    return lease;
  }

  /** When the first live lease ends; `otherwise`: none does earlier. */
  long nextLeaseEnd(long now, long otherwise) {
    long next = otherwise;
    for (FeedCoordinator coordinator : coordinators.values()) {
      if (coordinator.hasLease(now) && coordinator.leaseUntil() - next < 0) next = coordinator.leaseUntil();
    }
    return next;
  }

  /** The coordinators that have a lease or have polled lately; `last`: the number of the last event. */
  List<Cluster.CoordinatorStatus> statuses(long last, long now) {
    List<Cluster.CoordinatorStatus> known = new ArrayList<>();
    coordinators.forEach((number, coordinator) -> {
      if (!coordinator.isKnown(now, options.silenceNs)) return;
      known.add(Cluster.CoordinatorStatus.newBuilder()
                    .setCoordinator(number)
                    .setEventsBehind(last - coordinator.acked())
                    .setLeaseLeftNs(coordinator.hasLease(now) ? coordinator.leaseUntil() - now : 0)
                    .setUser(coordinator.user())
                    .setHost(coordinator.host())
                    .build());
    });
    return known;
  }
}
