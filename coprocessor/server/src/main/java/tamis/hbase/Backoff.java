package tamis.hbase;

/** Backoff of retries: each pause is twice as long as the one before, up to a bound. Like tamis::Backoff. */
final class Backoff {
  private final long firstNs;
  private final long longestNs;

  Backoff(long firstNs, long longestNs) {
    this.firstNs = firstNs;
    this.longestNs = longestNs;
  }

  /** The pause after so many others, in nanoseconds. */
  long after(int others) {
    long pause = firstNs;
    for (int i = 0; i < others && pause < longestNs; ++i) pause *= 2;
    return Math.min(pause, longestNs);
  }
}
