package tamis.feed;

import java.util.Objects;
import java.util.Set;

/**
 * A coordinator that polls: which events it has applied, its lease, and the tables whose events it receives. Threads:
 * REQUIRES the feed's lock.
 */
final class FeedCoordinator {
  private final String user; // a poll of another user would acknowledge events that this coordinator has not applied
  private String host = ""; // where its last poll came from
  private long acked;
  private boolean leased;
  private long leaseUntil;
  private long heardAt;
  // The oldest reply that the coordinator has not applied yet: the number of its last event (0: there is no such
  // reply), and when it was sent.
  private long sentTo;
  private long sentAt;
  private boolean parked;
  private long polls; // the number of its polls that were parked; a new one ends the one before it
  private Set<Integer> tables; // the tables whose events it receives; null: all tables
  private long tablesSince; // the number of the last event when `tables` changed: an older copy is of other tables

  FeedCoordinator(String user) {
    this.user = user;
  }

  boolean isOf(String user) {
    return this.user.equals(user);
  }

  String user() {
    return user;
  }

  String host() {
    return host;
  }

  // ---- Events

  /** The number up to which it has applied all events. */
  long acked() {
    return acked;
  }

  /** It has applied all events up to this number. True: that is news. */
  boolean acknowledge(long number) {
    long before = acked;
    acked = Math.max(acked, number);
    if (acked >= sentTo) sentTo = 0;
    return acked > before;
  }

  boolean receives(Set<Integer> tables) {
    return Objects.equals(this.tables, tables);
  }

  /** From now on it receives the events of these tables; `last`: the number of the last event. */
  void receive(Set<Integer> tables, long last) {
    tablesSince = last;
    this.tables = tables;
  }

  /** A copy as of an older event is of other tables. */
  long tablesSince() {
    return tablesSince;
  }

  // ---- Polls

  void heard(long now, String from) {
    heardAt = now;
    host = from;
  }

  /** Whether it has a lease, or has polled within this time. */
  boolean isKnown(long now, long withinNs) {
    return hasLease(now) || now - heardAt < withinNs;
  }

  /** Whether events are kept for it: it is known, or a poll of it is parked. */
  boolean listens(long now, long withinNs) {
    return isKnown(now, withinNs) || parked;
  }

  /** A poll is parked. Returns its number among those of the coordinator. */
  long park() {
    parked = true;
    return ++polls;
  }

  boolean isParked() {
    return parked;
  }

  /** False: a later poll ends this one. */
  boolean isLatest(long poll) {
    return polls == poll;
  }

  /** Its parked poll is no longer the latest. */
  void endParked() {
    ++polls;
    parked = false;
  }

  void unpark(long poll) {
    if (isLatest(poll)) parked = false;
  }

  // ---- Leases

  boolean hasLease(long now) {
    return leased && leaseUntil - now > 0;
  }

  long leaseUntil() {
    return leaseUntil;
  }

  /** Notes a reply with all events up to `last`. False: the coordinator has applied no reply for a lease's time. */
  boolean send(long last, long now, long leaseNs) {
    if (sentTo != 0 && now - sentAt > leaseNs) return false;
    if (sentTo == 0 && last > acked) {
      sentTo = last;
      sentAt = now;
    }
    return true;
  }

  void lease(long until) {
    if (!leased || until - leaseUntil > 0) leaseUntil = until;
    leased = true;
  }
}
