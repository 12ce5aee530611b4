package tamis.index;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Scan;
import tamis.pb.Cluster;
import tamis.region.EntryKeys;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.region.ReadView;
import tamis.region.RowCursor;
import tamis.shaded.protobuf.ByteString;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;

/**
 * Some of the distinct first values of an index in a region, for a cell map: the smallest, the largest, and of the
 * others each with the same chance.
 */
public final class ValueSampler {
  private static final int MOST_BYTES = 256; // bytes of a value; further ones tell few values apart
  private static final int MOST_VALUES = 1 << 16;

  private final int most;
  private final Random random = new Random(1);
  private final List<byte[]> values = new ArrayList<>();
  private byte[] smallest;
  private byte[] largest;
  private long seen;

  private ValueSampler(int most) {
    this.most = most;
  }

  /** Reads all entries of the index. Null: `progress` stopped it. */
  public static Cluster.ValueSample sample(
      IndexedRegion region, Schema.Index index, int most, IndexBuilder.Progress progress) throws IOException {
    ValueSampler sampler = new ValueSampler(Math.max(2, Math.min(most, MOST_VALUES)));
    byte[] prefix = region.keys.index(index.id);
    Scan scan = ReadView.scan(prefix, Key.prefixEnd(prefix)).addFamily(IndexedTable.FAMILY).setCacheBlocks(false);
    byte[] before = null;
    long entries = 0;
    try (RowCursor rows = new RowCursor(region.region.getScanner(scan))) {
      for (List<Cell> cells = rows.next(); cells != null; cells = rows.next()) {
        if (++entries % 1000 == 0 && !progress.rows(entries)) return null;
        byte[] key = CellUtil.cloneRow(cells.get(0));
        if (region.keys.kindOf(region.table.schema, key) != EntryKeys.Kind.ENTRY) continue;
        byte[] first = region.keys.read(region.table.schema, index, key).first();
        if (before != null && Arrays.equals(before, first)) continue;
        before = first;
        sampler.add(Arrays.copyOf(first, Math.min(first.length, MOST_BYTES)));
      }
    } catch (DamagedBytesException e) {
      throw new IOException("an entry of region " + region.info().getEncodedName() + " is damaged", e);
    }
    return progress.rows(entries) ? sampler.result() : null;
  }

  /** Values come in their order. */
  private void add(byte[] value) {
    if (seen == 0) smallest = value;
    largest = value;
    ++seen;
    if (values.size() < most) {
      values.add(value);
      return;
    }
    long place = (long) (random.nextDouble() * seen);
    if (place < most) values.set((int) place, value);
  }

  private Cluster.ValueSample result() {
    values.sort(Key::compare);
    if (seen > 0) {
      values.set(0, smallest);
      values.set(values.size() - 1, largest);
    }
    Cluster.ValueSample.Builder sample = Cluster.ValueSample.newBuilder().setDistinct(seen);
    for (byte[] value : values) sample.addValues(ByteString.copyFrom(value));
    return sample.build();
  }
}
