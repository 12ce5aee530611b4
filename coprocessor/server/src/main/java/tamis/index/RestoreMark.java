package tamis.index;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.util.CommonFSUtils;

/**
 * A file for each restoring of a table from a snapshot: in the table's directory or, if the table was made as a clone
 * of the snapshot, in a directory of our own. A marker of a complete index that was written before a restoring does not
 * count: a snapshot takes the files of one family after the other while the table is in use, so rows and entries may
 * not agree, and its regions come back under their old names.
 */
public final class RestoreMark {
  private static final String PREFIX = ".tamis-restored-"; // HBase takes it for no region
  private static final String CLONES = ".tamis"; // beside HBase's own directories: a clone's is not there yet

  /** A version of the schema is counted from a restoring's number: changes between two of those, at the most. */
  private static final long CHANGES = 1_000_000;

  private RestoreMark() {}

  private static Path ofClones(Path root, TableName table) {
    return CommonFSUtils.getTableDir(new Path(root, CLONES), table);
  }

  /** Before the master restores the table. */
  public static void restored(FileSystem files, Path root, TableName table, long now) throws IOException {
    Path directory = CommonFSUtils.getTableDir(root, table);
    if (files.exists(directory)) make(files, directory, root, table, now); // else no region of it has a marker
  }

  /** Before the master makes the table of a snapshot: it may have been there before, under the same name. */
  public static void cloned(FileSystem files, Path root, TableName table, long now) throws IOException {
    make(files, ofClones(root, table), root, table, now);
  }

  private static void make(FileSystem files, Path in, Path root, TableName table, long now) throws IOException {
    String last = last(files, root, table);
    long number = last.isEmpty() ? now : Math.max(now, number(last) + CHANGES);
    try (FSDataOutputStream out = files.create(new Path(in, PREFIX + String.format("%020d", number)), true)) {
      out.write('\n');
      out.hsync();
    }
  }

  /** Names the last restoring; empty: there was none. */
  public static String last(FileSystem files, Path root, TableName table) throws IOException {
    String restored = last(files, CommonFSUtils.getTableDir(root, table));
    String cloned = last(files, ofClones(root, table));
    return restored.compareTo(cloned) > 0 ? restored : cloned;
  }

  /** A number above those of all restorings before; 0: there was none. */
  public static long number(String restoring) {
    return restoring.isEmpty() ? 0 : Long.parseLong(restoring);
  }

  private static String last(FileSystem files, Path directory) throws IOException {
    String last = "";
    try {
      for (FileStatus file : files.listStatus(directory, path -> path.getName().startsWith(PREFIX))) {
        String name = file.getPath().getName().substring(PREFIX.length());
        if (name.compareTo(last) > 0) last = name;
      }
    } catch (FileNotFoundException e) {
      // there is no such directory: none
    }
    return last;
  }
}
