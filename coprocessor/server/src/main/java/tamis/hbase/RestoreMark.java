package tamis.hbase;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A file in the directory of a table for each snapshot that it was restored from. A snapshot takes the files of one family
 * after the other while the table is in use, and its regions come back under their old names: a marker that was written
 * before a restoring says nothing of what is there now.
 */
final class RestoreMark {
  private static final String PREFIX = ".tamis-restored-"; // HBase takes it for no region

  private RestoreMark() {}

  /** Before the master restores the table. */
  static void make(FileSystem files, Path table, long now) throws IOException {
    if (!files.exists(table)) return; // no region of it has a marker
    try (FSDataOutputStream out = files.create(new Path(table, PREFIX + String.format("%020d", now)), true)) {
      out.write('\n');
      out.hsync();
    }
  }

  /** Names the last restoring; empty: there was none. */
  static String last(FileSystem files, Path table) throws IOException {
    String last = "";
    try {
      for (FileStatus file : files.listStatus(table, path -> path.getName().startsWith(PREFIX))) {
        String name = file.getPath().getName().substring(PREFIX.length());
        if (name.compareTo(last) > 0) last = name;
      }
    } catch (FileNotFoundException e) {
      // the region has no directory of its own: none
    }
    return last;
  }
}
