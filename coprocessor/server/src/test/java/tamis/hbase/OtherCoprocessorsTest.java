package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.Coprocessor;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.client.CoprocessorDescriptorBuilder;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionObserver;
import org.apache.hadoop.hbase.ipc.RpcCall;
import org.apache.hadoop.hbase.ipc.RpcServer;
import org.apache.hadoop.hbase.regionserver.MiniBatchOperationInProgress;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.index.BatchContext;
import tamis.region.IndexedRegion;

/** Rules beside other coprocessors, which change writes, or throw so that a hook of ours does not come. */
class OtherCoprocessorsTest extends RuleTestCase {
  // ---- Another coprocessor changes a write

  /** Puts another value into column `a`. */
  public static final class Changer implements RegionCoprocessor, RegionObserver {
    @Override
    public Optional<RegionObserver> getRegionObserver() {
      return Optional.of(this);
    }

    @Override
    public void preBatchMutate(ObserverContext<RegionCoprocessorEnvironment> c,
        MiniBatchOperationInProgress<Mutation> batch) throws IOException {
      for (int i = 0; i < batch.size(); ++i) {
        List<Cell> cells = batch.getOperation(i).getFamilyCellMap().get(RegionForTest.F);
        if (cells == null) continue;
        cells.replaceAll(cell
            -> new KeyValue(CellUtil.cloneRow(cell), RegionForTest.F, CellUtil.cloneQualifier(cell),
                cell.getTimestamp(), Bytes.toBytes("changed")));
      }
    }
  }

  private static long missedBesideAChanger(int priority) throws Exception {
    TableDescriptor descriptor =
        TableDescriptorBuilder.newBuilder(descriptor())
            .setCoprocessor(
                CoprocessorDescriptorBuilder.newBuilder(Changer.class.getName()).setPriority(priority).build())
            .build();
    SchemaGuard.check(descriptor); // the master does so, too
    try (RegionForTest test = open(descriptor)) {
      test.region.put(put("r", "v"));
      return missed(test);
    }
  }

  @Test
  void theObserverSeesAWriteLast() throws Exception {
    assertEquals(0, missedBesideAChanger(Coprocessor.PRIORITY_USER));
    assertThrows(IOException.class, () -> missedBesideAChanger(Coprocessor.PRIORITY_LOWEST));
    Fault.only(Fault.NOT_THE_LAST_OBSERVER);
    assertEquals(1, missedBesideAChanger(Coprocessor.PRIORITY_LOWEST));
  }

  // ---- Another coprocessor throws after the commit

  /** A client's call: one that is not late, and equal to itself alone. */
  private static RpcCall call() {
    return (RpcCall) Proxy.newProxyInstance(
        RpcCall.class.getClassLoader(), new Class<?>[] {RpcCall.class}, (self, method, arguments) -> {
          switch (method.getName()) {
            case "getDeadline":
              return Long.MAX_VALUE;
            case "disconnectSince":
              return -1L;
            case "hashCode":
              return System.identityHashCode(self);
            case "equals":
              return self == arguments[0];
            default:
              return method.getReturnType() == int.class     ? (Object) 0
                  : method.getReturnType() == long.class     ? (Object) 0L
                  : method.getReturnType() == Optional.class ? Optional.empty()
                                                             : null;
          }
        });
  }

  /**
   * Whether no write is inside of the region after two calls of one handler, of which the first ended without a hook.
   */
  private static boolean freeBehindTheNextCall() throws Exception {
    TableDescriptor descriptor =
        TableDescriptorBuilder.newBuilder(descriptor()).setCoprocessor(Thrower.class.getName()).build();
    try (RegionForTest test = open(descriptor)) {
      boolean[] free = new boolean[2];
      Thread handler = new Thread(() -> {
        ReentrantReadWriteLock gate = test.indexed().gate;
        Thrower.throwsEverywhere = true;
        RpcServer.setCurrentCall(call());
        try {
          test.region.put(put("r", "v"));
        } catch (IOException e) {
          // as it should
        } finally {
          Thrower.throwsEverywhere = false;
        }
        free[0] = gate.getReadHoldCount() == 0;
        RpcServer.setCurrentCall(call());
        try {
          test.region.put(put("s", "v"));
        } catch (IOException e) {
          throw new AssertionError(e);
        }
        free[1] = gate.getReadHoldCount() == 0;
        while (gate.getReadHoldCount() > 0) gate.readLock().unlock(); // so that the region can close
      });
      handler.start();
      handler.join();
      assertFalse(free[0]);
      return free[1];
    }
  }

  @Test
  void locksOfABatchAreFreedByTheNextCallWhereNoHookCame() throws Exception {
    assertTrue(freeBehindTheNextCall());
    Fault.only(Fault.NO_SWEEP);
    assertFalse(freeBehindTheNextCall());
  }

  /** Whether another thread can write the row afterwards. */
  private static boolean rowIsFree() throws Exception {
    TableDescriptor descriptor =
        TableDescriptorBuilder.newBuilder(descriptor()).setCoprocessor(Thrower.class.getName()).build();
    try (RegionForTest test = open(descriptor)) {
      CountDownLatch written = new CountDownLatch(1);
      CountDownLatch looked = new CountDownLatch(1);
      Thread thread = new Thread(() -> {
        try {
          test.region.put(put("bad", "v"));
        } catch (IOException e) {
          // as it should
        }
        written.countDown();
        try {
          looked.await();
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
        // Locks of rows are the process's: one that is not freed would stop a test of another region, some day.
        BatchContext.current().release();
      });
      thread.start();
      written.await();
      IndexedRegion region = test.indexed();
      boolean free = region.gate.writeLock().tryLock();
      if (free) region.gate.writeLock().unlock();
      looked.countDown();
      thread.join();
      return free;
    }
  }

  @Test
  void locksOfABatchAreFreedWhereItsLastHookDoesNotCome() throws Exception {
    assertTrue(rowIsFree());
    Fault.only(Fault.NO_SWEEP);
    assertFalse(rowIsFree());
  }
}
