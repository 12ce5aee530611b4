package tamis.table;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import tamis.pb.Table;

/**
 * A function of one column, which gives a computed column its values; tamis::Expression
 * (docs/FORMATS.md#expressions). It has a result for any bytes, NULL where there is nothing better.
 */
public final class Expression {
  private static final int MAX_LENGTH = 1024;

  public final int source; // position of the column that it is computed from

  private final Table.Expression.Function function;
  private final int length; // characters
  private final JsonPath path;

  /** null: the message is of a newer version, or malformed. */
  public static Expression of(Table.Expression message) {
    int length = message.getLength();
    boolean good;
    switch (message.getFunction()) {
      case LOWER:
      case DATE:
      case HOUR:
        good = length == 0 && message.getPathCount() == 0;
        break;
      case SUBSTR:
        good = length >= 1 && length <= MAX_LENGTH && message.getPathCount() == 0;
        break;
      case JSON_TEXT:
        good = length == 0 && JsonPath.of(message.getPathList()) != null;
        break;
      default:
        good = false;
    }
    return good ? new Expression(message) : null;
  }

  private Expression(Table.Expression message) {
    source = message.getSource();
    function = message.getFunction();
    length = message.getLength();
    path = JsonPath.of(message.getPathList());
  }

  public Type argumentType() {
    return function == Table.Expression.Function.DATE || function == Table.Expression.Function.HOUR ? Type.TIMESTAMP
                                                                                                    : Type.TEXT;
  }

  public Type resultType() {
    return function == Table.Expression.Function.HOUR ? Type.INT64 : Type.TEXT;
  }

  /** The value for one of the source column. REQUIRES: of the argument's type, or NULL, which gives NULL. */
  public Value evaluate(Value argument) {
    if (argument == null) return null;
    switch (function) {
      case LOWER:
        return Value.text(lower(argument.bytes()));
      case SUBSTR:
        return firstCharacters(argument.bytes());
      case DATE:
        return Value.text(Timestamps.formatDate(argument.number()).getBytes(StandardCharsets.US_ASCII));
      case HOUR:
        return Value.int64(Timestamps.hourOfDay(argument.number()));
      default:
        byte[] text = path.find(argument.bytes());
        return text == null ? null : Value.text(text);
    }
  }

  /** "a" to "z" for "A" to "Z". */
  private static byte[] lower(byte[] text) {
    byte[] out = text.clone();
    for (int i = 0; i < out.length; ++i) {
      if (out[i] >= 'A' && out[i] <= 'Z') out[i] += 'a' - 'A';
    }
    return out;
  }

  private Value firstCharacters(byte[] text) {
    int size = 0;
    for (int i = 0; i < length && size < text.length; ++i) {
      int character = Utf8.size(text, size);
      if (character == 0) return null;
      size += character;
    }
    return Value.text(Arrays.copyOf(text, size));
  }
}
