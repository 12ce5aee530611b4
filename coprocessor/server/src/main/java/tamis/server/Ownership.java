package tamis.server;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.base.Fault;

/**
 * Until when this server may be believed to own its regions: W behind the beginning of its last proof. A proof is
 * something that whoever gives its regions away must come after; a session that has not run out is none.
 *
 * One thread proves, for all who ask: a log or a ZooKeeper that hangs holds that thread, and no handler for long.
 *
 * Times are System.nanoTime, which stands still while the machine sleeps. So the wall clock is compared with it: where
 * that has run ahead, nothing is believed before the next proof; nor where it was set back, which could hide a sleep.
 *
 * Threads: safe.
 */
final class Ownership {
  static final long TERM_NS = TimeUnit.MILLISECONDS.toNanos(1500); // W
  /** How long a region waits that was opened behind an owner who may still be believed: W by a clock that runs slow. */
  static final long OPENING_WAIT_NS = TERM_NS + TERM_NS * 3 / 100 + TimeUnit.MILLISECONDS.toNanos(10);
  /** How long a handler may wait for a proof. */
  static final long PATIENCE_NS = TERM_NS / 3;
  private static final long INTERVAL_NS = TimeUnit.MILLISECONDS.toNanos(300);
  private static final long JUMP_NS = TimeUnit.MILLISECONDS.toNanos(100);

  private static final Logger LOG = LoggerFactory.getLogger(Ownership.class);

  /** Something to prove it by. */
  interface Proof {
    /** Returns when it is done; else throws. */
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
  private boolean asked; // a proof that is not ahead of time
  private boolean proving;
  private long provingSince;
  private long attempts; // that have ended

  Ownership(Proof proof, long patienceNs) {
    this(proof, patienceNs, System::nanoTime, System::currentTimeMillis);
  }

  /** For tests: who asks waits as long as it takes. */
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

  /** A proof that began then has succeeded. */
  void proved(long began, long wallAheadNs) {
    synchronized (this) {
      if (proved == null || began - proved.at > 0) proved = new Proved(began, wallAheadNs);
    }
  }

  /** When the last proof ends, in nanoTime; a time that is over where there is none. */
  long verifiedUntil() {
    Proved last = proved;
    long now = nanoClock.getAsLong();
    boolean slept =
        last != null && Math.abs(wallAheadNs() - last.wallAheadNs) > JUMP_NS && !Fault.SLEEP_NOT_NOTICED.isOn();
    if (last == null || slept) return now - 1;
    return last.at + TERM_NS;
  }

  /** Whether a proof holds, or the next one to end does and does not take long. */
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

  /** Whether a proof succeeds that begins behind this call, and does not take long. */
  boolean proveAnew() {
    long from = nanoClock.getAsLong();
    try {
      for (int i = 0; i < 2; ++i) { // one may be under way
        if (!awaitProof()) return false;
        Proved last = proved;
        if (last != null && last.at - from >= 0) return holds();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return false;
  }

  /** False: it takes too long; counted from its beginning, so that few wait for one that hangs. */
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

  /** Somebody polls: proofs are made ahead for a while. */
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

  /** Until somebody asks for a proof, or one is due ahead of time. False: nobody wants any, and the thread ends. */
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
