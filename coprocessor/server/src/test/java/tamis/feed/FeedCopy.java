package tamis.feed;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import tamis.filter.CellSet;
import tamis.filter.CellSetForTest;
import tamis.filter.SplitGeometry;
import tamis.pb.Cluster;
import tamis.table.CellMap;
import tamis.table.DamagedBytesException;
import tamis.table.Key;

/** A coordinator's copy of one server, as simple as can be: what it may exclude. Threads: safe. */
public final class FeedCopy {
  private static final class Index {
    long generation;
    SplitGeometry geometry;
    int layers;
    byte[] min;
    byte[] max;
    List<long[]> bits; // null: not here
    long asOf;
    int cellCount; // 0: it has none
    CellSet cells; // null: not here
    long cellsAsOf;
  }

  private static final class Region {
    final Cluster.Event opened;
    final Map<Integer, Index> indexes = new HashMap<>();

    Region(Cluster.Event opened) {
      this.opened = opened;
    }
  }

  private final long coordinator;
  private long startCode;
  private long applied;
  private long leaseUntil = System.nanoTime();
  private final Map<Long, Region> regions = new HashMap<>();

  public FeedCopy(long coordinator) {
    this.coordinator = coordinator;
  }

  public synchronized Cluster.PollRequest request(long waitNs) {
    Cluster.PollRequest.Builder request = Cluster.PollRequest.newBuilder()
                                              .setCoordinator(coordinator)
                                              .setStartCode(startCode)
                                              .setApplied(applied)
                                              .setWaitNs(waitNs);
    regions.forEach((id, region) -> region.indexes.forEach((index, copy) -> {
      Cluster.ColumnId.Builder column =
          Cluster.ColumnId.newBuilder().setRegionId(id).setIndexId(index).setGeneration(copy.generation);
      if (copy.bits == null) request.addWanted(column);
      if (copy.cellCount > 0 && copy.cells == null) request.addWanted(column.clone().setCells(true));
    }));
    return request.build();
  }

  public synchronized void apply(Cluster.PollReply reply, long sentAt) {
    if (reply.getStartCode() != startCode || reply.getFull()) {
      if (!reply.getFull()) throw new AssertionError("another life, but no full state");
      regions.clear();
      startCode = reply.getStartCode();
      applied = 0;
    } else if (reply.getFrom() != applied) {
      throw new AssertionError("events from " + reply.getFrom() + ", applied " + applied);
    }
    for (Cluster.Event event : reply.getEventsList()) apply(event);
    applied = reply.getTo();
    for (Cluster.Projection projection : reply.getProjectionsList()) apply(projection, reply);
    if (reply.getLeaseNs() > 0) leaseUntil = sentAt + reply.getLeaseNs();
  }

  private void apply(Cluster.Event event) {
    if (event.getKind() == Cluster.Event.Kind.REGION_OPENED) regions.put(event.getRegionId(), new Region(event));
    if (event.getKind() == Cluster.Event.Kind.REGION_CLOSED) regions.remove(event.getRegionId());
    Region region = regions.get(event.getRegionId());
    if (region == null) return;
    Index index = region.indexes.get(event.getIndexId());
    switch (event.getKind()) {
      case INDEX_COMPLETE: {
        Index made = new Index();
        made.generation = event.getGeneration();
        made.geometry = new SplitGeometry(event.getGeometry().getSlices(), event.getGeometry().getSlicePositions());
        made.layers = event.getLayers();
        made.cellCount = event.getCellCount();
        setRange(made, event);
        region.indexes.put(event.getIndexId(), made);
        break;
      }
      case INDEX_DROPPED:
        region.indexes.remove(event.getIndexId());
        break;
      case LAYER_ADDED:
        if (index == null) break;
        while (index.bits != null && index.bits.size() < event.getLayers()) index.bits.add(empty(index));
        index.layers = event.getLayers();
        break;
      case FLIPS:
        if (index == null || index.generation != event.getGeneration()) break;
        for (int flip : event.getCellsList()) {
          if (index.cells == null || event.getSequence() <= index.cellsAsOf) break;
          if (flip % 2 == 1) index.cells.insert(flip / 2);
          else index.cells.erase(flip / 2);
        }
        if (index.bits == null || event.getSequence() <= index.asOf) break;
        for (long flip : event.getFlipsList()) {
          long[] layer = index.bits.get((int) (flip >>> 33));
          int bit = (int) (flip >>> 1);
          if ((flip & 1) != 0) layer[bit >>> 6] |= 1L << bit;
          else layer[bit >>> 6] &= ~(1L << bit);
        }
        break;
      case RANGE_WIDENED:
        if (index != null) setRange(index, event);
        break;
      default:
        break;
    }
  }

  private static void setRange(Index index, Cluster.Event event) {
    index.min = event.getHasRange() ? event.getMin().toByteArray() : null;
    index.max = event.getHasRange() ? event.getMax().toByteArray() : null;
  }

  private static long[] empty(Index index) {
    return new long[(int) ((index.geometry.positions() + 63) / 64)];
  }

  /** With what the reply tells of later than its bits. */
  private void apply(Cluster.Projection projection, Cluster.PollReply reply) {
    Region region = regions.get(projection.getRegionId());
    if (region == null || region.opened.getEpoch() != projection.getEpoch()) return;
    Index index = region.indexes.get(projection.getIndexId());
    if (index == null || index.generation != projection.getGeneration() || projection.getAsOf() < reply.getFrom())
      return;
    if (projection.getCellCount() > 0) {
      applyCells(index, projection, reply);
      return;
    }
    if (projection.getFirstWord() != 0 || projection.getFirstLayer() != 0
        || projection.getLayersCount() != projection.getLayerCount())
      return;
    List<long[]> bits = new ArrayList<>();
    for (tamis.shaded.protobuf.ByteString bytes : projection.getLayersList()) {
      long[] words = empty(index);
      if (bytes.size() != words.length * 8) return; // a part
      for (int i = 0; i < words.length * 8; ++i) words[i / 8] |= (bytes.byteAt(i) & 0xffL) << (i % 8 * 8);
      bits.add(words);
    }
    index.bits = bits;
    index.asOf = projection.getAsOf();
    index.layers = bits.size();
    for (Cluster.Event event : reply.getEventsList()) {
      boolean later = event.getSequence() > index.asOf && event.getRegionId() == projection.getRegionId()
          && event.getIndexId() == projection.getIndexId();
      if (later) apply(event);
    }
  }

  private void applyCells(Index index, Cluster.Projection projection, Cluster.PollReply reply) {
    if (projection.getFirstCell() != 0 || projection.getEndCell() != projection.getCellCount()) return; // a part
    CellSet cells = new CellSet(projection.getCellCount());
    try {
      CellSetForTest.decode(projection.getCells().toByteArray(), 0, cells);
    } catch (DamagedBytesException e) {
      throw new AssertionError(e);
    }
    index.cells = cells;
    index.cellsAsOf = projection.getAsOf();
    for (Cluster.Event event : reply.getEventsList()) {
      boolean later = event.getSequence() > index.cellsAsOf && event.getRegionId() == projection.getRegionId()
          && event.getIndexId() == projection.getIndexId();
      if (later) apply(event);
    }
  }

  /** Whether a query for values from `low` on, below `high`, would leave the region out now. */
  public synchronized boolean excludesRange(long regionId, int indexId, CellMap map, byte[] low, byte[] high) {
    if (leaseUntil - System.nanoTime() <= 0) return false;
    Region region = regions.get(regionId);
    Index index = region == null ? null : region.indexes.get(indexId);
    if (index == null || index.bits == null || index.cells == null) return false;
    if (index.min == null || Key.compare(high, index.min) <= 0 || Key.compare(low, index.max) > 0) return true;
    return index.cells.next(map.cellOf(low)) > map.cellOf(high);
  }

  /** Whether a query for the value would leave out a region of the table that the row lies in. */
  public synchronized boolean excludesRow(int tableId, byte[] row, int indexId, long hash, byte[] first) {
    for (Map.Entry<Long, Region> region : regions.entrySet()) {
      Cluster.Event opened = region.getValue().opened;
      byte[] end = opened.getEnd().toByteArray();
      boolean within = opened.getTableId() == tableId && Key.compare(row, opened.getStart().toByteArray()) >= 0
          && (end.length == 0 || Key.compare(row, end) < 0);
      if (within && excludes(region.getKey(), indexId, hash, first)) return true;
    }
    return false;
  }

  /** Whether a query for the value would leave the region out now. */
  public synchronized boolean excludes(long regionId, int indexId, long hash, byte[] first) {
    if (leaseUntil - System.nanoTime() <= 0) return false;
    Region region = regions.get(regionId);
    Index index = region == null ? null : region.indexes.get(indexId);
    if (index == null || index.bits == null) return false;
    if (index.min == null || Key.compare(first, index.min) < 0 || Key.compare(first, index.max) > 0) return true;
    for (long[] layer : index.bits) {
      boolean all = true;
      for (int slice = 0; slice < index.geometry.slices && all; ++slice) {
        long bit = index.geometry.position(hash, slice);
        all = (layer[(int) (bit >>> 6)] >>> bit & 1) != 0;
      }
      if (all) return false;
    }
    return true;
  }
}
