package tamis.table;

import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** The cell maps that this process uses: all regions of an index share one. Threads: safe. */
final class CellMaps {
  private static final Map<Long, WeakReference<CellMap>> MAPS = new HashMap<>(); // by version

  private CellMaps() {}

  static synchronized CellMap of(byte[] bytes) throws DamagedBytesException {
    CellMap made = new CellMap(bytes);
    WeakReference<CellMap> known = MAPS.get(made.version());
    CellMap there = known == null ? null : known.get();
    if (there != null && Arrays.equals(there.toBytes(), made.toBytes())) return there;
    MAPS.values().removeIf(map -> map.get() == null);
    MAPS.put(made.version(), new WeakReference<>(made));
    return made;
  }
}
