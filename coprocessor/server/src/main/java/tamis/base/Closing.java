package tamis.base;

import java.io.Closeable;
import java.io.IOException;

/**
 * Closes several scanners, all of them even if one close throws: a scanner that stays open keeps HBase from dropping
 * what it sees for as long as its region is open.
 */
public final class Closing {
  private Closing() {}

  /** Closes each scanner that is not null, then throws the first exception that was thrown. */
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
