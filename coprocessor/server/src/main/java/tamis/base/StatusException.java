package tamis.base;

import tamis.pb.Cluster;

/** The answer to a request that cannot be carried out. */
public final class StatusException extends Exception {
  public final Cluster.Error.Code code;

  public StatusException(Cluster.Error.Code code, String message) {
    super(message);
    this.code = code;
  }

  public Cluster.Error error() {
    return error(code, String.valueOf(getMessage()));
  }

  public static Cluster.Error error(Cluster.Error.Code code, String message) {
    return Cluster.Error.newBuilder().setCode(code).setMessage(message).build();
  }

  /**
   * The error for a failure in HBase. While a region closes or its server stops (`leaving`), HBase closes the streams
   * that calls still read from: a failure then proves nothing about the request, and the region will be elsewhere.
   */
  public static Cluster.Error errorOf(Throwable e, boolean leaving) {
    if (leaving && provesNothing(e)) {
      return error(Cluster.Error.Code.UNAVAILABLE, shortened("the region closes or its server stops: " + e));
    }
    Cluster.Error.Code code = Cluster.Error.Code.INTERNAL;
    if (e instanceof StatusException) {
      code = ((StatusException) e).code;
    } else if (e instanceof org.apache.hadoop.hbase.RegionTooBusyException) {
      code = Cluster.Error.Code.BUSY;
    } else if (e instanceof org.apache.hadoop.hbase.security.AccessDeniedException) {
      code = Cluster.Error.Code.FAILED_PRECONDITION;
    } else if (e instanceof org.apache.hadoop.hbase.NotServingRegionException
        || e instanceof org.apache.hadoop.hbase.exceptions.RegionMovedException) {
      code = Cluster.Error.Code.UNAVAILABLE;
    } else if (e instanceof org.apache.hadoop.hbase.DoNotRetryIOException) {
      code = Cluster.Error.Code.INVALID_ARGUMENT;
    } else if (e instanceof java.io.IOException) {
      code = Cluster.Error.Code.UNAVAILABLE;
    } else if (e instanceof tamis.table.DamagedBytesException) {
      code = Cluster.Error.Code.INVALID_ARGUMENT;
    } else if (e instanceof InterruptedException) { // HBase interrupts calls that hold a region's closing up
      code = Cluster.Error.Code.UNAVAILABLE;
    } else if (e instanceof OutOfMemoryError) {
      code = Cluster.Error.Code.RESOURCE_EXHAUSTED;
    }
    boolean tellsMore = code == Cluster.Error.Code.INTERNAL || e.getMessage() == null; // a bare text names nothing
    return error(code, shortened(tellsMore ? e.toString() : e.getMessage()));
  }

  /**
   * Whether the exception may come from the server's state alone: it is unchecked, or a DoNotRetryIOException that
   * HBase made of an unchecked one that a hook threw.
   */
  public static boolean provesNothing(Throwable e) {
    if (e instanceof RuntimeException || e instanceof Error || e instanceof InterruptedException) return true;
    return e instanceof org.apache.hadoop.hbase.DoNotRetryIOException && e.getCause() != null && e.getCause() != e
        && provesNothing(e.getCause());
  }

  private static String shortened(String message) {
    return message.length() > 1000 ? message.substring(0, 1000) : message;
  }
}
