package tamis.compat;

import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.KeyValueScanner;
import org.apache.hadoop.hbase.regionserver.querymatcher.ScanQueryMatcher;
import tamis.base.Fault;

/**
 * Opens the scanners of a store: one for its memory and one for each file, oldest first. Between two releases of 2.6
 * HBase added a parameter to the method that opens them; this class calls the form that exists. Threads: safe.
 */
public final class StoreScanners {
  private static final MethodType UNTIL_2_6_0 = MethodType.methodType(List.class, boolean.class, boolean.class,
      boolean.class, ScanQueryMatcher.class, byte[].class, boolean.class, byte[].class, boolean.class, long.class);
  /** The last parameter: leave out files that hold no newest version of any cell, if HBase keeps such files apart. */
  private static final MethodType SINCE = UNTIL_2_6_0.appendParameterTypes(boolean.class);
  private static final MethodHandle OPEN = find();

  private StoreScanners() {}

  private static MethodHandle find() {
    MethodHandle since = Methods.findAny(HStore.class, "getScanners", SINCE);
    if (since != null) return MethodHandles.insertArguments(since, 10, true);
    MethodHandle before = Methods.findAny(HStore.class, "getScanners", UNTIL_2_6_0);
    if (before == null) Methods.noteMissing(HStore.class.getName(), "getScanners", SINCE);
    return before;
  }

  /** The scanners of the rows `first` to `last`, both included, with every version and tombstone. */
  public static List<CellScanner> open(HStore store, byte[] first, byte[] last) throws IOException {
    Fault.STREAM_CLOSED_IN_READ.happen();
    List<?> opened;
    try {
      opened = (List<?>) OPEN.invokeExact(
          store, true, true, false, (ScanQueryMatcher) null, first, true, last, true, Long.MAX_VALUE);
    } catch (Throwable e) {
      throw Methods.failure(e);
    }
    List<CellScanner> scanners = new ArrayList<>(opened.size());
    for (Object scanner : opened) scanners.add(new CellScanner((KeyValueScanner) scanner));
    return scanners;
  }
}
