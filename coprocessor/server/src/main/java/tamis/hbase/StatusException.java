package tamis.hbase;

import tamis.pb.Cluster;

/** What a request is answered with instead of what it asked for. */
final class StatusException extends Exception {
  final Cluster.Error.Code code;

  StatusException(Cluster.Error.Code code, String message) {
    super(message);
    this.code = code;
  }

  Cluster.Error error() {
    return Cluster.Error.newBuilder().setCode(code).setMessage(String.valueOf(getMessage())).build();
  }

  /** Of what went wrong in HBase. */
  static Cluster.Error errorOf(Throwable e) {
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
    }
    String message = e.getMessage() == null ? e.toString() : e.getMessage();
    return Cluster.Error.newBuilder().setCode(code).setMessage(message.length() > 1000 ? message.substring(0, 1000)
        : message).build();
  }
}
