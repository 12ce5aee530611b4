package tamis.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.feed.FeedCopy;
import tamis.pb.Cluster;

/**
 * The cost of puts by a plain client with the jar, as ratios to the same puts into a table without it, of one run:
 * rounds in turn, medians of the rounds' ratios. With "poll" a coordinator listens to every server. At the end a check
 * compares all rows, entries and filters. The class path has the cluster's configuration (hbase-local start
 * --full-speed).
 *
 *   PutBenchmark SECONDS_A_ROUND ROUNDS [poll] [KNOWN] [NEW] [BATCH] [FRESH]
 */
public final class PutBenchmark {
  private static final int ROWS = 20_000;
  private static final int BATCH = 100;
  private static final int VALUES = 300; // so few that a region holds some rows of each
  private static final byte[] A = Bytes.toBytes("a");
  private static final byte[] B = Bytes.toBytes("b");
  private static final byte[] S = Bytes.toBytes("s");

  private final Connection connection;
  private final long roundNs;
  private final AtomicLong newValue = new AtomicLong();
  private volatile boolean stop;

  private PutBenchmark(Connection connection, long roundNs) {
    this.connection = connection;
    this.roundNs = roundNs;
  }

  /** The kind of a client's writes, and of their values. */
  private enum Kind {
    KNOWN("put of a value that is there"),
    NEW("put of a new value"),
    BATCH("batch of 100, rows that are there"),
    FRESH("batch of 100, new rows");

    final String text;

    Kind(String text) {
      this.text = text;
    }
  }

  private static final class Result {
    final double perSecond;
    final double p50;

    Result(double perSecond, double p50) {
      this.perSecond = perSecond;
      this.p50 = p50;
    }
  }

  public static void main(String[] args) throws Exception {
    org.apache.hadoop.conf.Configuration conf = HBaseConfiguration.create();
    try (Connection connection = ConnectionFactory.createConnection(conf)) {
      new PutBenchmark(connection, TimeUnit.MILLISECONDS.toNanos((long) (Double.parseDouble(args[0]) * 1000)))
          .run(Integer.parseInt(args[1]), Arrays.asList(args).subList(2, args.length));
    }
    System.exit(0);
  }

  private static TableName name(int indexes) {
    return TableName.valueOf("tamis_bench_" + indexes);
  }

  private void create(Admin admin, int indexes) throws IOException {
    TableDescriptorBuilder plain = TableForTest.plain(name(indexes));
    TableDescriptor table = plain.build();
    if (indexes > 0) {
      tamis.pb.Table.Schema.Builder schema = RegionForTest.schema();
      int[] columns = {1, 4, 3};
      for (int i = 0; i < indexes; ++i) {
        schema.addIndexes(
            RegionForTest.index(i + 1, "by_" + i, true, columns[i]).toBuilder().setExpectedValues(10_000));
      }
      table = TableForTest.indexed(plain, schema.build());
    }
    byte[][] splits = new byte[5][];
    for (int i = 0; i < 5; ++i) splits[i] = key(ROWS / 6 * (i + 1));
    TableForTest.makeAnew(admin, table, splits);
  }

  private static byte[] key(int i) {
    return Bytes.toBytes(String.format("k%07d", i));
  }

  private static byte[] known(Random random) {
    return Bytes.toBytes("v" + random.nextInt(VALUES));
  }

  private Put put(byte[] row, Random random, boolean fresh) {
    return new Put(row)
        .addColumn(RegionForTest.F, A, fresh ? Bytes.toBytes("n" + newValue.incrementAndGet()) : known(random))
        .addColumn(RegionForTest.F, S, known(random))
        .addColumn(RegionForTest.G, B, known(random));
  }

  private void fill(int indexes) throws IOException {
    Random random = new Random(7);
    try (Table table = connection.getTable(name(indexes))) {
      for (int i = 0; i < ROWS; i += 1000) {
        List<Put> puts = new ArrayList<>();
        for (int j = i; j < i + 1000; ++j) puts.add(put(key(j), random, false));
        table.put(puts);
      }
    }
  }

  private Result measure(int indexes, Kind kind, int threads) throws Exception {
    List<List<Long>> times = new ArrayList<>();
    CountDownLatch done = new CountDownLatch(threads);
    long begin = System.nanoTime();
    for (int t = 0; t < threads; ++t) {
      List<Long> mine = new ArrayList<>();
      times.add(mine);
      long seed = t + begin;
      new Thread(() -> {
        Random random = new Random(seed);
        try (Table table = connection.getTable(name(indexes))) {
          while (System.nanoTime() - begin < roundNs) {
            long before = System.nanoTime();
            if (kind == Kind.KNOWN || kind == Kind.NEW) {
              table.put(put(key(random.nextInt(ROWS)), random, kind == Kind.NEW));
            } else {
              List<Put> puts = new ArrayList<>();
              for (int i = 0; i < BATCH; ++i) {
                byte[] row = key(random.nextInt(ROWS));
                if (kind == Kind.FRESH) row = Bytes.add(row, Bytes.toBytes(newValue.incrementAndGet()));
                puts.add(put(row, random, false));
              }
              table.put(puts);
            }
            mine.add(System.nanoTime() - before);
          }
        } catch (IOException e) {
          e.printStackTrace();
        } finally {
          done.countDown();
        }
      }).start();
    }
    done.await();
    double seconds = (System.nanoTime() - begin) / 1e9;
    List<Long> all = new ArrayList<>();
    times.forEach(all::addAll);
    all.sort(null);
    int rows = kind == Kind.KNOWN || kind == Kind.NEW ? 1 : BATCH;
    return new Result(all.size() * rows / seconds, all.get(all.size() / 2) / 1e6);
  }

  private static double median(List<Double> values) {
    Double[] sorted = values.toArray(new Double[0]);
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }

  private void compare(Kind kind, int threads, int rounds) throws Exception {
    int[] tables = {0, 1, 3};
    for (int indexes : tables) measure(indexes, kind, threads); // to warm up
    List<List<Double>> latency = new ArrayList<>();
    List<List<Double>> throughput = new ArrayList<>();
    for (int i = 0; i < 3; ++i) {
      latency.add(new ArrayList<>());
      throughput.add(new ArrayList<>());
    }
    for (int round = 0; round < rounds; ++round) {
      Result plain = measure(0, kind, threads);
      latency.get(0).add(plain.p50);
      throughput.get(0).add(plain.perSecond);
      for (int i = 1; i < 3; ++i) {
        Result indexed = measure(tables[i], kind, threads);
        latency.get(i).add(indexed.p50 / plain.p50);
        throughput.get(i).add(indexed.perSecond / plain.perSecond);
      }
    }
    System.out.println(String.format("| %s, %d threads | %.2f ms, %.0f rows/s | %.2f x, %.2f x | %.2f x, %.2f x |",
        kind.text, threads, median(latency.get(0)), median(throughput.get(0)), median(latency.get(1)),
        median(throughput.get(1)), median(latency.get(2)), median(throughput.get(2))));
  }

  private void poll(ServerCalls calls) {
    FeedCopy copy = new FeedCopy(System.nanoTime());
    try {
      byte[] row = key(0);
      while (!stop) {
        long sent = System.nanoTime();
        try {
          copy.apply(
              Cluster.PollReply.parseFrom(calls.call(row, "Poll", copy.request(200_000_000).toByteArray())), sent);
        } catch (IOException e) {
          Thread.sleep(50);
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Words: "poll", and the kinds; none: all of them. */
  private void run(int rounds, List<String> words) throws Exception {
    boolean poll = words.contains("poll");
    EnumSet<Kind> kinds = EnumSet.noneOf(Kind.class);
    for (String word : words) {
      if (!word.equals("poll")) kinds.add(Kind.valueOf(word));
    }
    if (kinds.isEmpty()) kinds = EnumSet.allOf(Kind.class);
    ServerCalls[] calls = new ServerCalls[4];
    try (Admin admin = connection.getAdmin()) {
      admin.balancerSwitch(false, true);
      for (int indexes : new int[] {0, 1, 3}) {
        create(admin, indexes);
        fill(indexes);
        if (indexes == 0) continue;
        calls[indexes] = new ServerCalls(connection, name(indexes), 1);
        calls[indexes].awaitIndexes(1);
      }
    }
    if (poll) {
      // One server: whoever is asked answers for itself alone.
      Thread thread = new Thread(() -> poll(calls[1]));
      thread.setDaemon(true);
      thread.start();
    }
    System.out.println("| | without the jar: p50, throughput | 1 index: p50, throughput | 3 indexes |");
    System.out.println("|---|---|---|---|");
    for (Kind kind : kinds) {
      boolean single = kind == Kind.KNOWN || kind == Kind.NEW;
      for (int threads : single ? new int[] {1, 16} : new int[] {2}) compare(kind, threads, rounds);
    }
    stop = true;
    for (int indexes : new int[] {1, 3}) {
      Cluster.RegionCheck check = calls[indexes].check();
      if (check.getMissingEntries() + check.getForeignEntries() + check.getMissingInFilter() > 0) {
        throw new IllegalStateException("wrong: " + check);
      }
      System.out.println(check.getEntries() + " entries of " + check.getRows() + " rows, right");
    }
  }
}
