package tamis.search;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.BooleanSupplier;
import tamis.base.Closing;
import tamis.feed.IndexFilter;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.region.ReadView;
import tamis.table.Key;
import tamis.table.Schema;

/**
 * The index streams of one branch in one region, and which of them has the fewest entries; tamis::BranchStreams tells
 * how. Threads: exclusive access.
 */
final class BranchStreams implements AutoCloseable {
  /** How the choice is made. A value. */
  static final class Choice {
    /** Entries read of each stream, before it is asked what the files' indexes say of it. */
    long probeEntries = 256;
    /** False: the first stream drives, even if it costs more. */
    boolean byCost = true;
    /** False: no stream is looked into but the driving one. */
    boolean join = true;
  }

  /** One of them. */
  static final class Stream {
    final Cluster.IndexStream plan;
    final Schema.Index index;
    final IndexFilter filter; // may be null
    final boolean mayLead;
    final byte[] start; // the start of the row keys that are still to come
    final byte[] end;
    final byte[] last; // the last entry that is done, in the order of a stream that is no equality
    final boolean descending; // its entries are read in the reverse order
    final SearchCounts read = new SearchCounts();
    long size = UNKNOWN; // entries to come, as they were known first
    boolean exact; // the size: bounded by the filter, or counted
    long probed; // entries read ahead to find it out
    long expected; // for the driving stream: `size` when it was chosen
    KeyStream byKey; // once opened, of an equality
    EntryStream byEntry; // once opened, of others
    EntryRows rows; // not null: its entries give the rows of the branch
    EntryGroups groups; // not null: rows are counted by the values of its entries
    long rowsIn; // the number of rows looked at that have an entry in this stream
    boolean led;
    boolean joined;

    Stream(Cluster.IndexStream plan, Schema.Index index, IndexFilter filter, boolean mayLead, byte[] start, byte[] end,
        byte[] last, boolean descending) {
      this.plan = plan;
      this.index = index;
      this.filter = filter;
      this.mayLead = mayLead;
      this.start = start;
      this.end = end;
      this.last = last;
      this.descending = descending;
    }

    boolean equality() {
      return plan.getEquality();
    }

    /** Whether it is all entries of the index, which serve a search only if they give the rows. */
    boolean isWhole() {
      return plan.getRangesCount() == 1 && plan.getRanges(0).getLow().isEmpty()
          && plan.getRanges(0).getHigh().isEmpty();
    }

    private boolean readAhead(long n, BooleanSupplier timeIsOver) throws IOException {
      return equality() ? byKey.readAhead(n, timeIsOver) : byEntry.readAhead(n, timeIsOver);
    }

    private long ahead() {
      return byKey != null ? byKey.ahead() : byEntry != null ? byEntry.ahead() : 0;
    }

    /** To begin its ranges after the first, in entries. */
    long openingCost() {
      return SEEK_COST * Math.max(plan.getRangesCount() - 1, 0);
    }

    /**
     * The number of entries of others that are read before it is opened. With their rows they cost twice as much as
     * opening it, so little is lost when it is the longer one.
     */
    private long handicap() {
      return openingCost() / 4;
    }

    private long cost() {
      return size + handicap();
    }
  }

  private static final long UNKNOWN = -1;
  private static final long SEEK_COST = 8; // a seek costs as much as reading so many entries
  private static final long STEP = 4; // entries read ahead of each stream in turn
  private static final int MAX_ESTIMATED_RANGES = 64; // ranges of one stream; more are taken to be like these

  private final ReadView view;
  private final IndexedRegion region;
  private final Choice choice;
  private final BooleanSupplier timeIsOver; // then no more is read to find something out
  private final List<Stream> streams = new ArrayList<>();

  BranchStreams(ReadView view, IndexedRegion region, Choice choice, BooleanSupplier timeIsOver) {
    this.view = view;
    this.region = region;
    this.choice = choice;
    this.timeIsOver = timeIsOver;
  }

  void add(Stream stream) {
    streams.add(stream);
  }

  List<Stream> all() {
    return streams;
  }

  void open(Stream stream) {
    if (stream.byKey != null || stream.byEntry != null) return;
    byte[] prefix = region.keys.index(stream.index.id);
    if (stream.equality()) {
      stream.byKey = new KeyStream(view, prefix, stream.plan, stream.start, stream.end, stream.read);
    } else {
      stream.byEntry = new EntryStream(view, prefix, stream.plan, stream.last, stream.descending, stream.read);
    }
  }

  private boolean readAhead(Stream stream, long n) throws IOException {
    open(stream);
    return stream.readAhead(n, timeIsOver);
  }

  /** By the counters alone. */
  private static void noteBound(Stream stream) {
    stream.size = UNKNOWN;
    stream.exact = false;
    if (!stream.equality() || stream.filter == null) return;
    long sum = 0;
    for (Cluster.IndexRange range : stream.plan.getRangesList()) {
      long bound = stream.filter.countBound(range.getLow().toByteArray());
      if (bound < 0) return;
      sum += bound;
    }
    stream.size = sum;
    stream.exact = true;
  }

  private CellEstimate estimateOf(Stream stream) {
    byte[] prefix = region.keys.index(stream.index.id);
    List<CellEstimate.Rows> ranges = new ArrayList<>();
    for (Cluster.IndexRange range : stream.plan.getRangesList()) {
      if (ranges.size() == MAX_ESTIMATED_RANGES) break;
      byte[] low = range.getLow().toByteArray();
      byte[] high = range.getHigh().toByteArray();
      if (stream.descending && stream.last.length > 0) {
        if (high.length == 0 || Key.compare(stream.last, high) < 0) high = stream.last;
        if (Key.compare(low, high) > 0) low = high;
      } else if (Key.compare(low, stream.last) < 0) {
        low = stream.last;
      }
      byte[] end = high.length == 0 ? Key.prefixEnd(prefix) : Key.concat(prefix, high);
      ranges.add(new CellEstimate.Rows(Key.concat(prefix, low), end));
    }
    double taken = Math.max(1, ranges.size());
    long entries = stream.filter == null || !stream.filter.isPublished() ? Long.MAX_VALUE : stream.filter.entries();
    return CellEstimate.of(region.region, IndexedTable.FAMILY, ranges)
        .times(stream.plan.getRangesCount() / taken, entries);
  }

  /** Entries to come; exact up to `probe`, which are read ahead for that. */
  long sizeOf(Stream stream, long probe) throws IOException {
    if (stream.size == UNKNOWN) noteBound(stream);
    if (stream.exact || (stream.size != UNKNOWN && probe <= stream.probed)) return stream.size;
    long likely = 0;
    probe(stream, Math.min(probe, choice.probeEntries));
    if (!stream.exact) {
      CellEstimate estimate = estimateOf(stream);
      likely = estimate.likely;
      if (estimate.least <= probe && probe <= estimate.most) probe(stream, probe);
    }
    stream.size = stream.exact ? stream.ahead() : Math.max(stream.ahead() + 1, likely);
    return stream.size;
  }

  private void probe(Stream stream, long n) throws IOException {
    stream.probed = Math.max(stream.probed, n);
    stream.exact = readAhead(stream, stream.probed);
  }

  /**
   * Chooses and opens the driving stream: of the streams that may drive, that of index `prefer` if it is among them,
   * else the one that costs least. Null if none may. Reads at most `probe` entries of each ahead.
   */
  Stream lead(int prefer, long probe) throws IOException {
    Stream driving = null;
    int choices = 0;
    for (Stream stream : streams) {
      if (!stream.mayLead) continue;
      ++choices;
      if (driving == null || stream.index.id == prefer) driving = stream;
    }
    boolean preferred = driving != null && driving.index.id == prefer;
    if (choices > 1 && !preferred && choice.byCost) driving = smallest(probe);
    if (driving == null) return null;
    if (!preferred && driving.size == UNKNOWN) noteBound(driving);
    open(driving);
    return driving;
  }

  private Stream smallest(long probe) throws IOException {
    Stream least = null; // the least stream whose size is known
    List<Stream> open = new ArrayList<>();
    for (Stream stream : streams) {
      if (!stream.mayLead) continue;
      noteBound(stream);
      if (stream.exact) least = lesser(least, stream);
      else open.add(stream);
    }
    boolean estimated = false;
    for (long n = STEP; !open.isEmpty() && n < probe; n += Math.max(STEP, n / 8)) {
      if (least != null && least.cost() < n) return least;
      if (n > choice.probeEntries && !estimated) {
        estimated = true;
        List<Stream> all = new ArrayList<>(open);
        leaveOutLarger(probe, open);
        if (open.isEmpty() && least == null) {
          for (Stream stream : all) least = lesser(least, stream);
          return least;
        }
        if (open.size() == 1 && least == null) break;
      }
      for (Iterator<Stream> it = open.iterator(); it.hasNext();) {
        Stream stream = it.next();
        if (n <= stream.handicap()) continue;
        probe(stream, n - stream.handicap());
        if (!stream.exact) continue;
        stream.size = stream.ahead();
        least = lesser(least, stream);
        it.remove();
      }
      // Streams that are already open cost more than n.
      if (least != null && least.cost() <= n) return least;
    }
    if (open.size() == 1 && least == null) return open.get(0);
    for (Stream stream : open) {
      long most = Math.max(0, probe - stream.handicap());
      sizeOf(stream, Math.max(stream.probed, most));
      least = lesser(least, stream);
    }
    return least;
  }

  private static Stream lesser(Stream least, Stream stream) {
    return least == null || stream.cost() < least.cost() ? stream : least;
  }

  /** Leaves out streams that have more entries than another has at most, or more than may be read to find that out. */
  private void leaveOutLarger(long probe, List<Stream> open) {
    long most = probe;
    List<CellEstimate> estimates = new ArrayList<>();
    for (Stream stream : open) {
      CellEstimate estimate = estimateOf(stream);
      estimates.add(estimate);
      most = Math.min(most, estimate.most);
      stream.size = Math.max(stream.ahead() + 1, estimate.likely);
    }
    int i = 0;
    for (Iterator<Stream> it = open.iterator(); it.hasNext(); ++i) {
      it.next();
      if (estimates.get(i).least > most) it.remove();
    }
  }

  /** Whether the entry, encoded values and row key, lies in the ranges of the stream. */
  static boolean isIn(Cluster.IndexStream stream, byte[] entry) {
    for (Cluster.IndexRange range : stream.getRangesList()) {
      byte[] high = range.getHigh().toByteArray();
      boolean below = high.length == 0 || Key.compare(entry, high) < 0;
      if (below && Key.compare(entry, range.getLow().toByteArray()) >= 0) return true;
    }
    return false;
  }

  @Override
  public void close() throws IOException {
    List<Closeable> opened = new ArrayList<>();
    for (Stream stream : streams) opened.add(stream.equality() ? stream.byKey : stream.byEntry);
    Closing.all(opened);
  }
}
