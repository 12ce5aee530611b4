package tamis.hbase;

/**
 * The memory that is left to one filter: what those of a server may take together, less what the others take. Counters may
 * fill it; bits alone, a quarter of their size, may go a quarter beyond it. As tamis::FilterBudget.
 */
final class FilterRoom {
  static final FilterRoom ENDLESS = new FilterRoom(Long.MAX_VALUE / 8, 0);

  private final long maxBytes;
  private final long othersBytes;

  FilterRoom(long maxBytes, long othersBytes) {
    this.maxBytes = maxBytes;
    this.othersBytes = othersBytes;
  }

  /** Who has bits alone does not get counters that are taken away again at once. */
  boolean hasForCounters(long bytes, boolean hasBits) {
    return othersBytes + bytes <= maxBytes / 4 * (hasBits ? 3 : 4);
  }

  boolean hasForBits(long bytes) {
    return othersBytes + bytes <= mostBytes(maxBytes);
  }

  /** What counters and bits may take together at the most. */
  static long mostBytes(long maxBytes) {
    return maxBytes / 4 * 5;
  }
}
