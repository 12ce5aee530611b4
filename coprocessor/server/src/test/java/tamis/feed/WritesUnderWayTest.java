package tamis.feed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

/** Values are kept up to a bound of bytes; beyond it writes are counted. */
class WritesUnderWayTest {
  private static final int VALUE_BYTES = 1024;
  /** The number of writes of one such value whose values are kept. */
  private static final int ROOM =
      (int) (WritesUnderWay.MAX_BYTES / (VALUE_BYTES + WritesUnderWay.WRITE_BYTES + WritesUnderWay.ENTRY_BYTES));

  private final WritesUnderWay writes = new WritesUnderWay();

  private static byte[][] values(String... values) {
    return Arrays.stream(values).map(Bytes::toBytes).toArray(byte[][] ::new);
  }

  private static byte[][] large(int entries) {
    byte[][] firsts = new byte[entries][];
    Arrays.fill(firsts, new byte[VALUE_BYTES]);
    return firsts;
  }

  private List<Long> enterLarge(int count) {
    List<Long> tickets = new ArrayList<>();
    for (int i = 0; i < count; ++i) tickets.add(writes.enter(large(1)));
    return tickets;
  }

  private void enterAndLeave(int count) {
    for (int i = 0; i < count; ++i) writes.leave(writes.enter(values("v")));
  }

  private int listed() {
    int[] count = new int[1];
    writes.forEach(first -> ++count[0]);
    return count[0];
  }

  @Test
  void valuesAreKeptUntilTheWriteLeaves() {
    long two = writes.enter(values("a", "b"));
    long none = writes.enter(values());
    long one = writes.enter(values("c"));
    TreeSet<String> found = new TreeSet<>();
    writes.forEach(first -> found.add(Bytes.toString(first)));
    assertEquals("[a, b, c]", found.toString());
    for (long ticket : new long[] {two, two, none, 0}) writes.leave(ticket);
    assertEquals(1, listed());
    assertFalse(writes.hasUnlisted());
    writes.leave(one);
    assertEquals(0, writes.sizeBytes());
  }

  @Test
  void beyondTheBoundWritesAreOnlyCounted() {
    List<Long> listed = enterLarge(ROOM);
    assertFalse(writes.hasUnlisted());
    List<Long> unlisted = enterLarge(3);
    assertTrue(writes.sizeBytes() <= WritesUnderWay.MAX_BYTES);
    assertEquals(ROOM, listed());
    writes.leave(listed.get(0));
    listed.set(0, writes.enter(large(1)));
    assertEquals(ROOM, listed());
    for (long ticket : unlisted) {
      assertTrue(writes.hasUnlisted());
      writes.leave(ticket);
    }
    assertFalse(writes.hasUnlisted());
    listed.forEach(writes::leave);
    assertEquals(0, writes.sizeBytes());
  }

  private void forgetsUpToTheMark(int before) {
    enterLarge(before);
    writes.enter(large(1));
    long leaves = writes.enter(large(1));
    writes.mark();
    long after = writes.enter(large(2 * ROOM));
    assertTrue(writes.hasUnlisted());
    writes.leave(leaves);
    writes.forgetMarked();
    assertTrue(writes.hasUnlisted());
    assertEquals(0, writes.sizeBytes());
    writes.leave(leaves); // late
    assertTrue(writes.hasUnlisted());
    writes.leave(after);
    assertFalse(writes.hasUnlisted());
    writes.forgetMarked();
    assertFalse(writes.hasUnlisted());
  }

  @Test
  void writesUpToTheMarkAreForgotten() {
    forgetsUpToTheMark(2);
    forgetsUpToTheMark(ROOM); // the last ones have their values not kept
  }

  @Test
  void aMarkReplacesTheOneBefore() {
    enterLarge(ROOM + 2);
    writes.mark();
    enterLarge(1);
    writes.mark();
    writes.forgetMarked();
    assertFalse(writes.hasUnlisted());
  }

  private boolean areStuck(int large) {
    enterLarge(large);
    enterAndLeave(3000);
    assertFalse(writes.isStuck());
    enterAndLeave(2000);
    boolean stuck = writes.isStuck();
    writes.mark();
    writes.forgetMarked();
    assertFalse(writes.isStuck());
    return stuck;
  }

  @Test
  void writesThatManyOthersHaveFollowedAreStuck() {
    assertFalse(areStuck(ROOM / 2 - 10));
    assertTrue(areStuck(ROOM / 2 + 2));
    assertTrue(areStuck(ROOM + 2));
  }

  @Test
  void newWritesThatTakeTheRoomAreNotStuck() {
    enterAndLeave(5000);
    enterLarge(ROOM + 2);
    assertFalse(writes.isStuck());
  }
}
