// An application that asks a filter in Redis before its database, with Jedis (docs/GUARD.md).
//
// usage: Rows HOST PORT, then `look_up ID`, `insert ID` and `delete ID` on the standard input
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;

public class Rows {
  static class Database {
    Set<String> rows = new HashSet<>();
    int asked = 0;

    String find(String id) {
      ++asked;
      return rows.contains(id) ? id : null;
    }
  }

  static final Database db = new Database();

  // --- as docs/GUARD.md has it ---
  enum Tamis implements ProtocolCommand {
    CHECK, ADD, GENERATION, DELIF;

    public byte[] getRaw() {
      return ("TAMIS." + name()).getBytes();
    }
  }

  static JedisPooled r; // made with a DefaultJedisClientConfig with timeoutMillis(100); it sends nothing twice

  static long first(Object reply) {
    return (Long) ((List<?>) reply).get(0);
  }

  static String lookUp(String id) {
    try {
      if (first(r.sendCommand(Tamis.CHECK, "items", id)) == 0) return null; // there is no such row
    } catch (JedisException e) {
      // No answer: the database has one.
    }
    return db.find(id);
  }

  static void insert(String id) {
    db.rows.add(id); // in a transaction
    try {
      if (first(r.sendCommand(Tamis.ADD, "items", id)) == -1) {
        throw new JedisException("the filter is full: tamis guard load --capacity");
      }
    } catch (JedisException e) {
      boolean noFilter = e instanceof JedisDataException && e.getMessage().contains("not found");
      if (noFilter) return; // nothing is refused without one: commit
      db.rows.remove(id); // roll back
      throw e;
    }
    // commit
  }

  static void delete(String id) {
    Object generation = null;
    try {
      generation = r.sendCommand(Tamis.GENERATION, "items"); // before the row goes
    } catch (JedisException e) {
      // A key that stays in the filter costs a lookup now and then.
    }
    boolean deleted = db.rows.remove(id); // executeUpdate() == 1, and commit
    if (!deleted) return; // no row went: the key in the filter, if any, belongs to another insert
    try {
      if (generation != null) r.sendCommand(Tamis.DELIF, "items", generation.toString(), id);
    } catch (JedisException e) {
      // It is not sent again: its outcome is unknown.
    }
  }
  // --- end ---

  public static void main(String[] args) throws Exception {
    HostAndPort server = new HostAndPort(args[0], Integer.parseInt(args[1]));
    r = new JedisPooled(server, DefaultJedisClientConfig.builder().timeoutMillis(100).build());
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      String[] words = line.split(" ");
      int asked = db.asked;
      String answer = "none";
      try {
        if (words[0].equals("look_up")) answer = lookUp(words[1]) == null ? "none" : "row";
        if (words[0].equals("insert")) insert(words[1]);
        if (words[0].equals("delete")) delete(words[1]);
      } catch (JedisException e) {
        answer = "failed";
      }
      System.out.println(answer + " " + (db.asked > asked ? "asked" : "spared"));
    }
    System.exit(0);
  }
}
