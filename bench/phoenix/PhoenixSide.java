import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.RegionLocator;

/**
 * Apache Phoenix in hbase_phoenix_benchmark, by its JDBC driver. Does what each line of standard input asks for, "WHAT
 * ARGUMENT", and answers it by "SECONDS LINES" and so many lines.
 */
public final class PhoenixSide implements AutoCloseable {
  private static final int BATCH = 1000;

  private final org.apache.hadoop.hbase.client.Connection hbase;
  private final Connection phoenix;
  private final Map<String, PreparedStatement> prepared = new HashMap<>();

  private PhoenixSide() throws Exception {
    Configuration settings = HBaseConfiguration.create();
    hbase = ConnectionFactory.createConnection(settings);
    Properties properties = new Properties();
    // Otherwise each statement asks a server first whether the table is still as it was.
    properties.setProperty("phoenix.default.update.cache.frequency", "900000");
    phoenix = DriverManager.getConnection("jdbc:phoenix:" + settings.get("hbase.zookeeper.quorum") + ":"
        + settings.get("hbase.zookeeper.property.clientPort") + ":/hbase", properties);
    phoenix.setAutoCommit(true);
  }

  @Override
  public void close() throws Exception {
    phoenix.close();
    hbase.close();
  }

  private List<String> answer(String what, String argument) throws Exception {
    switch (what) {
      case "query":
        return query(argument);
      case "run":
        try (Statement statement = phoenix.createStatement()) {
          statement.execute(argument);
        }
        return List.of();
      case "load":
        load(argument);
        return List.of();
      case "compact":
        compact(TableName.valueOf(argument));
        return List.of();
      case "servers":
        return servers(TableName.valueOf(argument));
      default:
        throw new IllegalArgumentException("there is no \"" + what + "\"");
    }
  }

  private List<String> query(String sql) throws SQLException {
    PreparedStatement statement = prepared.get(sql);
    if (statement == null) {
      statement = phoenix.prepareStatement(sql);
      prepared.put(sql, statement);
    }
    List<String> rows = new ArrayList<>();
    try (ResultSet result = statement.executeQuery()) {
      int columns = result.getMetaData().getColumnCount();
      while (result.next()) {
        StringBuilder row = new StringBuilder();
        for (int i = 1; i <= columns; ++i) {
          row.append(i == 1 ? "" : "\t").append(result.getString(i));
        }
        rows.add(row.toString());
      }
    }
    return rows;
  }

  /** "TABLE FILE": the lines of the file are rows, their columns separated by tabs; the first line names them. */
  private void load(String argument) throws Exception {
    String[] words = argument.split(" ", 2);
    phoenix.setAutoCommit(false);
    try (BufferedReader file = Files.newBufferedReader(Path.of(words[1]), StandardCharsets.UTF_8)) {
      String[] names = file.readLine().split("\t");
      String sql = "UPSERT INTO " + words[0] + " (" + String.join(", ", names) + ") VALUES ("
          + "?, ".repeat(names.length - 1) + "?)";
      try (PreparedStatement upsert = phoenix.prepareStatement(sql)) {
        int rows = 0;
        for (String line = file.readLine(); line != null; line = file.readLine()) {
          String[] values = line.split("\t", -1);
          for (int i = 0; i < names.length; ++i) {
            if (names[i].equals("installed_size")) {
              upsert.setLong(i + 1, Long.parseLong(values[i]));
            } else {
              upsert.setString(i + 1, values[i]);
            }
          }
          upsert.executeUpdate();
          if (++rows % BATCH == 0) {
            phoenix.commit();
          }
        }
        phoenix.commit();
      }
    } finally {
      phoenix.setAutoCommit(true);
    }
  }

  /** All of the table in one file of each region and family. */
  private void compact(TableName table) throws Exception {
    try (Admin admin = hbase.getAdmin()) {
      admin.flush(table);
      admin.majorCompact(table);
      while (admin.getCompactionState(table) != CompactionState.NONE) {
        Thread.sleep(100);
      }
    }
  }

  private List<String> servers(TableName table) throws Exception {
    try (RegionLocator regions = hbase.getRegionLocator(table)) {
      List<String> servers = new ArrayList<>();
      regions.getAllRegionLocations().forEach(region -> servers.add(region.getServerName().toString()));
      return servers;
    }
  }

  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try (PhoenixSide side = new PhoenixSide()) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] words = line.split(" ", 2);
        long began = System.nanoTime();
        List<String> answer = side.answer(words[0], words[1]);
        double seconds = (System.nanoTime() - began) / 1e9;
        StringBuilder text = new StringBuilder().append(seconds).append(' ').append(answer.size()).append('\n');
        answer.forEach(row -> text.append(row).append('\n'));
        System.out.write(text.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
      }
    }
  }
}
