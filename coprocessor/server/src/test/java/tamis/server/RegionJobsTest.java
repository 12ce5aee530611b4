package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static tamis.hbase.RegionForTest.encoded;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.feed.FeedCopy;
import tamis.feed.FeedOptions;
import tamis.feed.FilterFeed;
import tamis.feed.IndexEntry;
import tamis.feed.IndexFilter;
import tamis.hbase.RegionForTest;
import tamis.index.BatchContext;
import tamis.index.Checker;
import tamis.pb.Cluster;
import tamis.pb.Table;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.shaded.protobuf.ByteString;
import tamis.table.Hash;

/** Findings of a check, and their repair by a rebuild, on a real region. */
class RegionJobsTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final byte[] A = Bytes.toBytes("a");

  @AfterEach
  void stopFeed() {
    Fault.only();
    TestServer.stop();
  }

  private static Table.Schema schema(long version, Table.Index... indexes) {
    Table.Schema.Builder schema = RegionForTest.schema().setVersion(version);
    for (Table.Index index : indexes) schema.addIndexes(index);
    return schema.build();
  }

  private static byte[] row(int i) {
    return Bytes.toBytes(String.format("k%03d", i));
  }

  private static Put put(int row, String value) {
    return new Put(row(row)).addColumn(RegionForTest.F, A, Bytes.toBytes(value));
  }

  private static byte[] entry(IndexedRegion region, int index, String value, int row) {
    return region.keys.entry(index, encoded(value), row(row));
  }

  private static IndexEntry indexEntry(IndexedRegion region, String value, int row) {
    return new IndexEntry(
        region.table.schema.index(1), entry(region, 1, value, row), new byte[][] {encoded(value)}, 0, true);
  }

  /** Past all hooks. */
  private static void writeEntries(HRegion region, Mutation... mutations) throws IOException {
    BatchContext.next().writer = BatchContext.Writer.INDEX;
    try {
      region.batchMutate(mutations);
    } finally {
      BatchContext.next().writer = BatchContext.Writer.CLIENT;
    }
  }

  private static Put entryPut(byte[] key) {
    return new Put(key).addColumn(IndexedTable.FAMILY, IndexedTable.QUALIFIER, 5, IndexedTable.CERTAIN);
  }

  private static Delete entryDelete(byte[] key) {
    return new Delete(key).addColumns(IndexedTable.FAMILY, IndexedTable.QUALIFIER, Long.MAX_VALUE - 1);
  }

  private static Cluster.RegionCheck check(RegionForTest test) throws Exception {
    return Checker.check(test.indexed(), rows -> true);
  }

  private static String problems(Cluster.RegionCheck check) {
    return check.getMissingEntries() + " missing, " + check.getForeignEntries() + " foreign, "
        + check.getMissingInFilter() + " not in filters";
  }

  @Test
  void checkFindsDamageAndRebuildRepairsIt() throws Exception {
    FilterFeed feed = TestServer.start(new FeedOptions());
    tamis.pb.Table.Schema schema =
        schema(1, RegionForTest.index(1, "by_a", true, 1), RegionForTest.index(2, "by_s", true, 4));
    try (RegionForTest test = new RegionForTest(RegionForTest.descriptor(schema, 1), new byte[0], Bytes.toBytes("x"))) {
      IndexedRegion region = test.indexed();
      for (int i = 0; i < 300; ++i) test.region.put(put(i, "v" + i % 100));
      TestServer.open(region);
      Cluster.RegionCheck sound = check(test);
      assertEquals("0 missing, 0 foreign, 0 not in filters", problems(sound));
      assertEquals(300, sound.getRows());
      assertEquals(300, sound.getEntries());
      assertEquals(300, sound.getFilterLookups());
      assertEquals(0, sound.getIncomplete());

      writeEntries(test.region, entryDelete(entry(region, 1, "v3", 3)), entryDelete(entry(region, 1, "v4", 4)),
          entryPut(entry(region, 1, "never there", 3)), entryPut(entry(region, 1, "v3", 999)),
          entryPut(region.keys.entry(1, new byte[] {99}, new byte[0])),
          entryPut(region.keys.entry(1, encoded("v1"), Bytes.toBytes("y"))), entryPut(entry(region, 77, "v1", 1)));
      Cluster.RegionCheck broken = check(test);
      assertEquals("2 missing, 3 foreign, 0 not in filters", problems(broken));
      assertEquals(2, broken.getGarbage());
      assertEquals(5, broken.getProblemsCount(), broken.toString());

      IndexFilter filter = region.filters.get(1);
      for (int i = 5; i < 300; i += 100) filter.remove(Collections.singletonList(indexEntry(region, "v5", i)));
      assertEquals("2 missing, 3 foreign, 3 not in filters", problems(check(test)));

      assertTrue(TestServer.state().indexes.rebuild(region, 2, rows -> true));
      assertEquals("2 missing, 3 foreign, 3 not in filters", problems(check(test)));
      assertTrue(TestServer.state().indexes.rebuild(region, 1, rows -> true));
      Cluster.RegionCheck rebuilt = check(test);
      assertEquals("0 missing, 0 foreign, 0 not in filters", problems(rebuilt), rebuilt.toString());
      assertEquals(1, rebuilt.getGarbage()); // an entry of the index that is no more: a compaction takes it
      assertEquals(300, rebuilt.getEntries());
      test.region.flush(true);
      test.region.compact(true);
      assertEquals(0, check(test).getGarbage());
      assertTrue(feed.last() > 0);
    }
  }

  /** An entry that is not this region's, after all others, must not keep those before it from being counted. */
  @Test
  void entriesBeforeGarbageAreCounted() throws Exception {
    TestServer.start(new FeedOptions());
    try (RegionForTest test =
             new RegionForTest(RegionForTest.descriptor(schema(1, RegionForTest.index(1, "by_a", true, 1)), 1),
                 new byte[0], Bytes.toBytes("x"))) {
      IndexedRegion region = test.indexed();
      for (int i = 0; i < 10; ++i) test.region.put(put(i, "v" + i));
      writeEntries(test.region, entryPut(region.keys.entry(1, encoded("w"), Bytes.toBytes("y"))));
      TestServer.open(region);
      assertEquals("0 missing, 0 foreign, 0 not in filters", problems(check(test)));
      assertEquals(10, region.filters.get(1).entries());
    }
  }

  @Test
  void anIndexOfATableWithRowsIsBuiltAndADroppedOneGoes() throws Exception {
    TestServer.start(new FeedOptions());
    Table.Index a = RegionForTest.index(1, "by_a", true, 1);
    try (RegionForTest test = new RegionForTest(RegionForTest.descriptor(schema(1, a), 1))) {
      for (int i = 0; i < 250; ++i) {
        test.region.put(put(i, "v" + i % 5).addColumn(RegionForTest.G, Bytes.toBytes("b"), Bytes.toBytes("w" + i % 3)));
      }
      Table.Index ba = RegionForTest.index(2, "by_ba", false, 3, 1);
      test.reopen(RegionForTest.descriptor(schema(2, a, ba), 1));
      Cluster.RegionCheck both = check(test);
      assertEquals("0 missing, 0 foreign, 0 not in filters", problems(both), both.toString());
      assertEquals(500, both.getEntries());
      test.reopen(RegionForTest.descriptor(schema(3, ba), 1));
      Cluster.RegionCheck one = check(test);
      assertEquals("0 missing, 0 foreign, 0 not in filters", problems(one));
      assertEquals(250, one.getEntries());
      assertEquals(251, one.getGarbage()); // with its marker
      test.region.flush(true);
      test.region.compact(true);
      assertEquals(0, check(test).getGarbage());
    }
  }

  @Test
  void aRebuildGoesOnUnderWritesAndACoordinatorMissesNothing() throws Exception {
    FilterFeed feed = TestServer.start(new FeedOptions());
    try (RegionForTest test =
             new RegionForTest(RegionForTest.descriptor(schema(1, RegionForTest.index(1, "by_a", true, 1)), 1))) {
      IndexedRegion region = test.indexed();
      for (int i = 0; i < 200; ++i) test.region.put(put(i, "old"));
      TestServer.open(region);
      FeedCopy copy = new FeedCopy(5);
      AtomicReference<String> wrong = new AtomicReference<>();
      CountDownLatch done = new CountDownLatch(1);
      List<Thread> threads = new ArrayList<>();
      threads.add(new Thread(() -> {
        try {
          while (done.getCount() > 0) {
            long sent = System.nanoTime();
            copy.apply(feed.poll(copy.request(SECOND / 20), () -> System.nanoTime() + SECOND), sent);
          }
        } catch (Throwable e) {
          wrong.compareAndSet(null, e.toString());
        }
      }));
      for (int t = 0; t < 2; ++t) {
        int writer = t;
        threads.add(new Thread(() -> {
          Random random = new Random(writer);
          try {
            while (done.getCount() > 0 && wrong.get() == null) {
              int row = random.nextInt(100) * 2 + writer;
              if (random.nextInt(4) == 0) {
                test.region.delete(new Delete(row(row)));
                continue;
              }
              String value = "v" + random.nextInt(1000);
              test.region.put(put(row, value));
              if (copy.excludes(region.id, 1, Hash.of(encoded(value), 1), encoded(value))) {
                wrong.compareAndSet(null, value + " is acknowledged and left out");
              }
            }
          } catch (Throwable e) {
            wrong.compareAndSet(null, e.toString());
          }
        }));
      }
      for (Thread thread : threads) thread.start();
      for (int i = 0; i < 5; ++i) {
        writeEntries(test.region, entryPut(entry(region, 1, "foreign", i)));
        assertTrue(TestServer.state().indexes.rebuild(region, 0, rows -> true));
        Cluster.RegionCheck report = check(test); // while they write
        assertEquals("0 missing, 0 foreign, 0 not in filters", problems(report), report.toString());
      }
      done.countDown();
      for (Thread thread : threads) thread.join();
      assertNull(wrong.get());
    }
  }

  // ---- As messages

  private static Cluster.GetJobReply await(RegionJobs jobs, long job) throws Exception {
    while (true) {
      Cluster.GetJobReply reply = jobs.get(Cluster.GetJobRequest.newBuilder().setJob(job).build(), "kim");
      if (reply.getError().getCode() != Cluster.Error.Code.OK || reply.getEnded()) return reply;
      Thread.yield();
    }
  }

  @Test
  void jobStartsOnceAndReportsEachRegion() throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    List<Long> worked = Collections.synchronizedList(new ArrayList<>());
    RegionJobs jobs = new RegionJobs((job, region, progress, result) -> {
      go.await();
      worked.add(region);
      progress.rows(10 * region);
      if (region == 2) throw new IOException("broken");
    });
    Cluster.StartJobRequest request =
        Cluster.StartJobRequest.newBuilder().setJob(9).addRegionIds(1).addRegionIds(2).build();
    Set<Long> here = new HashSet<>(request.getRegionIdsList());
    jobs.start(request, "kim", here);
    jobs.start(request, "kim", here);
    Cluster.GetJobReply running = jobs.get(Cluster.GetJobRequest.newBuilder().setJob(9).build(), "kim");
    assertFalse(running.getEnded());
    assertEquals(2, running.getRegions());
    go.countDown();
    Cluster.GetJobReply ended = await(jobs, 9);
    assertEquals(30, ended.getRows());
    assertEquals(Cluster.Error.Code.OK, ended.getResults(0).getError().getCode());
    assertEquals("broken", ended.getResults(1).getError().getMessage());
    assertEquals(java.util.Arrays.asList(1L, 2L), worked);
    assertEquals(Cluster.Error.Code.NOT_FOUND, await(jobs, 10).getError().getCode());
  }

  private static Cluster.Error.Code toldTo(RegionJobs jobs, String user) {
    return jobs.get(Cluster.GetJobRequest.newBuilder().setJob(9).build(), user).getError().getCode();
  }

  @Test
  void jobIsReportedToTheUserWhoStartedIt() throws Exception {
    RegionJobs jobs = new RegionJobs((job, region, progress, result) -> {});
    Cluster.StartJobRequest request = Cluster.StartJobRequest.newBuilder().setJob(9).build();
    jobs.start(request, "kim", Collections.emptySet());
    assertEquals(Cluster.Error.Code.OK, toldTo(jobs, "kim"));
    assertEquals(Cluster.Error.Code.NOT_FOUND, toldTo(jobs, "lee"));
    StatusException e = assertThrows(StatusException.class, () -> jobs.start(request, "lee", Collections.emptySet()));
    assertEquals(Cluster.Error.Code.ALREADY_EXISTS, e.code);
    Fault.only(Fault.JOB_FOR_ANYBODY);
    assertEquals(Cluster.Error.Code.OK, toldTo(jobs, "lee"));
  }

  /** The rights to its table were never checked. */
  @Test
  void aRegionThatComesLaterIsNotWorkedOn() throws Exception {
    RegionJobs jobs =
        new RegionJobs((job, region, progress, result) -> result.setCheck(Cluster.RegionCheck.newBuilder().setRows(5)));
    jobs.start(Cluster.StartJobRequest.newBuilder().setJob(9).addRegionIds(1).addRegionIds(2).build(), "kim",
        Collections.singleton(2L));
    Cluster.GetJobReply reply = await(jobs, 9);
    assertEquals(Cluster.Error.Code.UNAVAILABLE, reply.getResults(0).getError().getCode());
    assertFalse(reply.getResults(0).hasCheck());
    assertEquals(5, reply.getResults(1).getCheck().getRows());
  }

  private static Cluster.GetJobReply run(RegionServerState state, Cluster.StartJobRequest.Builder request)
      throws Exception {
    request.setJob(new Random().nextLong());
    assertFalse(
        Cluster.StartJobReply.parseFrom(state.requests.call("StartJob", request.build().toByteArray())).hasError());
    Cluster.GetJobReply reply;
    do {
      reply = Cluster.GetJobReply.parseFrom(state.requests.call(
          "GetJob", Cluster.GetJobRequest.newBuilder().setJob(request.getJob()).build().toByteArray()));
    } while (!reply.getEnded());
    return reply;
  }

  @Test
  void aSampleHasDistinctValuesOfTheRegionsEntries() throws Exception {
    RegionServerState state = TestServer.start(TestServer.life(new FeedOptions()));
    try (RegionForTest test =
             new RegionForTest(RegionForTest.descriptor(schema(1, RegionForTest.index(1, "by_a", true, 1)), 1),
                 new byte[0], Bytes.toBytes("m"))) {
      IndexedRegion region = test.indexed();
      String cut = String.join("", Collections.nCopies(300, "w"));
      for (int i = 0; i < 600; ++i) test.region.put(put(i, "v" + (1000 + i % 300)));
      for (int i = 0; i < 100; ++i) test.region.delete(new Delete(row(600 - 1 - i)));
      test.region.put(put(999, cut));
      TestServer.open(region);
      Cluster.StartJobRequest.Builder request = Cluster.StartJobRequest.newBuilder()
                                                    .setKind(Cluster.StartJobRequest.Kind.SAMPLE)
                                                    .setTableId(region.table.tableId)
                                                    .setIndexId(1)
                                                    .addRegionIds(region.id);
      Cluster.RegionJobResult all = run(state, request.setMostValues(1000)).getResults(0);
      assertEquals("m", all.getEnd().toStringUtf8());
      assertEquals(301, all.getSample().getDistinct());
      assertEquals(301, all.getSample().getValuesCount());
      for (int i = 0; i < 300; ++i) {
        assertEquals(ByteString.copyFrom(encoded("v" + (1000 + i))), all.getSample().getValues(i));
      }
      assertEquals(ByteString.copyFrom(encoded(cut), 0, 256), all.getSample().getValues(300));
      Cluster.ValueSample some = run(state, request.setMostValues(50)).getResults(0).getSample();
      assertEquals(301, some.getDistinct());
      assertEquals(50, new HashSet<>(some.getValuesList()).size());
      assertTrue(new HashSet<>(all.getSample().getValuesList()).containsAll(some.getValuesList()));
      long low = some.getValuesList().stream().filter(v -> v.toStringUtf8().compareTo("\u0002v1150") < 0).count();
      assertTrue(low >= 10 && low <= 40, low + " of 50 are in the lower half");
      for (int most : new int[] {2, 5, 50}) {
        some = run(state, request.setMostValues(most)).getResults(0).getSample();
        assertEquals(most, some.getValuesCount());
        assertEquals(all.getSample().getValues(0), some.getValues(0), "the smallest");
        assertEquals(all.getSample().getValues(300), some.getValues(most - 1), "the largest");
      }
      Cluster.RegionJobResult none = run(state, request.setIndexId(7)).getResults(0);
      assertEquals(Cluster.Error.Code.NOT_FOUND, none.getError().getCode());
      TestServer.close(region);
    }
  }

  @Test
  void theServerAnswersForItsRegions() throws Exception {
    RegionServerState state = TestServer.start(TestServer.life(new FeedOptions()));
    try (RegionForTest test =
             new RegionForTest(RegionForTest.descriptor(schema(1, RegionForTest.index(1, "by_a", true, 1)), 1))) {
      IndexedRegion region = test.indexed();
      for (int i = 0; i < 20; ++i) test.region.put(put(i, "v" + i % 7));
      TestServer.open(region);
      Cluster.StatusReply status =
          state.requests.status(Cluster.StatusRequest.newBuilder().setTableId(region.table.tableId).build());
      assertEquals(1, status.getRegionsCount());
      assertEquals(20, status.getRegions(0).getIndexes(0).getEntries());
      assertTrue(status.getRegions(0).getIndexes(0).getPublished() && status.getFilterBytes() > 0);
      Cluster.StartJobRequest request = Cluster.StartJobRequest.newBuilder()
                                            .setJob(new Random().nextLong())
                                            .setTableId(region.table.tableId)
                                            .addRegionIds(region.id)
                                            .addRegionIds(region.id + 1)
                                            .build();
      assertFalse(Cluster.StartJobReply.parseFrom(state.requests.call("StartJob", request.toByteArray())).hasError());
      Cluster.GetJobReply reply;
      do {
        reply = Cluster.GetJobReply.parseFrom(state.requests.call(
            "GetJob", Cluster.GetJobRequest.newBuilder().setJob(request.getJob()).build().toByteArray()));
      } while (!reply.getEnded());
      assertEquals(20, reply.getResults(0).getCheck().getRows());
      assertEquals(Cluster.Error.Code.UNAVAILABLE, reply.getResults(1).getError().getCode());
      TestServer.close(region);
    }
  }
}
