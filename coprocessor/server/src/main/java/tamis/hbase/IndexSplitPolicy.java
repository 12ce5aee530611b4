package tamis.hbase;

import java.io.IOException;
import java.util.Arrays;
import java.util.Optional;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.SteppingSplitPolicy;
import tamis.base.Fault;
import tamis.region.IndexedTable;

/**
 * Splits a region of an indexed table at a row of the data, never at an entry. HBase makes a policy at every opening
 * of a region, so it also guards the other rule: a region does not open on a server that does not load its observer,
 * for any reason; there it would take rows without entries.
 */
public final class IndexSplitPolicy extends SteppingSplitPolicy {
  @Override
  protected void configureForRegion(HRegion opened) {
    super.configureForRegion(opened);
    if (opened.getTableDescriptor().getValue(IndexedTable.SCHEMA) == null) return;
    if (opened.getRegionInfo().getReplicaId() != 0 || Fault.OPENS_UNOBSERVED.isOn()) return;
    if (opened.getCoprocessorHost() == null
        || opened.getCoprocessorHost().findCoprocessor(IndexObserver.class) == null) {
      // An exception of any other kind would abort the server, and then the next one.
      IndexSplitPolicy.<RuntimeException>refuse(new IOException("region " + opened.getRegionInfo().getEncodedName()
          + " belongs to an indexed table, and tamis.hbase.IndexObserver is not"
          + " loaded here: set hbase.coprocessor.enabled and hbase.coprocessor.user.enabled to true, or put the jar on"
          + " the class path of this server"));
    }
  }

  /** Throws it past the compiler. */
  @SuppressWarnings("unchecked")
  private static <E extends Exception> void refuse(Exception e) throws E {
    throw(E) e;
  }

  @Override
  protected byte[] getSplitPoint() {
    byte[] point = null;
    long largest = 0;
    for (HStore store : region.getStores()) {
      boolean entries = Arrays.equals(store.getColumnFamilyDescriptor().getName(), IndexedTable.FAMILY);
      if (entries && !Fault.SPLITS_AT_ENTRIES.isOn()) continue;
      Optional<byte[]> own = store.getSplitPoint();
      if (own.isPresent() && largest < store.getSize()) {
        point = own.get();
        largest = store.getSize();
      }
    }
    return point;
  }
}
