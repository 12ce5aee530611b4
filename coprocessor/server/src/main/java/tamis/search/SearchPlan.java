package tamis.search;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.pb.Cluster;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.GroupTotals;
import tamis.table.Predicate;
import tamis.table.Schema;
import tamis.table.Value;

/** A search request as the regions that follow one schema read it: its branches and columns. A value. */
final class SearchPlan {
  private static final int MAX_BRANCHES = 1024;

  /** A branch of the request. */
  private static final class Branch {
    final Predicate predicate;
    final List<Cluster.IndexStream> streams;
    boolean[] needed; // columns: wanted, or of this or an earlier condition

    Branch(Predicate predicate, Cluster.Branch plan) {
      this.predicate = predicate;
      streams = plan.getStreamsList();
    }
  }

  private final Schema schema;
  private final List<Branch> branches = new ArrayList<>();
  private final boolean[] wanted; // columns
  private final boolean[] read; // columns of conditions, indexes and output
  private final Cluster.Order order; // null: any
  private final boolean groups; // rows are sent as groups
  private final int[] totals; // columns of which totals are wanted instead of values

  /** Parses and checks; the schema may be an older one than the request's. */
  SearchPlan(Cluster.SearchRequest request, Schema schema, String server) throws StatusException {
    this.schema = schema;
    boolean newer = request.getSchemaVersion() > schema.version;
    String older = "table \"" + schema.name + "\": server " + server + " does not have schema version "
        + request.getSchemaVersion() + " yet, and ";
    if (request.getBranchesCount() < 1 || request.getBranchesCount() > MAX_BRANCHES) {
      throw invalid("a search has 1 to " + MAX_BRANCHES + " branches, not " + request.getBranchesCount());
    }
    order = request.hasOrder() ? request.getOrder() : null;
    if (order != null && order.getIndexId() == 0) {
      if (!order.getDescending() || request.getGroups() || request.getBranchesCount() != 1
          || request.getBranches(0).getStreamsCount() > 0) {
        throw invalid("a search in the order of the row key is descending and has one branch, without a stream");
      }
    } else if (order != null && !givesOrder(request)) {
      throw invalid("a search in the order of index " + order.getIndexId()
          + " has one branch, with a stream of that index that is no equality");
    }
    groups = request.getGroups();
    wanted = new boolean[schema.columns.length];
    read = new boolean[schema.columns.length];
    for (Cluster.Branch branch : request.getBranchesList()) {
      Predicate predicate;
      try {
        predicate = Predicate.parse(branch.getPredicate());
      } catch (DamagedBytesException e) {
        throw invalid(e.getMessage());
      }
      String why = predicate.validate(schema);
      if (why != null) {
        throw newer ? new StatusException(Cluster.Error.Code.UNAVAILABLE, older + why) : invalid(why);
      }
      addColumns(branch.getStreamsList());
      predicate.addColumns(read);
      branches.add(new Branch(predicate, branch));
    }
    for (int id : request.getColumnsList()) {
      Integer column = schema.columnOfId(id & 0xffffffffL);
      if (column != null) {
        if (groups && schema.isKey(column)) {
          throw invalid("groups of rows have no column of the key, such as \"" + schema.columns[column].name + "\"");
        }
        wanted[column] = true;
        read[column] = true;
      } else if (newer) {
        throw new StatusException(Cluster.Error.Code.UNAVAILABLE, older + "not its column " + id);
      }
    }
    totals = groups ? totals(request) : new int[0];
    noteNeeded();
  }

  private int[] totals(Cluster.SearchRequest request) throws StatusException {
    int[] columns = new int[request.getTotalsCount()];
    for (int i = 0; i < columns.length; ++i) {
      long id = request.getTotals(i) & 0xffffffffL;
      Integer column = schema.columnOfId(id);
      if (column == null || !wanted[column]) {
        throw invalid("totals are wanted of column " + id + ", which is none of the wanted columns");
      }
      columns[i] = column;
    }
    return columns;
  }

  private void noteNeeded() {
    boolean[] needed = wanted;
    for (Branch branch : branches) {
      needed = needed.clone();
      branch.predicate.addColumns(needed);
      branch.needed = needed;
    }
  }

  private boolean givesOrder(Cluster.SearchRequest request) {
    if (request.getBranchesCount() != 1) return false;
    for (Cluster.IndexStream stream : request.getBranches(0).getStreamsList()) {
      if (stream.getIndexId() == order.getIndexId() && !stream.getEquality()) return true;
    }
    return false;
  }

  private void addColumns(List<Cluster.IndexStream> streams) throws StatusException {
    Set<Integer> indexes = new HashSet<>();
    for (Cluster.IndexStream stream : streams) {
      if (!indexes.add(stream.getIndexId())) throw invalid("a branch has two streams of one index");
      Schema.Index index = schema.index(stream.getIndexId());
      if (index == null) continue;
      for (int column : index.columns) read[column] = true;
      if (index.where != null && !Fault.INDEX_CONDITION_FOR_READERS.isOn()) index.where.addColumns(read);
    }
  }

  static StatusException invalid(String message) {
    return new StatusException(Cluster.Error.Code.INVALID_ARGUMENT, message);
  }

  /** Null: rows come in any order. */
  Cluster.Order order() {
    return order;
  }

  /** Whether rows are sent as distinct combinations of the wanted columns with counts. */
  boolean groups() {
    return groups;
  }

  /** For the groups of a page; null: no totals are wanted. */
  GroupTotals newTotals() {
    if (totals.length == 0) return null;
    boolean[] by = wanted.clone();
    for (int column : totals) by[column] = false;
    return new GroupTotals(schema, by, totals);
  }

  Schema schema() {
    return schema;
  }

  SearchPosition begin() {
    return order == null ? SearchPosition.begin() : SearchPosition.begin(order);
  }

  int branches() {
    return branches.size();
  }

  List<Cluster.IndexStream> streams(int branch) {
    return branches.get(branch).streams;
  }

  /** The columns that rows of the branch must have: wanted, or of its condition or an earlier one. */
  boolean[] needed(int branch) {
    return branches.get(branch).needed;
  }

  /** The columns whose values an answer depends on, or shows. */
  boolean[] read() {
    return read;
  }

  /** Whether the branch returns the row: it matches, and matches no earlier branch, which returns it, too. */
  boolean matches(int branch, Value[] row) {
    if (!branches.get(branch).predicate.matches(row)) return false;
    for (int i = 0; i < branch; ++i) {
      if (branches.get(i).predicate.matches(row)) return false;
    }
    return true;
  }

  /** The wanted columns of the row. */
  byte[] encode(Value[] row) {
    return Codec.encodeRow(schema, row, wanted);
  }
}
