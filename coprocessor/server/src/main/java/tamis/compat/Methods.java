package tamis.compat;

import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.ExtendedCell;

/**
 * HBase's methods that are found by name, since no single descriptor fits all versions. HBase 3.0.0 has ExtendedCell
 * where earlier versions have Cell. Threads: safe.
 */
public final class Methods {
  private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();
  private static final List<Class<?>> USERS =
      Arrays.asList(BlockIndexRoot.class, CellScanner.class, Cells.class, StoreScanners.class);
  private static final Set<String> MISSING = new ConcurrentSkipListSet<>();

  private Methods() {}

  /** The methods that this package needs and that HBase does not have; usually none. */
  public static Set<String> missing() {
    for (Class<?> user : USERS) {
      try {
        Class.forName(user.getName(), true, user.getClassLoader()); // looks its methods up
      } catch (ClassNotFoundException | LinkageError e) {
        MISSING.add("a method that " + user.getName() + " needs (" + e + ")");
      }
    }
    return MISSING;
  }

  static void noteMissing(String owner, String name, MethodType type) {
    MISSING.add(owner + "." + name + type);
  }

  /** The method of this type, or with ExtendedCell in place of Cell; null, and noted: HBase has neither. */
  static MethodHandle find(Class<?> owner, String name, MethodType type) {
    MethodHandle found = findAny(owner, name, type);
    if (found == null) noteMissing(owner.getName(), name, type);
    return found;
  }

  /** The same for a method without an instance. */
  static MethodHandle findStatic(Class<?> owner, String name, MethodType type) {
    for (MethodType each : alternatives(type)) {
      try {
        return LOOKUP.findStatic(owner, name, each).asType(type);
      } catch (NoSuchMethodException | IllegalAccessException e) {
        continue;
      }
    }
    noteMissing(owner.getName(), name, type);
    return null;
  }

  /** The same without a note. */
  static MethodHandle findAny(Class<?> owner, String name, MethodType type) {
    for (MethodType each : alternatives(type)) {
      try {
        return LOOKUP.findVirtual(owner, name, each).asType(type.insertParameterTypes(0, owner));
      } catch (NoSuchMethodException | IllegalAccessException e) {
        continue;
      }
    }
    return null;
  }

  /** The type as it is, and with ExtendedCell in place of Cell. */
  static List<MethodType> alternatives(MethodType type) {
    MethodType taking = type;
    for (int i = 0; i < type.parameterCount(); ++i) {
      if (type.parameterType(i) == Cell.class) taking = taking.changeParameterType(i, ExtendedCell.class);
    }
    if (type.returnType() != Cell.class) return Arrays.asList(type, taking);
    Class<?> extended = ExtendedCell.class;
    return Arrays.asList(type, taking, type.changeReturnType(extended), taking.changeReturnType(extended));
  }

  /** Throws what a found method threw. */
  static IOException failure(Throwable e) throws IOException {
    if (e instanceof IOException) throw(IOException) e;
    if (e instanceof RuntimeException) throw(RuntimeException) e;
    if (e instanceof Error) throw(Error) e;
    return new IOException("a method of HBase failed", e);
  }
}
