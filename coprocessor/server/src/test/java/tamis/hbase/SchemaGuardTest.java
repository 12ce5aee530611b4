package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import tamis.pb.Table;
import tamis.region.IndexedTable;

class SchemaGuardTest {
  private static Table.Schema schema(long version, boolean sparse) {
    return RegionForTest.schema().setVersion(version).addIndexes(RegionForTest.index(1, "by_a", sparse, 1)).build();
  }

  private static TableDescriptorBuilder table(Table.Schema schema) throws IOException {
    return TableDescriptorBuilder.newBuilder(RegionForTest.descriptor(schema, 1))
        .setRegionSplitPolicyClassName(IndexSplitPolicy.class.getName());
  }

  private static ColumnFamilyDescriptorBuilder f() {
    return ColumnFamilyDescriptorBuilder.newBuilder(RegionForTest.F);
  }

  /** Its indexed cells expire; unless the index is sparse it would want an entry of a row that lost its cell. */
  TableDescriptor expiring(boolean sparse) throws IOException {
    return table(schema(1, sparse)).modifyColumnFamily(f().setTimeToLive(100).build()).build();
  }

  private static void refused(TableDescriptor descriptor, String why) {
    IOException e = assertThrows(IOException.class, () -> SchemaGuard.check(descriptor));
    assertTrue(e.getMessage().contains(why), e.getMessage());
  }

  @Test
  void aTableIsTakenOrRefusedForAReason() throws Exception {
    SchemaGuard.check(table(schema(1, true)).build());
    SchemaGuard.check(TableDescriptorBuilder.newBuilder(org.apache.hadoop.hbase.TableName.valueOf("plain")).build());
    refused(RegionForTest.descriptor(schema(1, true), 1), "split policy");
    refused(table(schema(1, true)).setDurability(Durability.SKIP_WAL).build(), "SKIP_WAL");
    refused(table(schema(1, true)).removeCoprocessor(IndexObserver.class.getName()).build(), "coprocessor");
    refused(table(schema(1, true))
                .modifyColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(IndexedTable.FAMILY).build())
                .build(),
        "NEW_VERSION_BEHAVIOR");
    // Another cluster would be shipped entries under names of regions that it does not have.
    refused(table(schema(1, true))
                .modifyColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(IndexedTable.FAMILY)
                                        .setMaxVersions(Integer.MAX_VALUE)
                                        .setNewVersionBehavior(true)
                                        .setScope(1)
                                        .build())
                .build(),
        "REPLICATION_SCOPE 0");
    refused(table(schema(1, true)).modifyColumnFamily(f().setKeepDeletedCells(KeepDeletedCells.TRUE).build()).build(),
        "KEEP_DELETED_CELLS");
    refused(table(schema(1, false)).modifyColumnFamily(f().setTimeToLive(100).build()).build(), "expire");
    SchemaGuard.check(table(schema(1, true)).modifyColumnFamily(f().setTimeToLive(100).build()).build());
    refused(table(schema(1, true)).setValue(IndexedTable.SCHEMA, new byte[] {1, 2, 3}).build(), "schema");
    refused(table(schema(1, true)).removeColumnFamily(RegionForTest.G).build(), "family g");
  }

  @Test
  void aSchemaIsFollowedByTheNextVersionOnly() throws Exception {
    TableDescriptor first = table(schema(1, true)).build();
    SchemaGuard.checkChange(first, first, 0);
    SchemaGuard.checkChange(first, table(schema(2, false)).build(), 0);
    assertThrows(IOException.class, () -> SchemaGuard.checkChange(first, table(schema(1, false)).build(), 0));
    assertThrows(IOException.class, () -> SchemaGuard.checkChange(first, table(schema(3, true)).build(), 0));
  }

  private static void refusedChange(TableDescriptor from, TableDescriptorBuilder to, String why) {
    IOException e = assertThrows(IOException.class, () -> SchemaGuard.checkChange(from, to.build(), 0));
    assertTrue(e.getMessage().contains(why), e.getMessage());
  }

  /** Without the schema the observer hides no entry from plain scans, and nothing keeps them. */
  @Test
  void aSchemaIsRemovedWithAllThatBelongsToItOrNotAtAll() throws Exception {
    TableDescriptor indexed = table(schema(1, true))
                                  .setValue(IndexedTable.TABLE, Bytes.toBytes("default:t"))
                                  .setValue(IndexedTable.ORIGIN, Bytes.toBytes("attached"))
                                  .build();
    TableDescriptorBuilder less = TableDescriptorBuilder.newBuilder(indexed).removeValue(IndexedTable.SCHEMA);
    refusedChange(indexed, less,
        "tamis.table, tamis.origin, the family tamis, "
            + "the coprocessor tamis.hbase.IndexObserver, the split policy stay");
    refusedChange(indexed, less.removeValue(IndexedTable.TABLE).removeValue(IndexedTable.ORIGIN), "the family tamis");
    refusedChange(indexed, less.removeColumnFamily(IndexedTable.FAMILY), "the coprocessor");
    refusedChange(indexed, less.removeCoprocessor(IndexObserver.class.getName()), "the split policy");
    TableDescriptor plain = less.removeValue(TableDescriptorBuilder.SPLIT_POLICY).build();
    SchemaGuard.checkChange(indexed, plain, 0);
    SchemaGuard.checkChange(plain, indexed, 0);
    // Each of the others is kept while the schema is there.
    refusedChange(
        indexed, TableDescriptorBuilder.newBuilder(indexed).removeColumnFamily(IndexedTable.FAMILY), "family");
    refusedChange(indexed, TableDescriptorBuilder.newBuilder(indexed).removeValue(TableDescriptorBuilder.SPLIT_POLICY),
        "split policy");
    refusedChange(indexed, TableDescriptorBuilder.newBuilder(indexed).removeCoprocessor(IndexObserver.class.getName()),
        "coprocessor");
  }

  @Test
  void theRecordedNameOfATableBecomesItsOwnNameOnly() throws Exception {
    TableDescriptor older = table(schema(1, true)).build();
    String own = IndexedTable.fullName(older.getTableName());
    TableDescriptor indexed =
        TableDescriptorBuilder.newBuilder(older).setValue(IndexedTable.TABLE, Bytes.toBytes(own)).build();
    TableDescriptor copy =
        TableDescriptorBuilder.newBuilder(older).setValue(IndexedTable.TABLE, Bytes.toBytes("n:other")).build();
    SchemaGuard.checkChange(older, indexed, 0);
    SchemaGuard.checkChange(indexed, indexed, 0);
    SchemaGuard.checkChange(copy, TableDescriptorBuilder.newBuilder(copy).setValue("theirs", "x").build(), 0);
    SchemaGuard.checkChange(copy, indexed, 0);
    refusedChange(indexed, TableDescriptorBuilder.newBuilder(copy), "can only become " + own);
    refusedChange(older, TableDescriptorBuilder.newBuilder(copy), "can only become " + own);
    refusedChange(indexed, TableDescriptorBuilder.newBuilder(older), "can only become " + own);
  }

  /** The second of two concurrent changes is refused as before. */
  @Test
  void versionAfterRestoreExceedsAllEarlierOnes() throws Exception {
    TableDescriptor restored = table(schema(3, true)).build();
    TableDescriptor changed = SchemaGuard.withNextVersion(restored, table(schema(4, false)).build(), 500);
    assertEquals(500, IndexedTable.of(changed).schema.version);
    SchemaGuard.checkChange(restored, changed, 500);
    assertThrows(IOException.class, () -> SchemaGuard.checkChange(restored, table(schema(4, false)).build(), 500));
    assertThrows(IOException.class, () -> SchemaGuard.checkChange(changed, table(schema(500, true)).build(), 500));
    TableDescriptor next = SchemaGuard.withNextVersion(changed, table(schema(501, true)).build(), 500);
    assertEquals(501, IndexedTable.of(next).schema.version);
    SchemaGuard.checkChange(changed, next, 500);
    // A change that read another version than the present one is left to the check.
    TableDescriptor late = table(schema(4, true)).build();
    assertSame(late, SchemaGuard.withNextVersion(changed, late, 500));
    assertThrows(IOException.class, () -> SchemaGuard.checkChange(changed, late, 500));
  }
}
