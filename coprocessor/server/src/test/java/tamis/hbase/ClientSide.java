package tamis.hbase;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongFunction;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.AdvancedScanResultConsumer;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.AsyncTable;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * One side of bench/hbase_client_benchmark: HBase's own AsyncConnection. bench/hbase_client_side.cc is the other one,
 * and tells what the lines on the standard input ask for; the work is the same. The class path has the cluster's
 * configuration.
 *
 *   ClientSide ROWS
 */
public final class ClientSide {
  private static final TableName READ = TableName.valueOf("benchmark_read");
  private static final TableName WRITTEN = TableName.valueOf("benchmark_written");
  private static final int GETS_IN_FLIGHT = 64;
  private static final int BATCH = 100;
  private static final int BATCHES_IN_FLIGHT = 4;
  private static final int VALUE_BYTES = 100;
  private static final byte[] F = Bytes.toBytes("f");
  private static final byte[] Q = Bytes.toBytes("q");

  private final long rows;
  private final AsyncTable<AdvancedScanResultConsumer> read;
  private final AsyncTable<AdvancedScanResultConsumer> written;

  private ClientSide(AsyncConnection connection, long rows) {
    this.rows = rows;
    read = connection.getTable(READ);
    written = connection.getTable(WRITTEN);
  }

  /** Something done `count` times, so many at once. */
  private static final class Pump {
    private final long count;
    private final LongFunction<CompletableFuture<?>> start;
    private final AtomicLong begun = new AtomicLong();
    private final CountDownLatch ended;

    Pump(long count, LongFunction<CompletableFuture<?>> start) {
      this.count = count;
      this.start = start;
      ended = new CountDownLatch((int) count);
    }

    void next() {
      long i = begun.getAndIncrement();
      if (i >= count) return;
      start.apply(i).whenComplete((value, fault) -> {
        if (fault != null) die(fault);
        next();
        ended.countDown();
      });
    }

    void run(int inFlight) throws InterruptedException {
      for (int i = 0; i < inFlight; ++i) next();
      ended.await();
    }
  }

  private static void die(Throwable fault) {
    fault.printStackTrace();
    Runtime.getRuntime().halt(1);
  }

  /** "00001234" */
  private static void digits(long i, byte[] to, int at) {
    for (int place = at + 7; place >= at; --place) {
      to[place] = (byte) ('0' + i % 10);
      i /= 10;
    }
  }

  private static byte[] key(long i) {
    byte[] key = new byte[9];
    key[0] = 'r';
    digits(i, key, 1);
    return key;
  }

  private static byte[] value(long i, long seed) {
    byte[] value = new byte[VALUE_BYTES];
    Arrays.fill(value, (byte) '.');
    System.arraycopy(Bytes.toBytes("row "), 0, value, 0, 4);
    digits(i, value, 4);
    byte[] by = (" by " + seed).getBytes(StandardCharsets.US_ASCII);
    System.arraycopy(by, 0, value, 12, by.length);
    return value;
  }

  private long rowAt(long i, long seed) {
    return (i * 7919 + seed * 104729) % rows;
  }

  private static void expect(Result row, long i, long seed) {
    if (!Arrays.equals(row.getValue(F, Q), value(i, seed))) throw new IllegalStateException("row " + i + " is wrong");
  }

  private void get(long count, long seed, int inFlight) throws InterruptedException {
    new Pump(count, i -> {
      long row = rowAt(i, seed);
      return read.get(new Get(key(row))).thenAccept(got -> expect(got, row, 0));
    }).run(inFlight);
  }

  private void put(long count, long seed) throws InterruptedException {
    new Pump(count, batch -> {
      List<Put> puts = new ArrayList<>(BATCH);
      for (long i = batch * BATCH; i < (batch + 1) * BATCH; ++i) {
        long row = rowAt(i, seed);
        puts.add(new Put(key(row)).addColumn(F, Q, value(row, seed)));
      }
      return written.putAll(puts);
    }).run(BATCHES_IN_FLIGHT);
  }

  private void scan() throws InterruptedException {
    CountDownLatch ended = new CountDownLatch(1);
    read.scan(new Scan(), new AdvancedScanResultConsumer() {
      private long next;

      @Override
      public void onNext(Result[] results, ScanController controller) {
        try {
          for (Result row : results) expect(row, next++, 0);
        } catch (IllegalStateException e) {
          die(e);
        }
      }

      @Override
      public void onError(Throwable fault) {
        die(fault);
      }

      @Override
      public void onComplete() {
        if (next != rows) die(new IllegalStateException("a scan found " + next + " rows"));
        ended.countDown();
      }
    });
    ended.await();
  }

  private void check(long count, long seed) {
    List<Get> gets = new ArrayList<>();
    List<Long> expected = new ArrayList<>();
    for (long i = 0; i < count * BATCH; i += 17) {
      expected.add(rowAt(i, seed));
      gets.add(new Get(key(rowAt(i, seed))));
    }
    List<Result> results = written.getAll(gets).join();
    for (int i = 0; i < gets.size(); ++i) expect(results.get(i), expected.get(i), seed);
  }

  private void run(String what, long count, long seed) throws InterruptedException {
    switch (what) {
      case "get":
        get(count, seed, GETS_IN_FLIGHT);
        break;
      case "one":
        get(count, seed, 1);
        break;
      case "put":
        put(count, seed);
        break;
      case "scan":
        scan();
        break;
      case "check":
        check(count, seed);
        break;
      default:
        throw new IllegalArgumentException("there is no \"" + what + "\"");
    }
  }

  public static void main(String[] args) throws Exception {
    OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    try (AsyncConnection connection = ConnectionFactory.createAsyncConnection(HBaseConfiguration.create()).get()) {
      ClientSide side = new ClientSide(connection, Long.parseLong(args[0]));
      BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] words = line.split(" ");
        long cpu = system.getProcessCpuTime();
        long begin = System.nanoTime();
        side.run(
            words[0], words.length > 1 ? Long.parseLong(words[1]) : 0, words.length > 2 ? Long.parseLong(words[2]) : 0);
        long time = System.nanoTime() - begin;
        System.out.printf("%.6f %.6f%n", time / 1e9, (system.getProcessCpuTime() - cpu) / 1e9);
        System.out.flush();
      }
    }
    System.exit(0);
  }
}
