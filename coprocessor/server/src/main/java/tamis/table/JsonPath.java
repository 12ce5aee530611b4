package tamis.table;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import java.util.List;
import tamis.pb.Table;

/**
 * The place of one value in a JSON text, and how it is read; tamis::JsonPath (docs/FORMATS.md#expressions).
 *
 * <p>The text must be one value as RFC 8259 has it, in UTF-8, whole and with nothing after it, nested at most
 * MAX_DEPTH deep; else nothing is found in it. The first one of equal keys counts.
 */
final class JsonPath {
  private static final int MAX_STEPS = 16;
  private static final int MAX_DEPTH = 100;
  private static final int OFF_PATH = MAX_STEPS + 1;

  /** A step is the key of a member, or the number of an element. */
  private static final class Step {
    final byte[] key; // null: an element
    final long number;

    Step(Table.Expression.Step message) {
      boolean isKey = message.getKindCase() == Table.Expression.Step.KindCase.KEY;
      key = isKey ? message.getKey().toByteArray() : null;
      number = message.getNumber() & 0xffffffffL;
    }
  }

  private final Step[] steps;

  /** null: the steps are no path. */
  static JsonPath of(List<Table.Expression.Step> messages) {
    if (messages.isEmpty() || messages.size() > MAX_STEPS) return null;
    for (Table.Expression.Step message : messages) {
      if (message.getKindCase() == Table.Expression.Step.KindCase.KIND_NOT_SET) return null;
    }
    return new JsonPath(messages);
  }

  private JsonPath(List<Table.Expression.Step> messages) {
    steps = messages.stream().map(Step::new).toArray(Step[] ::new);
  }

  /** The value as text; null: the text is no JSON, has no such value, or the value is null. */
  byte[] find(byte[] json) {
    Reader reader = new Reader(json, steps);
    if (!reader.readAll() || reader.foundBegin < 0 || json[reader.foundBegin] == 'n') return null;
    if (json[reader.foundBegin] != '"') return Arrays.copyOfRange(json, reader.foundBegin, reader.foundEnd);
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    reader.at = reader.foundBegin;
    reader.readString(text); // which was read once already
    return text.toByteArray();
  }

  /** Reads one JSON text from its front to its end, and keeps where the value stands that the path names. */
  private static final class Reader {
    private final byte[] json;
    private final Step[] path;
    int at;
    int foundBegin = -1;
    int foundEnd;

    Reader(byte[] json, Step[] path) {
      this.json = json;
      this.path = path;
    }

    boolean readAll() {
      skipSpace();
      if (!readValue(0, 0)) return false;
      skipSpace();
      return at == json.length;
    }

    private int next() {
      return at < json.length ? json[at] & 0xff : -1;
    }

    private boolean take(char c) {
      if (next() != c) return false;
      ++at;
      return true;
    }

    private void skipSpace() {
      while (take(' ') || take('\t') || take('\n') || take('\r')) {}
    }

    /** `step`: how many steps of the path lead to this value, or OFF_PATH. */
    private boolean readValue(int depth, int step) {
      if (depth > MAX_DEPTH) return false;
      int begin = at;
      boolean good;
      switch (next()) {
        case '{':
          good = readObject(depth, step);
          break;
        case '[':
          good = readArray(depth, step);
          break;
        case '"':
          good = readString(null);
          break;
        case 't':
          good = takeWord("true");
          break;
        case 'f':
          good = takeWord("false");
          break;
        case 'n':
          good = takeWord("null");
          break;
        default:
          good = takeNumber();
      }
      if (good && step == path.length) {
        foundBegin = begin;
        foundEnd = at;
      }
      return good;
    }

    private boolean readObject(int depth, int step) {
      byte[] wanted = step < path.length ? path[step].key : null;
      ++at;
      skipSpace();
      if (take('}')) return true;
      do {
        skipSpace();
        if (next() != '"') return false;
        ByteArrayOutputStream key = wanted == null ? null : new ByteArrayOutputStream();
        if (!readString(key)) return false;
        skipSpace();
        if (!take(':')) return false;
        skipSpace();
        boolean leadsOn = wanted != null && Arrays.equals(key.toByteArray(), wanted);
        if (leadsOn) wanted = null;
        if (!readValue(depth + 1, leadsOn ? step + 1 : OFF_PATH)) return false;
        skipSpace();
      } while (take(','));
      return take('}');
    }

    private boolean readArray(int depth, int step) {
      boolean wanted = step < path.length && path[step].key == null;
      ++at;
      skipSpace();
      if (take(']')) return true;
      long number = 0;
      do {
        skipSpace();
        boolean leadsOn = wanted && number++ == path[step].number;
        if (!readValue(depth + 1, leadsOn ? step + 1 : OFF_PATH)) return false;
        skipSpace();
      } while (take(','));
      return take(']');
    }

    /** REQUIRES: a string stands here. False: it is malformed. `out` may be null. */
    boolean readString(ByteArrayOutputStream out) {
      ++at;
      while (at < json.length && json[at] != '"') {
        if (json[at] == '\\') {
          if (!readEscape(out)) return false;
          continue;
        }
        int size = Utf8.size(json, at);
        if (size == 0 || (json[at] & 0xff) < 0x20) return false;
        if (out != null) out.write(json, at, size);
        at += size;
      }
      return take('"');
    }

    private boolean takeWord(String word) {
      for (int i = 0; i < word.length(); ++i) {
        if (!take(word.charAt(i))) return false;
      }
      return true;
    }

    private boolean takeDigits() {
      int begin = at;
      while (next() >= '0' && next() <= '9') ++at;
      return at > begin;
    }

    private boolean takeNumber() {
      take('-');
      if (!take('0') && !takeDigits()) return false;
      if (take('.') && !takeDigits()) return false;
      if (take('e') || take('E')) {
        if (!take('+')) take('-');
        return takeDigits();
      }
      return true;
    }

    private boolean readEscape(ByteArrayOutputStream out) {
      ++at;
      int known = "\"\\/bfnrt".indexOf(next());
      if (known >= 0) {
        ++at;
        if (out != null) out.write("\"\\/\b\f\n\r\t".charAt(known));
        return true;
      }
      int character = takeUnit();
      if (character < 0 || (character >= 0xdc00 && character <= 0xdfff)) return false;
      if (character >= 0xd800 && character <= 0xdbff) {
        int second = take('\\') ? takeUnit() : -1;
        if (second < 0xdc00 || second > 0xdfff) return false;
        character = 0x10000 + ((character - 0xd800) << 10) + (second - 0xdc00);
      }
      if (out != null) Utf8.append(character, out);
      return true;
    }

    /** "u" and four hexadecimal digits; -1: they are not there. */
    private int takeUnit() {
      if (!take('u') || json.length - at < 4) return -1;
      int unit = 0;
      for (int end = at + 4; at < end; ++at) {
        int digit = json[at] < 0 ? -1 : Character.digit((char) json[at], 16);
        if (digit < 0) return -1;
        unit = unit * 16 + digit;
      }
      return unit;
    }
  }
}
