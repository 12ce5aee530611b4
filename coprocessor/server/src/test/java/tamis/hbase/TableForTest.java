package tamis.hbase;

import java.io.IOException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import tamis.pb.Table;
import tamis.region.IndexedTable;

/** The tables of RegionForTest's schema on a cluster, as `tamis table create` and `tamis table attach` make them. */
final class TableForTest {
  private TableForTest() {}

  static TableDescriptorBuilder plain(TableName name) {
    return TableDescriptorBuilder.newBuilder(name)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(RegionForTest.F).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(RegionForTest.G).build());
  }

  /** The settings that make a plain table an indexed one. */
  static TableDescriptor indexed(TableDescriptorBuilder plain, Table.Schema schema) throws IOException {
    return plain
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(IndexedTable.FAMILY)
                             .setMaxVersions(Integer.MAX_VALUE)
                             .setNewVersionBehavior(true)
                             .build())
        .setValue(IndexedTable.SCHEMA, schema.toByteArray())
        .setCoprocessor(RegionForTest.observerDescriptor())
        .setRegionSplitPolicyClassName(IndexSplitPolicy.class.getName())
        .build();
  }

  static void drop(Admin admin, TableName name) throws IOException {
    if (!admin.tableExists(name)) return;
    if (admin.isTableEnabled(name)) admin.disableTable(name);
    admin.deleteTable(name);
  }

  /** Regions begin at the splits and before the first of them. */
  static void makeAnew(Admin admin, TableDescriptor table, byte[]... splits) throws IOException {
    drop(admin, table.getTableName());
    if (splits.length > 0) admin.createTable(table, splits);
    else admin.createTable(table);
  }
}
