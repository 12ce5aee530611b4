package tamis.table;

/** An exact decimal number of any length: 0.d1d2d3... x 10^exponent. A value with one canonical text. */
public final class Decimal implements Comparable<Decimal> {
  public static final long MAX_EXPONENT = 1_000_000_000L;
  public static final Decimal ZERO = new Decimal(false, "", 0);

  public final boolean negative;
  public final String digits; // no zeros at either end; empty = 0
  public final long exponent; // 0 when the number is 0

  Decimal(boolean negative, String digits, long exponent) {
    this.negative = negative;
    this.digits = digits;
    this.exponent = exponent;
  }

  private static boolean isDigit(char c) {
    return c >= '0' && c <= '9';
  }

  /** "-12.50e3" as a person writes it; null for what is no number, or one beyond MAX_EXPONENT. */
  public static Decimal parse(String text) {
    int at = 0;
    boolean negative = false;
    if (at < text.length() && (text.charAt(at) == '-' || text.charAt(at) == '+')) {
      negative = text.charAt(at++) == '-';
    }
    StringBuilder digits = new StringBuilder();
    long beforePoint = 0;
    boolean point = false;
    while (at < text.length() && (isDigit(text.charAt(at)) || (text.charAt(at) == '.' && !point))) {
      if (text.charAt(at) == '.') {
        point = true;
      } else {
        digits.append(text.charAt(at));
        if (!point) ++beforePoint;
      }
      ++at;
    }
    if (digits.length() == 0) return null;
    long power = 0;
    if (at < text.length() && (text.charAt(at) == 'e' || text.charAt(at) == 'E')) {
      ++at;
      if (at < text.length() && text.charAt(at) == '+') {
        ++at;
        if (at < text.length() && text.charAt(at) == '-') return null;
      }
      try {
        if (at >= text.length() || text.charAt(at) == '+') return null;
        power = Long.parseLong(text.substring(at));
      } catch (NumberFormatException e) {
        return null;
      }
      at = text.length();
    }
    if (at < text.length()) return null;
    int leading = 0;
    while (leading < digits.length() && digits.charAt(leading) == '0') ++leading;
    if (leading == digits.length()) return ZERO;
    int end = digits.length();
    while (digits.charAt(end - 1) == '0') --end;
    long far = 1L << 62; // the sum must not overflow
    long exponent = beforePoint - leading + Math.max(-far, Math.min(far, power));
    if (exponent > MAX_EXPONENT || exponent < -MAX_EXPONENT) return null;
    return new Decimal(negative, digits.substring(leading, end), exponent);
  }

  @Override
  public String toString() {
    if (digits.isEmpty()) return "0";
    StringBuilder out = new StringBuilder(negative ? "-" : "");
    int size = digits.length();
    if (exponent > 0 && exponent <= 40) {
      int whole = (int) exponent;
      if (whole >= size) {
        out.append(digits);
        for (int i = size; i < whole; ++i) out.append('0');
      } else {
        out.append(digits, 0, whole).append('.').append(digits, whole, size);
      }
    } else if (exponent <= 0 && exponent > -10) {
      out.append("0.");
      for (long i = exponent; i < 0; ++i) out.append('0');
      out.append(digits);
    } else {
      out.append(digits.charAt(0));
      if (size > 1) out.append('.').append(digits, 1, size);
      out.append('e').append(exponent - 1);
    }
    return out.toString();
  }

  private int sign() {
    return digits.isEmpty() ? 0 : negative ? -1 : 1;
  }

  @Override
  public int compareTo(Decimal other) {
    if (sign() != other.sign()) return sign() - other.sign();
    if (sign() == 0) return 0;
    int magnitude = Long.compare(exponent, other.exponent);
    if (magnitude == 0) magnitude = digits.compareTo(other.digits);
    return negative ? -magnitude : magnitude;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Decimal && compareTo((Decimal) other) == 0;
  }

  @Override
  public int hashCode() {
    return digits.hashCode() * 31 + Long.hashCode(exponent);
  }
}
