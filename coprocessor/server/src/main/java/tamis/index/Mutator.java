package tamis.index;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.HConstants.OperationStatusCode;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.regionserver.OperationStatus;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.region.Rights;
import tamis.shaded.protobuf.ByteString;
import tamis.table.CellEncoding;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.KeyFormat;
import tamis.table.Predicate;
import tamis.table.RefusedValueException;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * Carries out a MutateRequest in one region with the rights of its caller. HBase's own hooks check the right to write.
 * This class checks the right to read what the outcomes tell of, as HBase does for a checkAndMutate.
 */
public final class Mutator {
  private Mutator() {}

  public static Cluster.RegionMutateResult mutate(
      IndexedRegion region, Cluster.RegionMutations mutations, long schemaVersion) {
    Cluster.RegionMutateResult.Builder result =
        Cluster.RegionMutateResult.newBuilder().setRegionId(mutations.getRegionId());
    Schema schema = region.table.schema;
    if (schema.version != schemaVersion) {
      return result
          .setError(Cluster.Error.newBuilder()
                        .setCode(Cluster.Error.Code.UNAVAILABLE)
                        .setMessage("table \"" + schema.name + "\" has schema version " + schema.version
                            + ", the request is for version " + schemaVersion)
                        .setSchemaVersion(schema.version))
          .build();
    }
    Cluster.Error[] outcomes = new Cluster.Error[mutations.getMutationsCount()];
    List<ConditionalWrites.Write> writes = new ArrayList<>();
    List<Integer> numbers = new ArrayList<>();
    ConditionalWrites conditions = new ConditionalWrites();
    for (int i = 0; i < outcomes.length; ++i) {
      Cluster.Mutation mutation = mutations.getMutations(i);
      if (!region.keys.contains(mutation.getKey().toByteArray())) {
        return result
            .setError(StatusException.error(
                Cluster.Error.Code.UNAVAILABLE, "a row key does not lie in the region: the region map is old"))
            .build();
      }
      try {
        ConditionalWrites.Write write = writeOf(schema, region.table, mutation);
        conditions.add(write);
        writes.add(write);
        numbers.add(i);
      } catch (StatusException e) {
        outcomes[i] = e.error();
      }
    }
    try {
      mayRead(region, writes);
      run(region, conditions, writes);
    } catch (Throwable e) {
      Cluster.Error error = StatusException.errorOf(e, region.isLeaving());
      boolean begun = false;
      for (ConditionalWrites.Write write : writes) begun |= write.asked;
      // Once a condition was evaluated, the batch may have reached the log, also in part (mini-batches).
      if (begun) {
        error = StatusException.error(
            Cluster.Error.Code.DEADLINE_EXCEEDED, "the writes may have been carried out: " + error.getMessage());
      }
      return result.setError(error).build();
    }
    for (int i = 0; i < writes.size(); ++i) outcomes[numbers.get(i)] = writes.get(i).outcome;
    for (Cluster.Error outcome : outcomes) result.addResults(outcome);
    return result.build();
  }

  private static void mayRead(IndexedRegion region, List<ConditionalWrites.Write> writes)
      throws IOException, StatusException {
    boolean[] columns = new boolean[region.table.schema.columns.length];
    boolean reads = false;
    boolean wholeRows = false; // an outcome tells whether the row exists, which any cell of its families shows
    for (ConditionalWrites.Write write : writes) {
      if (write.condition != null) write.condition.addColumns(columns);
      reads |= write.condition != null || write.tellsOfRow();
      wholeRows |= write.tellsOfRow();
    }
    if (!reads || Fault.CONDITION_FOR_WRITERS.isOn()) return;
    Rights.mayRead(region, wholeRows ? new boolean[columns.length] : columns);
  }

  private static void run(IndexedRegion region, ConditionalWrites conditions, List<ConditionalWrites.Write> writes)
      throws IOException {
    if (writes.isEmpty()) return;
    Mutation[] mutations = new Mutation[writes.size()];
    for (int i = 0; i < mutations.length; ++i) mutations[i] = writes.get(i).mutation;
    BatchContext.Caller caller = BatchContext.next();
    OperationStatus[] statuses;
    caller.conditions = conditions;
    try {
      statuses = ((org.apache.hadoop.hbase.regionserver.HRegion) region.region).batchMutate(mutations);
    } finally {
      caller.conditions = null;
    }
    if (Fault.REFUSAL_ANSWERED_AS_DONE.isOn()) {
      for (ConditionalWrites.Write write : writes) write.outcome = Cluster.Error.getDefaultInstance();
      return;
    }
    for (int i = 0; i < mutations.length; ++i) {
      ConditionalWrites.Write write = writes.get(i);
      if (write.outcome.getCode() != Cluster.Error.Code.OK) continue;
      if (statuses[i].getOperationStatusCode() == OperationStatusCode.SUCCESS && write.asked) continue;
      write.outcome = StatusException.error(statuses[i].getOperationStatusCode() == OperationStatusCode.STORE_TOO_BUSY
              ? Cluster.Error.Code.BUSY
              : Cluster.Error.Code.UNAVAILABLE,
          "HBase did not write the row: " + statuses[i].getOperationStatusCode() + " " + statuses[i].getExceptionMsg());
    }
  }

  private static ConditionalWrites.Write writeOf(Schema schema, IndexedTable table, Cluster.Mutation message)
      throws StatusException {
    if (message.getKind() == Cluster.Mutation.Kind.UNRECOGNIZED) {
      throw invalid("this region server does not know mutations of kind " + message.getKindValue());
    }
    byte[] key = message.getKey().toByteArray();
    Value[] row = new Value[schema.columns.length];
    if (!KeyFormat.decode(schema, key, row)) {
      throw invalid(
          "the row key is none of table \"" + schema.name + "\": its bytes are not of the table's key format");
    }
    Predicate condition = condition(schema, message.getCondition());
    if (message.getKind() == Cluster.Mutation.Kind.DELETE) {
      Delete delete = new Delete(key);
      for (byte[] family : table.families) delete.addFamily(family);
      return new ConditionalWrites.Write(message.getKind(), delete, condition, null);
    }
    try {
      Codec.decodeRow(schema, message.getRow().toByteArray(), row);
    } catch (DamagedBytesException e) {
      throw invalid(e.getMessage());
    }
    boolean[] columns = null;
    if (message.getKind() == Cluster.Mutation.Kind.UPDATE) {
      columns = new boolean[row.length];
      for (int id : message.getColumnsList()) {
        Integer column = schema.columnOfId(id & 0xffffffffL);
        if (column == null || schema.isKey(column)) continue;
        if (schema.columns[column].expression != null) {
          throw invalid("column \"" + schema.columns[column].name + "\" of table \"" + schema.name
              + "\" is computed from another one: set that one instead");
        }
        columns[column] = true;
      }
    }
    Put put = new Put(key);
    for (int i = 0; i < row.length; ++i) {
      Schema.Column column = schema.columns[i];
      if (column.encoding == CellEncoding.NONE || (columns != null && !columns[i])) continue;
      if (row[i] == null) {
        if (!column.nullable) throw invalid("column \"" + column.name + "\" cannot be NULL");
        continue;
      }
      try {
        put.addColumn(column.family, column.qualifier, column.encoding.encode(row[i]));
      } catch (RefusedValueException e) {
        throw invalid("column \"" + column.name + "\": " + e.getMessage());
      }
    }
    return new ConditionalWrites.Write(message.getKind(), put, condition, columns);
  }

  private static Predicate condition(Schema schema, ByteString bytes) throws StatusException {
    if (bytes.isEmpty()) return null;
    try {
      Predicate predicate = Predicate.parse(bytes);
      String why = predicate.validate(schema);
      if (why != null) throw invalid(why);
      return predicate;
    } catch (DamagedBytesException e) {
      throw invalid(e.getMessage());
    }
  }

  private static StatusException invalid(String message) {
    return new StatusException(Cluster.Error.Code.INVALID_ARGUMENT, message);
  }
}
