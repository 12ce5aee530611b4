package tamis.filter;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The layers of a scalable split counting Bloom filter with one bit for each counter: a quarter of the memory. Bits are
 * never cleared, since other values may need them. Like tamis::BitLayers. Threads: exclusive access.
 */
public final class BitLayers implements LayeredFilter {
  private static final class Layer {
    final long[] words;
    long ones;

    Layer(long[] words) {
      this.words = words;
    }
  }

  private final SplitGeometry geometry;
  private final List<Layer> layers = new ArrayList<>();
  private long ignored;

  public BitLayers(SplitGeometry geometry) {
    this.geometry = geometry;
    addLayer();
  }

  private void addLayer() {
    layers.add(new Layer(new long[projectionWords()]));
  }

  public static long layerBytes(SplitGeometry geometry) {
    return (geometry.positions() + 63) / 64 * 8;
  }

  @Override
  public BitLayers copy() {
    BitLayers copy = new BitLayers(geometry);
    copy.layers.clear();
    for (Layer layer : layers) {
      Layer same = new Layer(layer.words.clone());
      same.ones = layer.ones;
      copy.layers.add(same);
    }
    copy.ignored = ignored;
    return copy;
  }

  @Override
  public SplitGeometry geometry() {
    return geometry;
  }

  @Override
  public int layers() {
    return layers.size();
  }

  // The same rule for where a hash goes as that of the counters.
  private boolean mayContain(Layer layer, long hash) {
    for (int slice = 0; slice < geometry.slices; ++slice) {
      long position = geometry.position(hash, slice);
      if ((layer.words[(int) (position >>> 6)] >>> (position & 63) & 1) == 0) return false;
    }
    return true;
  }

  @Override
  public int findLayer(long hash) {
    for (int i = 0; i < layers.size(); ++i) {
      if (mayContain(layers.get(i), hash)) return i;
    }
    return -1;
  }

  @Override
  public long countBound(long hash) {
    return -1;
  }

  @Override
  public void insert(long hash, OnFlip onFlip) {
    if (findLayer(hash) >= 0) return;
    int number = 0;
    while (number < layers.size() && layers.get(number).ones * 2 >= geometry.positions()) ++number;
    if (number == layers.size()) addLayer();
    Layer layer = layers.get(number);
    for (int slice = 0; slice < geometry.slices; ++slice) {
      long position = geometry.position(hash, slice);
      long bit = 1L << (position & 63);
      if ((layer.words[(int) (position >>> 6)] & bit) != 0) continue;
      layer.words[(int) (position >>> 6)] |= bit;
      ++layer.ones;
      onFlip.flip(number, position, true);
    }
  }

  @Override
  public Erased erase(long hash, OnFlip onFlip) {
    ++ignored;
    return Erased.STUCK;
  }

  /** Clears bits of a value, which an erase must not do; for tests that want to see a value lost. */
  public void clear(long hash, OnFlip onFlip) {
    int number = findLayer(hash);
    if (number < 0) return;
    for (int slice = 0; slice < geometry.slices; ++slice) {
      long position = geometry.position(hash, slice);
      layers.get(number).words[(int) (position >>> 6)] &= ~(1L << (position & 63));
      onFlip.flip(number, position, false);
    }
  }

  @Override
  public double fill(int layer) {
    return (double) layers.get(layer).ones / geometry.positions();
  }

  @Override
  public long ignoredErases() {
    return ignored;
  }

  @Override
  public boolean bitsOnly() {
    return true;
  }

  @Override
  public long sizeBytes() {
    return layers.size() * layerBytes(geometry);
  }

  @Override
  public long[] projection(int layer, int from, int to) {
    return Arrays.copyOfRange(layers.get(layer).words, from, to);
  }
}
