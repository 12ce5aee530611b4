package tamis.filter;

import java.util.ArrayList;
import java.util.List;
import tamis.table.ByteWriter;
import tamis.table.Hash;

/**
 * A multiset of any number of 64-bit hashes with erasure, made of identical layers; tamis::
 * ScalableSplitCountingBloomFilter, which tells how it works. Threads: exclusive access.
 */
public final class ScalableSplitCountingBloomFilter implements LayeredFilter {
  private static final int SATURATED = 15;
  private static final OnFlip NOBODY = (layer, position, set) -> {};

  /** A split counting filter: counters of 4 bits, sixteen to a word. */
  private final class Layer {
    final long[] words;
    long count;
    long ignored;
    long nonzero;
    long saturated;

    Layer(long[] words) {
      this.words = words;
    }

    int get(long position) {
      return (int) (words[(int) (position >>> 4)] >>> (position & 15) * 4) & 15;
    }

    boolean mayContain(long hash) {
      for (int slice = 0; slice < geometry.slices; ++slice) {
        if (get(geometry.position(hash, slice)) == 0) return false;
      }
      return true;
    }

    void insert(long hash, int number, OnFlip onFlip) {
      ++count;
      for (int slice = 0; slice < geometry.slices; ++slice) {
        long position = geometry.position(hash, slice);
        int old = get(position);
        if (old == SATURATED) continue;
        words[(int) (position >>> 4)] += 1L << (position & 15) * 4;
        if (old == SATURATED - 1) ++saturated;
        if (old == 0) {
          ++nonzero;
          onFlip.flip(number, position, true);
        }
      }
    }

    void erase(long hash, int number, OnFlip onFlip) {
      if (count > 0) --count;
      for (int slice = 0; slice < geometry.slices; ++slice) {
        long position = geometry.position(hash, slice);
        int old = get(position);
        if (old == SATURATED) {
          ++ignored;
          continue;
        }
        words[(int) (position >>> 4)] -= 1L << (position & 15) * 4;
        if (old == 1) {
          --nonzero;
          onFlip.flip(number, position, false);
        }
      }
    }
  }

  private final SplitGeometry geometry;
  private final long seed;
  private final List<Layer> layers = new ArrayList<>();
  private long stuck;

  public ScalableSplitCountingBloomFilter(SplitGeometry geometry, long seed) {
    this.geometry = geometry;
    this.seed = seed;
    addLayer();
  }

  private void addLayer() {
    layers.add(new Layer(new long[(int) ((geometry.positions() + 15) / 16)]));
  }

  @Override
  public ScalableSplitCountingBloomFilter copy() {
    ScalableSplitCountingBloomFilter copy = new ScalableSplitCountingBloomFilter(geometry, seed);
    copy.layers.clear();
    for (Layer layer : layers) {
      Layer same = copy.new Layer(layer.words.clone());
      same.count = layer.count;
      same.ignored = layer.ignored;
      same.nonzero = layer.nonzero;
      same.saturated = layer.saturated;
      copy.layers.add(same);
    }
    copy.stuck = stuck;
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

  @Override
  public int findLayer(long hash) {
    for (int i = 0; i < layers.size(); ++i) {
      if (layers.get(i).mayContain(hash)) return i;
    }
    return -1;
  }

  /** -1 when the counters do not say. */
  @Override
  public long countBound(long hash) {
    long sum = 0;
    for (Layer layer : layers) {
      int least = SATURATED;
      for (int slice = 0; slice < geometry.slices; ++slice) {
        least = Math.min(least, layer.get(geometry.position(hash, slice)));
      }
      if (least == SATURATED) return -1;
      sum += least;
    }
    return sum;
  }

  @Override
  public void insert(long hash, OnFlip onFlip) {
    int layer = findLayer(hash);
    for (int i = 0; layer < 0 && i < layers.size(); ++i) {
      if (layers.get(i).nonzero * 2 < geometry.positions()) layer = i;
    }
    if (layer < 0) {
      layer = layers.size();
      addLayer();
    }
    layers.get(layer).insert(hash, layer, onFlip);
  }

  @Override
  public Erased erase(long hash, OnFlip onFlip) {
    int layer = findLayer(hash);
    if (layer < 0) return Erased.ABSENT;
    for (int i = layer + 1; i < layers.size(); ++i) {
      if (layers.get(i).mayContain(hash)) {
        ++stuck;
        return Erased.STUCK;
      }
    }
    layers.get(layer).erase(hash, layer, onFlip);
    return Erased.ERASED;
  }

  public void insert(long hash) {
    insert(hash, NOBODY);
  }

  @Override
  public double fill(int layer) {
    return (double) layers.get(layer).nonzero / geometry.positions();
  }

  /** Erases that left bits set: of a counter that is full, and of a hash that several layers match. */
  @Override
  public long ignoredErases() {
    long full = 0;
    for (Layer layer : layers) full += layer.ignored;
    return full / geometry.slices + stuck;
  }

  @Override
  public boolean bitsOnly() {
    return false;
  }

  public long count() {
    long sum = 0;
    for (Layer layer : layers) sum += layer.count;
    return sum;
  }

  @Override
  public long sizeBytes() {
    return layers.size() * ((geometry.positions() + 15) / 16 * 8);
  }

  public static long layerBytes(SplitGeometry geometry) {
    return (geometry.positions() + 15) / 16 * 8;
  }

  @Override
  public long[] projection(int layer, int from, int to) {
    long[] counters = layers.get(layer).words;
    long[] bits = new long[to - from];
    for (int w = from; w < to; ++w) {
      long word = 0;
      for (int i = 0; i < 4 && w * 4 + i < counters.length; ++i) {
        long four = counters[w * 4 + i];
        for (int c = 0; c < 16 && four != 0; ++c, four >>>= 4) {
          if ((four & 15) != 0) word |= 1L << (i * 16 + c);
        }
      }
      bits[w - from] = word;
    }
    return bits;
  }

  /** docs/FORMATS.md#filters. */
  public byte[] serialize() {
    ByteWriter payload = new ByteWriter();
    for (Layer layer : layers) {
      payload.putLittle64(layer.count)
          .putLittle64(layer.ignored)
          .putLittle64(layer.nonzero)
          .putLittle64(layer.saturated);
      for (long word : layer.words) payload.putLittle64(word);
    }
    byte[] body = payload.toBytes();
    ByteWriter header = new ByteWriter();
    header.put("tamisflt".getBytes(java.nio.charset.StandardCharsets.US_ASCII));
    header.put(1).put(0).put(0).put(0).put(6).put(0).put(0).put(0).putLittle64(seed).putLittle64(body.length);
    long[] parameters = {geometry.slices, geometry.slicePositions, layers.size(), stuck};
    for (int i = 0; i < 10; ++i) header.putLittle64(i < parameters.length ? parameters[i] : 0);
    header.putLittle64(Hash.of(body, 0));
    header.putLittle64(Hash.of(header.toBytes(), 0));
    return header.put(body).toBytes();
  }
}
