package tamis.compat;

import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;
import java.util.Optional;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.ExtendedCell;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.KeyValueUtil;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.Tag;

/** The properties of cells that only servers know: all of their cells are ExtendedCells. Threads: safe. */
public final class Cells {
  private static final MethodHandle COPY =
      Methods.findStatic(KeyValueUtil.class, "copyToNewKeyValue", MethodType.methodType(KeyValue.class, Cell.class));
  private static final MethodHandle LAST_OF_COLUMN =
      Methods.findStatic(PrivateCellUtil.class, "createLastOnRowCol", MethodType.methodType(Cell.class, Cell.class));

  private Cells() {}

  /** A code of KeyValue.Type. */
  public static byte typeOf(Cell cell) {
    return ((ExtendedCell) cell).getTypeByte();
  }

  public static long sequenceOf(Cell cell) {
    return ((ExtendedCell) cell).getSequenceId();
  }

  public static boolean hasTags(Cell cell) {
    return ((ExtendedCell) cell).getTagsLength() > 0;
  }

  public static Optional<Tag> tagOf(Cell cell, byte type) {
    return ((ExtendedCell) cell).getTag(type);
  }

  public static void setTimestamp(Cell cell, long timestamp) throws IOException {
    ((ExtendedCell) cell).setTimestamp(timestamp);
  }

  /** A copy with memory of its own. */
  public static KeyValue copyOf(Cell cell) {
    try {
      return (KeyValue) COPY.invokeExact(cell);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException("cannot copy a cell", e);
    }
  }

  /** Behind all cells of the cell's column. */
  public static Cell lastOfColumn(Cell cell) throws IOException {
    try {
      return (Cell) LAST_OF_COLUMN.invokeExact(cell);
    } catch (Throwable e) {
      throw Methods.failure(e);
    }
  }
}
