package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.Collections;
import java.util.Optional;
import java.util.function.BiPredicate;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionObserver;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.regionserver.FlushLifeCycleTracker;
import org.apache.hadoop.hbase.security.AccessDeniedException;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.feed.FeedOptions;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.pb.Cluster.Error.Code;
import tamis.pb.Cluster.Mutation.Kind;
import tamis.pb.Table.Predicate;
import tamis.pb.TableAttributes.TableAttributesReply;
import tamis.region.BuildFailure;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.region.TableAttributes;
import tamis.shaded.protobuf.ByteString;
import tamis.table.Codec;
import tamis.table.Key;
import tamis.table.Value;

/** The rights that our messages require, checked by another coprocessor of the region. */
class RightsTest {
  private static final byte[] A = Bytes.toBytes("a");
  private static final byte[] ROW = Bytes.toBytes("r");

  /** Refuses all users to read some columns, or hides some cells from them; refuses all users to flush. */
  public static final class Keeper implements RegionCoprocessor, RegionObserver {
    // Qualifier null: of the whole family.
    static volatile BiPredicate<byte[], byte[]> hidden = (family, qualifier) -> false;
    static volatile boolean filters;
    static volatile boolean refusesFlush;

    @Override
    public Optional<RegionObserver> getRegionObserver() {
      return Optional.of(this);
    }

    @Override
    public void preScannerOpen(ObserverContext<RegionCoprocessorEnvironment> c, Scan scan) throws IOException {
      boolean[] hides = new boolean[1];
      scan.getFamilyMap().forEach((family, qualifiers) -> {
        if (qualifiers == null) hides[0] |= hidden.test(family, null);
        else
          for (byte[] qualifier : qualifiers) hides[0] |= hidden.test(family, qualifier);
      });
      if (hides[0] && !filters) throw new AccessDeniedException("Insufficient permissions");
      if (hides[0]) scan.setFilter(new FirstKeyOnlyFilter());
    }

    @Override
    public void preFlush(ObserverContext<RegionCoprocessorEnvironment> c, FlushLifeCycleTracker tracker)
        throws IOException {
      if (refusesFlush) throw new AccessDeniedException("Insufficient permissions");
    }
  }

  private static long job = 1L << 40; // numbers of other tests are drawn

  private RegionServerState state;
  private RegionForTest test;
  private IndexedRegion region;

  @BeforeEach
  void openRegion() throws Exception {
    state = TestServer.start(TestServer.life(new FeedOptions()));
    tamis.pb.Table.Schema schema =
        RegionForTest.schema()
            .addColumns(RegionForTest.computed(6, "start_of_a", 1))
            .addIndexes(RegionForTest.index(1, "by_a", true, 1))
            .addIndexes(RegionForTest.where(RegionForTest.index(2, "s_of_a", true, 4), isA("known")))
            .build();
    TableDescriptor table = RegionForTest.descriptor(schema, 1);
    test = new RegionForTest(TableDescriptorBuilder.newBuilder(table).setCoprocessor(Keeper.class.getName()).build());
    test.region.put(new Put(ROW).addColumn(RegionForTest.F, A, Bytes.toBytes("known")));
    region = test.indexed();
    TestServer.open(region);
  }

  @AfterEach
  void closeRegion() throws Exception {
    Fault.only();
    Keeper.hidden = (family, qualifier) -> false;
    Keeper.filters = false;
    Keeper.refusesFlush = false;
    TestServer.close(region);
    test.close();
    TestServer.stop();
  }

  /** Column a, alone or with all of its family. */
  private static void hideA() {
    Keeper.hidden = (family, qualifier)
        -> Key.compare(family, RegionForTest.F) == 0 && (qualifier == null || Key.compare(qualifier, A) == 0);
  }

  private static Predicate isA(String value) {
    return Predicate.newBuilder()
        .setKind(Predicate.Kind.COMPARE)
        .setOp(Predicate.Op.EQ)
        .setColumn(1)
        .addValues(tamis.pb.Table.Value.newBuilder().setText(ByteString.copyFromUtf8(value)))
        .build();
  }

  // ---- Searches

  /** "1 rows", or why not. */
  private String searchByA() {
    return search(isA("known"));
  }

  private String search(Predicate condition) {
    Cluster.SearchRequest request = Cluster.SearchRequest.newBuilder()
                                        .setTableId(region.table.tableId)
                                        .setSchemaVersion(1)
                                        .addRanges(Cluster.SearchRange.newBuilder().setRegionId(region.id))
                                        .addBranches(Cluster.Branch.newBuilder().setPredicate(condition.toByteString()))
                                        .build();
    Cluster.RangeResult result = state.requests.search(request).getResults(0);
    return result.getError().getCode() == Code.OK ? result.getRowsCount() + " rows"
                                                  : result.getError().getCode() + ": " + result.getError().getMessage();
  }

  private String searchWhereA() {
    Cluster.IndexStream.Builder stream =
        Cluster.IndexStream.newBuilder().setIndexId(2).addRanges(Cluster.IndexRange.newBuilder());
    Predicate all = Predicate.newBuilder().setKind(Predicate.Kind.TRUE).build();
    Cluster.SearchRequest request =
        Cluster.SearchRequest.newBuilder()
            .setTableId(region.table.tableId)
            .setSchemaVersion(1)
            .addRanges(Cluster.SearchRange.newBuilder().setRegionId(region.id))
            .addBranches(Cluster.Branch.newBuilder().addStreams(stream).setPredicate(all.toByteString()))
            .build();
    return state.requests.search(request).getResults(0).getError().getMessage();
  }

  /** Its answer tells in which rows the condition of the index is true. */
  @Test
  void searchByAPartialIndexReadsTheColumnsOfItsCondition() {
    assertEquals("", searchWhereA());
    hideA();
    assertEquals("Insufficient permissions", searchWhereA());
    Fault.only(Fault.INDEX_CONDITION_FOR_READERS);
    assertEquals("", searchWhereA());
  }

  @Test
  void whereAnotherHookRefusesOrFiltersASearchIsRefused() {
    assertEquals("1 rows", searchByA());
    hideA();
    assertEquals("FAILED_PRECONDITION: Insufficient permissions", searchByA());
    Keeper.filters = true;
    assertTrue(searchByA().startsWith("FAILED_PRECONDITION: you may read only some cells"), searchByA());
    Fault.only(Fault.FILTERED_READ_ALLOWED);
    assertEquals("1 rows", searchByA());
  }

  @Test
  void aComputedColumnIsReadByThoseWhoMayReadItsSource() {
    Predicate start = isA("kn").toBuilder().setColumn(5).build();
    assertEquals("1 rows", search(start));
    hideA();
    assertEquals("FAILED_PRECONDITION: Insufficient permissions", search(start));
  }

  @Test
  void nothingOfATableIsSentWhereAnotherHookFilters() throws Exception {
    assertEquals(
        Collections.singleton(region.table.tableId), new TableReaders().tablesOf(Collections.singletonList(region)));
    hideA();
    Keeper.filters = true;
    assertEquals(Collections.emptySet(), new TableReaders().tablesOf(Collections.singletonList(region)));
    assertEquals(Code.FAILED_PRECONDITION, startJob(Cluster.StartJobRequest.Kind.CHECK));
  }

  @Test
  void schemaIsSentToUsersWhoReadAtLeastOneColumn() throws Exception {
    TableAttributesReply attributes = TableAttributes.of(region);
    assertEquals(ByteString.copyFrom(region.region.getTableDescriptor().getValue(IndexedTable.SCHEMA)),
        attributes.getAttributesOrThrow("tamis.schema"));
    assertTrue(attributes.getAttributesMap().keySet().stream().allMatch(name -> name.startsWith("tamis.")));
    hideA();
    Keeper.filters = true;
    assertEquals(attributes, TableAttributes.of(region));
    Keeper.filters = false;
    assertThrows(AccessDeniedException.class, () -> TableAttributes.of(region));
    Fault.only(Fault.SCHEMA_FOR_ALL);
    assertEquals(attributes, TableAttributes.of(region));
  }

  // ---- Writes

  /** The outcome, or the error of all. */
  private String write(Kind kind, Predicate condition) throws Exception {
    Value[] row = {null, Value.text("known"), null, null, null};
    Cluster.Mutation.Builder mutation =
        Cluster.Mutation.newBuilder()
            .setKind(kind)
            .setKey(ByteString.copyFrom(ROW))
            .setRow(ByteString.copyFrom(Codec.encodeRow(region.table.schema, row, null)))
            .addColumns(2);
    if (condition != null) mutation.setCondition(condition.toByteString());
    Cluster.RegionMutateResult result =
        state.requests
            .mutate(Cluster.MutateRequest.newBuilder()
                        .setTableId(region.table.tableId)
                        .setSchemaVersion(1)
                        .addRegions(Cluster.RegionMutations.newBuilder().setRegionId(region.id).addMutations(mutation))
                        .build())
            .getRegions(0);
    return result.hasError() ? "refused: " + result.getError().getMessage() : result.getResults(0).getCode().name();
  }

  @Test
  void writerWithoutReadRightLearnsNothingOfTheRow() throws Exception {
    assertEquals("OK", write(Kind.PUT, isA("known")));
    assertEquals("FAILED_PRECONDITION", write(Kind.PUT, isA("other")));
    assertEquals("ALREADY_EXISTS", write(Kind.INSERT_IF_ABSENT, null));
    hideA();
    String refused = "refused: Insufficient permissions";
    String before = test.raw(ROW);
    for (Kind kind : new Kind[] {Kind.PUT, Kind.DELETE}) {
      assertEquals(refused, write(kind, isA("known")));
      assertEquals(refused, write(kind, isA("other")));
    }
    assertEquals(refused, write(Kind.INSERT_IF_ABSENT, null));
    assertEquals(refused, write(Kind.UPDATE, null));
    assertEquals(before, test.raw(ROW));
    Keeper.filters = true;
    assertTrue(write(Kind.PUT, isA("known")).startsWith("refused: you may read only some cells"));
    assertEquals("OK", write(Kind.PUT, null));
    assertEquals("OK", write(Kind.DELETE, null));
  }

  /** Any cell of a row shows that the row is there. */
  @Test
  void readerOfSomeColumnsDoesNotLearnWhetherARowExists() throws Exception {
    Keeper.hidden = (family, qualifier) -> Key.compare(family, RegionForTest.G) == 0;
    assertEquals("OK", write(Kind.PUT, isA("known")));
    assertTrue(write(Kind.UPDATE, null).startsWith("refused"));
    assertTrue(write(Kind.INSERT_IF_ABSENT, isA("known")).startsWith("refused"));
  }

  @Test
  void faultConditionForWritersTellsTheRow() throws Exception {
    hideA();
    Fault.only(Fault.CONDITION_FOR_WRITERS);
    assertEquals("FAILED_PRECONDITION", write(Kind.PUT, isA("other")));
    assertEquals("ALREADY_EXISTS", write(Kind.INSERT_IF_ABSENT, null));
  }

  // ---- Jobs

  /** Waits for its end where it began. */
  private Code startJob(Cluster.StartJobRequest.Kind kind) throws Exception {
    Cluster.StartJobRequest request = Cluster.StartJobRequest.newBuilder()
                                          .setJob(++job)
                                          .setKind(kind)
                                          .setTableId(region.table.tableId)
                                          .addRegionIds(region.id)
                                          .build();
    Code code =
        Cluster.StartJobReply.parseFrom(state.requests.call("StartJob", request.toByteArray())).getError().getCode();
    while (code == Code.OK
        && !Cluster.GetJobReply
                .parseFrom(
                    state.requests.call("GetJob", Cluster.GetJobRequest.newBuilder().setJob(job).build().toByteArray()))
                .getEnded()) {
      Thread.yield();
    }
    return code;
  }

  @Test
  void userThatMayNotFlushMayNotRebuild() throws Exception {
    assertEquals(Code.OK, startJob(Cluster.StartJobRequest.Kind.REBUILD));
    Keeper.refusesFlush = true;
    assertEquals(Code.OK, startJob(Cluster.StartJobRequest.Kind.CHECK));
    assertEquals(Code.FAILED_PRECONDITION, startJob(Cluster.StartJobRequest.Kind.REBUILD));
    Fault.only(Fault.REBUILD_FOR_READERS);
    assertEquals(Code.OK, startJob(Cluster.StartJobRequest.Kind.REBUILD));
  }

  // ---- Status

  private Cluster.StatusReply status() {
    return state.requests.status(Cluster.StatusRequest.newBuilder().setTableId(region.table.tableId).build());
  }

  @Test
  void numberOfRowsIsReportedOnlyToReaders() throws Exception {
    state.feed.poll(
        Cluster.PollRequest.newBuilder().setCoordinator(77).build(), () -> System.nanoTime() + 1_000_000_000L);
    assertEquals(1, status().getRegions(0).getIndexes(0).getEntries());
    assertEquals(77, status().getCoordinators(0).getCoordinator());
    state.server.secured = true;
    hideA();
    Cluster.StatusReply told = status();
    assertEquals(0, told.getRegions(0).getIndexes(0).getEntries());
    assertTrue(told.getRegions(0).getIndexes(0).getPublished());
    assertEquals(1, told.getCoordinatorsCount());
    assertEquals(0, told.getCoordinators(0).getCoordinator());
  }

  /** It may name keys. */
  @Test
  void reasonOfAFailedBuildIsReportedOnlyToReaders() throws Exception {
    region.failure = BuildFailure.of(new IOException("row r is damaged"), null);
    assertEquals("row r is damaged", status().getRegions(0).getFailure().getError().getMessage());
    state.server.secured = true;
    hideA();
    Cluster.BuildFailure told = status().getRegions(0).getFailure();
    assertEquals(1, told.getAttempts());
    assertEquals(Code.UNAVAILABLE, told.getError().getCode());
    assertFalse(told.getError().getMessage().contains("row r"), told.toString());
  }
}
