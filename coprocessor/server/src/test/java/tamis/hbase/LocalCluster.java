package tamis.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Scanner;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The processes of a cluster that tools/hbase-local has started. Threads: safe. */
final class LocalCluster {
  private final String[] tool;

  LocalCluster(String tool, String directory) {
    this.tool = new String[] {tool, "--directory", directory};
  }

  private List<String> command(String... words) {
    List<String> command = new ArrayList<>(Arrays.asList(tool));
    command.addAll(Arrays.asList(words));
    return command;
  }

  /** False: it could not. */
  boolean tries(String... words) throws IOException, InterruptedException {
    return new ProcessBuilder(command(words)).inheritIO().start().waitFor() == 0;
  }

  void run(String... words) throws IOException, InterruptedException {
    if (!tries(words)) throw new IOException("failed: " + command(words));
  }

  private String status() throws IOException {
    Process process = new ProcessBuilder(command("status", "--json")).start();
    try (Scanner out = new Scanner(process.getInputStream(), "UTF-8")) {
      return out.useDelimiter("\\A").next();
    }
  }

  /** "rs2" of the region server with this port. */
  String roleOf(int port) throws IOException {
    String text = status();
    Matcher row = Pattern.compile("\"role\": \"(rs[0-9]+)\"[^}]*\"port\": " + port + "\\b").matcher(text);
    if (!row.find()) throw new IOException("nobody has port " + port + ": " + text);
    return row.group(1);
  }

  /** "up", "paused" or "down". */
  String stateOf(String role) throws IOException {
    String text = status();
    Matcher row = Pattern.compile("\"role\": \"" + role + "\", \"state\": \"([a-z]+)\"").matcher(text);
    if (!row.find()) throw new IOException("there is no " + role + ": " + text);
    return row.group(1);
  }
}
