package tamis.table;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import tamis.filter.SplitGeometry;
import tamis.pb.Table;
import tamis.shaded.protobuf.ByteString;

class SchemaTest {
  private static final int UNKNOWN = 99; // like the numbers of a later version

  private static Table.Schema.Builder schema(Table.Index.Builder index) {
    Table.Schema.Builder schema = Table.Schema.newBuilder().setId(1).setName("t").setVersion(1);
    for (int i = 0; i < 3; ++i) {
      schema.addColumns(
          Table.Column.newBuilder().setId(i + 1).setName("c" + i).setType(Table.ColumnType.INT64).setNotNull(i == 0));
    }
    return schema.addKey(0).addIndexes(index);
  }

  private static Table.Index.Builder index() {
    return Table.Index.newBuilder().setId(1).setName("by_c1").addColumns(1).setFpr(0.01).setExpectedValues(10);
  }

  private static Table.Index.Builder extended(Table.Index.Extension.Builder extension) {
    return index().setNulls(Table.Index.Nulls.EXTENDED).setExtension(extension);
  }

  private static String refusal(Table.Index.Builder index) {
    return assertThrows(DamagedBytesException.class, () -> Schema.of(schema(index).build())).getMessage();
  }

  @Test
  void anIndexWithoutExtensionIsReadAsBefore() throws Exception {
    Schema.Index plain = Schema.of(schema(index()).build()).indexes[0];
    assertFalse(plain.skipsNull);
    assertArrayEquals(new int[0], plain.include);
    assertNull(plain.where);
    assertTrue(Schema.of(schema(index().setNulls(Table.Index.Nulls.SKIP)).build()).indexes[0].skipsNull);
  }

  private static String refusal(Table.Column.Builder column) {
    Table.Schema.Builder schema = schema(index()).addColumns(column.setId(9).setName("computed"));
    return assertThrows(DamagedBytesException.class, () -> Schema.of(schema.build())).getMessage();
  }

  @Test
  void computedColumnsThatDoNotFitAreRefused() {
    Table.Expression.Builder hour =
        Table.Expression.newBuilder().setFunction(Table.Expression.Function.HOUR).setSource(1);
    Table.Column.Builder column = Table.Column.newBuilder().setType(Table.ColumnType.COMPUTED);
    assertTrue(refusal(column.clone()).contains("expression"));
    assertTrue(refusal(column.clone().setExpression(hour)).contains("cannot be computed"), "of an int64");
    assertTrue(refusal(column.clone().setExpression(hour.clone().setSource(3))).contains("cannot be computed"));
    assertTrue(refusal(column.clone().setExpression(hour.clone().setSource(99))).contains("cannot be computed"));
    assertTrue(refusal(column.clone().setExpression(hour.clone().setFunctionValue(77))).contains("expression"));
    assertTrue(refusal(column.clone().setExpression(hour.clone().setLength(1))).contains("expression"));
    assertTrue(refusal(column.clone().setExpression(hour).setType(Table.ColumnType.INT64)).contains("computed"));
    assertTrue(refusal(column.clone().setExpression(hour).setNotNull(true)).contains("computed"));
  }

  @Test
  void featuresThatAreNotSupportedAreRefused() {
    assertEquals(
        "cannot read a table schema: index \"by_c1\" requires feature number 99, which this jar does not support; "
            + "use the jar of the version that made the index",
        refusal(extended(Table.Index.Extension.newBuilder().addRequiredValue(99))));
    for (Table.Index.Extension.Feature feature : Table.Index.Extension.Feature.values()) {
      if (feature == Table.Index.Extension.Feature.UNRECOGNIZED) continue;
      String why = refusal(extended(Table.Index.Extension.newBuilder().addRequired(feature)));
      assertTrue(why.contains("requires " + feature.name() + ", ") || why.contains("does not have exactly"), why);
    }
  }

  @Test
  void cellsAreReadAndDamagedOnesRefused() throws Exception {
    Table.Index.Extension.Builder ranges =
        Table.Index.Extension.newBuilder().addRequired(Table.Index.Extension.Feature.RANGES);
    CellMap map = CellMapForTest.of(10, 3, new byte[] {2, 5}, new byte[] {2, 9});
    Table.Index.Builder index = extended(ranges.clone().setCellMap(ByteString.copyFrom(map.toBytes())));
    assertEquals(map.version(), Schema.of(schema(index).build()).indexes[0].cellMap.version());
    assertNull(Schema.of(schema(index()).build()).indexes[0].cellMap);
    assertTrue(Schema.supportedFeatures().contains(Table.Index.Extension.Feature.RANGES.getNumber()));
    assertTrue(refusal(extended(ranges.clone())).contains("does not have exactly"));
    assertTrue(refusal(extended(ranges.clone().setCellMap(ByteString.copyFromUtf8("?")))).contains("cell map"));
    Table.Index.Extension.Builder unsaid = Table.Index.Extension.newBuilder()
                                               .addRequired(Table.Index.Extension.Feature.INCLUDE)
                                               .addInclude(2)
                                               .setCellMap(ByteString.copyFrom(map.toBytes()));
    assertTrue(refusal(extended(unsaid)).contains("does not have exactly"));
  }

  @Test
  void numbersThatDoNotBelongTogetherAreRefused() {
    assertTrue(refusal(extended(Table.Index.Extension.newBuilder())).contains("does not have exactly"));
    assertTrue(refusal(index().setExtension(Table.Index.Extension.newBuilder())).contains("malformed"));
    assertTrue(refusal(index().setNullsValue(3)).contains("malformed"));
    assertTrue(refusal(extended(Table.Index.Extension.newBuilder().addInclude(2))).contains("does not have exactly"));
    Table.Index.Extension.Builder where =
        Table.Index.Extension.newBuilder()
            .addRequired(Table.Index.Extension.Feature.WHERE)
            .setWhere(Table.Predicate.newBuilder().setKind(Table.Predicate.Kind.IS_NULL).setColumn(7));
    assertTrue(refusal(extended(where)).contains("names column number 7"));
  }

  @Test
  void regionsOfAnIndexShareItsCellMap() throws Exception {
    byte[] bytes = CellMapForTest.of(10, 3, new byte[] {2, 5}, new byte[] {2, 9}).toBytes();
    byte[] others = CellMapForTest.of(10, 3, new byte[] {2, 5}, new byte[] {2, 8}).toBytes();
    assertSame(CellMaps.of(bytes), CellMaps.of(bytes.clone()));
    assertArrayEquals(others, CellMaps.of(others).toBytes());
    Table.Schema.Builder schema = schema(extended(Table.Index.Extension.newBuilder()
                                                      .addRequired(Table.Index.Extension.Feature.RANGES)
                                                      .setCellMap(ByteString.copyFrom(bytes))));
    assertSame(Schema.of(schema.build()).indexes[0].cellMap, Schema.of(schema.build()).indexes[0].cellMap);
  }

  /** No filter is made for more than 2^31 values, whatever the index expects of a region. */
  @Test
  void moreValuesThanAFilterCanHaveAreRefused() throws Exception {
    assertEquals(1L << 32, Schema.of(schema(index().setExpectedValues(1L << 32)).build()).indexes[0].expectedValues);
    assertTrue(refusal(index().setExpectedValues((1L << 32) + 1)).contains("malformed"));
    assertTrue(refusal(index().setExpectedValues(0)).contains("malformed"));
    assertTrue(refusal(index().setExpectedValues(-1)).contains("malformed"));
    SplitGeometry largest = SplitGeometry.of(0.01, SplitGeometry.MAX_CAPACITY);
    assertEquals(largest, SplitGeometry.of(0.01, SplitGeometry.MAX_CAPACITY + 1));
    assertEquals(largest, SplitGeometry.of(0.01, 1L << 32));
    assertTrue(largest.slicePositions < 1L << 32);
  }

  /**
   * A jar of before a kind of index takes none of that kind for an ordinary index, whose filter it would believe: such
   * an index has a number in a place where every jar refuses numbers that it does not know.
   */
  @Test
  void jarsThatDoNotKnowAKindOfIndexRefuseIt() throws Exception {
    CellMap map = CellMapForTest.of(10, 3, new byte[] {2, 5}, new byte[] {2, 9});
    Table.Predicate isNull = Table.Predicate.newBuilder().setKind(Table.Predicate.Kind.IS_NULL).setColumn(2).build();
    Table.Index.Extension[] kinds = {
        Table.Index.Extension.newBuilder().addRequired(Table.Index.Extension.Feature.INCLUDE).addInclude(2).build(),
        Table.Index.Extension.newBuilder().addRequired(Table.Index.Extension.Feature.WHERE).setWhere(isNull).build(),
        Table.Index.Extension.newBuilder()
            .addRequired(Table.Index.Extension.Feature.RANGES)
            .setCellMap(ByteString.copyFrom(map.toBytes()))
            .build()};
    for (Table.Index.Extension kind : kinds) {
      Schema.of(schema(extended(kind.toBuilder())).build());
      // A schema without the numbers is refused.
      assertTrue(refusal(index().setExtension(kind)).contains("malformed"));
      assertTrue(refusal(extended(kind.toBuilder().clearRequired())).contains("does not have exactly"));
      // A jar without extensions: 0 and 1 were all of them.
      assertTrue(Table.Index.Nulls.EXTENDED.getNumber() > 1);
      assertTrue(refusal(extended(kind.toBuilder()).setNullsValue(UNKNOWN)).contains("malformed"));
      // A jar with extensions, but without this one.
      String unknown = refusal(extended(kind.toBuilder().setRequiredValue(0, UNKNOWN)));
      assertTrue(unknown.contains("feature number " + UNKNOWN));
    }
    Table.Expression.Builder hour =
        Table.Expression.newBuilder().setFunction(Table.Expression.Function.HOUR).setSource(1);
    Table.Column.Builder computed = Table.Column.newBuilder().setExpression(hour);
    assertTrue(Table.ColumnType.COMPUTED.getNumber() > Table.ColumnType.DECIMAL.getNumber());
    assertTrue(refusal(computed.clone().setTypeValue(UNKNOWN)).contains("cannot read a table schema"));
    assertTrue(refusal(computed.clone().setType(Table.ColumnType.TEXT)).contains("computed"));
  }
}
