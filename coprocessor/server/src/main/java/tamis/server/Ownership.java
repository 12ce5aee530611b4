package tamis.server;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.base.Fault;

/**
 * The time until which this server may act as the owner of its regions: W (TERM_NS) after the beginning of its last
 * proof. A proof is an action that succeeds only if the master has not begun to give the server's regions to others. A
 * ZooKeeper session that has not expired is no proof.
 *
 * One thread makes the proofs for all callers: a log or a ZooKeeper that hangs blocks that thread, and no handler for
 * longer than PATIENCE_NS.
 *
 * Times are System.nanoTime, which stops while the machine sleeps. So it is compared with the wall clock: after the
 * wall clock has moved against it by more than JUMP_NS, in either direction, no earlier proof counts.
 *
 * Threads: safe.
 */
final class Ownership {
  static final long TERM_NS = TimeUnit.MILLISECONDS.toNanos(1500); // W
  /** How long a region waits if coordinators may still believe in a former owner: W by a clock that runs 3 % slow. */
  static final long OPENING_WAIT_NS = TERM_NS + TERM_NS * 3 / 100 + TimeUnit.MILLISECONDS.toNanos(10);
  /** How long a handler may wait for a proof. */
  static final long PATIENCE_NS = TERM_NS / 3;
  private static final long INTERVAL_NS = TimeUnit.MILLISECONDS.toNanos(300);
  private static final long JUMP_NS = TimeUnit.MILLISECONDS.toNanos(100);

  private static final Logger LOG = LoggerFactory.getLogger(Ownership.class);

  /** A way to prove the ownership. */
  interface Proof {
    /** Returns if the server owned its regions when the call began; else throws. */
    void prove() throws Exception;
  }

  private static final class Proved {
    final long at;
    final long wallAheadNs;

    Proved(long at, long wallAheadNs) {
      this.at = at;
      this.wallAheadNs = wallAheadNs;
    }
  }

  private final Proof proof;
  private final AtomicLong wantedAt = new AtomicLong(System.nanoTime() - TimeUnit.HOURS.toNanos(1));
  private volatile Proved proved;
  private final LongSupplier nanoClock;
  private final LongSupplier wallClockMs;
  private final long patienceNs;
  private Thread prover;
  private boolean asked; // a caller waits for a proof that has not begun
  private boolean proving;
  private long provingSince;
  private long attempts; // that have ended

  Ownership(Proof proof, long patienceNs) {
    this(proof, patienceNs, System::nanoTime, System::currentTimeMillis);
  }

  /** For tests: callers wait for a proof without a limit. */
  Ownership(Proof proof) {
    this(proof, Long.MAX_VALUE);
  }

  Ownership(Proof proof, LongSupplier nanoClock, LongSupplier wallClockMs) {
    this(proof, Long.MAX_VALUE, nanoClock, wallClockMs);
  }

  private Ownership(Proof proof, long patienceNs, LongSupplier nanoClock, LongSupplier wallClockMs) {
    this.proof = proof;
    this.patienceNs = patienceNs;
    this.nanoClock = nanoClock;
    this.wallClockMs = wallClockMs;
  }

  private long wallAheadNs() {
    return TimeUnit.MILLISECONDS.toNanos(wallClockMs.getAsLong()) - nanoClock.getAsLong();
  }

  /** Notes that a proof that began at `began` has succeeded. */
  void proved(long began, long wallAheadNs) {
    synchronized (this) {
      if (proved == null || began - proved.at > 0) proved = new Proved(began, wallAheadNs);
    }
  }

  /** Until when the last proof holds, in nanoTime; a time in the past if no proof counts. */
  long verifiedUntil() {
    Proved last = proved;
    long now = nanoClock.getAsLong();
    boolean slept =
        last != null && Math.abs(wallAheadNs() - last.wallAheadNs) > JUMP_NS && !Fault.SLEEP_NOT_NOTICED.isOn();
    if (last == null || slept) return now - 1;
    return last.at + TERM_NS;
  }

  /** Whether a proof holds now; if none does, waits for the next one, for PATIENCE_NS at most. */
  boolean ensure() {
    if (holds()) return true;
    try {
      return awaitProof() && holds();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private boolean holds() {
    return verifiedUntil() - nanoClock.getAsLong() > 0;
  }

  /** Whether a proof that begins after this call succeeds; waits for it like `ensure`. */
  boolean proveAnew() {
    long from = nanoClock.getAsLong();
    try {
      for (int i = 0; i < 2; ++i) { // the first one may have begun before this call
        if (!awaitProof()) return false;
        Proved last = proved;
        if (last != null && last.at - from >= 0) return holds();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return false;
  }

  /**
   * Waits until the present or the next attempt has ended. False: it takes too long, counted from the beginning of the
   * attempt, so that further callers do not wait for an attempt that hangs.
   */
  private synchronized boolean awaitProof() throws InterruptedException {
    long since = proving ? provingSince : System.nanoTime();
    asked |= !proving;
    startProver();
    notifyAll();
    for (long before = attempts; attempts == before;) {
      long left = patienceNs - (System.nanoTime() - since);
      if (left <= 0) return false;
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return true;
  }

  private void proveNow() {
    long began = nanoClock.getAsLong();
    long ahead = wallAheadNs();
    try {
      proof.prove();
      proved(Fault.PROOF_AS_OF_ITS_END.isOn() ? nanoClock.getAsLong() : began, ahead);
    } catch (Throwable e) {
      LOG.warn("Cannot prove that this server owns its regions: {}", e.toString());
    }
  }

  /** To be called when a coordinator polls: for the next 10 s, proofs are made before they are asked for. */
  void want() {
    wantedAt.set(System.nanoTime());
    startProver();
  }

  private synchronized void startProver() {
    if (prover != null && prover.isAlive()) return;
    prover = new Thread(this::proveOn, "tamis-ownership");
    prover.setDaemon(true);
    prover.start();
  }

  private void proveOn() {
    try {
      while (awaitTurn()) {
        proveNow();
        synchronized (this) {
          proving = false;
          ++attempts;
          notifyAll();
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Waits until a caller asks for a proof, or one is due ahead of time. False: no coordinator has polled lately, and
   * the thread ends.
   */
  private synchronized boolean awaitTurn() throws InterruptedException {
    do {
      if (!asked) TimeUnit.NANOSECONDS.timedWait(this, INTERVAL_NS / 2);
      boolean wanted = System.nanoTime() - wantedAt.get() < TimeUnit.SECONDS.toNanos(10);
      if (!asked && !wanted) {
        prover = null;
        return false;
      }
    } while (!asked && proved != null && nanoClock.getAsLong() - proved.at <= INTERVAL_NS);
    asked = false;
    proving = true;
    provingSince = System.nanoTime();
    return true;
  }
}
