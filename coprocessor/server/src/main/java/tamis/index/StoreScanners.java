package tamis.index;

import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.List;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.KeyValueScanner;
import org.apache.hadoop.hbase.regionserver.querymatcher.ScanQueryMatcher;
import tamis.base.Fault;

/**
 * The scanners of a store's memory and files, one by one, oldest first. HBase gained a parameter of the method that
 * opens them between two releases of 2.6: whichever is there is called. Threads: safe.
 */
public final class StoreScanners {
  private static final MethodType UNTIL_2_6_0 = MethodType.methodType(List.class, boolean.class, boolean.class,
      boolean.class, ScanQueryMatcher.class, byte[].class, boolean.class, byte[].class, boolean.class, long.class);
  /** The last parameter leaves out files without a newest version, where HBase keeps those apart. */
  private static final MethodType SINCE = UNTIL_2_6_0.appendParameterTypes(boolean.class);
  private static final MethodHandle OPEN = find();

  private StoreScanners() {}

  /** null: HBase has neither. */
  private static MethodHandle find() {
    MethodHandles.Lookup lookup = MethodHandles.lookup();
    try {
      return MethodHandles.insertArguments(lookup.findVirtual(HStore.class, "getScanners", SINCE), 10, true);
    } catch (ReflectiveOperationException notThere) {
      try {
        return lookup.findVirtual(HStore.class, "getScanners", UNTIL_2_6_0);
      } catch (ReflectiveOperationException e) {
        return null;
      }
    }
  }

  /** A method that this class needs and HBase does not have; null: it has all. */
  public static String missing() {
    return OPEN == null ? HStore.class.getName() + ".getScanners" + SINCE : null;
  }

  /** The scanners of the rows `first` to `last`, both included, with every version and tombstone. */
  @SuppressWarnings("unchecked")
  static List<KeyValueScanner> open(HStore store, byte[] first, byte[] last) throws IOException {
    Fault.STREAM_CLOSED_IN_READ.happen();
    if (OPEN == null) throw new IOException("HBase has no method " + missing());
    try {
      return (List<KeyValueScanner>) OPEN.invokeExact(
          store, true, true, false, (ScanQueryMatcher) null, first, true, last, true, Long.MAX_VALUE);
    } catch (IOException | RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IOException("cannot open the scanners of a store", e);
    }
  }
}
