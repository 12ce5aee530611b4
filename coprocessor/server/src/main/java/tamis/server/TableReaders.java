package tamis.server;

import java.io.IOException;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.ipc.RpcServer;
import tamis.base.StatusException;
import tamis.region.IndexedRegion;
import tamis.region.Rights;

/**
 * Finds the tables whose filters a caller may receive: it must have the right to read all indexed columns, since the
 * bits of a filter tell of values. Results are cached for KEPT_NS. Threads: safe.
 */
final class TableReaders {
  private static final long KEPT_NS = TimeUnit.SECONDS.toNanos(5);
  private static final int MAX_USERS = 1000;

  private static final class Known {
    final long since = System.nanoTime();
    final Set<Integer> asked = new HashSet<>();
    final Set<Integer> allowed = new HashSet<>();
  }

  private final Map<String, Known> users = new HashMap<>();

  /** The ids of those tables of the regions whose indexed columns the caller of the present request may read. */
  Set<Integer> tablesOf(Collection<IndexedRegion> regions) {
    String user = RpcServer.getRequestUserName().orElse("");
    Known known;
    synchronized (this) {
      known = users.get(user);
      if (known == null || System.nanoTime() - known.since > KEPT_NS) {
        if (users.size() >= MAX_USERS) users.clear();
        known = new Known();
        users.put(user, known);
      }
    }
    synchronized (known) {
      for (IndexedRegion region : regions) {
        if (!known.asked.add(region.table.tableId)) continue;
        try {
          Rights.mayReadIndexed(region);
          known.allowed.add(region.table.tableId);
        } catch (IOException | StatusException e) {
          // left out
        }
      }
      return new HashSet<>(known.allowed);
    }
  }
}
