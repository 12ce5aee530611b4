// An application that asks a filter on a server without modules before its database, with Jedis (docs/PLAIN_GUARD.md).
//
// usage: Rows HOST PORT SCRIPT, then `look_up ID`, `insert ID` and `delete ID` on the standard input
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPooled;
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

  // --- as the page has it ---
  static JedisPooled r; // made with a DefaultJedisClientConfig with timeoutMillis(100); it sends nothing twice
  static String script; // the text of guard.lua
  static final List<String> KEYS =
      Arrays.asList("{items}:filter", "{items}:trust", "{items}:new", "{items}:rebuild");

  static long guard(String... words) {
    return (Long) r.eval(script, KEYS, Arrays.asList(words));
  }

  static String lookUp(String id) {
    try {
      if (guard("check", id) == 0) return null; // there is no such row
    } catch (JedisException e) {
      // No answer: the database has one.
    }
    return db.find(id);
  }

  static void insert(String id) {
    db.rows.add(id); // in a transaction
    try {
      guard("add", id);
    } catch (JedisException e) {
      db.rows.remove(id); // roll back: the outcome of the add is unknown
      throw e;
    }
    // commit
  }

  static void delete(String id) {
    db.rows.remove(id); // the key stays in the filter until the next load, and costs a lookup now and then
  }
  // --- end ---

  public static void main(String[] args) throws Exception {
    HostAndPort server = new HostAndPort(args[0], Integer.parseInt(args[1]));
    r = new JedisPooled(server, DefaultJedisClientConfig.builder().timeoutMillis(100).build());
    script = new String(Files.readAllBytes(Paths.get(args[2])), "UTF-8");
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
