package tamis.compat;

import java.io.Closeable;
import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.KeyValueScanner;

/** HBase's scanner of one file, or of cells in memory. Threads: exclusive access. */
public final class CellScanner implements Closeable {
  private static final MethodType STEP = MethodType.methodType(Cell.class);
  private static final MethodType SEEK = MethodType.methodType(boolean.class, Cell.class);
  private static final MethodHandle PEEK_CELL = Methods.find(KeyValueScanner.class, "peek", STEP);
  private static final MethodHandle NEXT_CELL = Methods.find(KeyValueScanner.class, "next", STEP);
  private static final MethodHandle SEEK_CELL = Methods.find(KeyValueScanner.class, "seek", SEEK);
  private static final MethodHandle RESEEK_CELL = Methods.find(KeyValueScanner.class, "reseek", SEEK);

  private final KeyValueScanner scanner;

  CellScanner(KeyValueScanner scanner) {
    this.scanner = scanner;
  }

  public boolean isOfFile() {
    return scanner.isFileScanner();
  }

  /** Whether neither Bloom filter nor time stamps rule it out. */
  public boolean mayHave(Scan scan, HStore store) {
    return scanner.shouldUseScanner(scan, store, Long.MIN_VALUE);
  }

  /** null: it is at the end. */
  public Cell peek() throws IOException {
    try {
      return (Cell) PEEK_CELL.invokeExact(scanner);
    } catch (Throwable e) {
      throw Methods.failure(e);
    }
  }

  public Cell next() throws IOException {
    try {
      return (Cell) NEXT_CELL.invokeExact(scanner);
    } catch (Throwable e) {
      throw Methods.failure(e);
    }
  }

  public boolean seek(Cell to) throws IOException {
    try {
      return (boolean) SEEK_CELL.invokeExact(scanner, to);
    } catch (Throwable e) {
      throw Methods.failure(e);
    }
  }

  /** Forwards only. */
  public boolean reseek(Cell to) throws IOException {
    try {
      return (boolean) RESEEK_CELL.invokeExact(scanner, to);
    } catch (Throwable e) {
      throw Methods.failure(e);
    }
  }

  @Override
  public void close() throws IOException {
    scanner.close();
  }
}
