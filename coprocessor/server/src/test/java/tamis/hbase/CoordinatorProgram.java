package tamis.hbase;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** A coordinator as users have it: `tamis sql`, which polls every server while its input is open. */
final class CoordinatorProgram implements AutoCloseable {
  private final Process process;
  private final BufferedWriter in;
  private final BufferedReader out;

  CoordinatorProgram(String program, String store) throws IOException {
    // A line as soon as it is there: into a pipe the program writes blocks.
    process = new ProcessBuilder("stdbuf", "-oL", program, "--store", store, "sql", "--format", "csv")
                  .redirectError(ProcessBuilder.Redirect.INHERIT)
                  .start();
    in = new BufferedWriter(new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8));
    out = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
  }

  /** The single number that each of the queries gives. They are sent all at once. */
  List<Long> numbers(List<String> queries) throws IOException {
    Thread sender = new Thread(() -> {
      try {
        for (String query : queries) in.write(query + ";\n");
        in.flush();
      } catch (IOException e) {
        process.destroy(); // the reader finds the end of the output
      }
    });
    sender.start();
    List<Long> numbers = new ArrayList<>();
    while (numbers.size() < queries.size()) {
      String line = out.readLine();
      if (line == null) throw new IOException("a coordinator ended: its error output says why");
      if (line.matches("[0-9]+")) numbers.add(Long.valueOf(line));
    }
    return numbers;
  }

  long number(String query) throws IOException {
    return numbers(Collections.singletonList(query)).get(0);
  }

  /** SIGSTOP or SIGCONT. */
  void signal(String signal) throws IOException, InterruptedException {
    String pid = process.toString().replaceAll(".*pid=([0-9]+).*", "$1");
    int ended = new ProcessBuilder("kill", "-" + signal, pid).inheritIO().start().waitFor();
    if (ended != 0) throw new IOException("cannot send " + signal + " to coordinator " + pid);
  }

  @Override
  public void close() throws IOException {
    in.close();
    process.destroy();
  }
}
