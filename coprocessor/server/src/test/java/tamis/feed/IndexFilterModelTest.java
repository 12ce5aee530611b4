package tamis.feed;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.filter.BitLayers;
import tamis.filter.CellSet;
import tamis.filter.CellSetForTest;
import tamis.filter.ScalableSplitCountingBloomFilter;
import tamis.filter.SplitGeometry;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.pb.Cluster.Event;
import tamis.shaded.protobuf.ByteString;
import tamis.table.ByteWriter;
import tamis.table.CellMap;
import tamis.table.CellMapForTest;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * A coordinator that knows a filter by its events alone, at every number of the feed: its copy has the bits of the
 * filter, and the copy of the number that waitFor returns holds the entry. Now and then memory runs out.
 */
class IndexFilterModelTest {
  private static final long HOUR = TimeUnit.HOURS.toNanos(1);
  private static final long NOW = 1000 * HOUR;
  private static final long REGION = 11;
  private static final long EPOCH = 12;
  private static final long READER = 1;
  private static final long COORDINATOR = 2;
  private static final int STEPS = 400;

  /** The number of times that each thing happened: otherwise the test would have shown nothing. */
  private static final class Tally {
    long waited;
    long waitedForRange;
    long waitedForPublication;
    long layers;
    long publications;
    long bitsOnly;
    long inherited;
    long shortOfMemory;
    long dropped;
    long outgrown;
    long withoutRoom;
    long cellsCleared;
    long narrowed;
  }

  /** The filter as a coordinator knows it. */
  private static final class Copy {
    boolean published;
    long generation;
    SplitGeometry geometry;
    List<long[]> layers = new ArrayList<>();
    byte[] min;
    byte[] max;
    CellMap map; // null: no cells
    CellSet cells;

    Copy copy() {
      Copy copy = new Copy();
      copy.published = published;
      copy.generation = generation;
      copy.geometry = geometry;
      for (long[] layer : layers) copy.layers.add(layer.clone());
      copy.min = min;
      copy.max = max;
      copy.map = map;
      copy.cells = cells == null ? null : cells.copy();
      return copy;
    }

    void setLayers(int count) {
      while (layers.size() < count) layers.add(new long[words()]);
    }

    int words() {
      return (int) ((geometry.positions() + 63) / 64);
    }

    void setRange(Event event) {
      min = event.getHasRange() ? event.getMin().toByteArray() : null;
      max = event.getHasRange() ? event.getMax().toByteArray() : null;
    }

    void flipCell(int flip) {
      boolean changed = (flip & 1) != 0 ? cells.insert(flip / 2) : cells.erase(flip / 2);
      assertTrue(changed, "a flip changes its cell");
    }

    void flip(long flip) {
      long[] layer = layers.get((int) (flip >>> 33));
      long position = flip >>> 1 & 0xffffffffL;
      assertTrue(position < geometry.positions());
      long bit = 1L << position;
      assertEquals((flip & 1) == 0, (layer[(int) (position / 64)] & bit) != 0, "a flip changes its bit");
      layer[(int) (position / 64)] ^= bit;
    }

    boolean mayHold(IndexEntry entry) {
      if (!published) return true;
      if (min == null || Key.compare(entry.first(), min) < 0 || Key.compare(max, entry.first()) < 0) return false;
      if (map != null && !cells.contains(map.cellOf(entry.first()))) return false;
      for (long hash : entry.hashes()) {
        if (layers.stream().noneMatch(layer -> holds(layer, hash))) return false;
      }
      return true;
    }

    private boolean holds(long[] layer, long hash) {
      for (int slice = 0; slice < geometry.slices; ++slice) {
        long position = geometry.position(hash, slice);
        if ((layer[(int) (position / 64)] >>> position & 1) == 0) return false;
      }
      return true;
    }
  }

  /** One filter, with entries that come and go. */
  private static final class Run {
    final Random random;
    final Tally tally;
    final Schema.Index index;
    final int values;
    final FilterFeed feed;
    final IndexFilter filter;
    final long maxBytes;
    FilterRoom room = FilterRoom.ENDLESS;
    final List<String> standing = new ArrayList<>();
    final List<String> toCount = new ArrayList<>(); // entries of the snapshot that the scan has not reached
    boolean building;
    boolean currentIsExact = true; // nothing was counted for entries that were not committed
    boolean nextIsExact = true;
    long acked;
    long generation;
    final List<Copy> copies = new ArrayList<>(Collections.singletonList(new Copy())); // by number

    Run(long seed, Tally tally) throws Exception {
      random = new Random(seed);
      this.tally = tally;
      tamis.pb.Table.Index made = RegionForTest.index(1, "i", true, 1, 4)
                                      .toBuilder()
                                      .setFpr(random.nextBoolean() ? 0.3 : 0.02)
                                      .setExpectedValues(1 + random.nextInt(100))
                                      .setSeed(seed)
                                      .build();
      values = 2 + random.nextInt(60);
      CellMap map =
          random.nextBoolean() ? null : CellMapForTest.of(200, 60, encoded("v1"), encoded("v3"), encoded("v6"));
      index = new Schema.Index(
          Schema.parse(RegionForTest.schema().addIndexes(made).build().toByteArray()).index(1), seed, map);
      maxBytes = random.nextBoolean() ? Long.MAX_VALUE / 8 : 400 + random.nextInt(2000);
      FeedOptions options = new FeedOptions();
      options.leaseNs = HOUR;
      feed = new FilterFeed("s", 7, options, () -> NOW, (column, bytes) -> null);
      filter = new IndexFilter(feed, index, REGION, EPOCH);
      poll(READER, 0);
      poll(COORDINATOR, 0);
    }

    /** The coordinator has a lease that does not end; the reader has none, so nothing waits for it. */
    Cluster.PollReply poll(long coordinator, long applied) throws Exception {
      return feed.poll(
          Cluster.PollRequest.newBuilder().setCoordinator(coordinator).setStartCode(7).setApplied(applied).build(),
          () -> coordinator == READER ? 0 : NOW + HOUR);
    }

    private static byte[] encoded(String... texts) {
      ByteWriter out = new ByteWriter();
      for (String text : texts) Codec.appendIndexed(Value.text(text), out);
      return out.toBytes();
    }

    IndexEntry entryOf(String value) {
      String[] parts = value.split("/");
      return new IndexEntry(index, encoded(parts), new byte[][] {encoded(parts[0]), encoded(parts)}, 1, true);
    }

    String anyValue() {
      return "v" + random.nextInt(values) + "/" + random.nextInt(3);
    }

    private static List<IndexEntry> one(IndexEntry entry) {
      return Collections.singletonList(entry);
    }

    void step() throws Exception {
      switch (random.nextInt(16)) {
        case 0:
          begin();
          return;
        case 1:
          if (maxBytes < Long.MAX_VALUE / 8) room = new FilterRoom(maxBytes, random.nextInt((int) (maxBytes / 2 * 3)));
          return;
        case 2:
          acked += random.nextInt((int) (feed.last() - acked) + 1);
          poll(COORDINATOR, acked);
          return;
        case 3:
          if (random.nextInt(10) == 0) drop();
          else if (random.nextInt(10) == 0) inherit();
          else clear();
          return;
        case 4:
        case 5:
        case 6:
        case 7:
          if (!standing.isEmpty()) {
            filter.remove(one(entryOf(standing.remove(random.nextInt(standing.size())))));
          }
          return;
        case 8:
        case 9:
        case 10:
          if (building) {
            countSome();
            return;
          }
          add();
          return;
        default:
          add();
      }
    }

    /** A clearer looks for everything that may be cleared; now and then an entry comes meanwhile. */
    void clear() throws Exception {
      removeAllOf(random.nextBoolean() ? anyValue() : standing.stream().max(String::compareTo).orElse("/"));
      Clearing clearing = filter.beginClearing(1 + random.nextInt(5));
      if (clearing == null) return;
      assertTrue(filter.isCounted() && !building);
      Set<Integer> occupied = new HashSet<>();
      for (String value : standing) {
        byte[] first = entryOf(value).first();
        if (clearing.map != null) occupied.add(clearing.map.cellOf(first));
        clearing.found = ValueRange.widened(clearing.found, first);
      }
      for (int cell : clearing.cells) {
        if (!occupied.contains(cell)) clearing.empty.add(cell);
      }
      clearing.rangeKnown = random.nextInt(5) > 0;
      if (random.nextBoolean()) add();
      filter.endClearing(clearing);
    }

    /** The entries with the same first value. */
    void removeAllOf(String value) {
      String first = value.substring(0, value.indexOf('/') + 1);
      for (int i = standing.size() - 1; i >= 0; --i) {
        if (standing.get(i).startsWith(first)) filter.remove(one(entryOf(standing.remove(i))));
      }
    }

    void add() throws Exception {
      List<IndexEntry> entries = new ArrayList<>();
      List<String> added = new ArrayList<>();
      for (int n = 1 + random.nextInt(3); n > 0; --n) {
        added.add(anyValue());
        entries.add(entryOf(added.get(added.size() - 1)));
      }
      long[] ticket = new long[1];
      if (!doShortOfMemory(() -> ticket[0] = filter.add(entries))) {
        afterFailedAdd();
        return;
      }
      standing.addAll(added);
      if (random.nextInt(20) > 0) filter.leave(ticket[0]);
      readEvents();
      for (IndexEntry entry : entries) checkWait(entry);
    }

    /** Does it; now and then it finds no memory at one place. False: that made it fail. */
    boolean doShortOfMemory(Runnable work) {
      if (random.nextInt(12) > 0) {
        work.run();
        return true;
      }
      Fault.exhaustMemory(1 + random.nextInt(30), 1);
      Fault.only(Fault.OUT_OF_MEMORY);
      try {
        work.run();
        return true;
      } catch (OutOfMemoryError e) {
        ++tally.shortOfMemory;
        return false;
      } finally {
        Fault.only();
      }
    }

    /** The entries are not committed. A filter with bits that no event tells of is dropped by the next writer. */
    void afterFailedAdd() {
      currentIsExact = nextIsExact = false;
      boolean wasPublished = filter.isPublished();
      long number;
      if (random.nextBoolean()) {
        number = filter.waitFor(Collections.emptyList());
      } else {
        number = feed.last() + 1; // where it is dropped
        String value = anyValue();
        filter.leave(filter.add(one(entryOf(value))));
        standing.add(value);
      }
      if (!wasPublished || filter.isPublished()) return;
      ++tally.dropped;
      building = false;
      assertEquals(number, feed.last());
      assertTrue(filter.isMissing());
    }

    void drop() {
      boolean wasPublished = filter.isPublished();
      boolean givenUp = random.nextBoolean();
      boolean nothing = givenUp && !wasPublished;
      long number = 0;
      if (givenUp) filter.giveUp();
      else number = filter.drop();
      if (nothing) return;
      building = false;
      assertFalse(filter.isPublished());
      assertEquals(givenUp, filter.isMissing());
      if (wasPublished && !givenUp) assertEquals(feed.last(), number);
      if (wasPublished) assertEquals(feed.last(), filter.waitFor(Collections.emptyList()));
    }

    void begin() {
      if (building) {
        if (random.nextInt(6) == 0) {
          filter.abandonGeneration();
          building = false;
        }
        return;
      }
      assertFalse(filter.beginGeneration(() -> false, room));
      boolean wasPublished = filter.isPublished();
      building = filter.beginGeneration(() -> true, room);
      if (!building) {
        ++tally.withoutRoom;
        assertEquals(!wasPublished, filter.isMissing());
        return;
      }
      nextIsExact = true;
      toCount.clear();
      toCount.addAll(standing);
    }

    void countSome() {
      for (int n = 1 + random.nextInt(20); n > 0 && !toCount.isEmpty(); --n) {
        if (!filter.countExisting(one(entryOf(toCount.remove(toCount.size() - 1))))) {
          building = false;
          ++tally.outgrown;
          return;
        }
      }
      boolean tooLarge = filter.isTooLarge(room);
      if (tooLarge && random.nextBoolean() && filter.outgrow()) {
        building = false;
        return;
      }
      if (toCount.isEmpty() && random.nextInt(3) > 0) publish();
    }

    void publish() {
      building = false;
      if (!doShortOfMemory(filter::publish)) {
        filter.abandonGeneration();
        return;
      }
      currentIsExact = nextIsExact;
      ++tally.publications;
      if (filter.isOfBits()) ++tally.bitsOnly;
      assertTrue(filter.isPublished() && !filter.isMissing());
    }

    /** The copies as of each number that there is. */
    void readEvents() throws Exception {
      Cluster.PollReply reply = poll(READER, copies.size() - 1);
      assertFalse(reply.getFull() && reply.getTo() > 0);
      for (Event event : reply.getEventsList()) {
        assertEquals(copies.size(), event.getSequence());
        Copy copy = copies.get(copies.size() - 1).copy();
        copies.add(apply(event, copy));
      }
    }

    Copy apply(Event event, Copy copy) {
      assertEquals(REGION, event.getRegionId());
      assertEquals(EPOCH, event.getEpoch());
      assertEquals(1, event.getIndexId());
      if (event.getKind() == Event.Kind.INDEX_COMPLETE) {
        assertTrue(event.getGeneration() > generation);
        generation = event.getGeneration();
        Copy made = new Copy();
        made.published = true;
        made.generation = generation;
        made.geometry = new SplitGeometry(event.getGeometry().getSlices(), event.getGeometry().getSlicePositions());
        made.setLayers(event.getLayers());
        made.setRange(event);
        Cluster.Projection bits = filter.project(Cluster.ColumnId.getDefaultInstance(), 1 << 20);
        assertEquals(event.getSequence(), bits.getAsOf(), "the test reads right after a publication");
        for (int i = 0; i < bits.getLayersCount(); ++i) made.layers.set(i, wordsOf(bits.getLayers(i)));
        assertEquals(index.cellMap == null ? 0 : index.cellMap.version(), event.getCellMap());
        assertEquals(index.cellMap == null ? 0 : 200, event.getCellCount());
        made.map = index.cellMap;
        made.cells = cells();
        return made;
      }
      assertEquals(copy.generation, event.getGeneration());
      switch (event.getKind()) {
        case LAYER_ADDED:
          assertTrue(event.getLayers() > copy.layers.size());
          ++tally.layers;
          copy.setLayers(event.getLayers());
          return copy;
        case FLIPS:
          for (long flip : event.getFlipsList()) copy.flip(flip);
          for (int flip : event.getCellsList()) {
            copy.flipCell(flip);
            if (flip % 2 == 0) ++tally.cellsCleared;
          }
          return copy;
        case INDEX_DROPPED:
          return new Copy();
        case RANGE_WIDENED:
          Copy wider = copy.copy();
          copy.setRange(event);
          boolean narrower = copy.min == null || (wider.min != null && Key.compare(wider.min, copy.min) < 0)
              || (wider.max != null && Key.compare(copy.max, wider.max) < 0);
          if (narrower) ++tally.narrowed;
          return copy;
        default:
          throw new AssertionError(event.toString());
      }
    }

    /** The cells of the filter, in parts; null: it has none. */
    CellSet cells() {
      if (index.cellMap == null) {
        assertNull(filter.project(Cluster.ColumnId.newBuilder().setCells(true).build(), 1 << 20));
        return null;
      }
      CellSet cells = new CellSet(200);
      long most = random.nextInt(30);
      long generation = filter.project(Cluster.ColumnId.getDefaultInstance(), 8).getGeneration();
      for (int next = 0; next < 200;) {
        Cluster.ColumnId.Builder from =
            Cluster.ColumnId.newBuilder().setCells(true).setGeneration(generation).setFirstCell(next);
        Cluster.Projection part = filter.project(from.build(), most);
        assertEquals(next, part.getFirstCell());
        assertEquals(index.cellMap.version(), part.getCellMap());
        assertEquals(feed.last(), part.getAsOf());
        try {
          CellSetForTest.decode(part.getCells().toByteArray(), next, cells);
        } catch (DamagedBytesException e) {
          throw new AssertionError(e);
        }
        next = part.getEndCell();
      }
      return cells;
    }

    private static long[] wordsOf(ByteString bytes) {
      long[] words = new long[bytes.size() / 8];
      for (int i = 0; i < bytes.size(); ++i) words[i / 8] |= (bytes.byteAt(i) & 0xffL) << (i % 8 * 8);
      return words;
    }

    /** Every copy that a coordinator may use once the wait is over has the entry. */
    void checkWait(IndexEntry entry) {
      long number = filter.waitFor(one(entry));
      assertTrue(number <= feed.last());
      for (long n = Math.max(number, acked); n < copies.size(); ++n) {
        assertTrue(copies.get((int) n).mayHold(entry), "as of " + n + ", waited for " + number);
      }
      if (number == 0) return;
      assertTrue(number > acked, "applied already");
      ++tally.waited;
      Copy before = copies.get((int) number - 1);
      Copy last = copies.get(copies.size() - 1);
      if (!before.published || !last.published || before.generation != last.generation) {
        ++tally.waitedForPublication;
        return;
      }
      if (!Arrays.equals(before.min, copies.get((int) number).min)
          || !Arrays.equals(before.max, copies.get((int) number).max)) {
        ++tally.waitedForRange;
      }
      assertFalse(before.layers.size() == 1 && before.mayHold(entry), "for nothing");
    }

    void check() {
      Copy copy = copies.get(copies.size() - 1);
      assertEquals(copy.published, filter.isPublished());
      Cluster.Projection bits = filter.project(Cluster.ColumnId.getDefaultInstance(), 1 << 20);
      assertEquals(copy.published, bits != null);
      if (!copy.published) {
        assertEquals(0, filter.publishedBytes());
        assertEquals(0, filter.entries());
        assertFalse(filter.isOfBits() || filter.isCounted());
        assertEquals(-1, filter.countBound(encoded("v1")));
        assertTrue(filter.frozen() == null && filter.mayContain(entryOf("v1/1")));
        return;
      }
      checkBits(copy, bits);
      CellSet cells = cells();
      for (int cell = 0; cells != null && cell < 200; ++cell) {
        assertEquals(copy.cells.contains(cell), cells.contains(cell));
      }
      long layerBytes = filter.isOfBits() ? BitLayers.layerBytes(copy.geometry)
                                          : ScalableSplitCountingBloomFilter.layerBytes(copy.geometry);
      long cellBytes = copy.map == null ? 0 : 2 * CellSet.sizeBytes(200);
      assertEquals(copy.layers.size() * layerBytes + cellBytes, filter.publishedBytes());
      assertTrue(
          building ? filter.sizeBytes() > filter.publishedBytes() : filter.sizeBytes() == filter.publishedBytes());
      assertTrue(filter.entries() >= standing.size());
      if (currentIsExact) assertEquals(standing.size(), filter.entries());
      Map<String, Long> rows = new HashMap<>();
      Predicate<IndexEntry> frozen = filter.frozen();
      for (String value : standing) {
        IndexEntry entry = entryOf(value);
        assertTrue(filter.mayContain(entry) && frozen.test(entry) && copy.mayHold(entry));
        rows.merge(value.split("/")[0], 1L, Long::sum);
      }
      IndexEntry any = entryOf(anyValue());
      assertEquals(copy.mayHold(any), filter.mayContain(any));
      assertEquals(copy.mayHold(any), frozen.test(any));
      rows.forEach((first, count) -> {
        long bound = filter.countBound(encoded(first));
        assertTrue(bound >= count || bound < 0, first + ": " + bound + " for " + count);
        assertTrue(bound < 0 || !filter.isOfBits());
      });
      if (!standing.isEmpty()) checkWait(entryOf(standing.get(random.nextInt(standing.size()))));
    }

    void checkBits(Copy copy, Cluster.Projection bits) {
      assertEquals(REGION, bits.getRegionId());
      assertEquals(EPOCH, bits.getEpoch());
      assertEquals(1, bits.getIndexId());
      assertEquals(copy.generation, bits.getGeneration());
      assertEquals(feed.last(), bits.getAsOf());
      assertEquals(copy.geometry.slices, bits.getGeometry().getSlices());
      assertEquals(copy.geometry.slicePositions, bits.getGeometry().getSlicePositions());
      assertEquals(copy.layers.size(), bits.getLayerCount());
      assertEquals(copy.min != null, bits.getHasRange());
      if (copy.min != null) {
        assertArrayEquals(copy.min, bits.getMin().toByteArray());
        assertArrayEquals(copy.max, bits.getMax().toByteArray());
      }
      // All at once, or in parts that each begin where the one before ended.
      long most = random.nextInt(3) == 0 ? 1 << 20 : random.nextInt(2 * 8 * copy.words());
      int layer = 0;
      int word = 0;
      for (int parts = 0; layer < copy.layers.size(); ++parts) {
        assertTrue(parts <= copy.layers.size() * copy.words());
        Cluster.Projection part = filter.project(Cluster.ColumnId.newBuilder()
                                                     .setGeneration(copy.generation)
                                                     .setFirstLayer(layer)
                                                     .setFirstWord(word)
                                                     .build(),
            most);
        assertEquals(layer, part.getFirstLayer());
        assertEquals(word, part.getFirstWord());
        long words = 0;
        for (ByteString bytes : part.getLayersList()) {
          long[] there = wordsOf(bytes);
          words += there.length;
          assertTrue(there.length > 0 && word + there.length <= copy.words());
          assertArrayEquals(Arrays.copyOfRange(copy.layers.get(layer), word, word + there.length), there);
          word += there.length;
          if (word < copy.words()) continue;
          ++layer;
          word = 0;
        }
        assertEquals(layer < copy.layers.size() ? Math.max(1, most / 8) : words, words);
      }
      // A place that is not there is the beginning.
      for (Cluster.ColumnId.Builder from :
          Arrays.asList(Cluster.ColumnId.newBuilder().setGeneration(copy.generation + 1).setFirstWord(1),
              Cluster.ColumnId.newBuilder().setGeneration(copy.generation).setFirstLayer(copy.layers.size()),
              Cluster.ColumnId.newBuilder().setGeneration(copy.generation).setFirstWord(copy.words()))) {
        Cluster.Projection part = filter.project(from.build(), 8);
        assertEquals(0, part.getFirstLayer());
        assertEquals(0, part.getFirstWord());
      }
    }

    /** The filter of a region that is made of this one. */
    void inherit() throws Exception {
      IndexFilter heir = filter.inheritedBy(
          new FilterFeed("s", 7, new FeedOptions(), () -> NOW, (c, b) -> null), index, REGION + 1, EPOCH);
      assertEquals(filter.isPublished(), heir != null);
      if (heir == null) return;
      ++tally.inherited;
      assertFalse(heir.isPublished());
      heir.publish();
      assertTrue(heir.isPublished() && !heir.isCounted());
      assertEquals(filter.entries(), heir.entries());
      assertEquals(filter.publishedBytes(), heir.publishedBytes());
      assertEquals(filter.occupiedCells(), heir.occupiedCells());
      Cluster.Projection theirs = heir.project(Cluster.ColumnId.getDefaultInstance(), 1 << 20);
      Cluster.Projection ours = filter.project(Cluster.ColumnId.getDefaultInstance(), 1 << 20);
      assertEquals(ours.getLayersList(), theirs.getLayersList());
      assertEquals(ours.getMin(), theirs.getMin());
      assertEquals(REGION + 1, theirs.getRegionId());
      for (String value : standing) assertTrue(heir.mayContain(entryOf(value)));
    }

    void retire() {
      filter.retire();
      boolean published = filter.isPublished();
      filter.beginGeneration(() -> true, FilterRoom.ENDLESS);
      filter.publish();
      assertEquals(published, filter.isPublished());
      assertFalse(filter.wantsRebuild(0, FilterRoom.ENDLESS));
    }
  }

  @AfterEach
  void end() {
    Fault.only();
  }

  @Test
  void eventsGiveTheBitsAndWaitForNamesTheEventThatAnEntryNeeds() throws Exception {
    Tally tally = new Tally();
    for (long seed = 1; seed <= 60; ++seed) {
      try {
        Run run = new Run(seed, tally);
        for (int step = 0; step < STEPS; ++step) {
          run.step();
          run.readEvents();
          run.check();
        }
        run.inherit();
        run.retire();
      } catch (Throwable e) {
        throw new AssertionError("seed " + seed, e);
      }
    }
    for (long[] atLeast : new long[][] {{tally.waited, 1000}, {tally.waitedForRange, 100},
             {tally.waitedForPublication, 1000}, {tally.layers, 10}, {tally.publications, 100}, {tally.bitsOnly, 10},
             {tally.inherited, 20}, {tally.shortOfMemory, 30}, {tally.dropped, 10}, {tally.outgrown, 10},
             {tally.withoutRoom, 50}, {tally.cellsCleared, 50}, {tally.narrowed, 50}}) {
      assertTrue(atLeast[0] > atLeast[1], Arrays.toString(atLeast));
    }
  }
}
