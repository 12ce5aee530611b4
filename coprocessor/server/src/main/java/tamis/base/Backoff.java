package tamis.base;

/** Backoff of retries: each pause is twice as long as the one before, up to a bound. Like tamis::Backoff. */
public final class Backoff {
  private final long firstNs;
  private final long longestNs;

  public Backoff(long firstNs, long longestNs) {
    this.firstNs = firstNs;
    this.longestNs = longestNs;
  }

  /** The pause after so many others, in nanoseconds. */
  public long after(int others) {
    long pause = firstNs;
    for (int i = 0; i < others && pause < longestNs; ++i) pause *= 2;
    return Math.min(pause, longestNs);
  }
}
