package tamis.hbase;

import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.hadoop.hbase.io.ByteBuffAllocator;

/**
 * HBase uses released off-heap blocks again for other data. This allocator overwrites a block as soon as it is
 * released, so that a cell that is read after the end of its scanner has other bytes.
 */
public final class SpoiltBuffers extends ByteBuffAllocator {
  private static final int BUFFERS = 4096;
  private static final int BUFFER_BYTES = 66 << 10; // a block, and what comes with it

  private static final byte[] SPOIL = new byte[BUFFER_BYTES];

  static {
    Arrays.fill(SPOIL, (byte) 0xee);
  }

  private SpoiltBuffers() {
    super(true, BUFFERS, BUFFER_BYTES, 0);
  }

  /** For all regions of this process that have no server. */
  public static SpoiltBuffers use() {
    try {
      Field field = Class.forName("org.apache.hadoop.hbase.regionserver.RegionServicesForStores")
                        .getDeclaredField("ALLOCATOR_FOR_TEST");
      field.setAccessible(true);
      synchronized (SpoiltBuffers.class) {
        if (!(field.get(null) instanceof SpoiltBuffers)) field.set(null, new SpoiltBuffers());
        return (SpoiltBuffers) field.get(null);
      }
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  /** That somebody reads. */
  public int held() {
    return getUsedBufferCount() - getFreeBufferCount();
  }

  @Override
  protected void putbackBuffer(ByteBuffer buffer) {
    buffer.clear();
    buffer.put(SPOIL);
    super.putbackBuffer(buffer);
  }
}
