package tamis.golden;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import tamis.table.ByteWriter;
import tamis.table.Decimal;
import tamis.table.Type;
import tamis.table.Value;

/** The lines of a file of tests/golden, which the C++ side writes: fields separated by single spaces. */
public final class GoldenFile {
  private GoldenFile() {}

  public static List<String[]> lines(String name) throws IOException {
    Path path = Paths.get(System.getProperty("tamis.root"), "tests", "golden", name);
    List<String[]> lines = new ArrayList<>();
    for (String line : Files.readAllLines(path, StandardCharsets.ISO_8859_1)) {
      if (!line.startsWith("#")) lines.add(line.split(" ", -1));
    }
    if (lines.isEmpty()) throw new IOException(path + " is empty");
    return lines;
  }

  public static byte[] bytes(String hex) {
    if (hex.equals("-")) return new byte[0];
    ByteWriter out = new ByteWriter();
    for (int i = 0; i < hex.length(); i += 2) out.put(Integer.parseInt(hex.substring(i, i + 2), 16));
    return out.toBytes();
  }

  public static String hex(byte[] bytes) {
    if (bytes.length == 0) return "-";
    StringBuilder out = new StringBuilder();
    for (byte b : bytes) out.append(String.format("%02x", b & 0xff));
    return out.toString();
  }

  static long hex64(String hex) {
    return Long.parseUnsignedLong(hex, 16);
  }

  static Value value(String text) {
    if (text.equals("NULL")) return null;
    int colon = text.indexOf(':');
    String rest = text.substring(colon + 1);
    switch (Type.of(text.substring(0, colon))) {
      case TEXT:
        return Value.text(bytes(rest));
      case BYTES:
        return Value.bytes(bytes(rest));
      case INT64:
        return Value.int64(Long.parseLong(rest));
      case DOUBLE:
        return Value.real(Double.longBitsToDouble(hex64(rest)));
      case BOOL:
        return Value.bool(rest.equals("1"));
      case TIMESTAMP:
        return Value.timestamp(Long.parseLong(rest));
      default:
        return Value.decimal(Decimal.parse(rest));
    }
  }

  public static String text(Value value) {
    if (value == null) return "NULL";
    String type = value.type().text + ":";
    switch (value.type()) {
      case TEXT:
      case BYTES:
        return type + hex(value.bytes());
      case DOUBLE:
        return type + String.format("%016x", Double.doubleToRawLongBits(value.real()));
      case DECIMAL:
        return type + value.decimal();
      default:
        return type + value.number();
    }
  }

  public static Value[] row(String[] fields, int from, int size) {
    Value[] row = new Value[size];
    for (int i = 0; i < size; ++i) row[i] = value(fields[from + i]);
    return row;
  }
}
