package tamis.feed;

import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import tamis.base.Fault;

/** The set bits that were reported to coordinators and are not acknowledged. Threads: exclusive access. */
final class PendingFlips {
  private static final class Flip {
    final long sequence;
    final long bit;

    Flip(long sequence, long bit) {
      this.sequence = sequence;
      this.bit = bit;
    }
  }

  private final Map<Long, Long> sequences = new HashMap<>(); // by bit, the number of the last event
  private final ArrayDeque<Flip> order = new ArrayDeque<>();

  void add(long bit, long sequence) {
    Fault.allocate();
    sequences.put(bit, sequence);
    order.add(new Flip(sequence, bit));
  }

  boolean isEmpty() {
    return sequences.isEmpty();
  }

  /** The number of the event that reported the bit; 0: there is none that is not acknowledged. */
  long toldAt(long bit) {
    Long sequence = sequences.get(bit);
    return sequence == null ? 0 : sequence;
  }

  /** Coordinators have applied all events up to this number. */
  void forgetUpTo(long sequence) {
    while (!order.isEmpty() && order.peek().sequence <= sequence) {
      Flip oldest = order.poll();
      sequences.remove(oldest.bit, oldest.sequence);
    }
  }

  void clear() {
    sequences.clear();
    order.clear();
  }
}
