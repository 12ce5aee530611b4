package tamis.server;

import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The threads for a server's work on its regions, one pool for each kind of work, so that short work never waits after
 * long work. Threads: safe.
 */
final class Workers {
  /** Runs a step once so much time has passed. */
  interface Timer {
    void run(Runnable step, long afterNs);
  }

  private static final int THREADS = 2; // threads of each kind

  /** For steps that neither wait nor read a region. */
  final Timer steps;
  /** For what waits for a file system or a proof, a moment. */
  final Executor waits;
  /** For reads of a region's entries. */
  final Executor counts;
  /** For looks at some of a region's entries. */
  final Executor clears;
  /** For reads and writes of whole regions. */
  final Executor builds;

  Workers(Timer steps, Executor waits, Executor counts, Executor clears, Executor builds) {
    this.steps = steps;
    this.waits = waits;
    this.counts = counts;
    this.clears = clears;
    this.builds = builds;
  }

  static Workers threads() {
    ScheduledThreadPoolExecutor steps = new ScheduledThreadPoolExecutor(THREADS, named("tamis-region-steps"));
    return new Workers((step, afterNs)
                           -> steps.schedule(step, afterNs, TimeUnit.NANOSECONDS),
        pool("tamis-region-flags"), pool("tamis-filter-counter"), pool("tamis-filter-clearer"),
        pool("tamis-index-builder"));
  }

  private static Executor pool(String name) {
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(THREADS, THREADS, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), named(name));
    pool.allowCoreThreadTimeOut(true);
    return pool;
  }

  private static ThreadFactory named(String name) {
    return work -> {
      Thread thread = new Thread(work, name);
      thread.setDaemon(true);
      return thread;
    };
  }
}
