package tamis.region;

import tamis.base.StatusException;
import tamis.pb.Cluster;

/** Why the indexes of a region could not be built or counted the last time. Threads: immutable. */
public final class BuildFailure {
  public final String reason;
  private final Cluster.BuildFailure message;

  private BuildFailure(String reason, Cluster.Error error, long attempts, boolean givenUp) {
    this.reason = reason;
    message = Cluster.BuildFailure.newBuilder().setError(error).setAttempts(attempts).setGivenUp(givenUp).build();
  }

  /** An attempt that failed; the work is tried again. `before`: the failure of the attempt before it, or null. */
  public static BuildFailure of(Throwable failed, BuildFailure before) {
    long attempts = before == null ? 0 : before.message.getAttempts();
    return new BuildFailure(failed.toString(), StatusException.errorOf(failed, false), attempts + 1, false);
  }

  /** A failure after which the work is not tried again while the region is open. */
  public static BuildFailure givenUp(Cluster.Error error) {
    return new BuildFailure(error.getMessage(), error, 1, true);
  }

  public boolean isGivenUp() {
    return message.getGivenUp();
  }

  /** The answer to a status request. Without `detail` it leaves out the reason, which may name keys of rows. */
  public Cluster.BuildFailure message(boolean detail) {
    if (detail) return message;
    String text = "the log of its server has the reason, which is told only to users who may read the table";
    return message.toBuilder().setError(StatusException.error(message.getError().getCode(), text)).build();
  }
}
