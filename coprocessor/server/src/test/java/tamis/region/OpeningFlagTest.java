package tamis.region;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.util.Collections;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tamis.base.Fault;

class OpeningFlagTest {
  @TempDir
  File temporary;

  private FileSystem files;
  private Path region;
  private Path parent;

  @BeforeEach
  void makeRegions() throws Exception {
    files = new Path("file://" + temporary).getFileSystem(new Configuration());
    region = new Path("file://" + temporary, "region");
    parent = new Path("file://" + temporary, "parent");
    files.mkdirs(region);
    files.mkdirs(parent);
  }

  @AfterEach
  void end() {
    Fault.only();
  }

  private OpeningFlag flag(String opening) throws Exception {
    return new OpeningFlag(files, region, Collections.singleton(parent), opening);
  }

  private Set<String> flags(Path of) throws Exception {
    Set<String> names = new TreeSet<>();
    Path directory = new Path(of, ".tamis");
    if (!files.exists(directory)) return names;
    for (FileStatus file : files.listStatus(directory)) names.add(file.getPath().getName());
    names.removeIf(name -> name.endsWith(".crc"));
    return names;
  }

  @Test
  void firstOpeningFindsNothing() throws Exception {
    OpeningFlag flag = flag("1");
    assertFalse(flag.wasOpened());
    assertFalse(flag.foundOthers());
    assertTrue(flags(region).isEmpty());
    flag.raise();
    assertEquals(Collections.singleton("1"), flags(region));
    assertEquals(1, files.getFileStatus(new Path(region, ".tamis/1")).getLen()); // hsync needs a byte
  }

  /** A file system that counts how often a file was synced to the disk after its byte was written. */
  private static final class SyncCounter extends FilterFileSystem {
    int synced;

    SyncCounter(FileSystem files) {
      super(files);
    }

    @Override
    public FSDataOutputStream create(Path path, boolean overwrite) throws IOException {
      return new FSDataOutputStream(super.create(path, overwrite), null) {
        @Override
        public void hsync() throws IOException {
          super.hsync();
          if (getPos() == 1) ++synced;
        }
      };
    }
  }

  /** Otherwise the loss of power could take the flag away while coordinators believe in the owner. */
  @Test
  void raisedFlagIsOnTheDisk() throws Exception {
    SyncCounter counter = new SyncCounter(files);
    files = counter;
    flag("1").raise();
    assertEquals(1, counter.synced);
  }

  @Test
  void openingBehindALoweredFlagFindsThatItWasOpened() throws Exception {
    OpeningFlag first = flag("1");
    first.raise();
    first.deleteOthers();
    first.lower();
    assertTrue(flags(region).isEmpty());
    OpeningFlag second = flag("2");
    assertTrue(second.wasOpened());
    assertFalse(second.foundOthers());
  }

  @Test
  void flagOfAnotherOpeningIsFoundAndDeletedAfterTheWait() throws Exception {
    flag("1").raise();
    OpeningFlag second = flag("2");
    assertTrue(second.wasOpened() && second.foundOthers());
    second.raise();
    assertEquals(2, flags(region).size());
    second.deleteOthers();
    assertEquals(Collections.singleton("2"), flags(region));
    assertFalse(second.foundOthers());
    second.lower();
    assertTrue(flags(region).isEmpty());
  }

  @Test
  void loweringAFlagLeavesThoseOfOthers() throws Exception {
    flag("1").raise();
    OpeningFlag second = flag("2");
    second.raise();
    second.lower();
    assertEquals(Collections.singleton("1"), flags(region));
  }

  @Test
  void flagsOfOthersGoWhereEveryFlagIsLowered() throws Exception {
    Fault.only(Fault.EVERY_FLAG_LOWERED);
    flag("1").raise();
    OpeningFlag second = flag("2");
    second.raise();
    second.lower();
    assertTrue(flags(region).isEmpty());
  }

  @Test
  void ownFlagThatWasLeftHalfRaisedIsNoOther() throws Exception {
    flag("1").raise();
    OpeningFlag again = flag("1");
    assertTrue(again.wasOpened());
    assertFalse(again.foundOthers());
    again.raise();
    assertEquals(Collections.singleton("1"), flags(region));
  }

  @Test
  void flagOfAParentIsFound() throws Exception {
    new OpeningFlag(files, parent, Collections.emptySet(), "p").raise();
    OpeningFlag flag = flag("1");
    assertFalse(flag.wasOpened());
    assertTrue(flag.foundOthers());
    flag.raise();
    flag.deleteOthers();
    assertTrue(flags(parent).isEmpty());
    assertEquals(Collections.singleton("1"), flags(region));
  }
}
