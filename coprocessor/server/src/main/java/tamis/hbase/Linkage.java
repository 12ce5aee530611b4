package tamis.hbase;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.hbase.Coprocessor;
import org.apache.hadoop.hbase.util.VersionInfo;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.base.Fault;
import tamis.compat.Methods;

/**
 * Whether the HBase that loads this jar has all that the jar calls there. Much of it is not HBase's public interface,
 * and comes and goes with releases. Java resolves a call when it is first made, so a method that is missing would be
 * noticed in the midst of a write; and a hook that has another name is never called at all. So all of it is looked up
 * before anything is written: each reference in the constant pools of our classes, and for each method that implements
 * or overrides one of HBase's, that there is one.
 *
 * Threads: safe.
 */
final class Linkage {
  private static final Logger LOG = LoggerFactory.getLogger(Linkage.class);
  /** HBase names these in its configuration; the others are reached from them. */
  private static final List<Class<?>> ROOTS =
      Arrays.asList(IndexObserver.class, SchemaGuard.class, ServerReport.class, IndexSplitPolicy.class);
  private static final List<String> OURS = Arrays.asList("tamis/base/", "tamis/compat/", "tamis/feed/", "tamis/filter/",
      "tamis/hbase/", "tamis/index/", "tamis/region/", "tamis/search/", "tamis/server/", "tamis/table/");
  private static final List<String> CARRIED = Arrays.asList("tamis/", "java/", "javax/", "[");
  private static final int MOST_SHOWN = 5;
  private static final String SERVICE = "com.google.protobuf.Service";

  /** For this process: the jar's file may be replaced while it runs. */
  private static final class Found {
    static final Set<String> MISSING = find();

    private static Set<String> find() {
      try {
        Set<String> missing = new Linkage().look();
        if (!missing.isEmpty()) LOG.error("{}", refusal(missing));
        return missing;
      } catch (IOException | RuntimeException | LinkageError e) {
        LOG.error("Cannot look up what HBase has", e);
        return Collections.singleton("(its classes cannot be looked up: " + e + ")");
      }
    }
  }

  private final MethodHandles.Lookup lookup = MethodHandles.lookup();
  private final ClassLoader loader = Linkage.class.getClassLoader();
  private final Set<String> missing = new TreeSet<>();
  private final Deque<String> unread = new ArrayDeque<>();
  private final Set<String> known = new HashSet<>();

  private Linkage() {}

  /** The references that this HBase lacks, in order; usually none. */
  static Set<String> missing() {
    if (Fault.HBASE_LACKS_A_METHOD.isOn()) return Collections.singleton("org.apache.hadoop.hbase.Gone.method()void");
    return Found.MISSING;
  }

  /** Why nothing is indexed here; null: it can be. */
  static String refusal() {
    return missing().isEmpty() ? null : refusal(missing());
  }

  private static String refusal(Set<String> missing) {
    List<String> shown = new ArrayList<>(missing);
    String more = shown.size() <= MOST_SHOWN ? "" : ", and " + (shown.size() - MOST_SHOWN) + " more";
    return "this jar does not fit HBase " + VersionInfo.getVersion() + ", which lacks "
        + String.join(", ", shown.subList(0, Math.min(MOST_SHOWN, shown.size()))) + more + "; "
        + JarVersion.remedy(VersionInfo.getVersion());
  }

  /**
   * Whether HBase's endpoints speak the protobuf that this jar's do; otherwise HBase could not register them, and
   * would end the process.
   */
  static boolean hasOurEndpoints() {
    try {
      Type services = Coprocessor.class.getMethod("getServices").getGenericReturnType();
      return ((ParameterizedType) services).getActualTypeArguments()[0].getTypeName().equals(SERVICE);
    } catch (ReflectiveOperationException | ClassCastException | TypeNotPresentException e) {
      return false;
    }
  }

  /** Prints what the HBase on the class path lacks; ends with 1 if that is anything. */
  public static void main(String[] arguments) {
    String refusal = refusal();
    System.out.println(refusal == null ? "this jar fits HBase " + VersionInfo.getVersion() : refusal);
    System.exit(refusal == null ? 0 : 1);
  }

  private Set<String> look() throws IOException {
    for (Class<?> root : ROOTS) visit(root.getName().replace('.', '/'));
    while (!unread.isEmpty()) {
      String name = unread.remove();
      checkReferences(name);
      checkOverrides(name);
    }
    missing.addAll(Methods.missing());
    return missing;
  }

  private void visit(String name) {
    boolean ours = false;
    for (String prefix : OURS) ours |= name.startsWith(prefix);
    if (ours && known.add(name)) unread.add(name);
  }

  private static boolean isCarried(String name) {
    for (String prefix : CARRIED) {
      if (name.startsWith(prefix)) return true;
    }
    return false;
  }

  private static String dotted(String name) {
    return name.replace('/', '.');
  }

  private Class<?> load(String name) {
    try {
      return Class.forName(dotted(name), false, loader);
    } catch (ClassNotFoundException | LinkageError e) {
      missing.add("class " + dotted(name));
      return null;
    }
  }

  // ---- References

  /** The constants of a class file that names are made of. */
  private static final class Constants {
    final byte[] tags;
    final int[] one;
    final int[] two;
    final String[] texts;

    Constants(DataInputStream in) throws IOException {
      in.skipBytes(8); // magic number and version
      int count = in.readUnsignedShort();
      tags = new byte[count];
      one = new int[count];
      two = new int[count];
      texts = new String[count];
      for (int i = 1; i < count; ++i) {
        tags[i] = in.readByte();
        switch (tags[i]) {
          case UTF8:
            texts[i] = in.readUTF();
            break;
          case CLASS:
          case 8:
          case 16:
          case 19:
          case 20: // of one index
            one[i] = in.readUnsignedShort();
            break;
          case 15: // a method handle
            in.readByte();
            one[i] = in.readUnsignedShort();
            break;
          case FIELD:
          case METHOD:
          case INTERFACE_METHOD:
          case 12:
          case 17:
          case 18: // of two
            one[i] = in.readUnsignedShort();
            two[i] = in.readUnsignedShort();
            break;
          case 3:
          case 4:
            in.readInt();
            break;
          case 5:
          case 6: // they take two places
            in.readLong();
            ++i;
            break;
          default:
            throw new IOException("a class file has a constant of kind " + tags[i]);
        }
      }
    }

    String nameOf(int type) {
      return texts[one[type]];
    }
  }

  private static final byte UTF8 = 1;
  private static final byte CLASS = 7;
  private static final byte FIELD = 9;
  private static final byte METHOD = 10;
  private static final byte INTERFACE_METHOD = 11;

  private void checkReferences(String name) throws IOException {
    Constants constants;
    try (InputStream file = loader.getResourceAsStream(name + ".class")) {
      if (file == null) throw new IOException("the class file of " + dotted(name) + " is not there");
      constants = new Constants(new DataInputStream(file));
    }
    for (int i = 1; i < constants.tags.length; ++i) {
      byte tag = constants.tags[i];
      if (tag == CLASS) {
        String type = constants.nameOf(i);
        visit(type);
        if (!isCarried(type)) load(type); // the file lists nested classes that it never uses: access is asked below
      } else if (tag == FIELD || tag == METHOD || tag == INTERFACE_METHOD) {
        String owner = constants.nameOf(constants.one[i]);
        if (isCarried(owner)) continue;
        int described = constants.two[i];
        checkMember(tag, owner, constants.texts[constants.one[described]], constants.texts[constants.two[described]]);
      }
    }
  }

  /** Ours may name it. A nested class that is protected is public to others. */
  private void checkAccess(Class<?> type) {
    if ((type.getModifiers() & (Modifier.PUBLIC | Modifier.PROTECTED)) != 0) return;
    missing.add("access to class " + type.getName());
  }

  private void checkMember(byte tag, String owner, String member, String descriptor) {
    Class<?> type = load(owner);
    if (type == null) return;
    checkAccess(type);
    String shown = dotted(owner) + "." + member;
    try {
      MethodType signature =
          MethodType.fromMethodDescriptorString(tag == FIELD ? "()" + descriptor : descriptor, loader);
      shown += tag == FIELD ? "" : signature.toString();
      boolean there = tag == FIELD
          ? hasField(type, member, signature.returnType())
          : (tag == INTERFACE_METHOD) == type.isInterface() && hasMethod(type, member, signature);
      if (!there) missing.add(shown);
    } catch (TypeNotPresentException | LinkageError e) {
      missing.add(shown);
    }
  }

  /** Java's own resolution finds it, and others may call it. */
  private boolean hasMethod(Class<?> type, String name, MethodType signature) {
    try {
      if (name.equals("<init>")) {
        lookup.findConstructor(type, signature);
      } else {
        lookup.findVirtual(type, name, signature);
      }
      return true;
    } catch (NoSuchMethodException e) {
      return false;
    } catch (IllegalAccessException e) {
      return isFound(e) && isOpen(type, name, signature);
    }
  }

  private boolean hasField(Class<?> type, String name, Class<?> fieldType) {
    try {
      lookup.findGetter(type, name, fieldType);
      return true;
    } catch (NoSuchFieldException e) {
      return false;
    } catch (IllegalAccessException e) {
      return isFound(e);
    }
  }

  /** True if it is static or not public. Other causes say that it does not exist. */
  private static boolean isFound(IllegalAccessException e) {
    return e.getCause() == null || e.getCause() instanceof IncompatibleClassChangeError;
  }

  /** Public or protected: ours call what is protected where they inherit it. */
  private static boolean isOpen(Class<?> type, String name, MethodType signature) {
    for (Class<?> each = type; each != null; each = each.getSuperclass()) {
      List<Executable> declared = new ArrayList<>();
      try {
        declared.addAll(
            Arrays.asList(name.equals("<init>") ? each.getDeclaredConstructors() : each.getDeclaredMethods()));
      } catch (NoClassDefFoundError e) {
        return true; // HBase is installed without a part that the class names elsewhere
      }
      for (Executable method : declared) {
        boolean same = name.equals("<init>") || method.getName().equals(name);
        if (!same || !Arrays.equals(method.getParameterTypes(), signature.parameterArray())) continue;
        return (method.getModifiers() & (Modifier.PUBLIC | Modifier.PROTECTED)) != 0;
      }
    }
    return true;
  }

  // ---- Hooks

  /** A public method of a class that extends or implements a foreign one is there to be called by it. */
  private void checkOverrides(String name) {
    Class<?> type = load(name);
    if (type == null || type.isInterface()) return;
    List<Class<?>> foreign = new ArrayList<>();
    addForeign(type, foreign);
    if (foreign.isEmpty()) return;
    for (Method method : type.getDeclaredMethods()) {
      int modifiers = method.getModifiers();
      if (!Modifier.isPublic(modifiers) || Modifier.isStatic(modifiers) || method.isSynthetic()) continue;
      if (!overrides(method, type)) {
        missing.add(
            "a hook " + method.getName() + MethodType.methodType(method.getReturnType(), method.getParameterTypes()));
      }
    }
  }

  private static void addForeign(Class<?> type, List<Class<?>> foreign) {
    for (Class<?> above : above(type)) {
      String name = above.getName().replace('.', '/');
      if (!isCarried(name)) foreign.add(above);
      addForeign(above, foreign);
    }
  }

  private static List<Class<?>> above(Class<?> type) {
    List<Class<?>> above = new ArrayList<>(Arrays.asList(type.getInterfaces()));
    if (type.getSuperclass() != null) above.add(type.getSuperclass());
    return above;
  }

  private static boolean overrides(Method method, Class<?> type) {
    for (Class<?> each : above(type)) {
      try {
        each.getDeclaredMethod(method.getName(), method.getParameterTypes());
        return true;
      } catch (NoSuchMethodException e) {
        if (overrides(method, each)) return true;
      }
    }
    return false;
  }
}
