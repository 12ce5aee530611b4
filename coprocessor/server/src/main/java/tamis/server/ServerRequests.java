package tamis.server;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.InetAddress;
import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.ipc.RpcCall;
import org.apache.hadoop.hbase.ipc.RpcServer;
import org.apache.hadoop.hbase.regionserver.RegionServerStoppedException;
import org.apache.hadoop.hbase.security.AccessDeniedException;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.feed.FilterFeed;
import tamis.index.BatchContext;
import tamis.index.Checker;
import tamis.index.IndexBuilder;
import tamis.index.Mutator;
import tamis.index.ValueSampler;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.Rights;
import tamis.shaded.protobuf.ByteString;
import tamis.shaded.protobuf.InvalidProtocolBufferException;
import tamis.table.Schema;

/** The calls of the service `tamis.pb.RegionServer`, answered for a whole server. Threads: safe. */
public final class ServerRequests implements Endpoint.Requests {
  private final RegionServerState state;
  private final ServerStatus status;
  private final ServerSearches searches;
  private final RegionJobs jobs = new RegionJobs(this::work);

  ServerRequests(RegionServerState state) {
    this.state = state;
    status = new ServerStatus(state);
    searches = new ServerSearches(state);
  }

  /**
   * Answers a call. While the server stops, a failed call is reported as not run, except a write, which may stand.
   */
  @Override
  public byte[] call(String method, byte[] request) throws IOException, InvalidProtocolBufferException {
    try {
      return answer(method, request);
    } catch (RuntimeException | Error e) {
      if (method.equals("Mutate") || !state.isEnding()) throw e;
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

  private static String caller() {
    return RpcServer.getRequestUserName().orElse("");
  }

  private static String host() {
    return RpcServer.getRemoteAddress().map(InetAddress::getHostAddress).orElse("");
  }

  Cluster.StatusReply status(Cluster.StatusRequest request) {
    return status.of(request);
  }

  Cluster.SearchReply search(Cluster.SearchRequest request) {
    return searches.search(request);
  }

  /**
   * A poll without a handler of its own would queue after the writes that wait until it comes, and each of these would
   * wait until the lease ends.
   */
  private static void refuseLowPriority() throws DoNotRetryIOException {
    RpcCall call = RpcServer.getCurrentCall().orElse(null);
    if (call == null || call.getPriority() > HConstants.QOS_THRESHOLD || Fault.POLLS_OF_ANY_PRIORITY.isOn()) return;
    throw new DoNotRetryIOException("cannot answer a poll of priority " + call.getPriority()
        + ": it queues behind the writes that wait for it; send it with a priority above " + HConstants.QOS_THRESHOLD
        + ", for example 100, for which HBase has handlers of their own");
  }

  private Cluster.PollReply poll(Cluster.PollRequest request) throws IOException {
    refuseLowPriority();
    if (state.feed == null) throw new IOException("cannot answer a poll yet: the region server is starting; retry");
    // A coordinator that leaves receives nothing, and its program waits for the answer before it ends.
    boolean leaves = request.getLeaves();
    Set<Integer> tables = state.server.secured && !leaves ? state.readers.tablesOf(state.regions.all()) : null;
    Ownership ownership = state.server.ownership;
    if (!leaves) {
      ownership.want();
      ownership.ensure();
    }
    state.metrics.polls.increment();
    try {
      return state.feed.poll(request, ownership::verifiedUntil, new FilterFeed.Reader(caller(), host(), tables));
    } catch (StatusException e) {
      throw new AccessDeniedException(e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("the server stops");
    }
  }

  // ---- Writes

  Cluster.MutateReply mutate(Cluster.MutateRequest request) throws IOException {
    Cluster.MutateReply.Builder reply = Cluster.MutateReply.newBuilder();
    BatchContext.Caller caller = BatchContext.next();
    caller.waitFor = 0;
    for (Cluster.RegionMutations mutations : request.getRegionsList()) {
      IndexedRegion region = state.regions.find(mutations.getRegionId(), mutations.getEpoch(), request.getTableId());
      reply.addRegions(region == null ? Cluster.RegionMutateResult.newBuilder()
                                            .setRegionId(mutations.getRegionId())
                                            .setError(OpenRegions.notHere(mutations.getRegionId()))
                                            .build()
                                      : Mutator.mutate(region, mutations, request.getSchemaVersion()));
    }
    if (!state.acknowledgements.await(caller.waitFor)) return mayStand(reply.build());
    return reply.build();
  }

  private static Cluster.MutateReply mayStand(Cluster.MutateReply reply) {
    Cluster.MutateReply.Builder unknown = Cluster.MutateReply.newBuilder();
    for (Cluster.RegionMutateResult region : reply.getRegionsList()) {
      unknown.addRegions(region.hasError()
              ? region
              : region.toBuilder()
                    .setError(StatusException.error(Cluster.Error.Code.DEADLINE_EXCEEDED,
                        "coordinators did not acknowledge in time; the writes may have been carried out"))
                    .build());
    }
    return unknown.build();
  }

  // ---- Jobs

  Cluster.StartJobReply startJob(Cluster.StartJobRequest request) {
    try {
      jobs.start(request, caller(), askedOf(request));
      return Cluster.StartJobReply.getDefaultInstance();
    } catch (Throwable e) {
      return Cluster.StartJobReply.newBuilder().setError(StatusException.errorOf(e, state.isEnding())).build();
    }
  }

  /**
   * The regions of a job that are open here. Throws if the caller lacks the rights to the job; they are checked in one
   * region, for all of them.
   */
  private Set<Long> askedOf(Cluster.StartJobRequest request) throws IOException, StatusException {
    Set<Long> here = new HashSet<>();
    for (long id : request.getRegionIdsList()) {
      IndexedRegion region = state.regions.find(id, 0, request.getTableId());
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
      Cluster.RegionJobResult.Builder result) throws IOException, InterruptedException, StatusException {
    IndexedRegion region = state.regions.find(regionId, 0, job.getTableId());
    try {
      work(region, job, regionId, progress, result);
    } catch (IOException | RuntimeException | Error e) {
      boolean leaving = region != null && region.isLeaving();
      if (!leaving || !StatusException.provesNothing(e)) throw e;
      result.setError(StatusException.errorOf(e, leaving));
    }
  }

  private void work(IndexedRegion region, Cluster.StartJobRequest job, long regionId, IndexBuilder.Progress progress,
      Cluster.RegionJobResult.Builder result) throws IOException, InterruptedException, StatusException {
    boolean stayed = false;
    if (region != null && job.getKind() == Cluster.StartJobRequest.Kind.REBUILD) {
      stayed = state.indexes.rebuild(region, job.getIndexId(), progress);
    } else if (region != null && job.getKind() == Cluster.StartJobRequest.Kind.SAMPLE) {
      Cluster.ValueSample sample = sample(region, job, progress);
      stayed = sample != null && state.isOwner();
      if (stayed) result.setSample(sample);
    } else if (region != null) {
      Cluster.RegionCheck check = Checker.check(region, rows -> progress.rows(rows) && !region.isClosing());
      stayed = check != null && state.isOwner();
      if (stayed) result.setCheck(check);
    }
    if (!stayed) {
      result.setError(OpenRegions.notHere(regionId));
      return;
    }
    result.setStart(ByteString.copyFrom(region.info().getStartKey()));
    result.setEnd(ByteString.copyFrom(region.info().getEndKey()));
  }

  /** Null: the region closes. */
  private static Cluster.ValueSample sample(IndexedRegion region, Cluster.StartJobRequest job,
      IndexBuilder.Progress progress) throws IOException, StatusException {
    Schema.Index index = region.table.schema.index(job.getIndexId());
    if (index == null) {
      throw new StatusException(Cluster.Error.Code.NOT_FOUND,
          "cannot sample index number " + job.getIndexId() + ": region " + region.info().getEncodedName()
              + " does not have it; it was dropped, or the region is not opened again since it was made");
    }
    return ValueSampler.sample(region, index, job.getMostValues(), rows -> progress.rows(rows) && !region.isClosing());
  }
}
