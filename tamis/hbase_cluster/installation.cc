#include "tamis/hbase_cluster/installation.h"

#include <algorithm>
#include <map>
#include <set>

#include "tamis/hbase_cluster/attachment.h"
#include "tamis/hbase_cluster/table_names.h"
#include "tamis/table/table.pb.h"

namespace tamis {
namespace {

constexpr std::string_view kTestedVersions[] = {"2.5.13", "2.6.0", "2.6.1", "2.6.4",
                                                "3.0.0-alpha-4"};
// Half of a server's handlers may wait for coordinators, so fewer than this leave too few for other
// calls.
constexpr uint32_t kFewHandlers = 10;
// Above this limit, the master does not give up a server whose session is alive.
constexpr uint32_t kOutOfReach = 1000;
// Each region may wait for coordinators for up to two seconds when it closes.
constexpr uint64_t kManyRegionsOfAThread = 100;
// The part of the heap that must remain for everything without a bound of its own.
constexpr uint64_t kLittleHeap = uint64_t{200} << 20;

// HBase's own coprocessors that do not change writes.
constexpr std::string_view kHarmless[] = {
    "AccessController", "TokenProvider", "SecureBulkLoadEndpoint", "MultiRowMutationEndpoint",
    "SchemaGuard",      "ServerReport",  "IndexObserver"};

class Findings {
 public:
  void Fine(const std::string& subject, std::string text) {
    Add(Finding::Kind::kFine, subject, std::move(text));
  }
  void Note(const std::string& subject, std::string text) {
    Add(Finding::Kind::kNote, subject, std::move(text));
  }
  void ToDo(const std::string& subject, std::string text) {
    Add(Finding::Kind::kToDo, subject, std::move(text));
  }
  size_t to_do() const {
    return static_cast<size_t>(std::ranges::count(list_, Finding::Kind::kToDo, &Finding::kind));
  }
  // Returns the findings in the order in which they were added; subjects with the same text are
  // together.
  std::vector<Finding> Take() { return std::move(list_); }

 private:
  void Add(Finding::Kind kind, const std::string& subject, std::string text) {
    for (Finding& finding : list_) {
      if (finding.kind != kind || finding.text != text) continue;
      if (std::ranges::find(finding.subjects, subject) == finding.subjects.end()) {
        finding.subjects.push_back(subject);
      }
      return;
    }
    list_.push_back({.kind = kind, .subjects = {subject}, .text = std::move(text)});
  }

  std::vector<Finding> list_;
};

bool IsDenied(const Installation::Server& one) {
  return !one.described.ok() && one.silence == Installation::Server::Silence::kDenied;
}

bool IsTested(std::string_view version) {
  return std::ranges::any_of(kTestedVersions, [&](std::string_view tested) {
    return version == tested || version.starts_with(std::string(tested) + "-hadoop");
  });
}

// Returns the name of the jar for the cluster's version of HBase.
std::string JarName(const Installation& all) {
  const bool is_hbase_2 = all.hbase_version.starts_with("2.");
  return "tamis-coprocessor-" + std::string(is_hbase_2 ? "" : "hbase3-") + all.program_version +
         ".jar";
}

// Explains why the process does not describe itself.
std::string WhySilent(const Installation& all, const Installation::Server& one, bool is_master) {
  switch (one.silence) {
    case Installation::Server::Silence::kNoJar:
      return "does not load the jar, or loads one for another HBase: put " + JarName(all) +
             " on its class path, set " +
             (is_master ? "hbase.coprocessor.master.classes to tamis.hbase.SchemaGuard"
                        : "hbase.coprocessor.regionserver.classes to tamis.hbase.ServerReport") +
             " in its hbase-site.xml, and restart it";
    case Installation::Server::Silence::kDenied:
      return "does not tell this user what it loads: that takes the right to administrate all of "
             "HBase; be another user, or have it granted, in HBase's shell: grant 'USER', 'A'";
    case Installation::Server::Silence::kOther:
      break;
  }
  return "does not say what it loads: " + one.described.status().message();
}

// Explains why the jar, although loaded, cannot index in this version of HBase; empty if it can.
std::string WhyUnfit(const Installation& all, const pb::DescribeReply& said) {
  if (said.missing().empty()) return "";
  constexpr int kMostShown = 5;
  std::string missing;
  for (int i = 0; i < std::min(said.missing_size(), kMostShown); ++i) {
    missing += (i == 0 ? "" : ", ") + said.missing(i);
  }
  if (said.missing_size() > kMostShown) {
    missing += ", and " + std::to_string(said.missing_size() - kMostShown) + " more";
  }
  return "runs HBase " + said.hbase_version() + ", which lacks what the jar of version " +
         said.jar_version() + " needs, so it takes no write to an indexed table: " + missing +
         "; run a version of HBase that docs/HBASE.md names, with " + JarName(all);
}

// Explains why the process cannot index the table although it has a jar; empty if it can.
std::string WhyTooOld(const Installation& all, const pb::DescribeReply& said,
                      const TableSchema& table) {
  pb::Schema schema;
  if (!schema.ParseFromString(SerializeSchema(table))) return "";
  std::set<std::string> lacking;
  std::string indexes;
  for (const pb::Index& index : schema.indexes()) {
    bool lacks = false;
    for (const int feature : index.extension().required()) {
      if (std::ranges::find(said.index_features(), feature) != said.index_features().end()) {
        continue;
      }
      lacks = true;
      lacking.insert(
          pb::Index::Extension::Feature_Name(static_cast<pb::Index::Extension::Feature>(feature)));
    }
    if (lacks) indexes += (indexes.empty() ? "\"" : ", \"") + index.name() + "\"";
  }
  if (lacking.empty()) return "";
  std::string names;
  for (const std::string& name : lacking) names += (names.empty() ? "" : ", ") + name;
  return "has the jar of version " + said.jar_version() + ", which does not support " + names +
         " of index " + indexes + " of table \"" + table.name + "\": install " + JarName(all) +
         " there and restart it";
}

// Checks that apply to a master and a region server alike. Returns whether the process could be
// queried.
bool CheckProcess(const Installation& all, const Installation::Server& one, bool is_master,
                  const std::string& subject, Findings* findings) {
  if (!one.described.ok()) {
    findings->ToDo(subject, WhySilent(all, one, is_master));
    return false;
  }
  const pb::DescribeReply& said = *one.described;
  if (const std::string why = WhyUnfit(all, said); !why.empty()) findings->ToDo(subject, why);
  if (said.jar_version() != all.program_version) {
    findings->ToDo(subject, "has the jar of version " + said.jar_version() +
                                ", and this program is " + all.program_version +
                                ": install the same version everywhere, jars before programs");
  } else {
    findings->Fine(subject, "has the jar of version " + said.jar_version());
  }
  if (said.hbase_version() != all.hbase_version) {
    findings->Note(
        subject, "runs HBase " + said.hbase_version() + ", the active master " + all.hbase_version);
  }
  return true;
}

void CheckServer(const pb::DescribeReply& said, const std::string& subject, Findings* findings) {
  if (!said.user_coprocessors()) {
    findings->ToDo(subject,
                   "opens no region of an indexed table, since coprocessors are switched "
                   "off: set hbase.coprocessor.enabled and hbase.coprocessor.user.enabled "
                   "to true and restart it");
  }
  if (!said.abort_on_error()) {
    findings->Note(subject,
                   "starts without the jar, too, since hbase.coprocessor.abortonerror is "
                   "false; regions of indexed tables do not open then");
  }
  if (said.handlers() < kFewHandlers) {
    findings->ToDo(subject, "has " + std::to_string(said.handlers()) +
                                " handlers, half of which may wait for coordinators: set "
                                "hbase.regionserver.handler.count to 30 or more and restart it");
  }
  const uint64_t others = said.heap_bytes() / 100 * said.heap_taken_percent() + said.filter_bytes();
  // Other versions of the jar do not report the heap.
  if (said.heap_bytes() > 0 && others + kLittleHeap > said.heap_bytes()) {
    const auto megabytes = [](uint64_t bytes) { return std::to_string(bytes >> 20) + " MB"; };
    findings->Note(subject, "has a heap of " + megabytes(said.heap_bytes()) +
                                ", of which memstores and block cache may take " +
                                std::to_string(said.heap_taken_percent()) + " % and filters " +
                                megabytes(said.filter_bytes()) +
                                ": once these are full it does little but collect garbage. Give it "
                                "more, or lower hfile.block.cache.size");
  }
  if (said.indexed_regions() > kManyRegionsOfAThread * said.close_threads()) {
    findings->Note(subject, "closes " + std::to_string(said.indexed_regions()) +
                                " indexed regions by " + std::to_string(said.close_threads()) +
                                " threads, each of which may wait two seconds for coordinators; "
                                "hbase.regionserver.executor.closeregion.threads gives it more");
  }
  if (said.exec_checks()) {
    findings->Note(subject,
                   "requires the EXEC right for calls to coprocessors "
                   "(hbase.security.exec.permission.checks): users who search or write indexed "
                   "tables with tamis need it on them, for example by grant 'USER', 'RWX', 'TABLE' "
                   "in HBase's shell");
  }
  if (said.logs_have_leases()) {
    findings->Fine(subject,
                   "has its logs on a file system that fences off servers that wake up late");
  } else {
    findings->Note(
        subject, "has its logs on " + said.log_file_system() +
                     ", where a server that wakes up late can still write to them: HBase may lose "
                     "rows that it acknowledged. HDFS has a fence");
  }
  for (const pb::ListeningCoordinator& one : said.coordinators()) {
    findings->Fine(subject, "is polled" + (one.user().empty() ? "" : " by " + one.user()) +
                                (one.host().empty() ? "" : " from " + one.host()) + ", " +
                                std::to_string(one.events_behind()) + " events behind" +
                                (one.lease_left_ns() == 0 ? ", without a lease" : ""));
  }
  for (const pb::RegionProblem& problem : said.problems()) {
    findings->ToDo("table " + problem.table(),
                   "region " + problem.region() + ": " + problem.problem());
  }
}

void CheckLimit(const Installation& all, Findings* findings) {
  if (!all.master.described.ok()) return;
  const bool all_fenced = std::ranges::all_of(all.servers, [](const Installation::Server& one) {
    return !one.described.ok() || one.described->logs_have_leases();
  });
  const uint32_t limit = all.master.described->fail_fast_limit();
  if (all_fenced || limit >= kOutOfReach) return;
  findings->ToDo(
      "master " + all.master.address,
      "gives up a server after " + std::to_string(limit) +
          " failed calls although its session lives, and where logs have no fence a search "
          "there may miss a row: set hbase.master.rs.remote.proc.fail.fast.limit to 100000 "
          "and restart it");
}

std::string ClassOf(std::string_view coprocessor) {  // "PATH|CLASS|PRIORITY|ARGUMENTS"
  const size_t begin = coprocessor.find('|');
  if (begin == std::string_view::npos) return std::string(coprocessor);
  const std::string_view rest = coprocessor.substr(begin + 1);
  return std::string(rest.substr(0, rest.find('|')));
}

bool IsHarmless(std::string_view class_name) {
  const size_t dot = class_name.rfind('.');
  const std::string_view name =
      dot == std::string_view::npos ? class_name : class_name.substr(dot + 1);
  return std::ranges::find(kHarmless, name) != std::end(kHarmless);
}

void CheckPlain(const hbase::TableDescription& table, Findings* findings) {
  hbase::TableDescription plain = DescribePlain(table);
  std::string left;
  for (const auto& [name, value] : table.attributes) {
    if (!plain.attributes.contains(name)) left += (left.empty() ? "" : ", ") + name;
  }
  if (left.empty()) return;
  findings->ToDo("table " + table.name,
                 "has " + left +
                     " but no schema of Tamis, so plain scans show index entries as rows: "
                     "tamis table detach --hbase-table " +
                     FullTableName(table.name));
}

// Checks the settings that the servers require of a table with a schema.
void CheckDescription(const IndexedTable& table, const std::string& subject, Findings* findings) {
  const hbase::TableDescription& now = table.description;
  const hbase::TableDescription wanted = DescribeIndexed(now, table.stored);
  std::string missing;
  const auto miss = [&](const std::string& what) {
    missing += (missing.empty() ? "" : ", ") + what;
  };
  for (const auto& [name, value] : wanted.attributes) {
    if (name == "tamis.schema" || name == "tamis.table") continue;
    const auto found = now.attributes.find(name);
    if (found == now.attributes.end() || found->second != value) miss(name + " " + value);
  }
  for (const hbase::FamilySchema& family : wanted.families) {
    const auto found = std::ranges::find(now.families, family.name, &hbase::FamilySchema::name);
    if (found == now.families.end()) miss("family " + family.name);
  }
  if (!missing.empty()) {
    findings->ToDo(subject, "lacks what keeps its indexes: " + missing + "; tamis table attach " +
                                table.stored.name + " --hbase-table " + table.full_name() +
                                " puts that right, then tamis index rebuild " + table.stored.name);
  }
  for (const hbase::FamilySchema& family : now.families) {
    if (family.name != "tamis") continue;
    for (const auto& [name, value] :
         std::map<std::string, std::string>{{"VERSIONS", "2147483647"},
                                            {"NEW_VERSION_BEHAVIOR", "true"},
                                            {"REPLICATION_SCOPE", "0"}}) {
      const auto said = family.attributes.find(name);
      if (said != family.attributes.end() && said->second == value) continue;
      if (name == "REPLICATION_SCOPE" && said == family.attributes.end()) continue;
      findings->ToDo(subject, "does not have " + name + " " + value +
                                  " in the family of its entries; in HBase's shell: alter '" +
                                  now.name + "', {NAME => 'tamis', " + name + " => '" + value +
                                  "'}, then tamis index rebuild");
    }
  }
}

std::string NamespaceOf(const IndexedTable& table) {
  const std::string name = table.full_name();
  return name.substr(0, name.find(':'));
}

// Checks for copies, ambiguous names, and tables that could not be distinguished from a copy.
// Returns the full names of the tables that have a name.
std::set<std::string> CheckNames(const std::vector<IndexedTable>& tables, Findings* findings) {
  std::map<std::string, std::vector<IndexedTable>> by_namespace;
  std::set<std::string> there;
  std::set<std::string> named;
  for (const IndexedTable& table : tables) {
    by_namespace[NamespaceOf(table)].push_back(table);
    there.insert(table.full_name());
  }
  for (const auto& [name_space, its] : by_namespace) {
    const TableNames names(its);
    for (const TableNames::Unnamed& one : names.ListUnnamed()) {
      const std::string subject = "table " + one.table.description.name;
      // A copy may be just a backup as long as its original exists.
      const bool is_backup =
          one.standing == TableNames::Standing::kCopy &&
          (one.table.indexed_as().empty() || there.contains(one.table.indexed_as()));
      is_backup ? findings->Note(subject, one.text) : findings->ToDo(subject, one.text);
    }
    for (const IndexedTable& table : names.Named()) {
      named.insert(table.full_name());
      if (TableNames::HasItsName(table)) continue;
      findings->Note("table " + table.description.name,
                     "was indexed by an older program, which did not record its name in HBase; "
                     "the name distinguishes it from its copies: tamis table attach " +
                         table.stored.name + " --hbase-table " + table.full_name() + " records it");
    }
  }
  return named;
}

void CheckIndexed(const IndexedTable& table, bool is_named, Findings* findings) {
  const std::string subject = "table " + table.description.name;
  const size_t before = findings->to_do();
  CheckDescription(table, subject, findings);
  for (std::string& fault : SettingsAgainst(table.description, table.stored)) {
    findings->ToDo(subject, std::move(fault));
  }
  for (const auto& [name, value] : table.description.attributes) {
    if (!name.starts_with("coprocessor$") || IsHarmless(ClassOf(value))) continue;
    findings->Note(subject, "has the coprocessor " + ClassOf(value) +
                                ", too: its writes that bypass the hooks of HBase are not indexed");
  }
  const auto durability = table.description.attributes.find("DURABILITY");
  if (durability != table.description.attributes.end() && durability->second == "ASYNC_WAL") {
    findings->Note(subject,
                   "has the durability ASYNC_WAL: a crash may take rows that were "
                   "acknowledged, and their entries with them");
  }
  if (findings->to_do() == before && is_named) {
    findings->Fine(subject, "is indexed as \"" + table.stored.name + "\", schema version " +
                                std::to_string(table.stored.version));
  }
}

}  // namespace

std::vector<std::string> MissingJar(const Installation& all, bool strict,
                                    const TableSchema& table) {
  std::vector<std::string> missing;
  const auto look = [&](const Installation::Server& one, bool is_master) {
    if (!strict && IsDenied(one)) return;
    std::string why =
        one.described.ok() ? WhyUnfit(all, *one.described) : WhySilent(all, one, is_master);
    if (why.empty()) why = WhyTooOld(all, *one.described, table);
    if (why.empty()) return;
    missing.push_back((is_master ? "master " : "region server ") + one.address + " " + why);
  };
  look(all.master, true);
  for (const Installation::Server& one : all.servers) look(one, false);
  return missing;
}

std::vector<Finding> Examine(const Installation& all) {
  Findings findings;
  const std::string master = "master " + all.master.address;
  if (!IsTested(all.hbase_version)) {
    findings.Note(master, "runs HBase " + all.hbase_version +
                              "; Tamis is tested with 2.5.13, 2.6.0, 2.6.1, 2.6.4 and "
                              "3.0.0-alpha-4");
  } else {
    findings.Fine(master, "runs HBase " + all.hbase_version);
  }
  CheckProcess(all, all.master, /*is_master=*/true, master, &findings);
  if (IsDenied(all.master)) {
    findings.Note(master,
                  "hides the tables that this user has no right to administrate: this report does "
                  "not cover them");
  }
  CheckLimit(all, &findings);
  for (const Installation::Server& one : all.servers) {
    const std::string subject = "region server " + one.address;
    if (CheckProcess(all, one, /*is_master=*/false, subject, &findings)) {
      CheckServer(*one.described, subject, &findings);
    }
  }
  std::set<std::string> others;  // coprocessors of all regions, or of the server
  for (const Installation::Server& one : all.servers) {
    for (const std::string& name : one.coprocessors) {
      const bool of_a_table =
          std::ranges::any_of(all.tables, [&](const Installation::Table& table) {
            return std::ranges::any_of(table.description.attributes, [&](const auto& attribute) {
              return attribute.first.starts_with("coprocessor$") &&
                     ClassOf(attribute.second).ends_with("." + name);
            });
          });
      if (IsHarmless(name) || of_a_table || !others.insert(name).second) continue;
      findings.Note("region server " + one.address,
                    "loads the coprocessor " + name +
                        ", too: its writes that bypass the hooks of HBase are not indexed");
    }
  }
  std::vector<IndexedTable> indexed;
  for (const Installation::Table& table : all.tables) {
    if (table.indexed.ok() && *table.indexed) indexed.push_back(**table.indexed);
  }
  const auto check_features = [&](const Installation::Server& one, const std::string& subject) {
    if (!one.described.ok()) return;
    for (const IndexedTable& table : indexed) {
      const std::string why = WhyTooOld(all, *one.described, table.stored);
      if (!why.empty()) findings.ToDo(subject, why);
    }
  };
  check_features(all.master, master);
  for (const Installation::Server& one : all.servers) {
    check_features(one, "region server " + one.address);
  }
  const std::set<std::string> named = CheckNames(indexed, &findings);
  for (const Installation::Table& table : all.tables) {
    const std::string& name = table.description.name;
    if (!table.indexed.ok()) {
      findings.ToDo("table " + name, "takes no writes: " + table.indexed.status().message() +
                                         "; is this program older than the one that made it?");
    } else if (*table.indexed) {
      CheckIndexed(**table.indexed, named.contains((*table.indexed)->full_name()), &findings);
    } else {
      CheckPlain(table.description, &findings);
    }
  }
  return findings.Take();
}

}  // namespace tamis
