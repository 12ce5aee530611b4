package tamis.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessorEnvironment;
import org.apache.hadoop.hbase.ipc.RpcServer;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.RegionServerServices;
import org.apache.hadoop.hbase.regionserver.RegionServerStoppedException;
import org.apache.hadoop.hbase.regionserver.Store;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.pb.Cluster;
import tamis.shaded.protobuf.ByteString;
import tamis.shaded.protobuf.InvalidProtocolBufferException;
import tamis.table.Schema;

/**
 * State that all observers of a server share: the regions of indexed tables that are open here, and the answers to
 * requests for them. One for each process, as long as the jar is on the class path. Threads: safe.
 */
final class RegionServerState implements Endpoint.Requests {
  static final RegionServerState INSTANCE = new RegionServerState();

  private static final Logger LOG = LoggerFactory.getLogger(RegionServerState.class);
  private static final long SEARCH_TIMEOUT_NS = TimeUnit.SECONDS.toNanos(10);
  private static final long ONLINE_LOOK_NS = TimeUnit.MILLISECONDS.toNanos(20);
  private static final Backoff FLAG_FAILED = new Backoff(TimeUnit.SECONDS.toNanos(1),
      TimeUnit.MINUTES.toNanos(1));
  // Below the 10 s after which a close interrupts.
  private static final long WRITE_WAIT_NS = TimeUnit.SECONDS.toNanos(8);

  private volatile FilterFeed feed; // null: no server is around
  private volatile Ownership ownership;
  private volatile boolean secured;
  private volatile BooleanSupplier ending = () -> false;
  private volatile RegionLife life;
  private final Map<Long, IndexedRegion> regions = new ConcurrentHashMap<>();
  private final Workers workers = Workers.threads();
  private final RegionJobs jobs = new RegionJobs(this::work);
  final RegionFilters filters;
  private final ParentFilters keptFilters = new ParentFilters(RegionFilters.MAX_BYTES / 4);
  final RegionIndexes indexes;
  private final TableReaders readers = new TableReaders();
  final RegionServerMetrics metrics = new RegionServerMetrics(this);

  private RegionServerState() {
    filters = new RegionFilters(regions::values, workers.counts, RegionFilters.MAX_BYTES);
    indexes = new RegionIndexes(this, filters, workers);
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
    ownership = new Ownership(proofFor(server, environment), Ownership.PATIENCE_NS);
    FilterFeed made = new FilterFeed(name.getHostname() + "," + name.getPort(), name.getStartcode(), options,
        System::nanoTime, this::project);
    life = new RegionLife(made, System::nanoTime, server::isAborted);
    ending = () -> server.isAborted() || server.isStopping() || server.isStopped();
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

  /** Models a server that proves its ownership by this; null: no proof is required. */
  void ownForTest(Ownership by) {
    ownership = by;
  }

  /** Models a server that stops, or aborts. */
  void endForTest(boolean ends) {
    ending = () -> ends;
  }

  /** Models a server that checks rights. */
  void secureForTest(boolean on) {
    secured = on;
  }

  /** Once it is online, and nothing more. */
  void tellForTest(IndexedRegion region) {
    tellForTest(region, 0);
  }

  /** `opened`: the number that it was opened with. */
  void tellForTest(IndexedRegion region, long opened) {
    regions.put(region.id, region);
    tellOpened(region, opened);
  }

  void openForTest(IndexedRegion region) throws IOException, InterruptedException {
    tellForTest(region);
    RegionIndexes.complete(region);
    countForTest(region);
  }

  void closeForTest(IndexedRegion region) {
    regions.remove(region.id, region);
  }

  void countForTest(IndexedRegion region) throws IOException, InterruptedException {
    for (Schema.Index index : region.table.schema.indexes) filters.count(region, index);
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
    if (feed != null) {
      region.parentFilters = keptFilters.take(region, feed);
      // Writes are counted there, too.
      if (region.parentFilters != null) region.filters = region.parentFilters.filters;
    }
    workers.steps.run(() -> beginWhenOnline(region), 0);
  }

  void closing(IndexedRegion region) throws InterruptedException {
    if (life != null) life.closing(region);
  }

  void closed(IndexedRegion region, boolean inOrder) {
    if (region.isClosed()) return;
    region.setClosed();
    regions.remove(region.id, region);
    try {
      if (inOrder) keptFilters.leave(region);
      filters.giveRoom();
    } finally {
      if (life != null) life.closed(region, inOrder);
    }
  }

  /** Nothing is written before the region is online: its log has no opening yet. */
  private void beginWhenOnline(IndexedRegion region) {
    if (region.isClosed()) return;
    if (!region.isOnline() && !Fault.WRITTEN_BEFORE_ONLINE.isOn()) {
      workers.steps.run(() -> beginWhenOnline(region), ONLINE_LOOK_NS);
    } else if (life != null && region.flag == null) {
      raiseLate(region, 0);
    } else {
      begin(region);
    }
  }

  private void raiseLate(IndexedRegion region, int failures) {
    workers.waits.execute(() -> {
      if (region.isClosed()) return;
      if (life.raiseLate(region, ownership::proveAnew)) {
        begin(region);
      } else {
        workers.steps.run(() -> raiseLate(region, failures + 1), FLAG_FAILED.after(failures));
      }
    });
  }

  private void begin(IndexedRegion region) {
    try {
      tellOpened(region, ((HRegion) region.region).getOpenSeqNum());
      settle(region);
      indexes.completeAndCount(region);
    } catch (Throwable e) {
      LOG.error("Region {} is not told of, or its indexes stay incomplete: searches ask or scan it until it is opened"
          + " again", region.info().getEncodedName(), e);
    }
  }

  private void settle(IndexedRegion region) {
    if (life == null) return;
    try {
      long left = life.settle(region);
      if (left > 0) workers.steps.run(() -> settle(region), left);
    } catch (IOException e) {
      LOG.warn("The flags of former owners of region {} stay: its next owner waits a moment",
          region.info().getEncodedName(), e);
    }
  }

  private void tellOpened(IndexedRegion region, long opened) {
    boolean flagged = region.flag != null || ownership == null;
    if (feed == null || !flagged || !region.hasEntries) return;
    synchronized (region) {
      if (region.closing || region.isClosed()) return;
      region.told = true;
      feed.append(Cluster.Event.newBuilder().setKind(Cluster.Event.Kind.REGION_OPENED).setRegionId(region.id)
          .setEpoch(region.epoch).setTableId(region.table.tableId)
          .setStart(ByteString.copyFrom(region.info().getStartKey()))
          .setEnd(ByteString.copyFrom(region.info().getEndKey())));
      feed.tellTable(region.table.tableId, region.table.schema.version);
      ParentFilters.Copies parentFilters = region.parentFilters;
      region.parentFilters = null;
      boolean inherits = parentFilters != null && parentFilters.isAllThere(opened);
      Map<Integer, IndexFilter> filters = new HashMap<>(inherits ? parentFilters.filters : Collections.emptyMap());
      for (Schema.Index index : region.table.schema.indexes) {
        filters.computeIfAbsent(index.id, id -> new IndexFilter(feed, index, region.id, region.epoch));
      }
      region.filters = filters;
      if (inherits) parentFilters.filters.values().forEach(IndexFilter::publish);
    }
  }

  /** The region closes, or its server stops or aborts: HBase closes what calls still read from. */
  boolean isLeaving(IndexedRegion region) {
    if (Fault.FAILURE_OF_A_CLOSING_REGION_TOLD.isOn()) return false;
    boolean closing = region.isGoing() || !region.isOnline();
    if (region.region instanceof HRegion) {
      HRegion here = (HRegion) region.region;
      closing |= here.isClosing() || here.isClosed();
    }
    return closing || ending.getAsBoolean();
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

  /**
   * Where rights are checked: no numbers of a table's rows to who may not read them, and of no coordinator its number.
   */
  Cluster.StatusReply status(Cluster.StatusRequest request) {
    Cluster.StatusReply.Builder reply =
        Cluster.StatusReply.newBuilder().setFilterBytes(filters.bytes() + keptFilters.bytes());
    if (feed != null) feed.describe(reply, !secured);
    boolean all = !secured || request.getTableId() == 0
        || readers.tablesOf(regions.values()).contains(request.getTableId());
    long work = 0;
    FileFilters files = new FileFilters();
    for (IndexedRegion region : regions.values()) {
      if (region.building.isLocked() || region.recounts.isUnderWay()) ++work;
      files.add(region);
      if (request.getTableId() == 0 || region.table.tableId != request.getTableId() || !isHere(region)) continue;
      reply.addRegions(statusOf(region, all));
    }
    return reply.setPendingWork(work).setSearches(metrics.searches.sum())
        .setRegionsSearched(metrics.searchedRanges.sum()).setFileFiltersAsked(files.asked)
        .setFileFiltersSaidNo(files.saidNo).setFileFiltersMissing(files.missing).build();
  }

  /** HBase's counters of the Bloom filters of the files of rows, for all readers together. */
  private static final class FileFilters {
    long asked;
    long saidNo;
    long missing;

    void add(IndexedRegion region) {
      for (Store store : region.region.getStores()) {
        if (!(store instanceof HStore) || !region.table.isOurs(store.getColumnFamilyDescriptor().getName())) continue;
        HStore files = (HStore) store;
        asked += files.getBloomFilterRequestsCount();
        saidNo += files.getBloomFilterNegativeResultsCount();
        missing += files.getBloomFilterEligibleRequestsCount();
      }
    }
  }

  private static Cluster.RegionStatus statusOf(IndexedRegion region, boolean all) {
    Cluster.RegionStatus.Builder status = Cluster.RegionStatus.newBuilder().setRegionId(region.id)
        .setEpoch(region.epoch).setSchemaVersion(region.table.schema.version);
    for (Schema.Index index : region.table.schema.indexes) {
      IndexFilter filter = region.filters.get(index.id);
      boolean complete = region.complete().contains(index.id);
      boolean published = complete && filter != null && filter.isPublished();
      status.addIndexes(Cluster.IndexStatus.newBuilder().setIndexId(index.id).setComplete(complete)
          .setPublished(published).setEntries(published && all ? filter.entries() : 0));
    }
    if (!all) return status.build();
    FileFilters files = new FileFilters();
    files.add(region);
    return status.setRowsVisited(region.rowsVisited).setFileFiltersAsked(files.asked)
        .setFileFiltersSaidNo(files.saidNo).setFileFiltersMissing(files.missing).build();
  }

  Cluster.StartJobReply startJob(Cluster.StartJobRequest request) {
    try {
      jobs.start(request, caller(), askedOf(request));
      return Cluster.StartJobReply.getDefaultInstance();
    } catch (Throwable e) {
      return Cluster.StartJobReply.newBuilder().setError(StatusException.errorOf(e, ending.getAsBoolean())).build();
    }
  }

  private static String caller() {
    return RpcServer.getRequestUserName().orElse("");
  }

  /**
   * The regions of a job that are here; throws where whoever calls has no right to that. It is asked of one for all.
   */
  private Set<Long> askedOf(Cluster.StartJobRequest request) throws IOException, StatusException {
    Set<Long> here = new HashSet<>();
    for (long id : request.getRegionIdsList()) {
      IndexedRegion region = find(id, 0, request.getTableId());
      if (region == null) continue;
      if (here.isEmpty()) {
        Rights.mayReadIndexed(region);
        if (request.getKind() == Cluster.StartJobRequest.Kind.REBUILD) Rights.mayRebuild(region);
      }
      here.add(id);
    }
    return here;
  }

  /** One region of a job. */
  private void work(Cluster.StartJobRequest job, long regionId, IndexBuilder.Progress progress,
      Cluster.RegionJobResult.Builder result) throws IOException, InterruptedException {
    IndexedRegion region = find(regionId, 0, job.getTableId());
    try {
      work(region, job, regionId, progress, result);
    } catch (IOException | RuntimeException | Error e) {
      boolean leaving = region != null && isLeaving(region);
      if (!leaving || !StatusException.provesNothing(e)) throw e;
      result.setError(StatusException.errorOf(e, leaving));
    }
  }

  private void work(IndexedRegion region, Cluster.StartJobRequest job, long regionId, IndexBuilder.Progress progress,
      Cluster.RegionJobResult.Builder result) throws IOException, InterruptedException {
    boolean stayed = false;
    if (region != null && job.getKind() == Cluster.StartJobRequest.Kind.REBUILD) {
      stayed = indexes.rebuild(region, job.getIndexId(), progress);
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

  /**
   * A write that fails here may stand, whatever the server's state: only of others is it told that they did not run.
   */
  @Override
  public byte[] call(String method, byte[] request) throws IOException, InvalidProtocolBufferException {
    try {
      return answer(method, request);
    } catch (RuntimeException | Error e) {
      if (method.equals("Mutate") || !ending.getAsBoolean()) throw e;
      throw new RegionServerStoppedException("the server stops: " + e);
    }
  }

  private byte[] answer(String method, byte[] request) throws IOException, InvalidProtocolBufferException {
    Fault.STREAM_CLOSED_IN_CALL.happen();
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
        return jobs.get(Cluster.GetJobRequest.parseFrom(request), caller()).toByteArray();
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
    BatchContext.Caller caller = BatchContext.next();
    caller.waitFor = 0;
    for (Cluster.RegionMutations mutations : request.getRegionsList()) {
      IndexedRegion region = find(mutations.getRegionId(), mutations.getEpoch(), request.getTableId());
      reply.addRegions(region == null
          ? Cluster.RegionMutateResult.newBuilder().setRegionId(mutations.getRegionId())
              .setError(notHere(mutations.getRegionId())).build()
          : Mutator.mutate(region, mutations, request.getSchemaVersion()));
    }
    if (!waitAcknowledged(caller.waitFor)) return mayStand(reply.build());
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
      if (rows >= SearchPage.MAX_ROWS || bytes >= SearchPage.MAX_BYTES) break;
      long most = SearchPage.MAX_ROWS - rows;
      if (request.getLimit() > 0) most = Math.min(most, request.getLimit() - rows);
      Cluster.RangeResult result = searchRange(request, ranges.get(i), searchers, most, deadline);
      rows += result.getRowsCount();
      bytes += result.getSerializedSize();
      reply.addResults(result);
    }
    metrics.searches.increment();
    for (Cluster.RangeResult result : reply.getResultsList()) metrics.searched(result.getCounters());
    // A proof that begins now is as good as one that still holds.
    return Fault.NO_PROOF_AT_THE_END.isOn() || isOwner() ? reply.build() : notOwner(request);
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
          Long.toUnsignedString(range.getRegionId())
              + " is no number of a region; those are from 1 to 2^63 - 1")).build();
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
    boolean gone = region.isClosed() && !Fault.CLOSED_REGION_ANSWERS.isOn();
    return gone ? failed.setError(notHere(range.getRegionId())).build() : result;
  }

  List<IndexedRegion> regions() {
    return new ArrayList<>(regions.values());
  }
}
