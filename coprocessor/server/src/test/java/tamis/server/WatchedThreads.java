package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** The threads that a test starts; an exception in one of them fails the test. */
final class WatchedThreads {
  interface Work {
    void run() throws Exception;
  }

  private final List<Thread> threads = new ArrayList<>();
  private final List<Throwable> failed = Collections.synchronizedList(new ArrayList<>());

  Thread start(Work work) {
    Thread thread = new Thread(() -> {
      try {
        work.run();
      } catch (Throwable e) {
        failed.add(e);
      }
    });
    threads.add(thread);
    thread.start();
    return thread;
  }

  /** Waits for the end of all, in the order in which they were started. */
  void join() throws InterruptedException {
    for (Thread thread : threads) thread.join();
    assertEquals(Collections.emptyList(), failed);
  }
}
