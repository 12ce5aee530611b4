package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

/** Missing methods of HBase are noticed before anything is written. */
class LinkageTest {
  private static final String STORE = "org.apache.hadoop.hbase.regionserver.HStore";
  private static final String REGION = "org.apache.hadoop.hbase.regionserver.HRegion";

  /** The classes of HBase and ours once more, one of them with another name in it. */
  private static final class OtherHBase extends ClassLoader {
    private final String changed;
    private final byte[] from;
    private final byte[] to;

    /** `to` has as many bytes as `from`. */
    OtherHBase(String changed, String from, String to) {
      super(LinkageTest.class.getClassLoader());
      this.changed = changed;
      this.from = constant(from);
      this.to = constant(to);
    }

    private static byte[] constant(String text) {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      byte[] constant = new byte[bytes.length + 3];
      constant[0] = 1;
      constant[1] = (byte) (bytes.length >> 8);
      constant[2] = (byte) bytes.length;
      System.arraycopy(bytes, 0, constant, 3, bytes.length);
      return constant;
    }

    private boolean isAgain(String name) {
      return name.startsWith("tamis.") || name.startsWith("org.apache.hadoop.hbase.");
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      if (!isAgain(name)) return super.loadClass(name, resolve);
      synchronized (getClassLoadingLock(name)) {
        Class<?> loaded = findLoadedClass(name);
        if (loaded != null) return loaded;
        byte[] bytes = bytes(name);
        if (name.equals(changed)) replace(bytes);
        return defineClass(name, bytes, 0, bytes.length);
      }
    }

    private byte[] bytes(String name) throws ClassNotFoundException {
      try (InputStream in = getParent().getResourceAsStream(name.replace('.', '/') + ".class")) {
        if (in == null) throw new ClassNotFoundException(name);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        byte[] buffer = new byte[8192];
        for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) out.write(buffer, 0, n);
        return out.toByteArray();
      } catch (IOException e) {
        throw new ClassNotFoundException(name, e);
      }
    }

    private void replace(byte[] bytes) {
      int replaced = 0;
      for (int at = 0; at + from.length <= bytes.length; ++at) {
        int same = 0;
        while (same < from.length && bytes[at + same] == from[same]) ++same;
        if (same < from.length) continue;
        System.arraycopy(to, 0, bytes, at, to.length);
        ++replaced;
      }
      assertTrue(replaced > 0, "nothing is changed: the test changes what HBase does not have");
    }
  }

  @SuppressWarnings("unchecked")
  private static Set<String> missing(ClassLoader loader) throws Exception {
    java.lang.reflect.Method method = Class.forName("tamis.hbase.Linkage", true, loader).getDeclaredMethod("missing");
    method.setAccessible(true);
    return (Set<String>) method.invoke(null);
  }

  private static void assertMissing(String what, ClassLoader loader) throws Exception {
    Set<String> missing = missing(loader);
    assertTrue(missing.stream().anyMatch(each -> each.contains(what)), what + " in " + missing);
  }

  @Test
  void hbaseOfTheBuildHasAllReferences() {
    assertEquals(Collections.emptySet(), Linkage.missing());
    assertEquals(null, Linkage.refusal());
  }

  @Test
  void aMethodThatIsGoneIsNamed() throws Exception {
    assertMissing(REGION + ".getOpenSeqNum", new OtherHBase(REGION, "getOpenSeqNum", "getOpenSeqNun"));
  }

  @Test
  void theMethodThatIsCalledByEitherOfTwoFormsIsNamed() throws Exception {
    assertMissing(STORE + ".getScanners", new OtherHBase(STORE, "getScanners", "getScannerz"));
  }

  @Test
  void aMethodThatIsFoundByNameIsNamed() throws Exception {
    String index = "org.apache.hadoop.hbase.io.hfile.HFileBlockIndex$BlockIndexReader";
    assertMissing(index + ".getRootBlockCount", new OtherHBase(index, "getRootBlockCount", "getRootBlockCounu"));
  }

  @Test
  void aParameterOfAnotherTypeIsNoticed() throws Exception {
    String files = "org.apache.hadoop.hbase.regionserver.HRegionFileSystem";
    String before = "(Lorg/apache/hadoop/fs/FileSystem;Lorg/apache/hadoop/fs/Path;)"
        + "Lorg/apache/hadoop/hbase/client/RegionInfo;";
    assertMissing(
        files + ".loadRegionInfoFileContent", new OtherHBase(files, before, before.replace("/Path;", "/Math;")));
  }

  @Test
  void aFieldThatIsGoneIsNamed() throws Exception {
    String constants = "org.apache.hadoop.hbase.HConstants";
    assertMissing(constants + ".EMPTY_BYTE_ARRAY", new OtherHBase(constants, "EMPTY_BYTE_ARRAY", "EMPTY_BYTE_ARRAX"));
  }

  /** Such a hook would never be called, and nothing would tell. */
  @Test
  void aHookThatHBaseDoesNotCallIsNamed() throws Exception {
    String observer = "org.apache.hadoop.hbase.coprocessor.RegionObserver";
    assertMissing("a hook preBatchMutate", new OtherHBase(observer, "preBatchMutate", "preBatchMutatf"));
  }

  private static Object ask(String what, ClassLoader loader) throws Exception {
    java.lang.reflect.Method method = Class.forName("tamis.hbase.Linkage", true, loader).getDeclaredMethod(what);
    method.setAccessible(true);
    return method.invoke(null);
  }

  @Test
  void aMethodWithBothFormsOfACellIsNamedOnceBothAreGone() throws Exception {
    String scanner = "org.apache.hadoop.hbase.regionserver.KeyValueScanner";
    assertMissing(scanner + ".reseek(Cell)boolean", new OtherHBase(scanner, "reseek", "reseec"));
  }

  /** HBase would end the process that registers one. */
  @Test
  void endpointsOfAnotherProtobufAreNotOffered() throws Exception {
    assertEquals(true, Linkage.hasOurEndpoints());
    String before = "()Ljava/lang/Iterable<Lcom/google/protobuf/Service;>;";
    assertEquals(false,
        ask("hasOurEndpoints",
            new OtherHBase("org.apache.hadoop.hbase.Coprocessor", before, before.replace("Service;", "Servico;"))));
  }

  @Test
  void jarOfAnotherHBaseIsNamed() {
    String own = JarVersion.hbaseMajor();
    assertTrue(JarVersion.remedy(own + ".9.0").contains("docs/HBASE.md"), JarVersion.remedy(own + ".9.0"));
    String other = own.equals("2") ? "3" : "2";
    assertEquals("install tamis-coprocessor-" + (other.equals("3") ? "hbase3-" : "") + JarVersion.version()
            + ".jar there instead",
        JarVersion.remedy(other + ".0.0-alpha-4"));
  }

  @Test
  void aRefusalNamesTheVersionAndWhatItLacks() throws Exception {
    String why = (String) ask("refusal", new OtherHBase(REGION, "getOpenSeqNum", "getOpenSeqNun"));
    assertTrue(
        why.contains(org.apache.hadoop.hbase.util.VersionInfo.getVersion()) && why.contains("getOpenSeqNum"), why);
  }
}
