package tamis.table;

import java.io.ByteArrayOutputStream;

/** UTF-8 as RFC 3629 has it: no surrogates, nothing above U+10FFFF, no longer form than needed. */
final class Utf8 {
  private Utf8() {}

  /** The size of the character that begins there; 0 when there is none. REQUIRES: at < text.length. */
  static int size(byte[] text, int at) {
    int first = text[at] & 0xff;
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4) return 0;
    int size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (text.length - at < size) return 0;
    for (int i = 1; i < size; ++i) {
      if ((text[at + i] & 0xc0) != 0x80) return 0;
    }
    int second = text[at + 1] & 0xff;
    boolean tooLong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    boolean surrogate = first == 0xed && second >= 0xa0;
    boolean tooGreat = first == 0xf4 && second >= 0x90;
    return tooLong || surrogate || tooGreat ? 0 : size;
  }

  /** REQUIRES: a character, so at most U+10FFFF and no surrogate. */
  static void append(int character, ByteArrayOutputStream out) {
    if (character < 0x80) {
      out.write(character);
      return;
    }
    if (character < 0x800) {
      out.write(0xc0 | character >> 6);
    } else {
      if (character < 0x10000) {
        out.write(0xe0 | character >> 12);
      } else {
        out.write(0xf0 | character >> 18);
        out.write(0x80 | (character >> 12 & 0x3f));
      }
      out.write(0x80 | (character >> 6 & 0x3f));
    }
    out.write(0x80 | (character & 0x3f));
  }
}
