package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InterruptedIOException;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.NotServingRegionException;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.regionserver.RegionServerStoppedException;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.search.SearchTest;
import tamis.shaded.protobuf.ByteString;
import tamis.table.Codec;
import tamis.table.Value;

/** Calls that fail since HBase closes, under them, what they read from. */
class LeavingRegionTest {
  private static final byte[] ROW = Bytes.toBytes("r");
  private static final byte[] A = Bytes.toBytes("a");

  private RegionServerState state;
  private RegionForTest test;
  private IndexedRegion region;

  @BeforeEach
  void openRegion() throws Exception {
    state = TestServer.start(new ServerLife());
    test = RegionForTest.of(1, RegionForTest.index(1, "by_a", true, 1));
    region = test.indexed();
    TestServer.tell(region);
    test.region.put(new Put(ROW).addColumn(RegionForTest.F, A, A));
  }

  @AfterEach
  void closeRegion() throws Exception {
    Fault.only();
    TestServer.close(region);
    test.close();
  }

  private Cluster.Error search() {
    Cluster.SearchRequest request =
        Cluster.SearchRequest.newBuilder()
            .setTableId(region.table.tableId)
            .setSchemaVersion(1)
            .addRanges(Cluster.SearchRange.newBuilder().setRegionId(region.id))
            .addBranches(
                Cluster.Branch.newBuilder()
                    .setPredicate(SearchTest.compare(1, tamis.pb.Table.Predicate.Op.EQ, Value.text("a")).toByteString())
                    .addStreams(SearchTest.stream(1, SearchTest.equal(Value.text("a")))))
            .build();
    return state.requests.search(request).getResults(0).getError();
  }

  private Cluster.Error write(byte[] row) throws IOException {
    Value[] values = new Value[5];
    values[0] = Value.bytes(row);
    values[1] = Value.text("b");
    Cluster.MutateRequest request =
        Cluster.MutateRequest.newBuilder()
            .setTableId(region.table.tableId)
            .setSchemaVersion(1)
            .addRegions(Cluster.RegionMutations.newBuilder().setRegionId(region.id).addMutations(
                Cluster.Mutation.newBuilder()
                    .setKey(ByteString.copyFrom(row))
                    .setRow(ByteString.copyFrom(Codec.encodeRow(region.table.schema, values, null)))))
            .build();
    return state.requests.mutate(request).getRegions(0).getError();
  }

  private Cluster.Error job(Cluster.StartJobRequest.Kind kind) throws Exception {
    Cluster.StartJobRequest request = Cluster.StartJobRequest.newBuilder()
                                          .setJob(System.nanoTime())
                                          .setKind(kind)
                                          .setTableId(region.table.tableId)
                                          .addRegionIds(region.id)
                                          .build();
    assertEquals(Cluster.Error.Code.OK, state.requests.startJob(request).getError().getCode());
    while (true) {
      Cluster.GetJobReply reply = Cluster.GetJobReply.parseFrom(state.requests.call(
          "GetJob", Cluster.GetJobRequest.newBuilder().setJob(request.getJob()).build().toByteArray()));
      if (reply.getEnded()) return reply.getResults(0).getError();
      Thread.yield();
    }
  }

  private void fail(Fault... more) {
    Fault[] faults = java.util.Arrays.copyOf(more, more.length + 1);
    faults[more.length] = Fault.STREAM_CLOSED_IN_READ;
    Fault.only(faults);
  }

  @Test
  void failureOfARunningServerIsReported() throws Exception {
    fail();
    assertEquals(Cluster.Error.Code.INTERNAL, search().getCode());
    assertTrue(search().getMessage().contains("NullPointerException"), search().getMessage());
    assertEquals(Cluster.Error.Code.INTERNAL, job(Cluster.StartJobRequest.Kind.CHECK).getCode());
    assertThrows(DoNotRetryIOException.class, () -> test.region.put(new Put(ROW).addColumn(RegionForTest.F, A, ROW)));
  }

  @Test
  void failureOfAStoppingServerIsReportedAsNotServing() throws Exception {
    state.server.ending = () -> true;
    fail();
    assertEquals(Cluster.Error.Code.UNAVAILABLE, search().getCode());
    assertEquals(Cluster.Error.Code.UNAVAILABLE, job(Cluster.StartJobRequest.Kind.CHECK).getCode());
    assertEquals(Cluster.Error.Code.UNAVAILABLE, job(Cluster.StartJobRequest.Kind.REBUILD).getCode());
    fail(Fault.FAILURE_OF_A_CLOSING_REGION_TOLD);
    assertEquals(Cluster.Error.Code.INTERNAL, search().getCode());
    assertEquals(Cluster.Error.Code.INTERNAL, job(Cluster.StartJobRequest.Kind.CHECK).getCode());
  }

  @Test
  void failureOfAClosingRegionIsReportedAsNotServing() throws Exception {
    region.closing = true;
    fail();
    assertEquals(Cluster.Error.Code.UNAVAILABLE, search().getCode());
    region.closing = false;
  }

  /** The client looks for the region, and repeats what was not done. */
  @Test
  void writeOfAClientIsSentToAnotherServer() throws Exception {
    state.server.ending = () -> true;
    String before = test.raw(ROW);
    fail();
    assertThrows(
        NotServingRegionException.class, () -> test.region.put(new Put(ROW).addColumn(RegionForTest.F, A, ROW)));
    assertThrows(NotServingRegionException.class, () -> test.region.delete(new Delete(ROW)));
    Fault.only();
    assertEquals(before, test.raw(ROW));
  }

  @Test
  void aWriteOfOursThatWasBegunStaysUnknown() throws Exception {
    state.server.ending = () -> true;
    fail();
    assertEquals(Cluster.Error.Code.UNAVAILABLE, write(ROW).getCode()); // it reads before any condition is asked
    Fault.only(Fault.STREAM_CLOSED_BEHIND_CONDITIONS);
    Cluster.Error begun = write(ROW);
    assertEquals(Cluster.Error.Code.DEADLINE_EXCEEDED, begun.getCode(), begun.getMessage());
    assertTrue(begun.getMessage().contains("may have been carried out"), begun.getMessage());
  }

  @Test
  void failureOutsideOfARegionIsReportedAsAStop() throws Exception {
    Fault.only(Fault.STREAM_CLOSED_IN_CALL);
    byte[] none = new byte[0];
    assertThrows(NullPointerException.class, () -> state.requests.call("Status", none));
    state.server.ending = () -> true;
    assertThrows(RegionServerStoppedException.class, () -> state.requests.call("Status", none));
    assertThrows(RegionServerStoppedException.class, () -> state.requests.call("Search", none));
    assertThrows(NullPointerException.class, () -> state.requests.call("Mutate", none)); // it may stand
  }

  @Test
  void uncheckedExceptionProvesNothingAboutTheRequest() {
    Throwable failure = new IllegalStateException("closed");
    for (Throwable e : new Throwable[] {failure, new OutOfMemoryError(), new InterruptedException(),
             new DoNotRetryIOException("a hook", failure),
             new DoNotRetryIOException("twice", new DoNotRetryIOException("", failure))}) {
      assertTrue(StatusException.provesNothing(e), e.toString());
      assertEquals(Cluster.Error.Code.UNAVAILABLE, StatusException.errorOf(e, true).getCode());
    }
    Throwable refused = new DoNotRetryIOException("family \"tamis\" holds the entries");
    assertEquals(Cluster.Error.Code.INVALID_ARGUMENT, StatusException.errorOf(refused, true).getCode());
    assertEquals(Cluster.Error.Code.INVALID_ARGUMENT,
        StatusException.errorOf(new StatusException(Cluster.Error.Code.INVALID_ARGUMENT, "wrong"), true).getCode());
    assertEquals(Cluster.Error.Code.INVALID_ARGUMENT,
        StatusException.errorOf(new DoNotRetryIOException("a hook", new IOException("wrong")), true).getCode());
    // The server does not stop.
    assertEquals(Cluster.Error.Code.INTERNAL, StatusException.errorOf(failure, false).getCode());
    assertEquals(
        Cluster.Error.Code.RESOURCE_EXHAUSTED, StatusException.errorOf(new OutOfMemoryError(), false).getCode());
    assertEquals(Cluster.Error.Code.UNAVAILABLE, StatusException.errorOf(new InterruptedException(), false).getCode());
    assertEquals(
        Cluster.Error.Code.UNAVAILABLE, StatusException.errorOf(new InterruptedIOException(), false).getCode());
  }
}
