package tamis.hbase;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Collectors;

/** The description of the jar that these classes came from. Threads: safe. */
final class JarVersion {
  private static final List<String> LINES = read();

  private JarVersion() {}

  private static List<String> read() {
    try (BufferedReader in = new BufferedReader(
             new InputStreamReader(JarVersion.class.getResourceAsStream("version"), StandardCharsets.UTF_8))) {
      return in.lines().map(String::trim).collect(Collectors.toList());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static String version() {
    return LINES.get(0);
  }

  /** The first number of the versions of HBase that it is for. */
  static String hbaseMajor() {
    return LINES.get(1);
  }

  /** The name of the jar for a version of HBase. */
  static String jarFor(String hbase) {
    return "tamis-coprocessor" + (major(hbase).equals("2") ? "" : "-hbase" + major(hbase)) + "-" + version() + ".jar";
  }

  private static String major(String hbase) {
    int dot = hbase.indexOf('.');
    return dot < 0 ? hbase : hbase.substring(0, dot);
  }

  /** The remedy where that HBase lacks what this jar calls. */
  static String remedy(String hbase) {
    return major(hbase).equals(hbaseMajor()) ? "use a version of HBase that docs/HBASE.md names, or a newer jar"
                                             : "install " + jarFor(hbase) + " there instead";
  }
}
