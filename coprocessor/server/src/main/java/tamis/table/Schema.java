package tamis.table;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import tamis.pb.Table;
import tamis.shaded.protobuf.ByteString;
import tamis.shaded.protobuf.InvalidProtocolBufferException;

/** The columns, key and indexes of a table; tamis::TableSchema. A value; every change makes a new version. */
public final class Schema {
  /** Where a column stands in a row of cells. */
  public static final class Column {
    public final int id;
    public final String name;
    public final Type type;
    public final boolean nullable;
    public final byte[] family;
    public final byte[] qualifier;
    public final CellEncoding encoding; // NONE: in the key, or not a cell
    public final Expression expression; // computed columns, which have no cell; null: the column is not computed

    Column(Table.Column message) throws DamagedBytesException {
      id = message.getId();
      name = message.getName();
      boolean computed = message.getType() == Table.ColumnType.COMPUTED;
      expression = computed ? Expression.of(message.getExpression()) : null;
      type = expression != null ? expression.resultType() : Type.of(message.getTypeValue());
      nullable = !message.getNotNull();
      family = message.getFamily().toByteArray();
      qualifier = message.getQualifier().toByteArray();
      encoding = CellEncoding.of(message.getEncodingValue());
      if (type == null || encoding == null || (encoding != CellEncoding.NONE && !encoding.isOf(type))) {
        throw damaged("column \"" + name + "\" has an unknown type, encoding or expression");
      }
      if (computed != message.hasExpression() || (computed && (!nullable || encoding != CellEncoding.NONE))) {
        throw damaged("column \"" + name + "\" is computed, and has what only other columns have");
      }
    }
  }

  /** How one column of a row key stands in the key's bytes; tamis::KeyPart. */
  public static final class KeyPart {
    /** The numbers are stored. */
    public enum Form { ORDERED, FIXED, UNTIL, REST }

    public final Form form;
    public final CellEncoding encoding;
    public final int width;
    public final byte[] delimiter;

    public KeyPart(Form form, CellEncoding encoding, int width, byte[] delimiter) {
      this.form = form;
      this.encoding = encoding;
      this.width = width;
      this.delimiter = delimiter;
    }

    static KeyPart of(Table.KeyPart message, Type type) throws DamagedBytesException {
      Form[] forms = Form.values();
      CellEncoding encoding = CellEncoding.of(message.getEncodingValue());
      int number = message.getFormValue();
      boolean good = number >= 0 && number < forms.length && encoding != null;
      Form form = good ? forms[number] : null;
      byte[] delimiter = message.getDelimiter().toByteArray();
      if (good && form != Form.ORDERED) {
        good = encoding.isOf(type) && (form != Form.UNTIL || delimiter.length > 0)
            && (form != Form.FIXED || encoding.width() > 0 || message.getWidth() > 0);
      }
      if (!good) throw damaged("a key part is of an unknown form");
      return new KeyPart(form, encoding, message.getWidth(), delimiter);
    }
  }

  /** Features that indexes may require; a schema that requires another one is refused. */
  private static final Set<Table.Index.Extension.Feature> SUPPORTED =
      Collections.unmodifiableSet(EnumSet.of(Table.Index.Extension.Feature.INCLUDE, Table.Index.Extension.Feature.WHERE,
          Table.Index.Extension.Feature.RANGES));

  /** The numbers of the features that indexes may require. */
  public static List<Integer> supportedFeatures() {
    List<Integer> numbers = new ArrayList<>();
    for (Table.Index.Extension.Feature feature : SUPPORTED) numbers.add(feature.getNumber());
    return numbers;
  }

  /** An index on one or more columns. */
  public static final class Index {
    public final int id;
    public final String name;
    public final int[] columns; // positions
    public final double fpr;
    public final long expectedValues;
    public final long seed;
    public final boolean skipsNull; // no entry while the first column is NULL
    public final int[] include; // positions of columns whose values stand in the entry, besides `columns` and the key
    public final Predicate where; // rows for which it is not true have no entry; null: all rows may have one
    public final CellMap cellMap; // filters have a bit for each cell of it besides; null: they have none

    Index(Table.Index message, int columnCount) throws DamagedBytesException {
      id = message.getId();
      name = message.getName();
      columns = positions(message.getColumnsList(), columnCount);
      fpr = message.getFpr();
      expectedValues = message.getExpectedValues();
      seed = message.getSeed();
      boolean extended = message.getNulls() == Table.Index.Nulls.EXTENDED;
      Table.Index.Extension extension = message.getExtension();
      Table.Index.Nulls nulls = extended ? extension.getNulls() : message.getNulls();
      skipsNull = nulls == Table.Index.Nulls.SKIP;
      include = positions(extension.getIncludeList(), columnCount);
      where = extension.hasWhere() ? Predicate.of(extension.getWhere()) : null;
      cellMap = extension.getCellMap().isEmpty() ? null : cellMapOf(extension);
      if (extended) checkFeatures(extension);
      if (id == 0 || columns.length == 0 || extended != message.hasExtension()
          || nulls == Table.Index.Nulls.UNRECOGNIZED || nulls == Table.Index.Nulls.EXTENDED
          || !(fpr >= 1e-9 && fpr <= 0.5) || expectedValues < 1 || expectedValues > 1L << 32) {
        throw damaged("index \"" + name + "\" is malformed");
      }
    }

    private CellMap cellMapOf(Table.Index.Extension extension) throws DamagedBytesException {
      try {
        return CellMaps.of(extension.getCellMap().toByteArray());
      } catch (DamagedBytesException e) {
        throw damaged("the cell map of index \"" + name + "\" is damaged");
      }
    }

    /** The required features are supported, and those of them that have a field are the ones that are there. */
    private void checkFeatures(Table.Index.Extension extension) throws DamagedBytesException {
      EnumSet<Table.Index.Extension.Feature> required = EnumSet.noneOf(Table.Index.Extension.Feature.class);
      for (int i = 0; i < extension.getRequiredCount(); ++i) {
        Table.Index.Extension.Feature feature = extension.getRequired(i);
        if (!SUPPORTED.contains(feature)) {
          String text = feature == Table.Index.Extension.Feature.UNRECOGNIZED
              ? "feature number " + extension.getRequiredValue(i)
              : feature.name();
          throw damaged("index \"" + name + "\" requires " + text + ", which this jar does not support; "
              + "use the jar of the version that made the index");
        }
        required.add(feature);
      }
      if (required.isEmpty() || required.contains(Table.Index.Extension.Feature.INCLUDE) != (include.length > 0)
          || required.contains(Table.Index.Extension.Feature.WHERE) != (where != null)
          || required.contains(Table.Index.Extension.Feature.RANGES) != (cellMap != null)) {
        throw damaged("index \"" + name + "\" does not have exactly the features that it requires");
      }
    }

    /** Adds the columns that the index reads of a row. */
    public void addColumns(boolean[] of) {
      for (int column : columns) of[column] = true;
      for (int column : include) of[column] = true;
      if (where != null) where.addColumns(of);
    }

    public Index(Index other, long seed) {
      this(other, seed, other.cellMap);
    }

    public Index(Index other, long seed, CellMap cellMap) {
      id = other.id;
      name = other.name;
      columns = other.columns;
      fpr = other.fpr;
      expectedValues = other.expectedValues;
      this.seed = seed;
      skipsNull = other.skipsNull;
      include = other.include;
      where = other.where;
      this.cellMap = cellMap;
    }
  }

  public final int id;
  public final String name;
  public final long version;
  public final Column[] columns;
  public final int[] key; // positions, in key order
  public final KeyPart[] keyParts; // the part for each column of `key`
  public final Index[] indexes;
  public final boolean cells; // rows are cells of their own; in HBase they always are
  public final byte[] markerFamily; // null: no marker
  public final byte[] markerQualifier;

  private final boolean[] isKey;
  private final Map<Long, Integer> columnsById = new HashMap<>();

  private static DamagedBytesException damaged(String why) {
    return new DamagedBytesException("cannot read a table schema: " + why);
  }

  private static int[] positions(java.util.List<Integer> list, int columnCount) throws DamagedBytesException {
    int[] positions = new int[list.size()];
    for (int i = 0; i < positions.length; ++i) {
      positions[i] = list.get(i);
      if (positions[i] < 0 || positions[i] >= columnCount) throw damaged("it names a column that it does not have");
    }
    return positions;
  }

  private Schema(Table.Schema message) throws DamagedBytesException {
    id = message.getId();
    name = message.getName();
    version = message.getVersion();
    columns = new Column[message.getColumnsCount()];
    for (int i = 0; i < columns.length; ++i) {
      columns[i] = new Column(message.getColumns(i));
      if (columnsById.put(columns[i].id & 0xffffffffL, i) != null) throw damaged("two columns have one id");
    }
    key = positions(message.getKeyList(), columns.length);
    isKey = new boolean[columns.length];
    for (int position : key) isKey[position] = true;
    keyParts = new KeyPart[key.length];
    if (message.getKeyPartsCount() != 0 && message.getKeyPartsCount() != key.length) {
      throw damaged("its key has more columns than parts, or fewer");
    }
    for (int i = 0; i < key.length; ++i) {
      keyParts[i] = message.getKeyPartsCount() == 0 ? new KeyPart(KeyPart.Form.ORDERED, CellEncoding.NONE, 0, Key.EMPTY)
                                                    : KeyPart.of(message.getKeyParts(i), columns[key[i]].type);
    }
    indexes = new Index[message.getIndexesCount()];
    for (int i = 0; i < indexes.length; ++i) indexes[i] = new Index(message.getIndexes(i), columns.length);
    for (Index index : indexes) {
      String why = index.where == null ? null : index.where.validate(this);
      if (why != null) throw damaged("index \"" + index.name + "\": " + why);
    }
    cells = message.getCells();
    markerFamily = message.hasMarker() ? message.getMarker().getFamily().toByteArray() : null;
    markerQualifier = message.hasMarker() ? message.getMarker().getQualifier().toByteArray() : null;
    if (key.length == 0) throw damaged("it has no key");
    for (int i = 0; i < columns.length; ++i) checkExpression(i);
    for (int i = 0; cells && i < columns.length; ++i) {
      if (!isKey[i] && columns[i].expression == null
          && (columns[i].encoding == CellEncoding.NONE || columns[i].family.length == 0)) {
        throw damaged("column \"" + columns[i].name + "\" has no cell");
      }
    }
  }

  public static Schema parse(byte[] bytes) throws DamagedBytesException {
    try {
      return new Schema(Table.Schema.parseFrom(bytes));
    } catch (InvalidProtocolBufferException e) {
      throw damaged("the bytes are damaged or foreign");
    }
  }

  public static Schema of(Table.Schema message) throws DamagedBytesException {
    return new Schema(message);
  }

  private void checkExpression(int column) throws DamagedBytesException {
    Expression expression = columns[column].expression;
    if (expression == null) return;
    int source = expression.source;
    if (isKey[column] || source < 0 || source >= columns.length || columns[source].expression != null
        || columns[source].type != expression.argumentType()) {
      throw damaged("column \"" + columns[column].name + "\" cannot be computed from the column that it names");
    }
  }

  public boolean isKey(int column) {
    return isKey[column];
  }

  /** The column whose value the column's follows from: another one, if it is computed. */
  public int sourceOf(int column) {
    return columns[column].expression == null ? column : columns[column].expression.source;
  }

  /** Sets the computed columns of a row whose other columns are set. */
  public void setComputed(Value[] row) {
    for (int i = 0; i < columns.length; ++i) {
      Expression expression = columns[i].expression;
      if (expression != null) row[i] = expression.evaluate(row[expression.source]);
    }
  }

  /** null when there is none. */
  public Integer columnOfId(long id) {
    return columnsById.get(id);
  }

  /** null when there is none. */
  public Index index(int id) {
    for (Index index : indexes) {
      if (index.id == id) return index;
    }
    return null;
  }

  /** Whether the table's cells stand in the family. */
  public boolean hasFamily(byte[] family) {
    if (markerFamily != null && Arrays.equals(family, markerFamily)) return true;
    for (Column column : columns) {
      if (column.encoding != CellEncoding.NONE && Arrays.equals(family, column.family)) return true;
    }
    return false;
  }

  static ByteString bytes(byte[] in) {
    return ByteString.copyFrom(in);
  }
}
