package tamis.golden;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static tamis.golden.GoldenFile.bytes;
import static tamis.golden.GoldenFile.hex;
import static tamis.golden.GoldenFile.hex64;
import static tamis.golden.GoldenFile.lines;
import static tamis.golden.GoldenFile.row;
import static tamis.golden.GoldenFile.text;
import static tamis.golden.GoldenFile.value;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import tamis.filter.CellSet;
import tamis.filter.ScalableSplitCountingBloomFilter;
import tamis.filter.SplitGeometry;
import tamis.pb.Table;
import tamis.shaded.protobuf.ByteString;
import tamis.shaded.protobuf.MessageLite;
import tamis.table.ByteReader;
import tamis.table.ByteWriter;
import tamis.table.CellEncoding;
import tamis.table.CellMap;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.Decimal;
import tamis.table.Expression;
import tamis.table.Hash;
import tamis.table.Key;
import tamis.table.KeyFormat;
import tamis.table.Predicate;
import tamis.table.RefusedValueException;
import tamis.table.Schema;
import tamis.table.Type;
import tamis.table.Value;

/** Bytes written here equal those of the C++ side, and the reverse. */
class GoldenTest {
  private static byte[] pattern(int size) {
    byte[] out = new byte[size];
    for (int i = 0; i < size; ++i) out[i] = (byte) (i * 131 + i / 256 + 7);
    return out;
  }

  @Test
  void hashes() throws Exception {
    for (String[] line : lines("hashes.txt")) {
      assertEquals(hex64(line[3]), Hash.of(pattern(Integer.parseInt(line[2])), hex64(line[1])), String.join(" ", line));
    }
  }

  @Test
  void codec() throws Exception {
    for (String[] line : lines("codec.txt")) {
      Value value = value(line[1]);
      ByteWriter ordered = new ByteWriter();
      ByteWriter indexed = new ByteWriter();
      Codec.appendOrdered(value, ordered);
      boolean cut = Codec.appendIndexed(value, indexed);
      assertEquals(line[2], hex(ordered.toBytes()));
      assertEquals(line[3], hex(indexed.toBytes()));
      assertEquals(line[4], cut ? "cut" : "whole");
      if (value == null) continue;
      ByteReader entry = new ByteReader(bytes(line[3] + "00")); // a byte after a value is not taken
      Codec.skipIndexed(value.type(), entry);
      assertEquals(1, entry.left());
      ByteReader in = new ByteReader(bytes(line[2]));
      assertEquals(line[1], text(Codec.readOrdered(value.type(), in)));
      assertTrue(in.isEmpty());
    }
  }

  @Test
  void expressions() throws Exception {
    int computed = 0;
    for (String[] line : lines("expressions.txt")) {
      Expression expression = Expression.of(Table.Expression.parseFrom(bytes(line[1])));
      assertEquals(line[3], text(expression.evaluate(value(line[2]))), String.join(" ", line));
      if (!line[3].equals("NULL")) ++computed;
    }
    assertTrue(computed > 100, computed + " values");
  }

  @Test
  void decimals() throws Exception {
    for (String[] line : lines("decimals.txt")) {
      if (line[0].equals("P")) {
        assertEquals(line[2], Decimal.parse(line[1]).toString());
      } else {
        int order = Decimal.parse(line[1]).compareTo(Decimal.parse(line[2]));
        assertEquals(line[3], order < 0 ? "<" : order > 0 ? ">" : "=", String.join(" ", line));
      }
    }
  }

  @Test
  void cells() throws Exception {
    int pairs = 0;
    String pair = "";
    for (String[] line : lines("cells.txt")) {
      Type type = Type.of(line[1]);
      CellEncoding encoding = CellEncoding.of(line[2]);
      assertTrue(encoding.isOf(type));
      if (!pair.equals(line[1] + line[2])) ++pairs;
      pair = line[1] + line[2];
      String what = String.join(" ", line);
      if (line[0].equals("E")) {
        String written;
        try {
          written = hex(encoding.encode(value(line[3])));
        } catch (RefusedValueException e) {
          written = "refused";
        }
        assertEquals(line[4], written, what);
      } else {
        assertEquals(line[4], text(encoding.decode(type, bytes(line[3]))), what);
      }
    }
    int ours = 0;
    for (Type type : Type.values()) {
      for (CellEncoding encoding : CellEncoding.values()) ours += encoding.isOf(type) ? 1 : 0;
    }
    assertEquals(ours, pairs);
  }

  /** "until=\x00", "width=4", "rest", "int64:until=-", "long". */
  private static Table.KeyPart keyPart(Type type, String text) {
    Table.KeyPart.Builder part = Table.KeyPart.newBuilder();
    if (text.equals("ordered")) return part.build();
    CellEncoding encoding = null;
    part.setForm(Table.KeyPart.Form.FIXED);
    for (String word : text.split(":")) {
      if (word.equals("rest")) {
        part.setForm(Table.KeyPart.Form.REST);
      } else if (word.startsWith("width=")) {
        part.setWidth(Integer.parseInt(word.substring(6)));
      } else if (word.startsWith("until=")) {
        part.setForm(Table.KeyPart.Form.UNTIL);
        ByteWriter delimiter = new ByteWriter();
        for (int i = 6; i < word.length(); ++i) {
          if (word.charAt(i) == '\\') {
            delimiter.put(Integer.parseInt(word.substring(i + 2, i + 4), 16));
            i += 3;
          } else {
            delimiter.put(word.charAt(i));
          }
        }
        part.setDelimiter(ByteString.copyFrom(delimiter.toBytes()));
      } else {
        encoding = CellEncoding.of(word);
      }
    }
    for (CellEncoding first : CellEncoding.values()) {
      boolean isDefault = type == Type.BOOL ? first == CellEncoding.BYTE
          : type == Type.TIMESTAMP          ? first == CellEncoding.MILLIS
          : type == Type.INT64              ? first == CellEncoding.LONG
                                            : first.isOf(type);
      if (encoding == null && isDefault && first.isOf(type) && !(type == Type.DOUBLE && first == CellEncoding.TEXT)) {
        encoding = first;
      }
    }
    return part.setEncodingValue(encoding.ordinal()).build();
  }

  @Test
  void keys() throws Exception {
    Schema schema = null;
    int keys = 0;
    for (String[] line : lines("keys.txt")) {
      String what = String.join(" ", line);
      switch (line[0]) {
        case "F": {
          Table.Schema.Builder message = Table.Schema.newBuilder().setId(1).setName("t").setVersion(1);
          for (int i = 1; i < line.length; ++i) {
            int slash = line[i].indexOf('/');
            Type type = Type.of(line[i].substring(0, slash));
            message.addColumns(Table.Column.newBuilder()
                                   .setId(i)
                                   .setName("c" + i)
                                   .setType(Table.ColumnType.forNumber(type.number))
                                   .setNotNull(true));
            message.addKey(i - 1);
            message.addKeyParts(keyPart(type, line[i].substring(slash + 1)));
          }
          schema = Schema.parse(message.build().toByteArray());
          break;
        }
        case "K": {
          ++keys;
          Value[] row = row(line, 2, schema.key.length);
          String written;
          try {
            written = hex(KeyFormat.encode(schema, row));
          } catch (RefusedValueException e) {
            written = "refused";
          }
          assertEquals(line[1], written, what);
          if (written.equals("refused")) break;
          Value[] read = new Value[schema.key.length];
          assertTrue(KeyFormat.decode(schema, bytes(line[1]), read), what);
          assertArrayEquals(row, read, what);
          break;
        }
        case "X":
          assertFalse(KeyFormat.decode(schema, bytes(line[1]), new Value[schema.key.length]), what);
          break;
        default: // S: what a condition leaves of the keys is the planner's, which is not here
      }
    }
    assertTrue(keys > 50);
  }

  @Test
  void rows() throws Exception {
    Schema schema = null;
    Value[] row = null;
    for (String[] line : lines("rows.txt")) {
      String what = String.join(" ", line);
      switch (line[0]) {
        case "T":
          schema = Schema.parse(bytes(line[1]));
          break;
        case "R": {
          row = row(line, 1, schema.columns.length);
          assertEquals(line[schema.columns.length + 1], hex(KeyFormat.encode(schema, row)), what);
          assertEquals(line[schema.columns.length + 2], hex(Codec.encodeRow(schema, row, null)), what);
          Value[] read = new Value[row.length];
          assertTrue(KeyFormat.decode(schema, bytes(line[row.length + 1]), read), what);
          Codec.decodeRow(schema, bytes(line[row.length + 2]), read);
          assertArrayEquals(row, read, what);
          break;
        }
        case "I": {
          Schema.Index named = null;
          for (Schema.Index index : schema.indexes) {
            if (index.name.equals(line[1])) named = index;
          }
          byte[][] prefixes = Codec.indexPrefixes(new Schema.Index(named, 77), row);
          List<String> texts = new ArrayList<>();
          List<String> hashes = new ArrayList<>();
          for (byte[] prefix : prefixes) {
            texts.add(hex(prefix));
            hashes.add(String.format("%016x", Hash.of(prefix, 77)));
          }
          assertEquals(line[2], String.join(",", texts), what);
          assertEquals(line[3], String.join(",", hashes), what);
          byte[] values = prefixes[prefixes.length - 1];
          assertArrayEquals(prefixes, Codec.prefixesOf(schema, named, values));
          byte[] entry = Key.concat(new byte[] {9}, values, new byte[] {1, 2});
          assertEquals(values.length + 1, Codec.rowKeyOffset(schema, named, entry, 1));
          break;
        }
        default: // C: rows of cells in one value are RocksDB's; HBase has cells
      }
    }
    assertNotNull(row);
  }

  @Test
  void predicates() throws Exception {
    Schema schema = null;
    List<Value[]> rows = new ArrayList<>();
    int conditions = 0;
    for (String[] line : lines("predicates.txt")) {
      if (line[0].equals("T")) {
        schema = Schema.parse(bytes(line[1]));
      } else if (line[0].equals("R")) {
        rows.add(row(line, 1, schema.columns.length));
      } else {
        ++conditions;
        Predicate predicate = Predicate.parse(ByteString.copyFrom(bytes(line[1])));
        assertNull(predicate.validate(schema));
        StringBuilder truths = new StringBuilder();
        for (Value[] row : rows) {
          Boolean truth = predicate.evaluate(row);
          truths.append(truth == null ? 'u' : truth ? 't' : 'f');
        }
        assertEquals(line[2], truths.toString(), predicate.toString());
      }
    }
    assertTrue(conditions > 100);
  }

  @Test
  void messages() throws Exception {
    int filled = 0;
    for (String[] line : lines("messages.txt")) {
      String what = line[1] + " of " + line[2];
      MessageLite message = (MessageLite) Class.forName("tamis.pb.Cluster$" + line[1])
                                .getMethod("parseFrom", byte[].class)
                                .invoke(null, (Object) bytes(line[2]));
      assertEquals(String.join(" ", Arrays.asList(line).subList(3, line.length)), MessageText.of(message), what);
      assertEquals(line[2], hex(message.toByteArray()), what);
      if (line.length > 3) ++filled;
    }
    assertEquals(12, filled);
  }

  @Test
  void cellMaps() throws Exception {
    CellMap map = null;
    CellSet set = null;
    int maps = 0;
    for (String[] line : lines("cell_maps.txt")) {
      String what = String.join(" ", line);
      switch (line[0]) {
        case "M":
          map = new CellMap(bytes(line[1]));
          assertEquals(line[1], hex(map.toBytes()), what);
          assertEquals(hex64(line[2]), map.version(), what);
          assertEquals(Integer.parseInt(line[3]), map.cells(), what);
          ++maps;
          break;
        case "V":
          assertEquals(Integer.parseInt(line[2]), map.cellOf(bytes(line[1])), what);
          break;
        case "L":
          assertEquals(line[2], hex(map.lowestOf(Integer.parseInt(line[1]))), what);
          break;
        case "X":
          assertThrows(DamagedBytesException.class, () -> new CellMap(bytes(line[1])), what);
          break;
        case "S":
          set = new CellSet(Integer.parseInt(line[1]));
          for (int i = 2; i < line.length; ++i) assertTrue(set.insert(Integer.parseInt(line[i])), what);
          assertEquals(line.length - 2, set.count(), what);
          break;
        default: {
          CellSet.Part part = set.encode(Integer.parseInt(line[1]), Integer.parseInt(line[2]));
          assertEquals(line[3], String.valueOf(part.end), what);
          assertEquals(line[4], hex(part.bytes), what);
        }
      }
    }
    assertTrue(maps > 10);
  }

  @Test
  void filters() throws Exception {
    ScalableSplitCountingBloomFilter filter = null;
    for (String[] line : lines("filters.txt")) {
      String what = String.join(" ", line);
      List<String> flips = new ArrayList<>();
      ScalableSplitCountingBloomFilter.OnFlip note = (layer, position, set) -> flips.add(layer + ":" + position);
      switch (line[0]) {
        case "G":
          filter = new ScalableSplitCountingBloomFilter(
              new SplitGeometry(Integer.parseInt(line[1]), Long.parseLong(line[2])), Long.parseLong(line[3]));
          break;
        case "+":
          filter.insert(hex64(line[1]), note);
          assertEquals(line[2], flips.isEmpty() ? "none" : String.join(",", flips), what);
          break;
        case "-":
          switch (filter.erase(hex64(line[1]), note)) {
            case STUCK:
              assertEquals(line[2], "stuck");
              break;
            case ABSENT:
              assertEquals(line[2], "absent");
              break;
            default:
              assertEquals(line[2], flips.isEmpty() ? "none" : String.join(",", flips), what);
          }
          break;
        case "B":
          assertEquals(line[1], hex(filter.serialize()), what);
          break;
        default: {
          ByteWriter words = new ByteWriter();
          for (long word : filter.projection(Integer.parseInt(line[1]), 0, filter.projectionWords())) {
            words.putLittle64(word);
          }
          assertEquals(line[2], hex(words.toBytes()), what);
        }
      }
    }
  }
}
