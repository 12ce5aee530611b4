package tamis.feed;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import tamis.base.Backoff;

/**
 * Decides when the filters of one region may be counted again: one recount at a time, after growing pauses if it fails,
 * and otherwise not before a rest of RESTS times the duration of the last recount. Threads: safe.
 */
public final class Recounts {
  private static final Backoff FAILED = new Backoff(TimeUnit.SECONDS.toNanos(1), TimeUnit.MINUTES.toNanos(4));
  private static final int RESTS = 9; // so that recounts take at most a tenth of one thread's time

  private final AtomicBoolean underWay = new AtomicBoolean();
  private final AtomicBoolean putOff = new AtomicBoolean();
  private volatile int failures; // since the last success
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

  /** Whether a recount may begin now: none is under way, nor the pause after a failure. If true, call `end` later. */
  public boolean begin(long now) {
    if (failures > 0 && now - mayBeginAt < 0) return false;
    return underWay.compareAndSet(false, true);
  }

  public void end() {
    underWay.set(false);
  }

  /** True during the rest: then a filter that does not fit waits; a missing one does not. */
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

  /** Asks the job that makes the region's entries now to look at its filters afterwards. */
  public void putOff() {
    putOff.set(true);
  }

  /** Whether `putOff` was called since the last call. */
  public boolean takePutOff() {
    return putOff.getAndSet(false);
  }
}
