package tamis.base;

import java.io.Closeable;
import java.io.IOException;

/**
 * The end of several scanners: one that stays open keeps what it sees from being dropped, as long as its region lives.
 */
public final class Closing {
  private Closing() {}

  /** Closes each of them (null: there is none), and then throws what the first one threw that did. */
  public static void all(Iterable<? extends Closeable> scanners) throws IOException {
    Throwable thrown = null;
    for (Closeable scanner : scanners) {
      try {
        if (scanner != null) scanner.close();
      } catch (Throwable e) {
        if (thrown == null) thrown = e;
        else thrown.addSuppressed(e);
      }
    }
    if (thrown instanceof IOException) throw(IOException) thrown;
    if (thrown != null) throw new IOException("cannot close a scanner", thrown);
  }
}
