package tamis.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.ToDoubleFunction;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import tamis.pb.Cluster;

/**
 * The cost of puts by a plain client, on one region server, of one run: into a table without indexes (`none`), into
 * tables whose indexes the jar keeps (`tamis 1`: one index), and into tables of which the client writes the same cells
 * itself, in one mutation, and without a coprocessor (`floor 1`; for a row that exists it gets the row before).
 * Meanwhile coordinators, programs as users have them, poll the server. At the end they must find every row by its
 * indexed values, and a check compares all rows, entries and filters. The class path has the cluster's configuration.
 *
 *   PutBenchmark [OPTION...]
 *
 *   --program=PATH --store=NAME   the program `tamis`, and how it calls the cluster; without: no coordinator
 *   --pid=PID                     the region server; without: nothing is said of its CPU, memory and log
 *   --coordinators=N              2
 *   --seconds=N --rounds=N        of each measurement, 1, and the measurements of each number, 1; medians are printed
 *   --indexes=N,...               1,3
 *   --rows=N --regions=N          of each table at the beginning: 20000 and 6
 *   --kinds=KIND,...              known,new,batch,batch_new,fresh
 *   --threads=N,...               of single puts: 1,16,64,256; batches come from 2
 *   --stuck                       instead: new values by 16 threads while a coordinator is stopped for some seconds
 */
public final class PutBenchmark {
  private static final int BATCH = 100;
  private static final int BATCH_THREADS = 2;
  private static final long WARM_UP_NS = TimeUnit.SECONDS.toNanos(2); // for each table: Java compiles both processes
  private static final long GET_EVERY_NS = TimeUnit.MILLISECONDS.toNanos(2);

  /** The kind of a client's writes. */
  private enum Kind {
    KNOWN("put, values that are there", 1, false, false),
    NEW("put, new values", 1, true, false),
    BATCH("batch of 100 rows that are there", PutBenchmark.BATCH, false, false),
    BATCH_NEW("batch of 100 rows that are there, new values", PutBenchmark.BATCH, true, false),
    FRESH("batch of 100 new rows", PutBenchmark.BATCH, false, true);

    final String text;
    final int size;
    final boolean newValues;
    final boolean newRows;

    Kind(String text, int size, boolean newValues, boolean newRows) {
      this.text = text;
      this.size = size;
      this.newValues = newValues;
      this.newRows = newRows;
    }
  }

  /** The figures of one measurement. */
  private static final class Result {
    final double perSecond;
    final double p50;
    final double p99;
    final double getP99; // the time of a reader beside the writers
    final double cpu; // processor time of the server, microseconds a row
    final double allocated; // KiB a row
    final double logged; // bytes a row
    final double turnedAway; // writes
    final double polls; // a row

    Result(List<Long> times, List<Long> gets, int rowsEach, double seconds, ServerFigures.Reading server) {
      double rows = (double) times.size() * rowsEach;
      perSecond = rows / seconds;
      p50 = percentile(times, .5);
      p99 = percentile(times, .99);
      getP99 = percentile(gets, .99);
      cpu = server == null ? 0 : server.cpuNs / 1000 / rows;
      allocated = server == null ? 0 : server.allocatedBytes / 1024 / rows;
      logged = server == null ? 0 : server.logBytes / rows;
      turnedAway = server == null ? 0 : server.turnedAway;
      polls = server == null ? 0 : server.polls / rows;
    }

    private static double percentile(List<Long> times, double part) {
      Collections.sort(times);
      return times.isEmpty() ? 0 : times.get((int) (part * (times.size() - 1))) / 1e6;
    }
  }

  private final TreeMap<String, String> options = new TreeMap<>();
  private final Connection connection;
  private final List<BenchedTable> tables = new ArrayList<>();
  private final List<CoordinatorProgram> coordinators = new ArrayList<>();
  private ServerFigures server;
  private final List<Runnable> measured = new ArrayList<>(); // they print figures
  private final AtomicInteger failed = new AtomicInteger();

  private PutBenchmark(Connection connection, String[] words) {
    this.connection = connection;
    for (String word : words) {
      if (!word.startsWith("--")) throw new IllegalArgumentException("not an option: " + word);
      String[] option = word.substring(2).split("=", 2);
      options.put(option[0], option.length > 1 ? option[1] : "");
    }
  }

  public static void main(String[] args) throws Exception {
    org.apache.hadoop.conf.Configuration conf = HBaseConfiguration.create();
    // Writers of one client wait for their own calls alone.
    conf.setInt("hbase.client.max.perserver.tasks", 1000);
    conf.setInt("hbase.client.max.perregion.tasks", 1000);
    conf.setInt("hbase.client.max.total.tasks", 1000);
    try (Connection connection = ConnectionFactory.createConnection(conf)) {
      new PutBenchmark(connection, args).run(conf);
    }
    System.exit(0);
  }

  private int[] numbers(String option, String otherwise) {
    return Arrays.stream(options.getOrDefault(option, otherwise).split(",")).mapToInt(Integer::parseInt).toArray();
  }

  private int number(String option, int otherwise) {
    return numbers(option, "" + otherwise)[0];
  }

  private long roundNs() {
    return (long) (Double.parseDouble(options.getOrDefault("seconds", "1")) * 1e9);
  }

  // ---- Preparation

  private void makeTables(Admin admin) throws Exception {
    int[] indexes = numbers("indexes", "1,3");
    int columns = Math.max(3, Arrays.stream(indexes).max().getAsInt());
    int rows = number("rows", 20_000);
    int regions = number("regions", 6);
    tables.add(new BenchedTable(BenchedTable.Keeper.NONE, 0, rows, regions, columns));
    for (int n : indexes) {
      tables.add(new BenchedTable(BenchedTable.Keeper.FLOOR, n, rows, regions, columns));
      tables.add(new BenchedTable(BenchedTable.Keeper.TAMIS, n, rows, regions, columns));
    }
    for (BenchedTable table : tables) {
      table.create(admin);
      table.fill(connection);
      if (table.keeper == BenchedTable.Keeper.TAMIS) new ServerCalls(connection, table.name, 1).awaitIndexes(1);
    }
  }

  private void startCoordinators() throws IOException {
    if (!options.containsKey("program")) return;
    for (int i = 0; i < number("coordinators", 2); ++i) {
      CoordinatorProgram coordinator = new CoordinatorProgram(options.get("program"), options.get("store"));
      coordinators.add(coordinator);
      for (BenchedTable table : tables) {
        if (table.keeper != BenchedTable.Keeper.TAMIS) continue;
        coordinator.number("SELECT count(*) FROM " + table.name + " WHERE c0 = 'v1'");
      }
    }
  }

  // ---- Measurements

  private void writeOnce(BenchedTable target, Table table, Kind kind, Random random) throws IOException {
    List<Put> puts = new ArrayList<>();
    for (int i = 0; i < kind.size; ++i) {
      byte[] row = kind.newRows ? target.newRow(random) : target.anyRow(random);
      puts.add(target.put(row, random, kind.newValues));
    }
    target.write(table, puts, !kind.newRows);
  }

  private interface Call {
    void run(Table table, Random random) throws Exception;
  }

  /** Begins to make the call again and again on so many threads; returns the times, complete once `done` is. */
  private List<List<Long>> start(BenchedTable target, int threads, long until, CountDownLatch done, Call call) {
    List<List<Long>> times = new ArrayList<>();
    for (int t = 0; t < threads; ++t) {
      List<Long> mine = new ArrayList<>();
      times.add(mine);
      long seed = t + until;
      new Thread(() -> {
        Random random = new Random(seed);
        try (Table table = connection.getTable(target.name)) {
          while (System.nanoTime() - until < 0) {
            long before = System.nanoTime();
            call.run(table, random);
            mine.add(System.nanoTime() - before);
          }
        } catch (Exception e) {
          failed.incrementAndGet();
          e.printStackTrace();
        } finally {
          done.countDown();
        }
      }).start();
    }
    return times;
  }

  private Result measure(BenchedTable target, Kind kind, int threads, long forNs) throws Exception {
    ServerFigures.Reading before = server == null ? null : server.read();
    CountDownLatch done = new CountDownLatch(threads + 1);
    long begin = System.nanoTime();
    long until = begin + forNs;
    List<List<Long>> gets = start(target, 1, until, done, (table, random) -> {
      table.get(new Get(target.anyRow(random)));
      java.util.concurrent.locks.LockSupport.parkNanos(GET_EVERY_NS);
    });
    List<List<Long>> puts =
        start(target, threads, until, done, (table, random) -> writeOnce(target, table, kind, random));
    done.await();
    double seconds = (System.nanoTime() - begin) / 1e9;
    List<Long> all = new ArrayList<>();
    puts.forEach(all::addAll);
    return new Result(all, gets.get(0), kind.size, seconds, server == null ? null : server.read().since(before));
  }

  private static double median(List<Result> results, ToDoubleFunction<Result> figure) {
    double[] sorted = results.stream().mapToDouble(figure).sorted().toArray();
    return sorted[sorted.length / 2];
  }

  private static String text(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }

  private static String counted(int n, String what) {
    return n + " " + what + (n == 1 ? "" : what.endsWith("x") ? "es" : "s");
  }

  /** A line of docs/BENCHMARKS.md (bench/page.py). */
  private static void report(String work, String beside, String now, double ratio, String goal) {
    System.out.println(text("figure: %s | %s | %s | %.2fx | %s", work, beside, now, ratio, goal));
  }

  private void report(Kind kind, int threads, List<List<Result>> results) {
    double none = median(results.get(0), r -> r.perSecond);
    for (int i = 0; i < tables.size(); ++i) {
      if (tables.get(i).keeper != BenchedTable.Keeper.TAMIS) continue;
      List<Result> tamis = results.get(i);
      List<Result> floor = results.get(i - 1);
      int indexes = tables.get(i).indexes;
      String work = kind.text + ", " + counted(threads, "thread") + ", " + counted(indexes, "index");
      boolean first = kind == Kind.KNOWN && threads == 16 && indexes == 1;
      report(work, "no index", text("%.0f/s; %.0f/s", median(tamis, r -> r.perSecond), none),
          median(tamis, r -> r.perSecond) / none, first ? ">= 0.85" : "");
      if (server == null) continue;
      report(work + ", CPU of the server for each row", "a client that writes the same cells",
          text("%.0f us; %.0f us", median(tamis, r -> r.cpu), median(floor, r -> r.cpu)),
          median(tamis, r -> r.cpu) / median(floor, r -> r.cpu), kind.size > 1 ? "<= 1.3" : "");
    }
  }

  private void compare(Kind kind, int threads, List<String> ofServer) throws Exception {
    for (BenchedTable table : tables) measure(table, kind, threads, roundNs() / 4); // to warm up
    List<List<Result>> results = new ArrayList<>();
    for (int i = 0; i < tables.size(); ++i) results.add(new ArrayList<>());
    for (int round = 0; round < number("rounds", 1); ++round) {
      for (int i = 0; i < tables.size(); ++i) results.get(i).add(measure(tables.get(i), kind, threads, roundNs()));
    }
    StringBuilder line = new StringBuilder("| " + kind.text + ", " + counted(threads, "thread"));
    StringBuilder costs = new StringBuilder(line);
    for (List<Result> of : results) {
      double plain = median(results.get(0), r -> r.perSecond);
      double perSecond = median(of, r -> r.perSecond);
      line.append(of == results.get(0) ? text(" | %.0f/s", perSecond) : text(" | %.2f", perSecond / plain));
      line.append(
          text("; %.1f, %.0f; %.0f", median(of, r -> r.p50), median(of, r -> r.p99), median(of, r -> r.getP99)));
      double turnedAway = of.stream().mapToDouble(r -> r.turnedAway).sum();
      if (turnedAway > 0) line.append(text("; %.0f turned away", turnedAway));
      costs.append(text(" | %.0f, %.1f, %.0f, %.2f", median(of, r -> r.cpu), median(of, r -> r.allocated),
          median(of, r -> r.logged), median(of, r -> r.polls)));
    }
    System.out.println(line + " |");
    ofServer.add(costs + " |");
    measured.add(() -> report(kind, threads, results));
  }

  private void head(String what) {
    StringBuilder names = new StringBuilder("| " + what);
    StringBuilder rule = new StringBuilder("|---");
    for (BenchedTable table : tables) {
      names.append(" | ").append(table.label());
      rule.append("|---");
    }
    System.out.println(names + " |\n" + rule + "|");
  }

  private void compareAll() throws Exception {
    List<String> ofServer = new ArrayList<>();
    for (BenchedTable table : tables) measure(table, Kind.NEW, 16, WARM_UP_NS);
    head("throughput (of none: rows/s); p50, p99 of a call, ms; p99 of a get beside it, ms");
    for (String word : options.getOrDefault("kinds", "known,new,batch,batch_new,fresh").split(",")) {
      Kind kind = Kind.valueOf(word.toUpperCase(Locale.ROOT));
      int[] threads = kind.size == 1 ? numbers("threads", "1,16,64,256") : new int[] {BATCH_THREADS};
      for (int n : threads) compare(kind, n, ofServer);
    }
    System.out.println();
    if (server != null) head("server, for each row: CPU, us; allocated, KiB; log, bytes; polls");
    if (server != null) ofServer.forEach(System.out::println);
    measured.forEach(Runnable::run);
  }

  /** Calls each quarter of a second, from two seconds before the coordinator is stopped until two after it goes on. */
  private void stick(BenchedTable target) throws Exception {
    int threads = 16;
    int quarters = 40;
    measure(target, Kind.NEW, threads, roundNs());
    AtomicIntegerArray ended = new AtomicIntegerArray(quarters);
    CountDownLatch done = new CountDownLatch(threads);
    long begin = System.nanoTime();
    start(target, threads, begin + TimeUnit.MILLISECONDS.toNanos(250 * quarters), done, (table, random) -> {
      writeOnce(target, table, Kind.NEW, random);
      int quarter = (int) ((System.nanoTime() - begin) / TimeUnit.MILLISECONDS.toNanos(250));
      if (quarter < quarters) ended.incrementAndGet(quarter);
    });
    TimeUnit.SECONDS.sleep(2);
    coordinators.get(0).signal("STOP");
    TimeUnit.SECONDS.sleep(6);
    coordinators.get(0).signal("CONT");
    done.await();
    StringBuilder line = new StringBuilder("puts of new values, " + threads + " threads, " + target.label()
        + "; each quarter of a second; a coordinator is stopped from 2 s to 8 s:\n");
    for (int i = 0; i < quarters; ++i) line.append(i % 8 == 0 && i > 0 ? " |" : "").append(' ').append(ended.get(i));
    System.out.println(line);
  }

  // ---- All of it

  private void run(org.apache.hadoop.conf.Configuration conf) throws Exception {
    try (Admin admin = connection.getAdmin()) {
      admin.balancerSwitch(false, true);
      makeTables(admin);
      if (options.containsKey("pid")) server = new ServerFigures(options.get("pid"), admin, conf);
      startCoordinators();
      if (options.containsKey("stuck")) {
        for (BenchedTable table : tables) {
          if (table.keeper == BenchedTable.Keeper.TAMIS) stick(table);
        }
      } else {
        compareAll();
      }
      if (failed.get() > 0) throw new IllegalStateException(failed + " writers failed");
      System.out.println();
      for (BenchedTable table : tables) {
        if (table.keeper == BenchedTable.Keeper.TAMIS) verify(table);
      }
    } finally {
      for (CoordinatorProgram coordinator : coordinators) coordinator.close();
    }
  }

  private void verify(BenchedTable table) throws Exception {
    Cluster.RegionCheck check = new ServerCalls(connection, table.name, 1).check();
    if (check.getMissingEntries() + check.getForeignEntries() + check.getMissingInFilter() > 0) {
      throw new IllegalStateException("wrong: " + check);
    }
    System.out.print(table.label() + ": " + check.getEntries() + " entries of " + check.getRows() + " rows, right");
    for (CoordinatorProgram coordinator : coordinators) {
      System.out.print("; all rows found by " + table.verify(connection, coordinator) + " values");
    }
    System.out.println();
  }
}
