package tamis.server;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.index.IndexBuilder;
import tamis.pb.Cluster;

/**
 * Long work on regions of this server on request: region by region, on one thread. The caller polls its progress.
 * Threads: safe.
 */
final class RegionJobs {
  /** Does the job in one region. */
  interface Work {
    void run(Cluster.StartJobRequest job, long region, IndexBuilder.Progress progress,
        Cluster.RegionJobResult.Builder result) throws Exception;
  }

  private static final class Job {
    final Cluster.StartJobRequest request;
    final String user;
    final Set<Long> here; // the regions that were open when the job began, for which the user's rights were checked
    final List<Cluster.RegionJobResult> results = new ArrayList<>();
    long rows;
    long endedAt = System.nanoTime();

    Job(Cluster.StartJobRequest request, String user, Set<Long> here) {
      this.request = request;
      this.user = user;
      this.here = here;
    }

    boolean isEnded() {
      return results.size() == request.getRegionIdsCount();
    }
  }

  private static final Logger LOG = LoggerFactory.getLogger(RegionJobs.class);
  private static final int MAX_RUNNING = 32;
  private static final int MAX_ENDED = 256;
  private static final long KEPT_NS = TimeUnit.HOURS.toNanos(1);
  private static final int MAX_REGIONS = 100_000;

  private final Work work;
  private final ExecutorService executor;
  private final Map<Long, Job> jobs = new LinkedHashMap<>(); // oldest first

  RegionJobs(Work work) {
    this.work = work;
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(1, 1, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), runnable -> {
          Thread thread = new Thread(runnable, "tamis-jobs");
          thread.setDaemon(true);
          return thread;
        });
    pool.allowCoreThreadTimeOut(true);
    executor = pool;
  }

  /** Starts a job, unless the user has one of that number. A region that is not in `here` fails with UNAVAILABLE. */
  synchronized void start(Cluster.StartJobRequest request, String user, Set<Long> here) throws StatusException {
    Job same = jobs.get(request.getJob());
    if (same != null && same.user.equals(user)) return;
    if (same != null) {
      throw new StatusException(Cluster.Error.Code.ALREADY_EXISTS,
          "cannot start job " + Long.toUnsignedString(request.getJob())
              + ": another user has a job of that number; choose another number");
    }
    if (request.getKind() == Cluster.StartJobRequest.Kind.UNRECOGNIZED) {
      throw new StatusException(Cluster.Error.Code.INVALID_ARGUMENT,
          "this region server does not know jobs of kind " + request.getKindValue());
    }
    if (request.getRegionIdsCount() > MAX_REGIONS) {
      throw new StatusException(Cluster.Error.Code.INVALID_ARGUMENT,
          "a job has " + MAX_REGIONS + " regions at the most, not " + request.getRegionIdsCount());
    }
    forget();
    int running = 0;
    for (Job job : jobs.values()) running += job.isEnded() ? 0 : 1;
    if (running >= MAX_RUNNING) {
      throw new StatusException(Cluster.Error.Code.BUSY,
          "cannot start a job: " + running + " jobs of this server have not ended; retry when one of them has");
    }
    Job job = new Job(request, user, here);
    jobs.put(request.getJob(), job);
    executor.execute(() -> run(job));
  }

  private void forget() {
    long now = System.nanoTime();
    int ended = 0;
    for (Job job : jobs.values()) ended += job.isEnded() ? 1 : 0;
    for (Iterator<Job> it = jobs.values().iterator(); it.hasNext();) {
      Job job = it.next();
      if (!job.isEnded() || (ended < MAX_ENDED && now - job.endedAt < KEPT_NS)) continue;
      it.remove();
      --ended;
    }
  }

  /** Answers only the user that began the job. */
  synchronized Cluster.GetJobReply get(Cluster.GetJobRequest request, String user) {
    Job job = jobs.get(request.getJob());
    if (job == null || !(job.user.equals(user) || Fault.JOB_FOR_ANYBODY.isOn())) {
      return Cluster.GetJobReply.newBuilder()
          .setError(StatusException.error(Cluster.Error.Code.NOT_FOUND,
              "this server has no such job of yours: it ended long ago, or with an earlier life of the server"))
          .build();
    }
    return Cluster.GetJobReply.newBuilder()
        .setEnded(job.isEnded())
        .setRegions(job.request.getRegionIdsCount())
        .setRows(job.rows)
        .addAllResults(job.results)
        .build();
  }

  private void run(Job job) {
    long[] before = new long[1];
    for (long region : job.request.getRegionIdsList()) {
      Cluster.RegionJobResult.Builder result = Cluster.RegionJobResult.newBuilder().setRegionId(region);
      try {
        if (!job.here.contains(region)) {
          throw new StatusException(Cluster.Error.Code.UNAVAILABLE,
              "region " + Long.toUnsignedString(region) + " was not open here when the job began");
        }
        work.run(job.request, region, rows -> {
          synchronized (this) {
            job.rows = before[0] + rows;
          }
          return true;
        }, result);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        result.setError(StatusException.errorOf(e, false));
      } catch (Throwable e) {
        LOG.warn("A job of kind {} failed in region {}", job.request.getKind(), region, e);
        result.setError(StatusException.errorOf(e, false));
      }
      synchronized (this) {
        before[0] = job.rows;
        job.results.add(result.build());
        if (job.isEnded()) job.endedAt = System.nanoTime();
      }
    }
  }
}
