package tamis.search;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import tamis.golden.GoldenFile;
import tamis.shaded.protobuf.ByteString;
import tamis.table.DamagedBytesException;

/** Positions are read and written as the C++ side does. */
class SearchPositionTest {
  /** The order as the golden files write it. */
  static String text(SearchPosition position) {
    switch (position.order) {
      case ROW_KEY:
        return "key";
      case ENTRY:
        return "entry";
      case ENTRY_DESCENDING:
        return "descending";
      default:
        return "key_descending";
    }
  }

  @Test
  void positions() throws Exception {
    int positions = 0;
    int damaged = 0;
    for (String[] line : GoldenFile.lines("positions.txt")) {
      ByteString bytes = ByteString.copyFrom(GoldenFile.bytes(line[line.length - 1]));
      String what = String.join(" ", line);
      if (line[0].equals("X")) {
        assertThrows(DamagedBytesException.class, () -> SearchPosition.parse(bytes), what);
        ++damaged;
        continue;
      }
      SearchPosition position = SearchPosition.parse(bytes);
      assertEquals(line[1], Long.toUnsignedString(position.branch), what);
      assertEquals(line[2], text(position), what);
      assertEquals(line[3], Integer.toUnsignedString(position.indexId), what);
      assertEquals(line[4], GoldenFile.hex(position.last), what);
      assertEquals(bytes, position.serialize(), what);
      ++positions;
    }
    assertTrue(positions > 100 && damaged > 5);
  }
}
