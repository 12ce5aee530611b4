package tamis.region;

import java.io.IOException;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.pb.TableAttributes.TableAttributesReply;
import tamis.shaded.protobuf.ByteString;

/**
 * Tells which attributes of ours a table's description has. HBase shows the description to users with C or A on the
 * table; a user who reads and writes rows needs the schema, too.
 */
public final class TableAttributes {
  private TableAttributes() {}

  /** Throws if the caller may read no column of the table. */
  public static TableAttributesReply of(IndexedRegion region) throws IOException {
    Rights.mayReadSome(region);
    TableAttributesReply.Builder reply = TableAttributesReply.newBuilder();
    region.region.getTableDescriptor().getValues().forEach((name, value) -> {
      String attribute = Bytes.toString(name.get(), name.getOffset(), name.getLength());
      if (attribute.startsWith(IndexedTable.ATTRIBUTES)) {
        reply.putAttributes(attribute, ByteString.copyFrom(value.get(), value.getOffset(), value.getLength()));
      }
    });
    return reply.build();
  }
}
