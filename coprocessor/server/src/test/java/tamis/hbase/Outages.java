package tamis.hbase;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/**
 * Outages of a cluster of three servers, one at a time, each as often as the others. The cluster needs --hdfs and
 * --cuts. Threads: one.
 */
final class Outages {
  private static final int SERVERS = 3;
  private static final int WITHIN_SESSION = 3; // seconds; a session lasts 6
  private static final int BEYOND_SESSION = 9;
  private static final int MUST_END = 40;
  private static final int MAY_END = 6;

  private static final class Outage {
    final String[] begin;
    final int seconds;
    final String[] end;
    final String ends; // a server that ends by itself when it hears that it was taken for dead; null: none
    final int patience; // with it

    Outage(String begin, int seconds, String end, String ends, int patience) {
      this.begin = begin.split(" ");
      this.seconds = seconds;
      this.end = end.split(" ");
      this.ends = ends;
      this.patience = patience;
    }
  }

  private final LocalCluster cluster;
  private final Random random;
  private final List<Outage> left = new ArrayList<>();

  Outages(LocalCluster cluster, Random random) {
    this.cluster = cluster;
    this.random = random;
  }

  private void shuffle() {
    for (int i = 1; i <= SERVERS; ++i) {
      String role = "rs" + i;
      left.add(new Outage("kill " + role, 1, "start", null, 0));
      left.add(new Outage("pause " + role, WITHIN_SESSION, "resume " + role, null, 0));
      left.add(new Outage("pause " + role, BEYOND_SESSION, "resume " + role, role, MUST_END));
      left.add(new Outage("cut master " + role, BEYOND_SESSION, "heal", role, MAY_END));
      left.add(new Outage("cut master " + role + " --silent", BEYOND_SESSION, "heal", role, MAY_END));
      left.add(new Outage("cut " + role + " zk", WITHIN_SESSION, "heal", null, 0));
      left.add(new Outage("cut " + role + " zk", BEYOND_SESSION, "heal", role, MUST_END));
    }
    left.add(new Outage("kill master", WITHIN_SESSION, "start", null, 0));
    left.add(new Outage("kill zk", WITHIN_SESSION, "start", null, 0));
    Collections.shuffle(left, random);
  }

  /** Returns when all servers run, and none that does not know that it has lost its regions. */
  void next() throws Exception {
    if (left.isEmpty()) shuffle();
    Outage outage = left.remove(left.size() - 1);
    System.out.println(String.join(" ", outage.begin) + ", " + outage.seconds + " s");
    if (!cluster.tries(outage.begin)) { // it has ended by itself
      cluster.run("start");
      return;
    }
    TimeUnit.SECONDS.sleep(outage.seconds);
    cluster.tries(outage.end);
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(outage.patience);
    while (outage.ends != null && !cluster.stateOf(outage.ends).equals("down") && System.nanoTime() - until < 0) {
      Thread.sleep(300);
    }
    cluster.run("start");
  }
}
