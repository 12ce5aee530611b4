package tamis.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.RegionTooBusyException;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessorEnvironment;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import org.apache.hadoop.hbase.regionserver.RegionServerServices;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.pb.Cluster;
import tamis.shaded.protobuf.ByteString;
import tamis.shaded.protobuf.InvalidProtocolBufferException;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;

/**
 * What all observers of a server share: the regions of indexed tables that are open here, and the answers to requests
 * for them. One a process, as long as the jar is on the class path. Threads: safe.
 */
final class RegionServerState implements Endpoint.Requests {
  static final RegionServerState INSTANCE = new RegionServerState();

  private static final Logger LOG = LoggerFactory.getLogger(RegionServerState.class);
  private static final long SEARCH_TIMEOUT_NS = TimeUnit.SECONDS.toNanos(10);
  private static final int BUILDERS = 2;

  private static final long WRITE_WAIT_NS = TimeUnit.SECONDS.toNanos(8); // below the 10 s after which a close interrupts
  private static final long LEASES_WAIT_NS = TimeUnit.MILLISECONDS.toNanos(1500); // a lease, and a little
  private static final long REBUILD_AFTER_IGNORED = 1000; // removals that a filter could not follow
  static final long MAX_FILTER_BYTES = Runtime.getRuntime().maxMemory() / 10;

  private volatile FilterFeed feed; // null: no server is around
  private volatile Ownership ownership;
  private volatile boolean secured;
  private volatile RegionLife life;
  private final Map<Long, IndexedRegion> regions = new ConcurrentHashMap<>();
  private final ExecutorService builders;
  private final RegionJobs jobs = new RegionJobs(this::work);
  private final TableReaders readers = new TableReaders();
  final RegionServerMetrics metrics = new RegionServerMetrics(this);

  private RegionServerState() {
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(BUILDERS, BUILDERS, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), work -> {
          Thread thread = new Thread(work, "tamis-index-builder");
          thread.setDaemon(true);
          return thread;
        });
    pool.allowCoreThreadTimeOut(true);
    builders = pool;
  }

  // ---- Regions

  /** Once the server is known: the feed of this life of it. */
  synchronized void start(RegionCoprocessorEnvironment environment) {
    if (feed != null || environment.getOnlineRegions() == null) return;
    ServerName name = environment.getServerName();
    String faults = environment.getConfiguration().get(Fault.SETTING, "");
    if (!faults.isEmpty()) {
      LOG.warn("{} = {}: ROWS WILL BE MISSED. This is for tests only", Fault.SETTING, faults);
      Fault.only(faults);
    }
    FeedOptions options = new FeedOptions();
    options.maxWaiting = Math.max(1, environment.getConfiguration().getInt("hbase.regionserver.handler.count", 30) / 2);
    secured = environment.getConfiguration().getBoolean("hbase.security.authorization", false);
    RegionServerServices server = (RegionServerServices) environment.getOnlineRegions();
    ownership = new Ownership(proofFor(server, environment));
    FilterFeed made = new FilterFeed(name.getHostname() + "," + name.getPort(), name.getStartcode(), options, System::nanoTime,
        this::project);
    life = new RegionLife(made, System::nanoTime, server::isAborted);
    feed = made;
    metrics.register();
  }

  /** By the log where its file system lets one owner write it, else by ZooKeeper. */
  private Ownership.Proof proofFor(RegionServerServices server, RegionCoprocessorEnvironment environment) {
    boolean leases = false;
    try {
      leases = WalProof.hasLeases(environment.getConfiguration());
    } catch (IOException e) {
      LOG.warn("Cannot see where the logs lie", e);
    }
    leases &= !Fault.PROOF_WITHOUT_FENCE.isOn();
    LOG.info("Ownership of regions is proved by {}", leases ? "the log" : "ZooKeeper");
    if (!leases) return new ZooKeeperProof(server);
    return new WalProof(() -> new ArrayList<>(regions.values()));
  }

  /** A feed without a server around it: nothing is proved, no flag is raised. */
  FilterFeed startForTest(FeedOptions options) {
    feed = options == null ? null : new FilterFeed("test", 7, options, System::nanoTime, this::project);
    return feed;
  }

  void openForTest(IndexedRegion region) throws IOException, InterruptedException {
    regions.put(region.id, region);
    tellOpened(region);
    complete(region);
    countForTest(region);
  }

  void closeForTest(IndexedRegion region) {
    regions.remove(region.id, region);
  }

  void countForTest(IndexedRegion region) throws IOException, InterruptedException {
    for (Schema.Index index : region.table.schema.indexes) count(region, index);
  }

  private Cluster.Projection project(Cluster.ColumnId column, long maxBytes) {
    IndexedRegion region = regions.get(column.getRegionId());
    IndexFilter filter = region == null || region.closing ? null : region.filters.get(column.getIndexId());
    return filter == null ? null : filter.project(column, maxBytes);
  }

  /** In postOpen: nothing is written to the region, nothing is told yet. */
  void opened(IndexedRegion region) {
    if (region.server.isEmpty()) return; // no server around it: nobody asks for it
    if (life != null) life.opened(region);
    if (regions.putIfAbsent(region.id, region) != null) {
      LOG.error("Region {} has the id of another one here: it is neither searched nor told of",
          region.info().getEncodedName());
      return;
    }
    builders.execute(() -> completeWhenOnline(region));
  }

  void closing(IndexedRegion region) throws InterruptedException {
    if (life != null) life.closing(region);
  }

  void closed(IndexedRegion region, boolean inOrder) {
    if (region.isClosed()) return;
    region.setClosed();
    regions.remove(region.id, region);
    if (life != null) life.closed(region, inOrder);
  }

  /** Nothing is written before the region is online: its log has no opening yet. */
  private void completeWhenOnline(IndexedRegion region) {
    try {
      while (!region.isOnline()) {
        if (region.isClosed()) return;
        Thread.sleep(20);
      }
      tellOpened(region);
      if (life != null) life.settle(region);
      completeAndCount(region);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (Throwable e) {
      if (!region.isClosed()) {
        LOG.error("The indexes of region {} stay incomplete; searches scan it", region.info().getEncodedName(), e);
      }
    }
  }

  /** What has its entries is counted before the others get theirs. */
  private void completeAndCount(IndexedRegion region) throws IOException, InterruptedException {
    Set<Integer> counted = new HashSet<>();
    if (region.hasEntries) {
      long files = region.filesSince();
      setComplete(region, IndexBuilder.markedComplete(region), files);
      for (Schema.Index index : region.table.schema.indexes) {
        if (!region.complete().contains(index.id)) continue;
        count(region, index);
        counted.add(index.id);
      }
    }
    complete(region);
    for (Schema.Index index : region.table.schema.indexes) {
      if (!counted.contains(index.id)) count(region, index);
    }
  }

  /** Completes what is not complete. */
  static void complete(IndexedRegion region) throws IOException {
    if (!region.hasEntries) return;
    region.building.lock();
    try {
      long files = region.filesSince();
      Set<Integer> complete = IndexBuilder.markedComplete(region);
      setComplete(region, complete, files); // those that have been built need not wait for the others
      Set<Integer> missing = new HashSet<>(region.indexIds());
      missing.removeAll(complete);
      if (!missing.isEmpty() && !build(region, missing)) return;
      complete.addAll(missing);
      setComplete(region, complete, files);
    } finally {
      region.building.unlock();
    }
  }

  /** Nothing where files were loaded since: whoever loaded them has the indexes built anew. */
  private static void setComplete(IndexedRegion region, Set<Integer> indexes, long files) throws IOException {
    synchronized (region.marking) {
      if (files < 0 || region.filesSince() != files) return;
      IndexBuilder.mark(region, indexes);
      region.setComplete(indexes);
    }
  }

  private static boolean build(IndexedRegion region, Set<Integer> indexes) throws IOException {
    return IndexBuilder.build(region, indexes, rows -> {
      region.rowsVisited = rows;
      return !region.isGoing();
    });
  }

  /** Entries and filters of the indexes (0: all) agree with the rows at the end, for coordinators too. False: it closes. */
  boolean rebuild(IndexedRegion region, int indexId, IndexBuilder.Progress progress)
      throws IOException, InterruptedException {
    Set<Integer> indexes = new HashSet<>(region.indexIds());
    if (indexId != 0) indexes.retainAll(java.util.Collections.singleton(indexId));
    if (!region.hasEntries) return true;
    region.building.lockInterruptibly();
    try {
      long files = region.filesSince();
      if (!IndexBuilder.build(region, indexes, rows -> progress.rows(rows) && !region.isGoing())) return false;
      Set<Integer> complete = new HashSet<>(region.complete());
      complete.addAll(indexes);
      setComplete(region, complete, files);
      for (Schema.Index index : region.table.schema.indexes) {
        if (indexes.contains(index.id)) count(region, index);
      }
    } finally {
      region.building.unlock();
    }
    if (feed == null) return !region.isGoing();
    long told = feed.last();
    while (!region.isGoing()) { // leases end
      if (feed.waitAcknowledged(told, System.nanoTime() + LEASES_WAIT_NS)) return true;
    }
    return false;
  }

  // ---- Files that are loaded

  /** Ends once nobody excludes the region and no marker says that an index is complete; throws where that takes long. */
  void beforeLoad(IndexedRegion region) throws IOException, InterruptedException {
    region.loads.incrementAndGet();
    region.loadsBegun.incrementAndGet();
    boolean ready = false;
    try {
      synchronized (region.marking) {
        region.loaded = true;
        region.setComplete(java.util.Collections.emptySet());
        if (!Fault.LOAD_WITHOUT_UNMARKING.isOn()) IndexBuilder.unmark(region);
      }
      if (!Fault.LOAD_WITHOUT_TELLING.isOn()) tellIncomplete(region);
      ready = true;
    } finally {
      if (!ready) afterLoad(region);
    }
  }

  private void tellIncomplete(IndexedRegion region) throws IOException {
    // What is being counted is dropped as well.
    long told = 0;
    for (IndexFilter filter : region.filters.values()) told = Math.max(told, filter.drop());
    region.acknowledgeAfter.accumulateAndGet(told, Math::max);
    if (!waitAcknowledged(told)) {
      throw new RegionTooBusyException("coordinators did not acknowledge in time that files are loaded; nothing was done");
    }
  }

  void afterLoad(IndexedRegion region) {
    if (region.loads.decrementAndGet() > 0) return;
    builders.execute(() -> {
      try {
        completeAndCount(region);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      } catch (Throwable e) {
        if (!region.isGoing()) {
          LOG.error("The indexes of region {} stay incomplete behind a bulk load; searches scan it: rebuild them",
              region.info().getEncodedName(), e);
        }
      }
    });
  }

  // ---- Filters

  private void tellOpened(IndexedRegion region) {
    boolean flagged = region.flag != null || ownership == null;
    if (feed == null || !flagged || !region.hasEntries) return;
    synchronized (region) {
      if (region.closing) return;
      region.told = true;
      feed.append(Cluster.Event.newBuilder().setKind(Cluster.Event.Kind.REGION_OPENED).setRegionId(region.id)
          .setEpoch(region.epoch).setTableId(region.table.tableId)
          .setStart(ByteString.copyFrom(region.info().getStartKey()))
          .setEnd(ByteString.copyFrom(region.info().getEndKey())));
      feed.tellTable(region.table.tableId, region.table.schema.version);
      Map<Integer, IndexFilter> filters = new HashMap<>();
      for (Schema.Index index : region.table.schema.indexes) {
        filters.put(index.id, new IndexFilter(feed, index, region.id, region.epoch));
      }
      region.filters = filters;
    }
  }

  /** Counts the entries of an index anew, and publishes the filter. */
  private void count(IndexedRegion region, Schema.Index index) throws IOException, InterruptedException {
    IndexFilter filter = region.filters.get(index.id);
    if (filter == null || !region.complete().contains(index.id)) return;
    if (filterBytes() > MAX_FILTER_BYTES) {
      LOG.warn("No filter for an index of region {}: those of this server have {} bytes already",
          region.info().getEncodedName(), filterBytes());
      return;
    }
    // Nobody is inside while it begins and the instant is taken that is counted: a removal that was committed before that
    // instant must not be applied to what is counted from it.
    ReadView[] taken = new ReadView[1];
    region.building.lockInterruptibly();
    try {
      boolean quiet = region.whileQuiet(() -> {
        if (!filter.beginGeneration(() -> region.complete().contains(index.id))) return;
        taken[0] = new ReadView(region.region); // behind it: what is dropped and complete again meanwhile begins anew
      });
      if (quiet && taken[0] != null) countEntries(region, index, filter, taken[0]);
    } catch (IOException e) {
      filter.abandonGeneration();
      throw e;
    } finally {
      region.building.unlock();
    }
  }

  private static void countEntries(IndexedRegion region, Schema.Index index, IndexFilter filter, ReadView view)
      throws IOException {
    boolean done = false;
    try {
      byte[] prefix = region.keys.index(index.id);
      Scan scan = new Scan().addFamily(IndexedTable.FAMILY).withStartRow(prefix).setCacheBlocks(false);
      if (Key.prefixEnd(prefix).length > 0) scan.withStopRow(Key.prefixEnd(prefix));
      List<IndexEntry> entries = new ArrayList<>();
      try (RegionScanner scanner = view.open(scan)) {
        List<Cell> cells = new ArrayList<>();
        boolean more = true;
        while (more) {
          if (region.isGoing()) return;
          cells.clear();
          more = scanner.nextRaw(cells);
          if (!cells.isEmpty()) {
            byte[] key = CellUtil.cloneRow(cells.get(0));
            if (region.keys.kindOf(region.table.schema, key) == EntryKeys.Kind.ENTRY) {
              entries.add(region.keys.read(region.table.schema, index, key));
            }
          }
          if (entries.size() >= 1000 || !more) {
            filter.countExisting(entries);
            entries.clear();
          }
        }
      }
      filter.publish();
      done = true;
    } catch (DamagedBytesException e) {
      throw new IOException("an entry of region " + region.info().getEncodedName() + " is damaged", e);
    } finally {
      view.close();
      if (!done) filter.abandonGeneration();
    }
  }

  /** Counts those anew that do not fit any more, on a thread of the builders'. */
  void lookAtFilters(IndexedRegion region) {
    if (region.closing || !region.counting.compareAndSet(false, true)) return;
    List<Schema.Index> worn = new ArrayList<>();
    for (Schema.Index index : region.table.schema.indexes) {
      IndexFilter filter = region.filters.get(index.id);
      if (filter != null && filter.wantsRebuild(REBUILD_AFTER_IGNORED)) worn.add(index);
    }
    if (worn.isEmpty()) {
      region.counting.set(false);
      return;
    }
    builders.execute(() -> {
      try {
        for (Schema.Index index : worn) count(region, index);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      } catch (Throwable e) {
        if (!region.isClosed()) LOG.error("A filter of region {} stays as it is", region.info().getEncodedName(), e);
      } finally {
        region.counting.set(false);
      }
    });
  }

  long filterBytes() {
    long bytes = 0;
    for (IndexedRegion region : regions.values()) {
      for (IndexFilter filter : region.filters.values()) bytes += filter.sizeBytes();
    }
    return bytes;
  }

  boolean isCrowded() {
    boolean crowded = feed != null && feed.isCrowded();
    if (crowded) metrics.writesTurnedAway.increment();
    return crowded;
  }

  FilterFeed feed() {
    return feed;
  }

  /** False: not in time. */
  boolean waitAcknowledged(long sequence) throws IOException {
    if (feed == null || sequence == 0) return true;
    metrics.writesWaited.increment();
    try {
      boolean inTime = feed.waitAcknowledged(sequence, System.nanoTime() + WRITE_WAIT_NS);
      if (!inTime) metrics.writesNotAcknowledged.increment();
      return inTime;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  // ---- Requests

  Cluster.StatusReply status(Cluster.StatusRequest request) {
    Cluster.StatusReply.Builder reply = Cluster.StatusReply.newBuilder().setFilterBytes(filterBytes());
    if (feed != null) feed.describe(reply);
    long work = 0;
    for (IndexedRegion region : regions.values()) {
      if (region.building.isLocked() || region.counting.get()) ++work;
      if (request.getTableId() == 0 || region.table.tableId != request.getTableId() || !isHere(region)) continue;
      reply.addRegions(statusOf(region));
    }
    return reply.setPendingWork(work).build();
  }

  private static Cluster.RegionStatus statusOf(IndexedRegion region) {
    Cluster.RegionStatus.Builder status = Cluster.RegionStatus.newBuilder().setRegionId(region.id)
        .setEpoch(region.epoch).setSchemaVersion(region.table.schema.version).setRowsVisited(region.rowsVisited);
    for (Schema.Index index : region.table.schema.indexes) {
      IndexFilter filter = region.filters.get(index.id);
      boolean complete = region.complete().contains(index.id);
      boolean published = complete && filter != null && filter.isPublished();
      status.addIndexes(Cluster.IndexStatus.newBuilder().setIndexId(index.id).setComplete(complete)
          .setPublished(published).setEntries(published ? filter.entries() : 0));
    }
    return status.build();
  }

  Cluster.StartJobReply startJob(Cluster.StartJobRequest request) {
    try {
      for (IndexedRegion region : regions.values()) {
        if (region.table.tableId != request.getTableId()) continue;
        Rights.mayReadIndexed(region); // as for any other region of the table
        break;
      }
      jobs.start(request);
      return Cluster.StartJobReply.getDefaultInstance();
    } catch (Throwable e) {
      return Cluster.StartJobReply.newBuilder().setError(StatusException.errorOf(e)).build();
    }
  }

  /** One region of a job. */
  private void work(Cluster.StartJobRequest job, long regionId, IndexBuilder.Progress progress,
      Cluster.RegionJobResult.Builder result) throws IOException, InterruptedException {
    IndexedRegion region = find(regionId, 0, job.getTableId());
    boolean stayed = false;
    if (region != null && job.getKind() == Cluster.StartJobRequest.Kind.REBUILD) {
      stayed = rebuild(region, job.getIndexId(), progress);
    } else if (region != null) {
      Cluster.RegionCheck check = Checker.check(region, rows -> progress.rows(rows) && !region.isGoing());
      stayed = check != null && isOwner();
      if (stayed) result.setCheck(check);
    }
    if (!stayed) {
      result.setError(notHere(regionId));
      return;
    }
    result.setStart(ByteString.copyFrom(region.info().getStartKey()));
    result.setEnd(ByteString.copyFrom(region.info().getEndKey()));
  }

  private Cluster.PollReply poll(Cluster.PollRequest request) throws IOException {
    if (feed == null) throw new IOException("the server is starting");
    Set<Integer> tables = secured ? readers.tablesOf(regions.values()) : null;
    ownership.want();
    ownership.ensure();
    metrics.polls.increment();
    try {
      return feed.poll(request, ownership::verifiedUntil, tables);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new java.io.InterruptedIOException("the server stops");
    }
  }

  @Override
  public byte[] call(String method, byte[] request) throws IOException, InvalidProtocolBufferException {
    switch (method) {
      case "Mutate":
        return mutate(Cluster.MutateRequest.parseFrom(request)).toByteArray();
      case "Search":
        return search(Cluster.SearchRequest.parseFrom(request)).toByteArray();
      case "Poll":
        return poll(Cluster.PollRequest.parseFrom(request)).toByteArray();
      case "Status":
        return status(Cluster.StatusRequest.parseFrom(request)).toByteArray();
      case "StartJob":
        return startJob(Cluster.StartJobRequest.parseFrom(request)).toByteArray();
      case "GetJob":
        return jobs.get(Cluster.GetJobRequest.parseFrom(request)).toByteArray();
      default:
        throw new DoNotRetryIOException("this server does not answer " + method);
    }
  }

  /** null: not here. */
  private IndexedRegion find(long id, long epoch, int tableId) {
    IndexedRegion region = regions.get(id);
    boolean here = region != null && isHere(region) && region.table.tableId == tableId
        && (epoch == 0 || epoch == region.epoch);
    return here ? region : null;
  }

  private boolean isHere(IndexedRegion region) {
    return region.isOnline() && (ownership == null || region.flag != null);
  }

  private static Cluster.Error notHere(long id) {
    return ConditionalWrites.error(Cluster.Error.Code.UNAVAILABLE,
        "region " + Long.toUnsignedString(id) + " is not open here");
  }

  private static Cluster.MutateReply mayStand(Cluster.MutateReply reply) throws IOException {
    Cluster.MutateReply.Builder unknown = Cluster.MutateReply.newBuilder();
    for (Cluster.RegionMutateResult region : reply.getRegionsList()) {
      unknown.addRegions(region.hasError() ? region : region.toBuilder().setError(ConditionalWrites.error(
          Cluster.Error.Code.DEADLINE_EXCEEDED, "coordinators did not acknowledge in time; the writes may stand"))
          .build());
    }
    return unknown.build();
  }

  Cluster.MutateReply mutate(Cluster.MutateRequest request) throws IOException {
    Cluster.MutateReply.Builder reply = Cluster.MutateReply.newBuilder();
    BatchContext context = BatchContext.current();
    context.waitFor = 0;
    for (Cluster.RegionMutations mutations : request.getRegionsList()) {
      IndexedRegion region = find(mutations.getRegionId(), mutations.getEpoch(), request.getTableId());
      reply.addRegions(region == null
          ? Cluster.RegionMutateResult.newBuilder().setRegionId(mutations.getRegionId())
              .setError(notHere(mutations.getRegionId())).build()
          : Mutator.mutate(region, mutations, request.getSchemaVersion()));
    }
    if (!waitAcknowledged(context.waitFor)) return mayStand(reply.build());
    return reply.build();
  }

  Cluster.SearchReply search(Cluster.SearchRequest request) {
    long timeout = request.getTimeoutNs() > 0 ? Math.min(request.getTimeoutNs(), SEARCH_TIMEOUT_NS) : SEARCH_TIMEOUT_NS;
    long deadline = System.nanoTime() + timeout / 4 * 3; // the rest is for the way back
    Cluster.SearchReply.Builder reply = Cluster.SearchReply.newBuilder();
    Map<IndexedTable, Searcher> searchers = new HashMap<>();
    if (!isOwner()) return notOwner(request);
    long rows = 0;
    long bytes = 0;
    List<Cluster.SearchRange> ranges = request.getRangesList();
    for (int i = 0; i < ranges.size(); ++i) {
      if (request.getLimit() > 0 && rows >= request.getLimit()) break;
      if (i > 0 && System.nanoTime() - deadline >= 0) break;
      if (rows >= Searcher.PAGE_ROWS || bytes >= Searcher.PAGE_BYTES) break;
      long most = Searcher.PAGE_ROWS - rows;
      if (request.getLimit() > 0) most = Math.min(most, request.getLimit() - rows);
      Cluster.RangeResult result = searchRange(request, ranges.get(i), searchers, most, deadline);
      rows += result.getRowsCount();
      bytes += result.getSerializedSize();
      reply.addResults(result);
    }
    for (Cluster.RangeResult result : reply.getResultsList()) metrics.searched(result.getCounters());
    // A proof that begins now is as good as one that still holds.
    return isOwner() ? reply.build() : notOwner(request);
  }

  private boolean isOwner() {
    boolean owner = ownership == null || ownership.ensure();
    if (!owner) metrics.searchesNotProved.increment();
    return owner;
  }

  private static Cluster.SearchReply notOwner(Cluster.SearchRequest request) {
    Cluster.SearchReply.Builder reply = Cluster.SearchReply.newBuilder();
    for (Cluster.SearchRange range : request.getRangesList()) {
      reply.addResults(Cluster.RangeResult.newBuilder().setRegionId(range.getRegionId()).setEpoch(range.getEpoch())
          .setError(ConditionalWrites.error(Cluster.Error.Code.UNAVAILABLE,
              "the server cannot prove that it still owns its regions")));
    }
    return reply.build();
  }

  private Cluster.RangeResult searchRange(Cluster.SearchRequest request, Cluster.SearchRange range,
      Map<IndexedTable, Searcher> searchers, long most, long deadline) {
    IndexedRegion region = find(range.getRegionId(), range.getEpoch(), request.getTableId());
    Cluster.RangeResult.Builder failed =
        Cluster.RangeResult.newBuilder().setRegionId(range.getRegionId()).setEpoch(range.getEpoch());
    if (range.getRegionId() <= 0) {
      return failed.setError(ConditionalWrites.error(Cluster.Error.Code.INVALID_ARGUMENT,
          Long.toUnsignedString(range.getRegionId()) + " is no number of a region; those are from 1 to 2^63 - 1")).build();
    }
    if (region == null) return failed.setError(notHere(range.getRegionId())).build();
    Searcher searcher = null;
    for (Map.Entry<IndexedTable, Searcher> other : searchers.entrySet()) {
      if (other.getKey().schema.version == region.table.schema.version) searcher = other.getValue();
    }
    if (searcher == null) {
      try {
        searcher = new Searcher(request, region.table, region.server);
        searchers.put(region.table, searcher);
      } catch (StatusException e) {
        Cluster.Error.Builder error = e.error().toBuilder();
        if (region.table.schema.version != request.getSchemaVersion()) {
          error.setSchemaVersion(region.table.schema.version);
        }
        return failed.setError(error).build();
      }
    }
    Cluster.RangeResult result = searcher.search(region, range, most, deadline);
    // It has been closed meanwhile: what was read is as it was, but nobody knows whether it still is.
    if (region.isClosed()) return failed.setError(notHere(range.getRegionId())).build();
    return result;
  }

  List<IndexedRegion> regions() {
    return new ArrayList<>(regions.values());
  }
}
