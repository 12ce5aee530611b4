package tamis.filter;

/**
 * The hashes of one generation of an index filter, in layers of one geometry: counted; or, where memory is short, only
 * the bits that counters above 0 stand for. The projection is the same for both. Threads: exclusive access.
 */
public interface LayeredFilter {
  /** Hears of bits that are set or cleared. */
  interface OnFlip {
    void flip(int layer, long position, boolean set);
  }

  /** The effect of an erase. */
  enum Erased { ERASED, STUCK, ABSENT }

  LayeredFilter copy();

  SplitGeometry geometry();

  int layers();

  /** The first layer that matches, or -1. */
  int findLayer(long hash);

  /** An upper bound for how often the hash was inserted and not erased; -1 if none is known. */
  long countBound(long hash);

  void insert(long hash, OnFlip onFlip);

  Erased erase(long hash, OnFlip onFlip);

  /** Share of a layer's positions that are in use. */
  double fill(int layer);

  /** The number of erases whose bits only a recount clears. */
  long ignoredErases();

  boolean bitsOnly();

  long sizeBytes();

  /** Words `from` .. `to` of the projection: bit p of word p / 64 is set when position p is in use. */
  long[] projection(int layer, int from, int to);

  default int projectionWords() {
    return (int) ((geometry().positions() + 63) / 64);
  }

  default double expectedFpr(int layer) {
    return Math.pow(fill(layer), geometry().slices);
  }
}
