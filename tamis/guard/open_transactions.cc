#include "tamis/guard/open_transactions.h"

#include <algorithm>

#include "tamis/guard/child_process.h"

namespace tamis {
namespace {

// Prints a line for each transaction: "v" and its virtual id, or "p" and the id of a prepared one;
// a tab; and a description for people. The first line says whether the server is a standby. The
// order of the last two queries matters: a transaction that is prepared between them is seen by
// one.
constexpr char kQuestion[] = R"(
SELECT 'standby', pg_is_in_recovery();
SELECT 'v' || l.virtualtransaction,
       'process ' || l.pid || coalesce(', ' || nullif(a.application_name, ''), '') ||
       coalesce(', ' || a.state, '') || coalesce(', since ' || a.xact_start::timestamp(0), '')
  FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
 WHERE l.locktype = 'virtualxid' AND l.granted AND l.mode = 'ExclusiveLock'
   AND l.pid <> pg_backend_pid()
   AND coalesce(a.backend_type, '') NOT IN ('autovacuum worker', 'walsender')
 ORDER BY a.xact_start;
SELECT 'p' || transaction, 'prepared transaction ' || quote_literal(gid) FROM pg_prepared_xacts;
)";

}  // namespace

Status OpenTransactions::Look(std::vector<std::string>* ids,
                              std::vector<std::string>* descriptions) const {
  auto output = OutputOf({"psql", "--no-psqlrc", "--no-password", "--quiet", "--tuples-only",
                          "--no-align", "--field-separator=\t", "--set=ON_ERROR_STOP=1",
                          "--dbname=" + database_, "--command", kQuestion});
  if (!output.ok()) {
    return output.status().WithContext("cannot ask PostgreSQL which transactions are open");
  }
  std::string_view rest = *output;
  bool asked = false;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    if (end == rest.npos) break;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (line == "standby\tt") {
      return FailedPrecondition(
          "the database is a standby: give --database the primary, and let the command read it");
    }
    if (line == "standby\tf") {
      asked = true;
    } else if (const size_t tab = line.find('\t'); tab != line.npos) {
      ids->emplace_back(line.substr(0, tab));
      descriptions->emplace_back(line.substr(tab + 1));
    }
  }
  return asked ? Status::Ok()
               : Internal(
                     "cannot ask PostgreSQL which transactions are open: psql did not answer "
                     "whether the database is a standby");
}

Result<OpenTransactions> OpenTransactions::Of(const std::string& database) {
  OpenTransactions open(database);
  std::vector<std::string> descriptions;
  TAMIS_RETURN_IF_ERROR(open.Look(&open.ids_, &descriptions));
  if (!descriptions.empty()) open.example_ = descriptions[0];
  return open;
}

Result<bool> OpenTransactions::HaveEnded() {
  std::vector<std::string> now;
  std::vector<std::string> descriptions;
  TAMIS_RETURN_IF_ERROR(Look(&now, &descriptions));
  const auto is_virtual = [](const std::string& id) { return id[0] == 'v'; };
  std::erase_if(ids_, [&](const std::string& id) { return std::ranges::count(now, id) == 0; });
  if (!prepared_ && std::ranges::none_of(ids_, is_virtual)) {
    // One of them may have been prepared meanwhile: it is among these.
    prepared_ = true;
    ids_ = now;
    std::erase_if(ids_, is_virtual);
  }
  if (ids_.empty()) return true;
  for (size_t i = 0; i < now.size(); ++i) {
    if (std::ranges::count(ids_, now[i]) > 0) {
      example_ = descriptions[i];
      break;
    }
  }
  return false;
}

}  // namespace tamis
