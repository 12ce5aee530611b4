package tamis.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Coprocessor;
import org.apache.hadoop.hbase.CoprocessorEnvironment;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.CoprocessorDescriptor;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.SnapshotType;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.coprocessor.MasterCoprocessor;
import org.apache.hadoop.hbase.coprocessor.MasterCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.MasterObserver;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CommonFSUtils;
import tamis.base.Fault;
import tamis.index.RestoreMark;
import tamis.pb.Table;
import tamis.region.IndexedTable;
import tamis.table.DamagedBytesException;

/**
 * The changes that the master refuses, so that an indexed table stays one: changes of a schema that do not follow the
 * present version (HBase's own change of a table compares nothing, so one of two concurrent changes would be lost), and
 * settings under which rows change without the jar noticing. hbase.coprocessor.master.classes loads it.
 */
public final class SchemaGuard implements MasterCoprocessor, MasterObserver {
  private volatile MasterCoprocessorEnvironment environment;

  @Override
  public void start(CoprocessorEnvironment started) {
    environment = (MasterCoprocessorEnvironment) started;
    Linkage.missing(); // the log has it from the start
  }

  @Override
  public Iterable<com.google.protobuf.Service> getServices() {
    return InstallationReport.service(()
                                          -> InstallationReport.describe(environment.getConfiguration(),
                                              environment.getServerName(), Collections.emptyList()));
  }

  @Override
  public Optional<MasterObserver> getMasterObserver() {
    return Optional.of(this);
  }

  private static void refuse(TableName table, String why) throws DoNotRetryIOException {
    throw new DoNotRetryIOException("table " + table + " is indexed: " + why);
  }

  /** Throws when the table could not be kept as an indexed one. */
  static void check(TableDescriptor descriptor) throws IOException {
    IndexedTable table;
    try {
      table = IndexedTable.of(descriptor);
    } catch (DamagedBytesException e) {
      throw new DoNotRetryIOException("table " + descriptor.getTableName() + ": " + e.getMessage(), e);
    }
    if (table == null) return;
    TableName name = descriptor.getTableName();
    if (Linkage.refusal() != null) refuse(name, Linkage.refusal());
    ColumnFamilyDescriptor entries = descriptor.getColumnFamily(IndexedTable.FAMILY);
    if (entries == null || !entries.isNewVersionBehavior() || entries.getMaxVersions() != Integer.MAX_VALUE
        || entries.getScope() != HConstants.REPLICATION_SCOPE_LOCAL) {
      refuse(name,
          "its family \"tamis\" must be there with NEW_VERSION_BEHAVIOR true, VERSIONS 2147483647 and"
              + " REPLICATION_SCOPE 0");
    }
    checkObserver(descriptor);
    if (!IndexSplitPolicy.class.getName().equals(descriptor.getRegionSplitPolicyClassName())) {
      refuse(name, "its split policy must be " + IndexSplitPolicy.class.getName());
    }
    if (descriptor.getDurability() == Durability.SKIP_WAL) {
      refuse(name, "its durability cannot be SKIP_WAL, which loses an entry and keeps its row");
    }
    if (descriptor.getRegionReplication() > 1) refuse(name, "its regions cannot have replicas");
    for (ColumnFamilyDescriptor family : descriptor.getColumnFamilies()) {
      boolean ours = table.isOurs(family.getName());
      if (!ours && !Arrays.equals(family.getName(), IndexedTable.FAMILY)) continue;
      String which = "family \"" + family.getNameAsString() + "\": ";
      if (ours && family.isNewVersionBehavior()) refuse(name, which + "NEW_VERSION_BEHAVIOR is not supported there");
      if (family.getKeepDeletedCells() != KeepDeletedCells.FALSE) {
        refuse(name, which + "KEEP_DELETED_CELLS is not supported");
      }
      if (family.isMobEnabled()) refuse(name, which + "MOB is not supported");
      if (family.getMinVersions() > 0) refuse(name, which + "MIN_VERSIONS is not supported");
      boolean expires = family.getTimeToLive() != HConstants.FOREVER && !Fault.EXPIRY_NOT_REFUSED.isOn();
      if (ours && expires && !table.mayExpire) {
        refuse(name,
            which + "cells that expire leave an index of several columns, with entries for NULL, with included columns"
                + " or with a condition, without being told: only sparse indexes on one column without those go with a"
                + " TTL");
      }
      if (!ours && family.getTimeToLive() < longestLife(descriptor, table)) {
        refuse(name, which + "its TTL must be the longest one of the table's columns");
      }
    }
  }

  /** It sees a write as others have left it. */
  private static void checkObserver(TableDescriptor descriptor) throws IOException {
    TableName name = descriptor.getTableName();
    CoprocessorDescriptor observer = null;
    String asLate = null;
    for (CoprocessorDescriptor coprocessor : descriptor.getCoprocessorDescriptors()) {
      if (coprocessor.getClassName().equals(IndexObserver.class.getName())) {
        observer = coprocessor;
      } else if (coprocessor.getPriority() == Coprocessor.PRIORITY_LOWEST) {
        asLate = coprocessor.getClassName();
      }
    }
    if (observer == null) refuse(name, "it must have the coprocessor " + IndexObserver.class.getName());
    if (Fault.NOT_THE_LAST_OBSERVER.isOn()) return;
    if (observer.getPriority() != Coprocessor.PRIORITY_LOWEST) {
      refuse(name,
          "the priority of " + IndexObserver.class.getName() + " must be " + Coprocessor.PRIORITY_LOWEST
              + ", so that it sees what other coprocessors make of a write");
    }
    if (asLate != null) {
      refuse(name,
          "coprocessor " + asLate + " cannot have the priority " + Coprocessor.PRIORITY_LOWEST + ": it would"
              + " change writes whose index entries are made already; give it a smaller number");
    }
  }

  private static int longestLife(TableDescriptor descriptor, IndexedTable table) {
    int longest = 0;
    for (byte[] family : table.families)
      longest = Math.max(longest, descriptor.getColumnFamily(family).getTimeToLive());
    return longest;
  }

  private static boolean changesSchema(TableDescriptor current, TableDescriptor changed) {
    byte[] before = current == null ? null : current.getValue(IndexedTable.SCHEMA);
    byte[] after = changed.getValue(IndexedTable.SCHEMA);
    return before != null && after != null && !Arrays.equals(before, after);
  }

  private static long versionOf(TableDescriptor descriptor) throws IOException {
    try {
      return tamis.table.Schema.parse(descriptor.getValue(IndexedTable.SCHEMA)).version;
    } catch (DamagedBytesException e) {
      throw new DoNotRetryIOException(e.getMessage(), e);
    }
  }

  /**
   * The version that follows on the table's; `restoring`: the number of its last restoring, or 0. A restored table has
   * an earlier schema. If versions and ids of indexes went on from there, they would be given a second time, and a
   * coordinator that knows the first ones would not notice that they are others now.
   */
  private static long nextVersion(TableDescriptor current, long restoring) throws IOException {
    long next = versionOf(current) + 1;
    return Fault.VERSION_COMES_AGAIN.isOn() ? next : Math.max(next, restoring);
  }

  /** A change of the schema increases the version by one. */
  static TableDescriptor withNextVersion(TableDescriptor current, TableDescriptor changed, long restoring)
      throws IOException {
    if (!changesSchema(current, changed) || versionOf(changed) != versionOf(current) + 1) return changed;
    Table.Schema schema = Table.Schema.parseFrom(changed.getValue(IndexedTable.SCHEMA))
                              .toBuilder()
                              .setVersion(nextVersion(current, restoring))
                              .build();
    return TableDescriptorBuilder.newBuilder(changed).setValue(IndexedTable.SCHEMA, schema.toByteArray()).build();
  }

  /** A copy keeps the name of its original until it is attached; a table that has its own name keeps that. */
  private static void checkRecordedName(TableDescriptor current, TableDescriptor changed) throws IOException {
    byte[] before = current.getValue(IndexedTable.TABLE);
    byte[] after = changed.getValue(IndexedTable.TABLE);
    String own = IndexedTable.fullName(changed.getTableName());
    if (Arrays.equals(before, after) || (after != null && Bytes.toString(after).equals(own))) return;
    refuse(changed.getTableName(), "its attribute tamis.table tells it from its copies and can only become " + own);
  }

  /** A table that is no longer indexed keeps nothing of ours: without the schema plain scans show its entries. */
  private static void checkDetached(TableDescriptor changed) throws IOException {
    List<String> left = new ArrayList<>();
    for (byte[] attribute : new byte[][] {IndexedTable.TABLE, IndexedTable.ORIGIN, IndexedTable.PREFIX_ZEROS}) {
      if (changed.getValue(attribute) != null) left.add(Bytes.toString(attribute));
    }
    if (changed.hasColumnFamily(IndexedTable.FAMILY)) left.add("the family tamis");
    String observer = IndexObserver.class.getName();
    if (changed.hasCoprocessor(observer)) left.add("the coprocessor " + observer);
    if (IndexSplitPolicy.class.getName().equals(changed.getRegionSplitPolicyClassName())) left.add("the split policy");
    if (left.isEmpty()) return;
    refuse(changed.getTableName(),
        "tamis.schema cannot be removed while " + String.join(", ", left) + " stay; remove"
            + " all of it: tamis table detach --hbase-table " + IndexedTable.fullName(changed.getTableName()));
  }

  /** Throws unless `changed` follows on `current`. */
  static void checkChange(TableDescriptor current, TableDescriptor changed, long restoring) throws IOException {
    check(changed);
    if (changed.getValue(IndexedTable.SCHEMA) != null) {
      checkRecordedName(current, changed);
    } else if (current.getValue(IndexedTable.SCHEMA) != null) {
      checkDetached(changed);
    }
    if (!changesSchema(current, changed)) return;
    long from = versionOf(current);
    long to = versionOf(changed);
    if (to != nextVersion(current, restoring)) {
      refuse(current.getTableName(),
          "its schema has version " + from + ", and is not followed by version " + to
              + ": read it again, and change that");
    }
  }

  /** The work of a hook; an exception that is no IOException would abort the master. */
  private interface Work {
    void run() throws IOException;
  }

  private static void guarded(Work work) throws IOException {
    try {
      work.run();
    } catch (IOException e) {
      throw e;
    } catch (Throwable e) {
      throw new DoNotRetryIOException("cannot check an indexed table: " + e, e);
    }
  }

  @Override
  public void preCreateTable(ObserverContext<MasterCoprocessorEnvironment> c, TableDescriptor descriptor,
      RegionInfo[] regions) throws IOException {
    guarded(() -> check(descriptor));
  }

  private static long lastRestoring(ObserverContext<MasterCoprocessorEnvironment> c, TableName name)
      throws IOException {
    Configuration conf = c.getEnvironment().getConfiguration();
    Path root = CommonFSUtils.getRootDir(conf);
    return RestoreMark.number(RestoreMark.last(root.getFileSystem(conf), root, name));
  }

  @Override
  public TableDescriptor preModifyTable(ObserverContext<MasterCoprocessorEnvironment> c, TableName name,
      TableDescriptor current, TableDescriptor changed) throws IOException {
    TableDescriptor[] numbered = {changed};
    guarded(() -> {
      if (changesSchema(current, changed)) numbered[0] = withNextVersion(current, changed, lastRestoring(c, name));
    });
    return numbered[0];
  }

  /** Under the table's lock: only here is the descriptor that is changed the one that is there. */
  @Override
  public void preModifyTableAction(ObserverContext<MasterCoprocessorEnvironment> c, TableName name,
      TableDescriptor current, TableDescriptor changed) throws IOException {
    guarded(() -> checkChange(current, changed, changesSchema(current, changed) ? lastRestoring(c, name) : 0));
  }

  /** Restored entries match the restored rows only by luck: their markers are not believed. */
  @Override
  public void preRestoreSnapshot(ObserverContext<MasterCoprocessorEnvironment> c, SnapshotDescription snapshot,
      TableDescriptor descriptor) throws IOException {
    guarded(() -> {
      Configuration conf = c.getEnvironment().getConfiguration();
      Path root = CommonFSUtils.getRootDir(conf);
      RestoreMark.restored(root.getFileSystem(conf), root, snapshot.getTableName(), System.currentTimeMillis());
    });
  }

  /** Its regions have the names of the snapshot's, where it takes the name of the table that was. */
  @Override
  public void preCloneSnapshot(ObserverContext<MasterCoprocessorEnvironment> c, SnapshotDescription snapshot,
      TableDescriptor descriptor) throws IOException {
    guarded(() -> {
      if (descriptor.getValue(IndexedTable.SCHEMA) == null) return;
      Configuration conf = c.getEnvironment().getConfiguration();
      Path root = CommonFSUtils.getRootDir(conf);
      RestoreMark.cloned(root.getFileSystem(conf), root, descriptor.getTableName(), System.currentTimeMillis());
    });
  }

  @Override
  public void preSnapshot(ObserverContext<MasterCoprocessorEnvironment> c, SnapshotDescription snapshot,
      TableDescriptor descriptor) throws IOException {
    guarded(() -> {
      if (snapshot.getType() == SnapshotType.SKIPFLUSH && descriptor.getValue(IndexedTable.SCHEMA) != null) {
        refuse(descriptor.getTableName(),
            "a snapshot without a flush has rows without their entries; take one with a"
                + " flush");
      }
    });
  }
}
