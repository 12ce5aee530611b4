// A Java program that asks a store in SQL, over sqlite-jdbc.
//
//   java -cp /usr/share/java/sqlite-jdbc.jar Query.java build/release/lib/tamis.so DIRECTORY
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import org.sqlite.SQLiteConfig;

public class Query {
  public static void main(String[] arguments) throws Exception {
    SQLiteConfig config = new SQLiteConfig();
    config.enableLoadExtension(true);
    try (Connection connection = config.createConnection("jdbc:sqlite::memory:")) {
      try (PreparedStatement load = connection.prepareStatement("SELECT load_extension(?)")) {
        load.setString(1, arguments[0]);
        load.executeQuery().close();
      }
      try (PreparedStatement open = connection.prepareStatement("SELECT tamis_open(?)")) {
        open.setString(1, arguments[1]);
        open.executeQuery().close();
      }
      try (Statement statement = connection.createStatement()) {
        statement.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS people USING tamis("
                + "name, born int64, town, key (name), index town (town))");
      }
      try (PreparedStatement put =
          connection.prepareStatement("INSERT OR REPLACE INTO people VALUES (?, ?, ?)")) {
        Object[][] people = {{"ada", 1815, "London"}, {"grace", 1906, "New York"}};
        for (Object[] person : people) {
          for (int i = 0; i < person.length; ++i) put.setObject(i + 1, person[i]);
          put.executeUpdate();
        }
      }
      try (PreparedStatement query =
          connection.prepareStatement("SELECT name, born FROM people WHERE town = ?")) {
        query.setString(1, "London");
        try (ResultSet rows = query.executeQuery()) {
          while (rows.next()) System.out.println(rows.getString(1) + " " + rows.getLong(2));
        }
      }
    }
  }
}
