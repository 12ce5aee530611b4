package tamis.hbase;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.ConnectException;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.CallQueueTooBigException;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.NotServingRegionException;
import org.apache.hadoop.hbase.RegionTooBusyException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.ipc.ServerNotRunningYetException;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * HBase's own client in a process of its own, which knows nothing of indexes: tests/cluster/plain_client.h gives it
 * orders, a line each on the standard input, and has a line each for an answer. The class path has the cluster's
 * configuration.
 *
 *   PlainClient NAMESPACE:TABLE
 *
 *   put KEY FAMILY:QUALIFIER=VALUE ...    done
 *   delete KEY                            done
 *   get KEY                               cells FAMILY:QUALIFIER=VALUE ...
 *   wait SECONDS                          done: from now on a get is tried for so long
 *
 * Keys and values are hexadecimal. A failure is answered with "refused MESSAGE" where nothing was done, else with "may
 * stand MESSAGE". The first line is "ready".
 */
public final class PlainClient {
  private final Table written;
  private final Connection retrying;
  private Table read;

  private PlainClient(Table written, Connection retrying) throws IOException {
    this.written = written;
    this.retrying = retrying;
    this.read = retrying.getTable(written.getName());
  }

  private static Configuration configuration() {
    Configuration conf = HBaseConfiguration.create();
    // Longer than a server waits for coordinators.
    conf.setInt("hbase.rpc.timeout", 10_000);
    conf.setInt("hbase.client.operation.timeout", 15_000);
    conf.setInt("hbase.client.meta.operation.timeout", 15_000);
    return conf;
  }

  /** A put that is sent twice may be done twice, the second time after a later one of the same row. */
  private static Configuration withoutRetries() {
    Configuration conf = configuration();
    conf.setInt("hbase.client.retries.number", 0);
    return conf;
  }

  private String put(byte[] key, String[] words) throws IOException {
    Put put = new Put(key);
    for (int i = 2; i < words.length; ++i) {
      int value = words[i].indexOf('=');
      byte[][] name = CellUtil.parseColumn(Bytes.toBytes(words[i].substring(0, value)));
      put.addColumn(name[0], name[1], Bytes.fromHex(words[i].substring(value + 1)));
    }
    written.put(put);
    return "done";
  }

  private String delete(byte[] key) throws IOException {
    written.delete(new Delete(key));
    // HBase lets a delete mask what is put in the same millisecond. Its servers have this machine's clock.
    long done = System.currentTimeMillis();
    while (System.currentTimeMillis() <= done) Thread.yield();
    return "done";
  }

  private String get(byte[] key) throws IOException {
    StringBuilder answer = new StringBuilder("cells");
    Result row = read.get(new Get(key));
    for (Cell cell : row.isEmpty() ? new Cell[0] : row.rawCells()) {
      answer.append(' ')
          .append(Bytes.toString(CellUtil.cloneFamily(cell)))
          .append(':')
          .append(Bytes.toString(CellUtil.cloneQualifier(cell)))
          .append('=')
          .append(Bytes.toHex(CellUtil.cloneValue(cell)));
    }
    return answer.toString();
  }

  /** Only for gets: a write is never sent twice. */
  private String waitFor(int seconds) throws IOException {
    read.close();
    read = retrying.getTableBuilder(written.getName(), null).setOperationTimeout(1000 * seconds).build();
    return "done";
  }

  private String answer(String[] words) throws IOException {
    if (words[0].equals("wait")) return waitFor(Integer.parseInt(words[1]));
    byte[] key = Bytes.fromHex(words[1]);
    switch (words[0]) {
      case "put":
        return put(key, words);
      case "delete":
        return delete(key);
      case "get":
        return get(key);
      default:
        throw new IllegalArgumentException("there is no order \"" + words[0] + "\"");
    }
  }

  /** Whether who says this did nothing. */
  private static boolean isRefusal(Throwable fault) {
    return fault instanceof NotServingRegionException || fault instanceof RegionTooBusyException
        || fault instanceof CallQueueTooBigException || fault instanceof ServerNotRunningYetException
        || fault instanceof ConnectException;
  }

  private static String failure(IOException fault) {
    boolean refused = false;
    for (Throwable cause = fault; cause != null; cause = cause.getCause()) refused |= isRefusal(cause);
    return (refused ? "refused " : "may stand ") + fault.toString().replaceAll("\\s+", " ");
  }

  private static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }

  public static void main(String[] args) throws IOException {
    TableName name = TableName.valueOf(args[0]);
    try (Connection once = ConnectionFactory.createConnection(withoutRetries());
         Connection again = ConnectionFactory.createConnection(configuration()); Table written = once.getTable(name)) {
      PlainClient client = new PlainClient(written, again);
      say("ready");
      BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        try {
          say(client.answer(line.split(" ")));
        } catch (IOException e) {
          say(failure(e));
        }
      }
    }
    System.exit(0);
  }
}
