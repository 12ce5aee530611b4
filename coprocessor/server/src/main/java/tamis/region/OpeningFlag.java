package tamis.region;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import tamis.base.Fault;

/**
 * A file in the directory of a region that says: this opening has not been closed cleanly yet. HBase itself does
 * not record how a region was closed. Each opening raises its own flag. An owner that finds the flag of another opening
 * waits (the opening wait), then deletes it. An owner that closes cleanly deletes its own flag.
 *
 * The flag is not a row of the region: a server can lose the region between writing the row "closed in order" and the
 * closing, without knowing it, and the next owner would believe that row. Threads: one at a time.
 */
public final class OpeningFlag {
  private static final String DIRECTORY = ".tamis"; // HBase takes it for no family

  private final FileSystem files;
  private final Path directory;
  private final Path own;
  private final List<Path> others = new ArrayList<>();
  private final boolean wasOpened;

  /** `parents`: directories of regions that this one was made of. */
  public OpeningFlag(FileSystem files, Path region, Set<Path> parents, String opening) throws IOException {
    this.files = files;
    directory = new Path(region, DIRECTORY);
    own = new Path(directory, opening);
    wasOpened = files.exists(directory);
    others.addAll(list(directory));
    others.removeIf(path -> path.getName().equals(own.getName())); // the flag of an attempt of this opening that failed
    for (Path parent : parents) others.addAll(list(new Path(parent, DIRECTORY)));
  }

  private List<Path> list(Path in) throws IOException {
    List<Path> paths = new ArrayList<>();
    try {
      for (FileStatus file : files.listStatus(in)) paths.add(file.getPath());
    } catch (FileNotFoundException e) {
      // the region was not opened yet
    }
    return paths;
  }

  /** Whether the region was opened before, however it was closed. */
  public boolean wasOpened() {
    return wasOpened;
  }

  /** Whether flags of other openings were found: coordinators may still believe in these owners. */
  public boolean foundOthers() {
    return !others.isEmpty();
  }

  public void raise() throws IOException {
    files.mkdirs(directory);
    try (FSDataOutputStream out = files.create(own, true)) {
      out.write('\n');
      out.hsync();
    }
  }

  /** REQUIRES: the opening wait is over. */
  public void deleteOthers() throws IOException {
    for (Path other : others) files.delete(other, false);
    others.clear();
  }

  public void lower() throws IOException {
    if (Fault.EVERY_FLAG_LOWERED.isOn()) {
      files.delete(directory, true);
      return;
    }
    files.delete(own, false);
  }
}
