package tamis.golden;

import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import tamis.shaded.protobuf.ByteString;
import tamis.shaded.protobuf.Internal;
import tamis.shaded.protobuf.MessageLite;

/**
 * A message as the golden files have it: NUMBER=VALUE of each field that is set, by number. Read by the getters of its
 * class: the light runtime has no descriptors.
 */
final class MessageText {
  private static final String SUFFIX = "_FIELD_NUMBER";

  private MessageText() {}

  static String of(MessageLite message) throws ReflectiveOperationException {
    List<String> out = new ArrayList<>();
    for (Map.Entry<Integer, String> field : fields(message).entrySet()) {
      for (Object value : values(message, field.getValue())) {
        if (value instanceof MessageLite) {
          String inside = of((MessageLite) value);
          out.add(field.getKey() + "{" + (inside.isEmpty() ? "" : " " + inside) + " }");
        } else {
          out.add(field.getKey() + "=" + text(value));
        }
      }
    }
    return String.join(" ", out);
  }

  /** "SchemaVersion" of SCHEMA_VERSION_FIELD_NUMBER, by number. */
  private static Map<Integer, String> fields(MessageLite message) throws ReflectiveOperationException {
    Map<Integer, String> fields = new TreeMap<>();
    for (Field constant : message.getClass().getFields()) {
      if (!constant.getName().endsWith(SUFFIX)) continue;
      StringBuilder name = new StringBuilder();
      for (String word : constant.getName().substring(0, constant.getName().length() - SUFFIX.length()).split("_")) {
        name.append(word.charAt(0)).append(word.substring(1).toLowerCase(java.util.Locale.ROOT));
      }
      fields.put(constant.getInt(null), name.toString());
    }
    return fields;
  }

  private static boolean has(MessageLite message, String method) {
    try {
      message.getClass().getMethod(method);
      return true;
    } catch (NoSuchMethodException e) {
      return false;
    }
  }

  private static Object call(MessageLite message, String method) throws ReflectiveOperationException {
    return message.getClass().getMethod(method).invoke(message);
  }

  /** None where it is not set. */
  private static List<?> values(MessageLite message, String name) throws ReflectiveOperationException {
    if (has(message, "get" + name + "List")) return (List<?>) call(message, "get" + name + "List");
    Object value = call(message, "get" + name);
    boolean set = has(message, "has" + name) ? (Boolean) call(message, "has" + name) : !value.equals(nothing(value));
    return set ? Collections.singletonList(value) : Collections.emptyList();
  }

  private static Object nothing(Object like) {
    if (like instanceof Integer) return 0;
    if (like instanceof Long) return 0L;
    if (like instanceof Double) return 0.0;
    if (like instanceof Boolean) return false;
    if (like instanceof String) return "";
    if (like instanceof ByteString) return ByteString.EMPTY;
    return like.getClass().getEnumConstants()[0];
  }

  private static String text(Object value) {
    if (value instanceof Integer) return Integer.toUnsignedString((Integer) value);
    if (value instanceof Long) return Long.toUnsignedString((Long) value);
    if (value instanceof Double) return Long.toUnsignedString(Double.doubleToRawLongBits((Double) value));
    if (value instanceof Boolean) return (Boolean) value ? "1" : "0";
    if (value instanceof String) return GoldenFile.hex(((String) value).getBytes(StandardCharsets.UTF_8));
    if (value instanceof ByteString) return GoldenFile.hex(((ByteString) value).toByteArray());
    return Integer.toString(((Internal.EnumLite) value).getNumber());
  }
}
