import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;

/** Describes, reads and changes the foreign table `orders` by pgjdbc, as BI tools do. */
public final class PgjdbcClient {
  private PgjdbcClient() {}

  public static void main(String[] arguments) throws Exception {
    try (Connection connection = DriverManager.getConnection(arguments[0])) {
      describe(connection);
      change(connection);
      fetch(connection);
    }
  }

  private static void describe(Connection connection) throws Exception {
    try (ResultSet tables = connection.getMetaData().getTables(null, "public", "orders", null)) {
      while (tables.next()) {
        System.out.println(
            tables.getString("TABLE_NAME") + " is a " + tables.getString("TABLE_TYPE"));
      }
    }
    try (ResultSet columns = connection.getMetaData().getColumns(null, "public", "orders", null)) {
      while (columns.next()) {
        System.out.println(columns.getString("COLUMN_NAME") + " " + columns.getString("TYPE_NAME"));
      }
    }
  }

  private static void change(Connection connection) throws Exception {
    try (PreparedStatement insert =
        connection.prepareStatement("INSERT INTO orders (id, customer) VALUES (?, ?)")) {
      for (long id = 7; id <= 9; ++id) {
        insert.setLong(1, id);
        insert.setString(2, "ann");
        insert.addBatch();
      }
      StringBuilder counts = new StringBuilder("batch");
      for (int count : insert.executeBatch()) counts.append(' ').append(count);
      System.out.println(counts);
    }
    try (PreparedStatement select =
        connection.prepareStatement("SELECT id FROM orders WHERE id = ANY (?) ORDER BY id")) {
      select.setArray(1, connection.createArrayOf("int8", new Long[] {7L, 8L, 9L, 10L}));
      StringBuilder found = new StringBuilder("array");
      try (ResultSet rows = select.executeQuery()) {
        while (rows.next()) found.append(' ').append(rows.getLong(1));
      }
      System.out.println(found);
    }
    try (Statement statement = connection.createStatement()) {
      System.out.println(
          "updated " + statement.executeUpdate("UPDATE orders SET cents = 1 WHERE id = 7"));
      System.out.println("deleted " + statement.executeUpdate("DELETE FROM orders WHERE id IN (8, 9)"));
    }
  }

  private static void fetch(Connection connection) throws Exception {
    connection.setAutoCommit(false);
    try (Statement statement = connection.createStatement()) {
      statement.setFetchSize(100); // a cursor, which is read in parts
      int count = 0;
      try (ResultSet rows =
          statement.executeQuery(
              "SELECT o.id FROM orders o, generate_series(1, 1000) n WHERE o.id = 7")) {
        while (rows.next()) ++count;
      }
      System.out.println("fetched " + count);
    }
    try (Statement statement = connection.createStatement()) {
      statement.executeUpdate("DELETE FROM orders WHERE id = 7");
      connection.rollback();
      try (ResultSet rows =
          statement.executeQuery("SELECT count(*) FROM orders WHERE id IN (1, 3, 7)")) {
        rows.next();
        System.out.println("rolled back " + rows.getLong(1));
      }
      connection.commit();
    }
  }
}
