package tamis.server;

import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import tamis.feed.FeedOptions;

/** One life of a region server, as HBase runs it. A value; tests make others. */
public final class ServerLife {
  String name = ""; // host and port
  long startCode;
  FeedOptions feed; // null: no server is around, nothing is reported
  /** Null: no proof is required, and no flag. */
  Ownership ownership;
  /** Openings of regions raise flags in their directories. */
  boolean raisesFlags;
  /** HBase checks rights. */
  boolean secured;
  long maxFilterBytes = RegionFilters.MAX_BYTES;
  /** From a removal until its index is looked at for what has become empty. */
  long clearDelayNs = TimeUnit.SECONDS.toNanos(1);
  BooleanSupplier aborts = () -> false;
  /** It stops or aborts. */
  BooleanSupplier ending = () -> false;
}
