#include "tamis/hbase/missing_right.h"

#include <algorithm>
#include <iterator>

namespace tamis::hbase {
namespace {

struct Action {
  std::string_view name;
  char letter;
};
constexpr Action kActions[] = {
    {"READ", 'R'}, {"WRITE", 'W'}, {"EXEC", 'X'}, {"CREATE", 'C'}, {"ADMIN", 'A'}};

// Returns the text between `label` and the next `end`; empty if one of them is missing.
std::string_view Between(std::string_view text, std::string_view label, char end) {
  const size_t at = text.find(label);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + label.size());
  const size_t size = rest.find(end);
  return size == std::string_view::npos ? std::string_view() : rest.substr(0, size);
}

// "ada@REALM" and "hbase/host@REALM" -> "ada" and "hbase"
std::string_view ShortName(std::string_view user) {
  return user.substr(0, user.find_first_of("/@"));
}

// The content of a refusal.
struct Refusal {
  std::string_view user;
  std::string_view action;
  std::string_view scope;   // empty: all of HBase
  bool is_table = false;    // the scope is a table, else a namespace
  std::string_view column;  // empty: the whole scope
};

// "Insufficient permissions (user=U, scope=S, family=F, params=[...],action=A)", where S is GLOBAL,
// a namespace, or a table with its namespace; and "Insufficient permissions for user 'U' (table=S,
// action=A)", or "(global, action=A)".
Refusal Parse(std::string_view text) {
  Refusal refusal;
  // The last one: a column's name may contain anything.
  const size_t action = text.rfind("action=");
  if (action != std::string_view::npos) {
    refusal.action = Between(text.substr(action), "=", ')');
  }
  refusal.user = Between(text, "Insufficient permissions (user=", ',');
  if (!refusal.user.empty()) {
    refusal.scope = Between(text, "scope=", ',');
    if (refusal.scope.empty()) return {};
    refusal.is_table = refusal.scope.find(':') != std::string_view::npos;
    if (refusal.scope == "GLOBAL") refusal.scope = {};
    refusal.column = Between(text, "family=", ',');
  } else {
    refusal.user = Between(text, "Insufficient permissions for user '", '\'');
    refusal.scope = Between(text, "(table=", ',');
    refusal.is_table = true;
    if (refusal.scope.empty() && text.find("(global,") == std::string_view::npos) return {};
  }
  return refusal;
}

std::string Place(const Refusal& refusal) {
  if (refusal.scope.empty()) return "all of HBase";
  return (refusal.column.empty() ? "" : "column " + std::string(refusal.column) + " of ") +
         (refusal.is_table ? "table " : "namespace ") + std::string(refusal.scope);
}

// The arguments of the shell's grant.
std::string Grant(const Refusal& refusal, char letter) {
  constexpr std::string_view kDefault = "default:";
  std::string_view scope = refusal.scope;
  if (refusal.is_table && scope.starts_with(kDefault)) scope.remove_prefix(kDefault.size());
  return "'" + std::string(ShortName(refusal.user)) + "', '" + letter + "'" +
         (scope.empty()
              ? ""
              : std::string(", '") + (refusal.is_table ? "" : "@") + std::string(scope) + "'");
}

}  // namespace

std::string ExplainMissingRight(std::string_view text) {
  const Refusal refusal = Parse(text);
  const auto* known = std::ranges::find(kActions, refusal.action, &Action::name);
  if (refusal.user.empty() || known == std::end(kActions)) return std::string(text);
  return "user " + std::string(refusal.user) + " lacks the right " + std::string(refusal.action) +
         " on " + Place(refusal) + "; an administrator grants it in HBase's shell: grant " +
         Grant(refusal, known->letter) + " (" + std::string(text) + ")";
}

}  // namespace tamis::hbase
