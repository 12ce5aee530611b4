// usage: java JedisProgram PORT EVERY_COMMAND
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.bloom.BFInsertParams;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;

class JedisProgram {
  static void equal(Object got, Object expected) {
    if (!expected.equals(got)) throw new AssertionError("got " + got + ", expected " + expected);
  }

  static Object call(JedisPooled jedis, String name, String... words) {
    ProtocolCommand command = () -> name.getBytes(StandardCharsets.UTF_8);
    return jedis.sendCommand(command, words);
  }

  static void check(JedisPooled jedis) {
    jedis.flushAll();
    equal(jedis.bfReserve("b", 0.01, 1000), "OK");
    equal(jedis.bfAdd("b", "x"), true);
    equal(jedis.bfAdd("b", "x"), false);
    equal(jedis.bfMAdd("b", "x", "y"), List.of(false, true));
    equal(jedis.bfInsert("i", BFInsertParams.insertParams().capacity(100).error(0.1), "x"), List.of(true));
    equal(jedis.bfExists("b", "absent"), false);
    equal(jedis.bfMExists("b", "x", "absent"), List.of(true, false));
    equal(jedis.bfCard("b"), 2L);
    equal(jedis.bfInfo("b").get("Number of items inserted"), 2L);
    try {
      jedis.bfReserve("b", 0.01, 1000);
      throw new AssertionError("reserved twice");
    } catch (JedisDataException error) {
      equal(error.getMessage(), "ERR item exists");
    }
    Map.Entry<Long, byte[]> part = jedis.bfScanDump("b", 0);
    while (part.getKey() != 0) {
      equal(jedis.bfLoadChunk("copy", part.getKey(), part.getValue()), "OK");
      part = jedis.bfScanDump("b", part.getKey());
    }
    equal(jedis.bfMExists("copy", "x", "absent"), List.of(true, false));
    equal(jedis.cfReserve("c", 1000), "OK");
    equal(jedis.cfAdd("c", "x"), true);
    equal(jedis.cfAddNx("c", "x"), false);
    equal(jedis.cfInsert("c", "y", "z"), List.of(true, true));
    equal(jedis.cfInsertNx("c", "y", "new"), List.of(false, true));
    equal(jedis.cfMExists("c", "x", "absent"), List.of(true, false));
    equal(jedis.cfCount("c", "x"), 1L);
    equal(jedis.cfDel("c", "x"), true);
    equal(jedis.cfInfo("c").get("Number of items inserted"), 3L);
    part = jedis.cfScanDump("c", 0);
    while (part.getKey() != 0) {
      equal(jedis.cfLoadChunk("copyc", part.getKey(), part.getValue()), "OK");
      part = jedis.cfScanDump("c", part.getKey());
    }
    equal(jedis.cfMExists("copyc", "y", "absent"), List.of(true, false));
    call(jedis, "TAMIS.RESERVE", "t", "0.01", "1000", "GUARD");
    equal(call(jedis, "TAMIS.ADD", "t", "x", "y"), List.of(1L, 1L));
    equal(call(jedis, "TAMIS.CHECK", "t", "x"), List.of(-1L));
    call(jedis, "TAMIS.TRUST", "t");
    equal(call(jedis, "TAMIS.CHECK", "t", "x", "absent"), List.of(1L, 0L));
    equal(call(jedis, "TAMIS.DEL", "t", "x"), List.of(1L));
    try (Pipeline pipeline = jedis.pipelined()) {
      Response<List<Boolean>> added = pipeline.bfMAdd("p", "x", "y");
      Response<Boolean> there = pipeline.cfExists("c", "y");
      pipeline.sync();
      equal(added.get(), Arrays.asList(true, true));
      equal(there.get(), true);
    }
  }

  static void everyCommand(JedisPooled jedis, String path) throws IOException {
    for (String line : Files.readAllLines(Path.of(path))) {
      String[] words = line.split(" ");
      String got = "ok";
      try {
        call(jedis, words[1], Arrays.copyOfRange(words, 2, words.length));
      } catch (JedisDataException error) {
        got = "error";
      }
      if (!got.equals(words[0])) throw new AssertionError(line + ": " + got);
    }
  }

  public static void main(String[] words) throws IOException {
    for (RedisProtocol protocol : RedisProtocol.values()) {
      try (JedisPooled jedis = new JedisPooled(new HostAndPort("127.0.0.1", Integer.parseInt(words[0])),
               DefaultJedisClientConfig.builder().protocol(protocol).build())) {
        check(jedis);
        everyCommand(jedis, words[1]);
      }
    }
  }
}
