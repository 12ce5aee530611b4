package tamis.table;

/**
 * Points in time as text: microseconds since 1970-01-01 UTC from and to ISO 8601, in the proleptic Gregorian calendar
 * and without leap seconds. Any long has a text that reads back.
 */
final class Timestamps {
  private static final long SECOND = 1_000_000L;
  private static final long DAY = 86_400 * SECOND;

  private final String in;
  private int at;

  private Timestamps(String in) {
    this.in = in;
  }

  /** null when the text is no time, or one that has no place in 64 bits. */
  static Long parse(String text) {
    return new Timestamps(text).read();
  }

  private boolean take(char c) {
    if (at >= in.length() || in.charAt(at) != c) return false;
    ++at;
    return true;
  }

  /** -1: no number of that many digits. */
  private long number(int min, int max) {
    int begin = at;
    long n = 0;
    while (at < in.length() && at - begin < max && in.charAt(at) >= '0' && in.charAt(at) <= '9') {
      n = n * 10 + (in.charAt(at++) - '0');
    }
    return at - begin < min ? -1 : n;
  }

  private Long read() {
    boolean negative = take('-');
    if (!negative) take('+');
    long year = number(4, 6);
    if (year < 0 || !take('-')) return null;
    long month = number(2, 2);
    if (month < 1 || month > 12 || !take('-')) return null;
    long day = number(2, 2);
    if (day < 1) return null;
    if (negative) year = -year;
    long days = daysFromCivil(year, month, day);
    long[] back = civilFromDays(days);
    if (back[1] != month || back[2] != day) return null;
    long time = 0;
    long offset = 0;
    if (at < in.length()) {
      if (!take('T') && !take('t') && !take(' ')) return null;
      time = timeOfDay();
      if (time < 0) return null;
      Long zone = offset();
      if (zone == null || at < in.length()) return null;
      offset = zone;
    }
    java.math.BigInteger micros = java.math.BigInteger.valueOf(days)
                                      .multiply(java.math.BigInteger.valueOf(DAY))
                                      .add(java.math.BigInteger.valueOf(time - offset));
    return micros.bitLength() > 63 ? null : (Long) micros.longValue();
  }

  private long timeOfDay() {
    long hour = number(2, 2);
    if (hour < 0 || !take(':')) return -1;
    long minute = number(2, 2);
    if (minute < 0) return -1;
    long second = 0;
    long fraction = 0;
    if (take(':')) {
      second = number(2, 2);
      if (second < 0) return -1;
      if (take('.')) {
        int before = at;
        fraction = number(1, 6);
        if (fraction < 0) return -1;
        for (int digits = at - before; digits < 6; ++digits) fraction *= 10;
        while (take('0')) {}
      }
    }
    if (hour > 23 || minute > 59 || second > 59) return -1;
    return ((hour * 60 + minute) * 60 + second) * SECOND + fraction;
  }

  private Long offset() {
    if (at == in.length() || take('Z') || take('z')) return 0L;
    boolean negative = in.charAt(at) == '-';
    if (!negative && in.charAt(at) != '+') return null;
    ++at;
    long hours = number(2, 2);
    if (hours < 0) return null;
    take(':');
    long minutes = 0;
    if (at < in.length()) minutes = number(2, 2);
    if (minutes < 0 || hours > 23 || minutes > 59) return null;
    return (hours * 60 + minutes) * 60 * SECOND * (negative ? -1 : 1);
  }

  static String format(long micros) {
    long rest = Math.floorMod(micros, DAY);
    long seconds = rest / SECOND;
    StringBuilder out = new StringBuilder(formatDate(micros));
    out.append(String.format("T%02d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60));
    long fraction = rest % SECOND;
    if (fraction != 0) {
      out.append(String.format(".%06d", fraction));
      while (out.charAt(out.length() - 1) == '0') out.setLength(out.length() - 1);
    }
    return out.append('Z').toString();
  }

  /** The day in UTC: "2026-01-02". */
  static String formatDate(long micros) {
    long[] date = civilFromDays(Math.floorDiv(micros, DAY));
    String sign = date[0] < 0 ? "-" : date[0] > 9999 ? "+" : "";
    return sign + String.format(java.util.Locale.ROOT, "%04d-%02d-%02d", Math.abs(date[0]), date[1], date[2]);
  }

  /** The hour of the day in UTC: 0 to 23. */
  static long hourOfDay(long micros) {
    return Math.floorMod(micros, DAY) / (3600 * SECOND);
  }

  // The era arithmetic of H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
  private static long daysFromCivil(long year, long month, long day) {
    year -= month <= 2 ? 1 : 0;
    long era = Math.floorDiv(year, 400);
    long yearOfEra = year - era * 400;
    long dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719468;
  }

  private static long[] civilFromDays(long days) {
    days += 719468;
    long era = Math.floorDiv(days, 146097);
    long dayOfEra = days - era * 146097;
    long yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146096) / 365;
    long dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100);
    long m = (5 * dayOfYear + 2) / 153;
    long month = m < 10 ? m + 3 : m - 9;
    return new long[] {yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * m + 2) / 5 + 1};
  }
}
