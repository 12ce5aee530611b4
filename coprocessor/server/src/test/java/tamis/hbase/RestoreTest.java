package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static tamis.hbase.RegionForTest.encoded;

import java.io.IOException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CommonFSUtils;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.feed.FeedOptions;
import tamis.feed.FilterFeed;
import tamis.index.BatchContext;
import tamis.index.RestoreMark;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;

/** Rules of tables that are restored or cloned from a snapshot: no marker and no version of before is believed. */
class RestoreTest extends RuleTestCase {
  // ---- A snapshot that took the files of the rows later than those of the entries

  private static long missedAfterARestoring(Act restore) throws Exception {
    try (RegionForTest test = open(descriptor())) {
      test.region.put(put("early", "v"));
      // The restored state: the entry is not in the files, the row and the marker are.
      BatchContext.next().writer = BatchContext.Writer.INDEX;
      try {
        IndexedRegion region = test.indexed();
        test.region.delete(
            new org.apache.hadoop.hbase.client.Delete(region.keys.entry(1, encoded("v"), Bytes.toBytes("early")))
                .addColumns(IndexedTable.FAMILY, IndexedTable.QUALIFIER));
      } finally {
        BatchContext.next().writer = BatchContext.Writer.CLIENT;
      }
      restore.on(test);
      test.reopen();
      return missed(test);
    }
  }

  @Test
  void aMarkerFromBeforeARestoringIsNotBelieved() throws Exception {
    SnapshotDescription snapshot = new SnapshotDescription("s", TableName.valueOf("t"));
    TableDescriptor table = descriptor();
    Act[] restorings = {
        test
        -> new SchemaGuard().preRestoreSnapshot(master(test), snapshot, table),
        // It was dropped, and has its name again.
        test -> new SchemaGuard().preCloneSnapshot(master(test), snapshot, table),
    };
    for (Act restore : restorings) assertEquals(0, missedAfterARestoring(restore));
    Fault.only(Fault.RESTORED_MARKER_BELIEVED);
    for (Act restore : restorings) assertEquals(1, missedAfterARestoring(restore));
  }

  @Test
  void aRestoringIsNamedAsNoOtherBefore() throws Exception {
    try (RegionForTest test = open(descriptor())) {
      FileSystem files = test.region.getRegionFileSystem().getFileSystem();
      Path root = CommonFSUtils.getRootDir(test.conf);
      TableName name = TableName.valueOf("t");
      java.util.Set<String> names = new java.util.HashSet<>();
      names.add(RestoreMark.last(files, root, name));
      for (long now : new long[] {5, 7, 7, 6}) { // a clock that is put back
        RestoreMark.restored(files, root, name, now);
        assertTrue(names.add(RestoreMark.last(files, root, name)));
        RestoreMark.cloned(files, root, name, now);
        assertTrue(names.add(RestoreMark.last(files, root, name)));
      }
    }
  }

  // ---- A table is restored, and its schema changed once more

  private static TableDescriptor withIndex(long version, String name, int column) throws IOException {
    return TableDescriptorBuilder
        .newBuilder(RegionForTest.descriptor(RegionForTest.schema()
                                                 .setVersion(version)
                                                 .addIndexes(RegionForTest.index(1, "by_a", true, 1))
                                                 .addIndexes(RegionForTest.index(2, name, true, column))
                                                 .build(),
            1))
        .setRegionSplitPolicyClassName(IndexSplitPolicy.class.getName())
        .build();
  }

  private static TableDescriptor change(RegionForTest test, TableDescriptor from, TableDescriptor to)
      throws IOException {
    TableDescriptor changed = new SchemaGuard().preModifyTable(master(test), from.getTableName(), from, to);
    new SchemaGuard().preModifyTableAction(master(test), from.getTableName(), from, changed);
    return changed;
  }

  /** Whether a coordinator that knows index 2 as it was before the restoring learns that it is another one. */
  private static boolean isToldOfTheIndexBehindARestoring() throws Exception {
    try (RegionForTest test = open(descriptor())) {
      FilterFeed feed = new FilterFeed("s", 7, new FeedOptions(), System::nanoTime, (column, bytes) -> null);
      TableDescriptor before = change(test, descriptor(), withIndex(2, "by_s", 4));
      feed.tellTable(1, IndexedTable.of(before).schema.version);
      new SchemaGuard().preRestoreSnapshot(
          master(test), new SnapshotDescription("s", before.getTableName()), descriptor());
      feed.tellTable(1, IndexedTable.of(descriptor()).schema.version);
      long told = feed.last();
      TableDescriptor behind = change(test, descriptor(), withIndex(2, "by_n", 2));
      assertEquals("by_n", IndexedTable.of(behind).schema.index(2).name);
      feed.tellTable(1, IndexedTable.of(behind).schema.version);
      return feed.last() > told;
    }
  }

  @Test
  void noVersionOfASchemaComesAgain() throws Exception {
    assertTrue(isToldOfTheIndexBehindARestoring());
    Fault.only(Fault.VERSION_COMES_AGAIN);
    assertFalse(isToldOfTheIndexBehindARestoring());
  }
}
