package tamis.search;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.reflect.Method;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.io.hfile.HFile;

/**
 * The root of a file's block index, which is in memory. Its class in HBase is not public before 2.6.2, though its
 * methods are: so they are found by name. A value.
 */
public final class BlockIndexRoot {
  private static final String CLASS = "org.apache.hadoop.hbase.io.hfile.HFileBlockIndex$BlockIndexReader";
  private static final MethodHandle COUNT = find("getRootBlockCount");
  private static final MethodHandle FIND = find("rootBlockContainingKey", Cell.class);

  private final Object index;

  private BlockIndexRoot(Object index) {
    this.index = index;
  }

  private static MethodHandle find(String name, Class<?>... parameters) {
    try {
      Method method = Class.forName(CLASS).getDeclaredMethod(name, parameters);
      method.setAccessible(true);
      MethodHandle found = MethodHandles.lookup().unreflect(method);
      return found.asType(found.type().changeParameterType(0, Object.class));
    } catch (ReflectiveOperationException | RuntimeException e) {
      return null;
    }
  }

  /** A method that this class needs and HBase does not have; null: it has all. */
  public static String missing() {
    if (COUNT == null) return CLASS + ".getRootBlockCount()int";
    return FIND == null ? CLASS + ".rootBlockContainingKey(Cell)int" : null;
  }

  /** null: the file has none. */
  static BlockIndexRoot of(HFile.Reader file) {
    Object index = file.getDataBlockIndexReader();
    return index == null ? null : new BlockIndexRoot(index);
  }

  int blocks() {
    try {
      return (int) COUNT.invokeExact(index);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException("cannot read the index of a file", e);
    }
  }

  /** -1: the row lies before all of the file. */
  int blockOf(byte[] row) {
    try {
      return (int) FIND.invokeExact(index, (Cell) PrivateCellUtil.createFirstOnRow(row));
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException("cannot look into the index of a file", e);
    }
  }
}
