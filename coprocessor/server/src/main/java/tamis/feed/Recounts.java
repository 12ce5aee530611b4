package tamis.feed;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import tamis.base.Backoff;

/**
 * When the filters of one region may be counted anew: one time after the other, later and later where that fails, and
 * with a rest behind it that is several times as long, whatever is removed meanwhile. Threads: safe.
 */
public final class Recounts {
  private static final Backoff FAILED = new Backoff(TimeUnit.SECONDS.toNanos(1), TimeUnit.MINUTES.toNanos(4));
  private static final int RESTS = 9; // as often as it takes: a tenth of a thread's time

  private final AtomicBoolean underWay = new AtomicBoolean();
  private final AtomicBoolean putOff = new AtomicBoolean();
  private volatile int failures; // one after the other
  private volatile long mayBeginAt;
  private volatile long doneAt;
  private volatile long restNs;

  /** A job that counts is under way, or waits for its turn. */
  public boolean isUnderWay() {
    return underWay.get();
  }

  public int failures() {
    return failures;
  }

  /** False: it may not begin now. Otherwise the caller calls `end`. A read that failed would hardly succeed at once. */
  public boolean begin(long now) {
    if (failures > 0 && now - mayBeginAt < 0) return false;
    return underWay.compareAndSet(false, true);
  }

  public void end() {
    underWay.set(false);
  }

  /** A worn filter waits; a missing one does not. */
  public boolean rests(long now) {
    return restNs > 0 && now - doneAt < restNs;
  }

  public void failed(long now) {
    mayBeginAt = now + FAILED.after(failures);
    ++failures;
  }

  public void done(long began, long now) {
    failures = 0;
    doneAt = now;
    restNs = RESTS * (now - began);
  }

  /** The job that makes the region's entries looks at its filters afterwards. */
  public void putOff() {
    putOff.set(true);
  }

  /** It was; from here on it is not any more. */
  public boolean takePutOff() {
    return putOff.getAndSet(false);
  }
}
