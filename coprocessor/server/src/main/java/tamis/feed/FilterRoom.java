package tamis.feed;

/**
 * The memory that is left to one filter: the bound of all filters of a server, less the memory of the others. Counters
 * may fill it; bits alone, a quarter of their size, may exceed it by a quarter. Like tamis::FilterBudget.
 */
public final class FilterRoom {
  public static final FilterRoom ENDLESS = new FilterRoom(Long.MAX_VALUE / 8, 0);

  private final long maxBytes;
  private final long othersBytes;

  public FilterRoom(long maxBytes, long othersBytes) {
    this.maxBytes = maxBytes;
    this.othersBytes = othersBytes;
  }

  /** Hysteresis: a filter of bits alone gets counters only if they will not have to be taken away at once. */
  boolean hasForCounters(long bytes, boolean hasBits) {
    return othersBytes + bytes <= maxBytes / 4 * (hasBits ? 3 : 4);
  }

  public boolean hasForBits(long bytes) {
    return othersBytes + bytes <= mostBytes(maxBytes);
  }

  /** The most that counters and bits may take together. */
  public static long mostBytes(long maxBytes) {
    return maxBytes / 4 * 5;
  }
}
