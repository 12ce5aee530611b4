package tamis.compat;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.KeyValueUtil;
import org.apache.hadoop.hbase.io.hfile.HFile;

/**
 * The root of a file's block index, which is in memory. Its class in HBase is not public before 2.6.2, though its
 * methods are: so they are found by name. A value.
 */
public final class BlockIndexRoot {
  private static final String CLASS = "org.apache.hadoop.hbase.io.hfile.HFileBlockIndex$BlockIndexReader";
  private static final MethodHandle COUNT = find("getRootBlockCount", MethodType.methodType(int.class));
  private static final MethodHandle FIND = find("rootBlockContainingKey", MethodType.methodType(int.class, Cell.class));

  private final Object index;

  private BlockIndexRoot(Object index) {
    this.index = index;
  }

  private static MethodHandle find(String name, MethodType type) {
    for (MethodType each : Methods.alternatives(type)) {
      try {
        Method method = Class.forName(CLASS).getDeclaredMethod(name, each.parameterArray());
        method.setAccessible(true);
        return MethodHandles.lookup().unreflect(method).asType(type.insertParameterTypes(0, Object.class));
      } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
        continue;
      }
    }
    Methods.noteMissing(CLASS, name, type);
    return null;
  }

  /** null: the file has none. */
  public static BlockIndexRoot of(HFile.Reader file) {
    Object index = file.getDataBlockIndexReader();
    return index == null ? null : new BlockIndexRoot(index);
  }

  public int blocks() {
    try {
      return (int) COUNT.invokeExact(index);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException("cannot read the index of a file", e);
    }
  }

  /** -1: the row lies before all of the file. */
  public int blockOf(byte[] row) {
    try {
      return (int) FIND.invokeExact(index, (Cell) KeyValueUtil.createFirstOnRow(row));
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException("cannot look into the index of a file", e);
    }
  }
}
