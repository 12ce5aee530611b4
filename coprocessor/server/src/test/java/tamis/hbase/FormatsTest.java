package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Descriptors;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import javax.management.MBeanAttributeInfo;
import javax.management.ObjectName;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CommonFSUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tamis.index.RestoreMark;
import tamis.region.IndexedTable;
import tamis.region.OpeningFlag;
import tamis.server.Endpoint;
import tamis.server.RegionServerMetrics;
import tamis.server.RegionServerState;
import tamis.server.ServerLife;

/**
 * The names that stand in tables, files and configurations of users: a jar that changes one cannot open what an earlier
 * jar wrote. Their golden values are here.
 */
class FormatsTest {
  @Test
  void classesThatHBaseLoadsKeepTheirNames() throws Exception {
    for (String name : new String[] {"IndexObserver", "IndexSplitPolicy", "SchemaGuard", "ServerReport"}) {
      Class<?> loaded = Class.forName("tamis.hbase." + name);
      assertTrue(java.lang.reflect.Modifier.isPublic(loaded.getModifiers()), name);
      loaded.getConstructor().newInstance();
    }
  }

  @Test
  void attributesAndFamilyOfATableKeepTheirNames() {
    assertEquals("tamis.schema", Bytes.toString(IndexedTable.SCHEMA));
    assertEquals("tamis.prefix.zeros", Bytes.toString(IndexedTable.PREFIX_ZEROS));
    assertEquals("tamis.table", Bytes.toString(IndexedTable.TABLE));
    assertEquals("tamis.origin", Bytes.toString(IndexedTable.ORIGIN));
    assertEquals("tamis", Bytes.toString(IndexedTable.FAMILY));
    assertEquals("", Bytes.toString(IndexedTable.QUALIFIER));
    assertEquals("", Bytes.toStringBinary(IndexedTable.CERTAIN));
    assertEquals("\\x01", Bytes.toStringBinary(IndexedTable.UNCERTAIN));
  }

  @Test
  void beanKeepsItsNameAndAttributes() throws Exception {
    new RegionServerMetrics().register(new RegionServerState(new ServerLife()));
    List<String> attributes = new ArrayList<>();
    for (MBeanAttributeInfo attribute : ManagementFactory.getPlatformMBeanServer()
                                            .getMBeanInfo(new ObjectName("tamis:type=RegionServer"))
                                            .getAttributes()) {
      assertEquals("long", attribute.getType());
      attributes.add(attribute.getName());
    }
    Collections.sort(attributes);
    assertEquals(
        Arrays.asList("Coordinators", "EntriesRead", "FeedBytes", "FeedEvents", "FilterBytes", "FilterBytesMax",
            "FiltersMissing", "FiltersOfBits", "Polls", "Regions", "RegionsFailing", "RegionsIncomplete",
            "RegionsWorkedOn", "RowsRead", "RowsReturned", "ScannedRegions", "SearchedRanges", "Searches",
            "SearchesNotProved", "WritesNotAcknowledged", "WritesTurnedAway", "WritesWaited", "WritesWaiting"),
        attributes);
  }

  private static List<String> methodsOf(Descriptors.ServiceDescriptor service) {
    List<String> methods = new ArrayList<>();
    for (Descriptors.MethodDescriptor method : service.getMethods()) {
      methods.add(method.getFullName() + " " + method.getInputType().getFullName() + " "
          + method.getOutputType().getFullName());
    }
    return methods;
  }

  @Test
  void servicesKeepTheirNamesAndMessages() {
    String payload = " tamis.pb.Payload tamis.pb.Payload";
    List<String> methods = new ArrayList<>();
    for (String name : new String[] {"Mutate", "Search", "Poll", "Status", "StartJob", "GetJob"}) {
      methods.add("tamis.pb.RegionServer." + name + payload);
    }
    assertEquals(methods, methodsOf(new Endpoint((method, request) -> request).getDescriptorForType()));
    assertEquals(
        Collections.singletonList("tamis.pb.Installation.Describe" + payload), methodsOf(Endpoint.INSTALLATION));
    assertEquals(
        Collections.singletonList("tamis.pb.IndexedTable.Describe" + payload), methodsOf(Endpoint.INDEXED_TABLE));
    assertEquals(1, Endpoint.BYTES.getNumber());
    assertEquals(Descriptors.FieldDescriptor.Type.BYTES, Endpoint.BYTES.getType());
  }

  private static void addNames(FileSystem files, Path directory, String before, TreeSet<String> names)
      throws Exception {
    for (FileStatus file : files.listStatus(directory)) {
      String name = before + file.getPath().getName();
      if (file.isDirectory()) addNames(files, file.getPath(), name + "/", names);
      else names.add(name);
    }
  }

  @Test
  void filesKeepTheirNames(@TempDir File temporary) throws Exception {
    Path root = new Path("file://" + temporary);
    FileSystem files = root.getFileSystem(new org.apache.hadoop.conf.Configuration());
    TableName table = TableName.valueOf("t");
    Path directory = CommonFSUtils.getTableDir(root, table);
    RestoreMark.cloned(files, root, table, 17);
    files.mkdirs(directory);
    RestoreMark.restored(files, root, table, 17);
    Path region = new Path(directory, "region");
    files.mkdirs(region);
    new OpeningFlag(files, region, Collections.emptySet(), "opening").raise();
    TreeSet<String> names = new TreeSet<>();
    addNames(files, root, "", names);
    names.removeIf(name -> name.endsWith(".crc"));
    assertEquals(new TreeSet<>(Arrays.asList(".tamis/data/default/t/.tamis-restored-00000000000000000017",
                     "data/default/t/.tamis-restored-00000000000001000017", "data/default/t/region/.tamis/opening")),
        names);
  }
}
