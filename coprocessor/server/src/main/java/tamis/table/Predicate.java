package tamis.table;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import tamis.pb.Table;
import tamis.shaded.protobuf.ByteString;
import tamis.shaded.protobuf.InvalidProtocolBufferException;

/** A condition on a row, with SQL's three-valued logic; tamis::Predicate. A value. */
public final class Predicate {
  private static final int MAX_DEPTH = 100;

  private final Table.Predicate.Kind kind;
  private final Table.Predicate.Op op;
  private final int column;
  private final List<Value> values = new ArrayList<>();
  private final List<Predicate> children = new ArrayList<>();

  private Predicate(Table.Predicate message) throws DamagedBytesException {
    kind = message.getKind();
    op = message.getOp();
    column = message.getColumn();
    for (Table.Value value : message.getValuesList()) values.add(valueOf(value));
    for (Table.Predicate child : message.getChildrenList()) children.add(new Predicate(child));
    boolean leaf = children.isEmpty();
    boolean good;
    switch (kind) {
      case AND:
      case OR:
        good = values.isEmpty();
        break;
      case NOT:
        good = values.isEmpty() && children.size() == 1;
        break;
      case COMPARE:
        good = leaf && values.size() == 1 && op != Table.Predicate.Op.NO_OP && op != Table.Predicate.Op.UNRECOGNIZED;
        break;
      case PREFIX:
        good = leaf && values.size() == 1
            && (values.get(0) == null || values.get(0).type() == Type.TEXT || values.get(0).type() == Type.BYTES);
        break;
      case IN:
        good = leaf;
        break;
      case TRUE:
      case FALSE:
      case IS_NULL:
      case NOT_NULL:
        good = leaf && values.isEmpty();
        break;
      default:
        good = false;
    }
    if (!good) throw damaged();
  }

  static Predicate of(Table.Predicate message) throws DamagedBytesException {
    return new Predicate(message);
  }

  private static DamagedBytesException damaged() {
    return new DamagedBytesException("cannot read a condition: the bytes are damaged or foreign");
  }

  /** Bounded depth and memory on any bytes. */
  public static Predicate parse(ByteString bytes) throws DamagedBytesException {
    try {
      return new Predicate(Table.Predicate.parseFrom(bytes)); // refuses messages nested more than 100 deep
    } catch (InvalidProtocolBufferException e) {
      throw damaged();
    }
  }

  public static Value valueOf(Table.Value message) throws DamagedBytesException {
    switch (message.getKindCase()) {
      case TEXT:
        return Value.text(message.getText().toByteArray());
      case RAW:
        return Value.bytes(message.getRaw().toByteArray());
      case INT64:
        return Value.int64(message.getInt64());
      case REAL: {
        Value value = Value.real(message.getReal());
        if (value == null) throw damaged();
        return value;
      }
      case TRUTH:
        return Value.bool(message.getTruth());
      case TIMESTAMP_US:
        return Value.timestamp(message.getTimestampUs());
      case DECIMAL: {
        Decimal decimal = Decimal.parse(message.getDecimal());
        if (decimal == null) throw damaged();
        return Value.decimal(decimal);
      }
      default:
        return null;
    }
  }

  /** Says why the condition does not fit the schema; null: it fits. Also sorts the values of IN. */
  public String validate(Schema schema) {
    return validate(schema, 1);
  }

  private String validate(Schema schema, int depth) {
    if (depth > MAX_DEPTH) return "the condition is nested more than " + MAX_DEPTH + " deep; write it flatter";
    for (Predicate child : children) {
      String why = child.validate(schema, depth + 1);
      if (why != null) return why;
    }
    switch (kind) {
      case TRUE:
      case FALSE:
      case AND:
      case OR:
      case NOT:
        return null;
      default:
        break;
    }
    if (column < 0 || column >= schema.columns.length) {
      return "the condition names column number " + column + ", which table \"" + schema.name + "\" does not have";
    }
    Type type = schema.columns[column].type;
    for (Value value : values) {
      if (value != null && value.type() != type) {
        return "the condition compares column \"" + schema.columns[column].name + "\" of type " + type.text
            + " with a value of type " + value.type().text;
      }
    }
    if (kind == Table.Predicate.Kind.PREFIX && type != Type.TEXT && type != Type.BYTES) {
      return "the condition asks for a prefix of column \"" + schema.columns[column].name
          + "\", which is neither text nor bytes";
    }
    if (kind == Table.Predicate.Kind.IN) Collections.sort(values, Value::compare);
    return null;
  }

  /** The columns that it reads. */
  public void addColumns(boolean[] columns) {
    switch (kind) {
      case COMPARE:
      case IN:
      case PREFIX:
      case IS_NULL:
      case NOT_NULL:
        columns[column] = true;
        break;
      default:
        for (Predicate child : children) child.addColumns(columns);
    }
  }

  public boolean matches(Value[] row) {
    return Boolean.TRUE.equals(evaluate(row));
  }

  /** null is "unknown". REQUIRES: validate found nothing. */
  public Boolean evaluate(Value[] row) {
    switch (kind) {
      case TRUE:
        return true;
      case FALSE:
        return false;
      case AND:
      case OR: {
        Boolean decisive = kind == Table.Predicate.Kind.OR;
        boolean unknown = false;
        for (Predicate child : children) {
          Boolean truth = child.evaluate(row);
          if (decisive.equals(truth)) return decisive;
          unknown |= truth == null;
        }
        return unknown ? null : (Boolean) !decisive;
      }
      case NOT: {
        Boolean truth = children.get(0).evaluate(row);
        return truth == null ? null : (Boolean) !truth;
      }
      case COMPARE: {
        Value left = row[column];
        if (left == null || values.get(0) == null) return null;
        return holds(left.compareTo(values.get(0)));
      }
      case IN: {
        if (values.isEmpty()) return false;
        Value left = row[column];
        if (left == null) return null;
        if (Collections.binarySearch(values, left, Value::compare) >= 0) return true;
        return values.get(0) == null ? null : (Boolean) false;
      }
      case PREFIX: {
        Value left = row[column];
        if (left == null || values.get(0) == null) return null;
        return Key.startsWith(left.bytes(), values.get(0).bytes());
      }
      case IS_NULL:
        return row[column] == null;
      default:
        return row[column] != null;
    }
  }

  private boolean holds(int order) {
    switch (op) {
      case EQ:
        return order == 0;
      case NE:
        return order != 0;
      case LT:
        return order < 0;
      case LE:
        return order <= 0;
      case GT:
        return order > 0;
      default:
        return order >= 0;
    }
  }

  @Override
  public String toString() {
    return kind + " " + op + " " + column + " " + values + " " + Arrays.toString(children.toArray());
  }
}
