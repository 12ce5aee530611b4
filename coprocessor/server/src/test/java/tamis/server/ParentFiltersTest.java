package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static tamis.hbase.RegionForTest.encoded;

import java.util.Collections;
import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.feed.FeedCopy;
import tamis.feed.FeedOptions;
import tamis.feed.FilterFeed;
import tamis.feed.IndexFilter;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.InheritedFilters;
import tamis.table.Hash;

/** The upper daughter of a split: what its parent's filter excludes for it, and when that filter must not be used. */
class ParentFiltersTest {
  private static final long SECOND = 1_000_000_000L;
  private static final byte[] A = Bytes.toBytes("a");
  private static final byte[] MIDDLE = Bytes.toBytes("m");

  @AfterEach
  void stopFeed() {
    Fault.only();
    TestServer.stop();
  }

  private static tamis.pb.Table.Schema schema() {
    return RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build();
  }

  private static RegionForTest region(byte[] start, byte[] end) throws Exception {
    return new RegionForTest(RegionForTest.descriptor(schema(), 1), start, end);
  }

  private static void put(RegionForTest region, String row, String value) throws Exception {
    region.region.put(new Put(Bytes.toBytes(row)).addColumn(RegionForTest.F, A, Bytes.toBytes(value)));
  }

  /** A parent with values before and after the middle, and its upper daughter, whose entries are not made. */
  private static final class Split implements AutoCloseable {
    final FilterFeed feed = TestServer.start(new FeedOptions());
    final RegionForTest parent = region(new byte[0], new byte[0]);
    final RegionForTest upper = region(MIDDLE, new byte[0]);
    final ParentFilters keptFilters;
    final IndexedRegion daughter;
    final FeedCopy copy = new FeedCopy(5);

    Split(long maxBytes) throws Exception {
      keptFilters = new ParentFilters(maxBytes);
      put(parent, "b", "x low");
      put(parent, "z", "x high");
      IndexedRegion closed = parent.indexed();
      TestServer.open(closed);
      TestServer.close(closed);
      keptFilters.leave(closed, 41, "");
      daughter = upper.indexed();
      daughter.setComplete(Collections.emptySet());
    }

    Set<String> origin() {
      return new HashSet<>(Collections.singleton(parent.indexed().info().getEncodedName()));
    }

    InheritedFilters take() {
      return keptFilters.take(daughter, feed, origin(), "");
    }

    boolean excludes(String value) throws Exception {
      for (int i = 0; i < 2; ++i) {
        long sent = System.nanoTime();
        copy.apply(feed.poll(copy.request(0), () -> System.nanoTime() + 1000 * SECOND), sent);
      }
      return copy.excludes(daughter.id, 1, Hash.of(encoded(value), 1), encoded(value));
    }

    void open(InheritedFilters parentFilters, long opened) {
      daughter.parentFilters = parentFilters;
      if (parentFilters != null) daughter.filters = parentFilters.filters;
      TestServer.tell(daughter, opened);
    }

    @Override
    public void close() throws Exception {
      TestServer.close(daughter);
      parent.close();
      upper.close();
    }
  }

  @Test
  void theUpperDaughterIsExcludedBeforeItsEntriesAreMade() throws Exception {
    try (Split split = new Split(1 << 20)) {
      InheritedFilters parentFilters = split.take();
      assertNotNull(parentFilters);
      split.daughter.filters = parentFilters.filters;
      put(split.upper, "y", "x early"); // before it is reported
      split.open(parentFilters, 42);
      assertTrue(split.excludes("x absent"));
      assertFalse(split.excludes("x high"));
      assertFalse(split.excludes("x early"));
      put(split.upper, "yy", "x late");
      assertFalse(split.excludes("x late"));
    }
  }

  /** Rows whose entries are not made yet change and go: nothing is uncounted that another row still has. */
  @Test
  void repeatedWritesDoNotUncountAnEntryOfTheParent() throws Exception {
    try (Split split = new Split(1 << 20)) {
      split.open(split.take(), 42);
      for (int i = 0; i < 40; ++i) {
        put(split.upper, "y", "x high");
        if (i % 2 == 0) put(split.upper, "y", "x other");
        else split.upper.region.delete(new Delete(Bytes.toBytes("y")));
      }
      assertFalse(split.excludes("x high")); // a value of row z, which the parent had
    }
  }

  /** Another server opened the parent, or the daughter, and wrote to it: the sequence numbers show that. */
  @Test
  void filtersOfTheParentAreDroppedAfterAWriteInBetween() throws Exception {
    try (Split split = new Split(1 << 20)) {
      split.open(split.take(), 43);
      assertFalse(split.excludes("x absent"));
    }
    Fault.only(Fault.INHERITED_WHATEVER_CAME);
    try (Split split = new Split(1 << 20)) {
      split.open(split.take(), 43);
      assertTrue(split.excludes("x written elsewhere"));
    }
  }

  @Test
  void onlyRegionsMadeOfOneParentInheritItsFilters() throws Exception {
    try (Split split = new Split(1 << 20)) {
      assertNull(split.keptFilters.take(split.daughter, split.feed, Collections.emptySet(), ""));
      assertNull(split.keptFilters.take(split.daughter, split.feed, Collections.singleton("another"), ""));
      Set<String> two = split.origin();
      two.add("another"); // a merge
      assertNull(split.keptFilters.take(split.daughter, split.feed, two, ""));
      assertNull(split.keptFilters.take(split.daughter, split.feed, split.origin(), "restored since"));
      assertNotNull(split.take());
      assertNotNull(split.take()); // the other daughter
      // The parent is opened here again.
      split.keptFilters.take(split.parent.indexed(), split.feed, Collections.emptySet(), "");
      assertNull(split.take());
      assertEquals(0, split.keptFilters.bytes());
    }
  }

  private static RegionForTest closed(String start, String end) throws Exception {
    RegionForTest region = region(Bytes.toBytes(start), Bytes.toBytes(end));
    TestServer.open(region.indexed());
    TestServer.close(region.indexed());
    return region;
  }

  private static Set<String> origin(RegionForTest region) {
    return Collections.singleton(region.indexed().info().getEncodedName());
  }

  private static long bytesOf(RegionForTest region) {
    return region.indexed().filters.values().stream().mapToLong(IndexFilter::sizeBytes).sum();
  }

  /** Whether a region of these keys that is made of the parent's files can use the parent's filters. */
  private static boolean inherits(RegionForTest parent, String start, String end) throws Exception {
    ParentFilters kept = new ParentFilters(1 << 20);
    kept.leave(parent.indexed(), 41, "");
    try (RegionForTest daughter = region(Bytes.toBytes(start), Bytes.toBytes(end))) {
      return kept.take(daughter.indexed(), TestServer.start(new FeedOptions()), origin(parent), "") != null;
    }
  }

  /** The parent's filter knows nothing of other keys. */
  @Test
  void onlyRegionsWithinTheParentInheritItsFilters() throws Exception {
    TestServer.start(new FeedOptions());
    try (RegionForTest parent = closed("c", "p")) {
      assertTrue(inherits(parent, "c", "h"));
      assertTrue(inherits(parent, "h", "p"));
      assertFalse(inherits(parent, "b", "h"));
      assertFalse(inherits(parent, "h", "q"));
      assertFalse(inherits(parent, "h", ""));
    }
    try (RegionForTest last = closed("c", "")) {
      assertTrue(inherits(last, "h", ""));
      assertTrue(inherits(last, "h", "q"));
      assertFalse(inherits(last, "", "h"));
    }
  }

  private static boolean inherits(RegionForTest parent, tamis.pb.Table.Schema schema) throws Exception {
    ParentFilters kept = new ParentFilters(1 << 20);
    kept.leave(parent.indexed(), 41, "");
    try (RegionForTest daughter = new RegionForTest(RegionForTest.descriptor(schema, 1), MIDDLE, new byte[0])) {
      return kept.take(daughter.indexed(), TestServer.start(new FeedOptions()), origin(parent), "") != null;
    }
  }

  @Test
  void onlyTheSameIndexInheritsAFilter() throws Exception {
    TestServer.start(new FeedOptions());
    try (RegionForTest parent = closed("", "")) {
      tamis.pb.Table.Schema same = schema();
      assertTrue(inherits(parent, same));
      assertFalse(inherits(parent, same.toBuilder().setId(2).build()));
      tamis.pb.Table.Index index = same.getIndexes(0);
      assertFalse(inherits(parent, same.toBuilder().setIndexes(0, index.toBuilder().setId(2)).build()));
      assertFalse(inherits(parent, same.toBuilder().setIndexes(0, index.toBuilder().setSeed(7)).build()));
      assertFalse(inherits(parent, same.toBuilder().setIndexes(0, index.toBuilder().setColumns(0, 4)).build()));
    }
  }

  @Test
  void theOldestFiltersGoWhereTheBoundIsExceeded() throws Exception {
    FilterFeed feed = TestServer.start(new FeedOptions());
    try (RegionForTest first = closed("", "m"); RegionForTest second = closed("m", "")) {
      long bytes = bytesOf(first);
      assertTrue(bytes > 0);
      assertEquals(bytes, bytesOf(second));
      ParentFilters kept = new ParentFilters(3 * bytes);
      kept.leave(first.indexed(), 1, "");
      kept.leave(second.indexed(), 1, "");
      assertEquals(2 * bytes, kept.bytes());
      kept.leave(first.indexed(), 2, ""); // in the place of what it left before
      assertEquals(2 * bytes, kept.bytes());
      ParentFilters exact = new ParentFilters(2 * bytes);
      exact.leave(first.indexed(), 1, "");
      exact.leave(second.indexed(), 1, "");
      assertEquals(2 * bytes, exact.bytes());
      ParentFilters smaller = new ParentFilters(2 * bytes - 1);
      smaller.leave(first.indexed(), 1, "");
      smaller.leave(second.indexed(), 1, "");
      assertEquals(bytes, smaller.bytes());
      byte[] none = new byte[0];
      try (RegionForTest lower = region(none, A); RegionForTest upper = region(Bytes.toBytes("x"), none)) {
        assertNull(smaller.take(lower.indexed(), feed, origin(first), ""));
        assertNotNull(smaller.take(upper.indexed(), feed, origin(second), ""));
      }
      ParentFilters tooSmall = new ParentFilters(bytes - 1);
      tooSmall.leave(first.indexed(), 1, "");
      assertEquals(0, tooSmall.bytes());
    }
  }

  /** Its last edit is that up to which the region can be read when it has closed. */
  @Test
  void aClosedRegionLeavesItsLastEdit() throws Exception {
    FilterFeed feed = TestServer.start(new FeedOptions());
    try (RegionForTest parent = region(new byte[0], new byte[0]); RegionForTest upper = region(MIDDLE, new byte[0])) {
      put(parent, "b", "x");
      TestServer.open(parent.indexed());
      TestServer.close(parent.indexed());
      ParentFilters kept = new ParentFilters(1 << 20);
      kept.leave(parent.indexed());
      long lastEdit = parent.region.getMVCC().getReadPoint();
      InheritedFilters inherited = kept.take(upper.indexed(), feed, origin(parent), "");
      assertTrue(inherited.isAllThere(lastEdit + 1));
      assertFalse(inherited.isAllThere(lastEdit + 2));
    }
  }

  /** A region that was never counted has no filter to leave. */
  @Test
  void aRegionWithoutFiltersLeavesNothing() throws Exception {
    TestServer.start(new FeedOptions());
    try (RegionForTest region = region(new byte[0], new byte[0])) {
      ParentFilters kept = new ParentFilters(1 << 20);
      kept.leave(region.indexed(), 1, "");
      assertEquals(0, kept.bytes());
      assertNull(kept.take(region.indexed(), TestServer.start(new FeedOptions()), Collections.emptySet(), ""));
    }
  }
}
