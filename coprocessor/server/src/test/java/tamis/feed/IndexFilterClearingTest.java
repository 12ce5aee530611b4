package tamis.feed;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.table.CellMap;
import tamis.table.CellMapForTest;
import tamis.table.Schema;

/**
 * Cells are cleared, and ranges narrowed, while writes go on: every interleaving of the steps of two writers and of a
 * clearer, against what coordinators know at any later moment. Without one of the rules of clearing an acknowledged row
 * is missed in some of them.
 */
class IndexFilterClearingTest {
  private static final long HOUR = TimeUnit.HOURS.toNanos(1);
  private static final long NOW = 1000 * HOUR;
  private static final int MOST_ENTRIES = 2; // that the clearer reads for a cell; then it gives up
  private static final FilterRoom FOR_BITS = new FilterRoom(1 << 20, (1 << 20) + 1);

  /** The region as a coordinator knows it, as of one number of the feed. */
  private static final class Copy {
    ValueRange range;
    final Set<Integer> cells = new HashSet<>();

    Copy copy() {
      Copy copy = new Copy();
      copy.range = range;
      copy.cells.addAll(cells);
      return copy;
    }

    void apply(Cluster.Event event) {
      if (event.getKind() == Cluster.Event.Kind.RANGE_WIDENED) {
        boolean some = event.getHasRange();
        range = some ? new ValueRange(event.getMin().toByteArray(), event.getMax().toByteArray()) : null;
      }
      for (int flip : event.getCellsList()) {
        if (flip % 2 == 1) assertTrue(cells.add(flip / 2));
        else assertTrue(cells.remove(flip / 2));
      }
    }
  }

  /**
   * A region with a filter, the entries in its index, a coordinator. Entries are named by their first value; a '*'
   * after the name makes another entry with the same value, '#' one of garbage.
   */
  private static final class Scene {
    final CellMap map;
    final Schema.Index index;
    final FilterFeed feed;
    final IndexFilter filter;
    final TreeSet<String> entries = new TreeSet<>();
    TreeSet<String> snapshot;
    final Map<String, Long> tickets = new HashMap<>();
    final Map<String, Long> acknowledged = new HashMap<>();
    Clearing clearing;
    final List<Copy> copies = new ArrayList<>(); // by number

    Scene(String... standing) throws Exception {
      this(FilterRoom.ENDLESS, standing);
    }

    Scene(FilterRoom room, String... standing) throws Exception {
      byte[][] knots = new byte[5][];
      for (int i = 0; i < knots.length; ++i) knots[i] = Bytes.toBytes("" + (char) ('c' + 2 * i));
      map = CellMapForTest.of(6, 1, knots);
      Schema.Index made =
          Schema.parse(RegionForTest.schema().addIndexes(RegionForTest.index(1, "i", true, 1)).build().toByteArray())
              .index(1);
      index = new Schema.Index(made, 9, map);
      FeedOptions options = new FeedOptions();
      options.leaseNs = HOUR;
      feed = new FilterFeed("s", 7, options, () -> NOW, (column, bytes) -> null);
      filter = new IndexFilter(feed, index, 1, 1);
      assertTrue(filter.beginGeneration(() -> true, room));
      List<IndexEntry> counted = new ArrayList<>();
      for (String name : standing) {
        entries.add(name);
        if (!isGarbage(name)) counted.add(entry(name));
      }
      filter.countExisting(counted);
      poll(0);
      filter.publish();
      Copy copy = new Copy();
      for (IndexEntry entry : counted) copy.cells.add(map.cellOf(entry.first()));
      Cluster.Projection bits = filter.project(Cluster.ColumnId.getDefaultInstance(), 1 << 20);
      copy.range = new ValueRange(bits.getMin().toByteArray(), bits.getMax().toByteArray());
      for (long n = 0; n <= feed.last(); ++n) copies.add(copy);
      poll(feed.last());
    }

    static boolean isGarbage(String name) {
      return name.endsWith("#");
    }

    static byte[] first(String name) {
      return Bytes.toBytes(name.replaceAll("[*#]", ""));
    }

    IndexEntry entry(String name) {
      return new IndexEntry(index, Bytes.toBytes(name), new byte[][] {first(name)}, 1, true);
    }

    List<IndexEntry> one(String name) {
      return Collections.singletonList(entry(name));
    }

    int cellOf(String name) {
      return map.cellOf(first(name));
    }

    // ---- The steps of a write

    void add(String name) {
      tickets.put(name, filter.add(one(name)));
    }

    void leave(String name) {
      filter.leave(tickets.get(name));
    }

    /** From here on the row is acknowledged as soon as the coordinator has applied the number. */
    void acknowledge(String name) {
      acknowledged.put(name, filter.waitFor(one(name)));
    }

    void delete(String name) {
      acknowledged.remove(name);
      entries.remove(name);
    }

    void remove(String name) {
      filter.remove(one(name));
    }

    // ---- The steps of the clearer

    void takeOldSnapshot() {
      if (Fault.CLEARED_BY_OLD_SNAPSHOT.isOn()) snapshot = new TreeSet<>(entries);
    }

    void begin() {
      clearing = filter.beginClearing(10);
    }

    void takeSnapshot() {
      if (!Fault.CLEARED_BY_OLD_SNAPSHOT.isOn()) snapshot = new TreeSet<>(entries);
    }

    void end() {
      if (clearing == null) return;
      for (int cell : clearing.cells) {
        if (isEmpty(cell)) clearing.empty.add(cell);
      }
      clearing.rangeKnown = true;
      for (String name : snapshot) {
        if (!isGarbage(name)) clearing.found = ValueRange.widened(clearing.found, first(name));
      }
      filter.endClearing(clearing);
    }

    private boolean isEmpty(int cell) {
      int seen = 0;
      for (String name : snapshot.tailSet(Bytes.toString(map.lowestOf(cell)))) {
        if (cellOf(name) > cell) break;
        if (++seen > MOST_ENTRIES) return Fault.UNDECIDED_IS_EMPTY.isOn();
        if (cellOf(name) == cell && !isGarbage(name)) return false;
      }
      return true;
    }

    // ---- The coordinator: it applies nothing and has a lease, so every later number is one that it may be at

    private Cluster.PollReply poll(long applied) throws InterruptedException {
      return feed.poll(Cluster.PollRequest.newBuilder().setCoordinator(1).setStartCode(7).setApplied(applied).build(),
          () -> NOW + HOUR);
    }

    Copy copy() throws InterruptedException {
      for (Cluster.Event event : poll(copies.size() - 1).getEventsList()) {
        Copy next = copies.get(copies.size() - 1).copy();
        next.apply(event);
        copies.add(next);
      }
      return copies.get(copies.size() - 1);
    }

    /** Whether a coordinator at some number that it may be at misses an acknowledged row. */
    boolean misses() throws InterruptedException {
      copy();
      for (Map.Entry<String, Long> row : acknowledged.entrySet()) {
        byte[] first = first(row.getKey());
        for (long n = row.getValue(); n < copies.size(); ++n) {
          Copy copy = copies.get((int) n);
          if (!copy.cells.contains(map.cellOf(first)) || !ValueRange.covers(copy.range, first)) return true;
        }
      }
      return false;
    }
  }

  private interface Step {
    void on(Scene scene);
  }

  private static final class Process {
    final List<Step> steps = new ArrayList<>();

    Process(Step... steps) {
      this.steps.addAll(Arrays.asList(steps));
    }

    Process then(Process next) {
      Process both = new Process();
      both.steps.addAll(steps);
      both.steps.addAll(next.steps);
      return both;
    }

    void run(Scene scene) {
      steps.forEach(step -> step.on(scene));
    }
  }

  private static Process insert(String name) {
    return new Process(s -> s.add(name), s -> s.entries.add(name), s -> s.leave(name), s -> s.acknowledge(name));
  }

  private static Process erase(String name) {
    return new Process(s -> s.delete(name), s -> s.remove(name));
  }

  private static Process clear() {
    return new Process(Scene::takeOldSnapshot, Scene::begin, Scene::takeSnapshot, Scene::end);
  }

  /** The next permutation of a multiset in lexicographic order; false: it was the last. */
  private static boolean permute(int[] order) {
    int i = order.length - 2;
    while (i >= 0 && order[i] >= order[i + 1]) --i;
    if (i < 0) return false;
    int j = order.length - 1;
    while (order[j] <= order[i]) --j;
    swap(order, i, j);
    for (int low = i + 1, high = order.length - 1; low < high; ++low, --high) swap(order, low, high);
    return true;
  }

  private static void swap(int[] order, int i, int j) {
    int kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }

  /** Runs every interleaving of the processes on a scene of its own, where three entries stand in three cells. */
  private static int missesOf(int leastInterleavings, Process... processes) throws Exception {
    int[] order = IntStream.range(0, processes.length)
                      .flatMap(p -> IntStream.generate(() -> p).limit(processes[p].steps.size()))
                      .toArray();
    int interleavings = 0;
    int misses = 0;
    do {
      Scene scene = new Scene("b", "d", "l");
      int[] next = new int[processes.length];
      for (int p : order) processes[p].steps.get(next[p]++).on(scene);
      ++interleavings;
      if (scene.misses()) ++misses;
    } while (permute(order));
    assertTrue(interleavings > leastInterleavings, interleavings + " interleavings");
    return misses;
  }

  /** A writer replaces the one entry of a cell, another adds one to the same cell. */
  private static Process[] twoWritersAndAClearer() {
    return new Process[] {erase("d"), insert("d*"), clear()};
  }

  /** The smallest and the largest value come and go. */
  private static Process[] atTheEnds() {
    return new Process[] {erase("l").then(erase("b")), insert("l*"), clear()};
  }

  @AfterEach
  void reset() {
    Fault.only();
  }

  @Test
  void noInterleavingMissesARow() throws Exception {
    assertEquals(0, missesOf(3000, twoWritersAndAClearer()));
    assertEquals(0, missesOf(3000, atTheEnds()));
    assertEquals(0, missesOf(3000, insert("d*"), insert("d**"), clear()));
    assertEquals(0, missesOf(3000, erase("d"), insert("d*").then(erase("d*")), clear()));
  }

  private static final Fault[] RULES = {
      Fault.LEFT_BEFORE_COMMIT, Fault.CLEARED_AMID_WRITES, Fault.CLEARED_BY_OLD_SNAPSHOT, Fault.CLEARED_DESPITE_WRITES};

  @Test
  void eachRuleIsNeededForCells() throws Exception {
    for (Fault rule : RULES) {
      Fault.only(rule);
      assertTrue(missesOf(3000, twoWritersAndAClearer()) > 0, rule.name());
    }
  }

  @Test
  void eachRuleIsNeededForTheRange() throws Exception {
    for (Fault rule : RULES) {
      Fault.only(rule);
      assertTrue(missesOf(3000, atTheEnds()) > 0, rule.name());
    }
  }

  private static boolean missesACellThatWasNotSearchedToItsEnd() throws Exception {
    Scene scene = new Scene("b", "d", "d#", "d##", "d###", "dz");
    assertEquals(scene.cellOf("d"), scene.cellOf("dz"));
    scene.acknowledge("dz");
    erase("d").then(clear()).run(scene);
    return scene.misses();
  }

  @Test
  void aCellThatWasNotFoundEmptyIsOccupied() throws Exception {
    assertFalse(missesACellThatWasNotSearchedToItsEnd());
    Fault.only(Fault.UNDECIDED_IS_EMPTY);
    assertTrue(missesACellThatWasNotSearchedToItsEnd());
  }

  /** Entries of rows are missing while an index is rebuilt: a search does not find them. */
  private static boolean missesWhereEntriesAreMissing(boolean beginsInARound) throws Exception {
    Scene scene = new Scene("b", "d", "d*", "l");
    scene.acknowledge("d*");
    erase("d").run(scene);
    if (beginsInARound) scene.begin();
    scene.filter.holdClearing();
    scene.entries.remove("d*"); // the row stays
    if (!beginsInARound) scene.begin();
    scene.takeSnapshot();
    scene.end();
    scene.filter.releaseClearing();
    return scene.misses();
  }

  @Test
  void clearingWaitsWhileEntriesMayBeMissing() throws Exception {
    for (boolean beginsInARound : new boolean[] {true, false}) {
      Fault.only();
      assertFalse(missesWhereEntriesAreMissing(beginsInARound));
      Fault.only(Fault.CLEARED_WHILE_INCOMPLETE);
      assertTrue(missesWhereEntriesAreMissing(beginsInARound));
    }
  }

  @Test
  void clearingGoesOnAfterAsManyReleasesAsHolds() throws Exception {
    Fault.only();
    Scene scene = new Scene("b", "d", "l");
    erase("d").run(scene);
    scene.filter.holdClearing();
    scene.filter.holdClearing();
    scene.filter.releaseClearing();
    assertFalse(scene.filter.wantsClearing());
    scene.filter.releaseClearing();
    assertTrue(scene.filter.wantsClearing());
  }

  /** The upper daughter of a split has its parent's bits before it has its entries. */
  private static int cellsLeftOfAnHeir() throws Exception {
    Scene scene = new Scene("b", "d", "l");
    IndexFilter heir = scene.filter.inheritedBy(
        new FilterFeed("s", 7, new FeedOptions(), () -> NOW, (c, b) -> null), scene.index, 2, 1);
    heir.publish();
    heir.remove(scene.one("d")); // the entry of one of two rows
    Clearing clearing = heir.beginClearing(10);
    if (clearing != null) {
      for (int cell : clearing.cells) clearing.empty.add(cell);
      heir.endClearing(clearing);
    }
    return heir.occupiedCells();
  }

  @Test
  void bitsOfAParentAreNotCleared() throws Exception {
    assertEquals(3, cellsLeftOfAnHeir());
    Fault.only(Fault.PARENTS_CELLS_CLEARED);
    assertEquals(2, cellsLeftOfAnHeir());
  }

  private static boolean isClearedBesideARecount(boolean beginsInARound) throws Exception {
    Scene scene = new Scene("b", "d", "l");
    erase("d").run(scene);
    if (beginsInARound) scene.begin();
    assertTrue(scene.filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    boolean wants = scene.filter.wantsClearing();
    if (!beginsInARound) scene.begin();
    assertEquals(wants, !beginsInARound && scene.clearing != null);
    scene.takeSnapshot();
    scene.end();
    boolean cleared = !scene.copy().cells.contains(scene.cellOf("d"));
    scene.filter.abandonGeneration();
    clear().run(scene);
    assertFalse(scene.copy().cells.contains(scene.cellOf("d")));
    return cleared;
  }

  @Test
  void clearingWaitsWhileAGenerationIsBuilt() throws Exception {
    for (boolean beginsInARound : new boolean[] {true, false}) {
      Fault.only();
      assertFalse(isClearedBesideARecount(beginsInARound));
      Fault.only(Fault.CLEARED_BESIDE_A_RECOUNT);
      assertTrue(isClearedBesideARecount(beginsInARound));
    }
  }

  @Test
  void aDropEndsARound() throws Exception {
    Scene scene = new Scene("b", "d", "l");
    erase("d").run(scene);
    scene.begin();
    scene.takeSnapshot();
    scene.filter.drop();
    assertTrue(scene.filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    scene.filter.countExisting(Arrays.asList(scene.entry("b"), scene.entry("d*"), scene.entry("l")));
    scene.filter.publish();
    scene.end();
    assertEquals(3, scene.filter.occupiedCells());
  }

  @Test
  void aWriteOfUnknownOutcomeKeepsItsCellUntilARecount() throws Exception {
    Scene scene = new Scene("b", "d", "l");
    scene.add("d*"); // it never leaves
    erase("d").then(clear()).then(clear()).run(scene);
    assertTrue(scene.copy().cells.contains(scene.cellOf("d")));
    assertTrue(scene.filter.wantsClearing());
    assertTrue(scene.filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    scene.filter.countExisting(Arrays.asList(scene.entry("b"), scene.entry("d*"), scene.entry("l")));
    scene.filter.publish();
    erase("d*").run(scene);
    Clearing clearing = scene.filter.beginClearing(10);
    assertArrayEquals(new int[] {scene.cellOf("d")}, clearing.cells);
  }

  @Test
  void undecidedCellsDoNotKeepOthersWaiting() throws Exception {
    Scene scene = new Scene("b", "d", "f", "l");
    erase("d").then(erase("f")).then(erase("l")).run(scene);
    List<Integer> named = new ArrayList<>();
    for (int round = 0; round < 4; ++round) {
      Clearing clearing = scene.filter.beginClearing(1);
      assertEquals(1, clearing.cells.length);
      named.add(clearing.cells[0]);
      clearing.undecided.add(clearing.cells[0]);
      scene.filter.endClearing(clearing);
    }
    assertEquals(Arrays.asList(scene.cellOf("d"), scene.cellOf("f"), scene.cellOf("l"), scene.cellOf("d")), named);
    assertEquals(4, scene.filter.occupiedCells());
  }

  /** The write may be undone without a removal. */
  @Test
  void aCellThatAWriteRegisteredForIsNamedAgain() throws Exception {
    Scene scene = new Scene("b", "d", "l");
    erase("d").run(scene);
    scene.begin();
    scene.takeSnapshot();
    scene.add("d*");
    scene.end();
    scene.leave("d*");
    assertEquals(3, scene.filter.occupiedCells());
    clear().run(scene);
    assertEquals(2, scene.filter.occupiedCells());
  }

  private static final String LARGE = "h" + String.join("", Collections.nCopies(1000, "x"));

  /** More writes are under way, or have an unknown outcome, than there is room for their values. */
  private static void crowd(Scene scene) {
    for (int i = 0; i < 1100; ++i) {
      scene.add(LARGE);
      scene.remove(LARGE); // so that its counters do not overflow
    }
  }

  private static boolean missesBesideWritesWhoseValuesAreNotKept() throws Exception {
    Scene scene = new Scene("b", "d", "l");
    crowd(scene);
    scene.add("d*");
    erase("d").then(clear()).run(scene);
    scene.entries.add("d*");
    scene.leave("d*");
    scene.acknowledge("d*");
    return scene.misses();
  }

  @Test
  void nothingIsClearedBesideWritesWhoseValuesAreNotKept() throws Exception {
    assertFalse(missesBesideWritesWhoseValuesAreNotKept());
    Fault.only(Fault.CLEARED_AMID_WRITES);
    assertTrue(missesBesideWritesWhoseValuesAreNotKept());
  }

  @Test
  void writesOfUnknownOutcomeThatTakeTheRoomAreForgottenByARecount() throws Exception {
    Scene scene = new Scene(LARGE);
    for (int i = 0; i < 2; ++i) recount(scene, LARGE); // the size fits
    crowd(scene);
    assertFalse(scene.filter.wantsRebuild(100000, FilterRoom.ENDLESS));
    for (int i = 0; i < 4096; ++i) {
      scene.add(LARGE);
      scene.leave(LARGE);
      scene.remove(LARGE);
    }
    assertTrue(scene.filter.wantsRebuild(100000, FilterRoom.ENDLESS));
    recount(scene, LARGE);
    assertFalse(scene.filter.wantsRebuild(100000, FilterRoom.ENDLESS));
    erase(LARGE).then(clear()).run(scene);
    assertEquals(0, scene.filter.occupiedCells());
  }

  @Test
  void writesWithoutAGenerationAreNotRegistered() throws Exception {
    Scene scene = new Scene("b");
    IndexFilter without = new IndexFilter(scene.feed, scene.index, 2, 1);
    assertEquals(0, without.add(scene.one("b")));
    assertTrue(without.beginGeneration(() -> true, FilterRoom.ENDLESS));
    assertTrue(without.add(scene.one("b")) != 0);
  }

  private static void recount(Scene scene, String... names) {
    assertTrue(scene.filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    for (String name : names) scene.filter.countExisting(scene.one(name));
    scene.filter.publish();
  }

  @Test
  void rangesAreNarrowedToTheExistingValues() throws Exception {
    Scene scene = new Scene("b", "d", "f", "l");
    erase("l").then(erase("b")).then(clear()).run(scene);
    assertArrayEquals(Bytes.toBytes("d"), scene.copy().range.min);
    assertArrayEquals(Bytes.toBytes("f"), scene.copy().range.max);
    erase("d").then(erase("f")).then(clear()).run(scene);
    assertNull(scene.copy().range);
    assertEquals(Collections.emptySet(), scene.copy().cells);
    assertFalse(scene.filter.wantsClearing());
    insert("h").run(scene);
    assertArrayEquals(Bytes.toBytes("h"), scene.copy().range.max);
    assertFalse(scene.misses());
  }

  @Test
  void aRangeThatWasNotSearchedToItsEndIsLookedAtAgain() throws Exception {
    Scene scene = new Scene("b", "d", "l");
    erase("l").run(scene);
    scene.begin();
    scene.filter.endClearing(scene.clearing); // without results
    assertTrue(scene.filter.wantsClearing());
    clear().run(scene);
    assertArrayEquals(Bytes.toBytes("d"), scene.copy().range.max);
  }

  /** A value comes again whose bits alone stayed: its cell was cleared. */
  private static boolean missesARowWhoseCellIsSetAgain() throws Exception {
    Scene scene = new Scene(FOR_BITS, "b", "d", "l");
    erase("d").then(clear()).run(scene);
    assertFalse(scene.copy().cells.contains(scene.cellOf("d")));
    scene.poll(scene.feed.last());
    insert("d*").run(scene);
    insert("d**").run(scene); // it sets nothing
    return scene.misses();
  }

  @Test
  void aWriteWaitsForTheFlipOfItsCell() throws Exception {
    assertFalse(missesARowWhoseCellIsSetAgain());
    Fault.only(Fault.CELL_FLIPS_NOT_WAITED_FOR);
    assertTrue(missesARowWhoseCellIsSetAgain());
  }

  @Test
  void cellsAreSentInParts() throws Exception {
    Scene scene = new Scene("b", "d", "l");
    Cluster.ColumnId.Builder from = Cluster.ColumnId.newBuilder().setCells(true);
    Cluster.Projection whole = scene.filter.project(from.build(), 1 << 20);
    assertEquals(scene.map.version(), whole.getCellMap());
    assertEquals(6, whole.getCellCount());
    assertEquals(6, whole.getEndCell());
    assertEquals(0, whole.getLayersCount());
    assertTrue(whole.getHasRange());
    assertEquals(scene.feed.last(), whole.getAsOf());
    int parts = 0;
    for (int next = 0; next < 6; ++parts) {
      from.setGeneration(whole.getGeneration()).setFirstCell(next);
      Cluster.Projection part = scene.filter.project(from.build(), 0);
      assertEquals(next, part.getFirstCell());
      next = part.getEndCell();
    }
    assertEquals(3, parts);
    from.setGeneration(whole.getGeneration() + 1);
    assertEquals(0, scene.filter.project(from.build(), 0).getFirstCell());
    IndexFilter without = new IndexFilter(scene.feed, new Schema.Index(scene.index, 9, null), 2, 1);
    without.beginGeneration(() -> true, FilterRoom.ENDLESS);
    without.publish();
    assertNull(without.project(from.build(), 1 << 20));
    assertNotNull(without.project(Cluster.ColumnId.getDefaultInstance(), 1 << 20));
  }
}
