#include "tamis/query/plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tamis/base/coding.h"
#include "tamis/base/hash.h"
#include "tamis/table/codec.h"
#include "tamis/table/implication.h"
#include "tamis/table/key_format.h"
#include "tamis/table/ordered_bounds.h"

namespace tamis {
namespace {

using Kind = Predicate::Kind;
using Op = Predicate::Op;

constexpr size_t kMaxBranches = 64;
constexpr size_t kMaxMergedValues = 8;  // values of IN: more are walked one after the other
constexpr size_t kMaxKeyRanges = 10'000;
constexpr size_t kMaxTermText = 200;

bool IsLeaf(const Predicate& p) {
  return p.kind == Kind::kCompare || p.kind == Kind::kIn || p.kind == Kind::kPrefix ||
         p.kind == Kind::kIsNull;
}

// The leaves of a conjunction, or the one that the predicate is.
template <class F>
void ForEachLeaf(const Predicate& p, F f) {
  if (IsLeaf(p)) return f(p);
  if (p.kind != Kind::kAnd) return;
  for (const Predicate& child : p.children) {
    if (IsLeaf(child)) f(child);
  }
}

// The values one of which the leaf asks for, sorted, each once; nullopt when it is no equality.
// NULL is among them only for IS NULL.
std::optional<std::vector<Value>> ValuesOf(const Predicate& leaf) {
  std::vector<Value> values;
  if (leaf.kind == Kind::kIn) {
    std::ranges::copy_if(leaf.values, std::back_inserter(values),
                         [](const Value& value) { return !value.is_null(); });
  } else if (leaf.kind == Kind::kIsNull) {
    values.emplace_back();
  } else if (leaf.kind == Kind::kCompare && leaf.op == Op::kEq && !leaf.values[0].is_null()) {
    values.push_back(leaf.values[0]);
  } else {
    return std::nullopt;
  }
  return values;
}

// Leaves in *all what is in both; everything is in an empty optional.
template <class T>
void IntersectValues(std::vector<T> values, std::optional<std::vector<T>>* all) {
  if (all->has_value()) {
    std::vector<T> both;
    std::ranges::set_intersection(**all, values, std::back_inserter(both));
    values = std::move(both);
  }
  *all = std::move(values);
}

// The conditions of a conjunction by column, as they are looked up in indexes: values it must equal
// one of, or bounds.
struct ColumnCondition {
  std::optional<std::vector<std::string>> values;  // encoded, sorted, distinct
  bool null = false;                               // the value is NULL
  std::optional<OrderedBounds> bounds;
};

class Conjunction {
 public:
  // `enclosing` is true as well; it must outlive this, as p must.
  explicit Conjunction(const Predicate& p, const Conjunction* enclosing = nullptr)
      : predicate_(p), enclosing_(enclosing) {
    ForEachLeaf(p, [&](const Predicate& leaf) { Add(leaf); });
    for (auto& [column, condition] : columns_) {
      if (!condition.values.has_value() || !condition.bounds.has_value()) continue;
      std::erase_if(*condition.values, [&](const std::string& value) {
        const OrderedBounds& bounds = *condition.bounds;
        return value < bounds.low || (!bounds.high.empty() && value >= bounds.high);
      });
    }
  }

  const ColumnCondition* Of(uint32_t column) const {
    auto found = columns_.find(column);
    return found == columns_.end() ? nullptr : &found->second;
  }

  // REQUIRES: the condition is normalized.
  bool ImpliesCondition(const Predicate& condition) const {
    if (condition.kind == Kind::kAnd) {
      return std::ranges::all_of(condition.children,
                                 [&](const Predicate& part) { return ImpliesCondition(part); });
    }
    return Implies(predicate_, condition) ||
           (enclosing_ != nullptr && enclosing_->ImpliesCondition(condition));
  }

 private:
  void Add(const Predicate& leaf) {
    ColumnCondition& condition = columns_[leaf.column];
    condition.null |= leaf.kind == Kind::kIsNull;
    if (const auto values = ValuesOf(leaf)) {
      std::vector<std::string> encoded(values->size());
      for (size_t i = 0; i < values->size(); ++i) AppendIndexed((*values)[i], &encoded[i]);
      std::ranges::sort(encoded);
      encoded.erase(std::unique(encoded.begin(), encoded.end()), encoded.end());
      IntersectValues(std::move(encoded), &condition.values);
    } else if (auto bounds = BoundsOf(leaf, /*indexed=*/true)) {
      if (!condition.bounds.has_value()) condition.bounds.emplace();
      condition.bounds->Narrow(*bounds);
    }
  }

  const Predicate& predicate_;
  const Conjunction* const enclosing_;
  std::map<uint32_t, ColumnCondition> columns_;
};

// Whether all rows of the conjunction satisfy the condition of a partial index.
bool HasRowsOf(const IndexSpec& index, const Conjunction& conjunction) {
  return !index.IsPartial() || conjunction.ImpliesCondition(index.where.Normalized());
}

enum class Use : uint8_t { kFilter, kStream };

// Whether the index has an entry for every row of the conjunction: only then may a filter exclude
// regions by it, or a lookup read it. A partial index has none where its condition is not true, a
// sparse one none for a row whose first column is NULL.
bool CanAnswer(const IndexSpec& index, const Conjunction& conjunction, const PlanOptions& options,
               Use use) {
  const bool ignored = use == Use::kFilter && options.conditions_of_streams_only;
  if (!ignored && !HasRowsOf(index, conjunction)) return false;
  if (index.nulls != IndexNulls::kSkip || options.sparse_as_whole) return true;
  const ColumnCondition* first = conjunction.Of(index.columns[0]);
  return first == nullptr || !first->null;
}

KeyRange RangeOf(const std::string& prefix, const OrderedBounds& bounds) {
  return {prefix + bounds.low, bounds.high.empty() ? PrefixEnd(prefix) : prefix + bounds.high};
}

// ---- Row keys

// The leaves of a conjunction that speak of one key column.
struct KeyCondition {
  std::optional<std::vector<Value>> values;
  std::vector<const Predicate*> leaves;
};

KeyCondition KeyConditionOf(const Predicate& conjunction, uint32_t column) {
  KeyCondition condition;
  ForEachLeaf(conjunction, [&](const Predicate& leaf) {
    if (leaf.column != column) return;
    condition.leaves.push_back(&leaf);
    if (auto values = ValuesOf(leaf)) IntersectValues(*std::move(values), &condition.values);
  });
  return condition;
}

// The keys that begin with `prefix` and satisfy all leaves; nullopt when no leaf restricts them.
std::optional<KeyRanges> KeysOfPart(const KeyFormat& format, size_t part,
                                    const KeyCondition& condition, const std::string& prefix) {
  std::optional<KeyRanges> all;
  for (const Predicate* leaf : condition.leaves) {
    const auto spans = format.SpansOf(part, *leaf, prefix);
    if (!spans.has_value()) continue;
    KeyRanges keys;
    for (const KeySpan& span : *spans) keys.Add({span.start, span.end});
    all = all.has_value() ? all->Intersect(keys) : std::move(keys);
  }
  return all;
}

KeyRanges KeysOfConjunction(const TableSchema& schema, const Predicate& conjunction) {
  const KeyFormat format(schema);
  std::vector<std::string> prefixes = {""};
  size_t part = 0;
  for (; part < schema.key.size(); ++part) {
    const KeyCondition condition = KeyConditionOf(conjunction, schema.key[part]);
    if (condition.values.has_value() &&
        prefixes.size() * condition.values->size() <= kMaxKeyRanges) {
      std::vector<std::string> longer;
      for (const std::string& prefix : prefixes) {
        for (const Value& value : *condition.values) {
          // A value that has no place in the key is in no row.
          std::string next = prefix;
          if (format.Append(part, value, &next).ok()) longer.push_back(std::move(next));
        }
      }
      prefixes = std::move(longer);
      continue;
    }
    KeyRanges keys;
    bool says = false;
    for (const std::string& prefix : prefixes) {
      const auto of_prefix = KeysOfPart(format, part, condition, prefix);
      if (!of_prefix.has_value()) break;
      says = true;
      for (const KeyRange& range : of_prefix->ranges()) keys.Add(range);
    }
    if (says) return keys;
    break;
  }
  KeyRanges keys;
  for (const std::string& prefix : prefixes) {
    const KeySpan span = format.SpanOf(prefix, part);
    keys.Add({span.start, span.end});
  }
  return keys;
}

KeyRanges KeysOf(const TableSchema& schema, const Predicate& p) {
  switch (p.kind) {
    case Kind::kFalse:
      return {};
    case Kind::kOr: {
      KeyRanges any;
      for (const Predicate& child : p.children) {
        const KeyRanges keys = KeysOf(schema, child);
        for (const KeyRange& range : keys.ranges()) any.Add(range);
      }
      return any;
    }
    case Kind::kAnd: {
      KeyRanges all = KeysOfConjunction(schema, p);
      for (const Predicate& child : p.children) {
        if (!IsLeaf(child)) all = all.Intersect(KeysOf(schema, child));
      }
      return all;
    }
    default:
      return IsLeaf(p) ? KeysOfConjunction(schema, p) : KeyRanges::All();
  }
}

// True when every range is one whole key.
bool ArePoints(const TableSchema& schema, const Predicate& p) {
  if (p.kind == Kind::kOr) {
    return !p.children.empty() && std::ranges::all_of(p.children, [&](const Predicate& child) {
      return ArePoints(schema, child);
    });
  }
  return std::ranges::all_of(
      schema.key, [&](uint32_t column) { return KeyConditionOf(p, column).values.has_value(); });
}

// ---- Routing

RoutingTerm Combine(RoutingTerm::Kind kind, std::vector<RoutingTerm> children) {
  if (children.size() == 1) return std::move(children[0]);
  RoutingTerm term;
  term.kind = kind;
  term.children = std::move(children);
  return term;
}

RoutingTerm ValueTerm(const IndexSpec& index, const std::string& first, const std::string& prefix) {
  RoutingTerm term;
  term.kind = RoutingTerm::Kind::kValue;
  term.index_id = index.id;
  term.hash = Hash(prefix, index.seed);
  term.first = first;
  return term;
}

// The filter condition of one index for a conjunction; nullopt when it has no condition on the
// first column.
std::optional<RoutingTerm> RouteByIndex(const IndexSpec& index, const Conjunction& conjunction) {
  const ColumnCondition* first = conjunction.Of(index.columns[0]);
  if (first == nullptr) return std::nullopt;
  if (!first->values.has_value()) {
    if (!first->bounds.has_value()) return std::nullopt;
    RoutingTerm term;
    term.kind = first->bounds->IsEmpty() ? RoutingTerm::Kind::kNone : RoutingTerm::Kind::kRange;
    term.index_id = index.id;
    term.low = first->bounds->low;
    term.high = first->bounds->high;
    if (index.cell_map != nullptr) {
      const CellMap& map = *index.cell_map;
      term.cell_map = map.version();
      term.first_cell = map.CellOf(term.low);
      term.last_cell = term.high.empty() ? map.cells() - 1 : map.CellOf(term.high);
    }
    return term;
  }
  // (first encoded value, encoded leading prefix), as long as equalities go.
  std::vector<std::pair<std::string, std::string>> prefixes;
  for (const std::string& value : *first->values) prefixes.emplace_back(value, value);
  for (size_t i = 1; i < index.columns.size(); ++i) {
    const ColumnCondition* next = conjunction.Of(index.columns[i]);
    if (next == nullptr || !next->values.has_value() ||
        prefixes.size() * next->values->size() > kMaxKeyRanges) {
      break;
    }
    std::vector<std::pair<std::string, std::string>> longer;
    for (const auto& [value, prefix] : prefixes) {
      for (const std::string& more : *next->values) longer.emplace_back(value, prefix + more);
    }
    prefixes = std::move(longer);
  }
  if (prefixes.empty()) {
    RoutingTerm none;
    none.kind = RoutingTerm::Kind::kNone;
    return none;
  }
  std::vector<RoutingTerm> any;
  for (const auto& [value, prefix] : prefixes) any.push_back(ValueTerm(index, value, prefix));
  return Combine(RoutingTerm::Kind::kOr, std::move(any));
}

class Router {
 public:
  Router(const TableSchema& schema, const PlanOptions& options)
      : schema_(schema), options_(options) {}

  // `enclosing` is true of the rows, too; nullptr: nothing is.
  RoutingTerm Of(const Predicate& p, const Conjunction* enclosing = nullptr) {
    if (p.kind == Kind::kFalse) {
      RoutingTerm none;
      none.kind = RoutingTerm::Kind::kNone;
      return none;
    }
    if (p.kind == Kind::kOr) {
      std::vector<RoutingTerm> any;
      for (const Predicate& child : p.children) any.push_back(Of(child, enclosing));
      return Combine(RoutingTerm::Kind::kOr, std::move(any));
    }
    if (p.kind != Kind::kAnd && !IsLeaf(p)) return RoutingTerm::All();
    std::vector<RoutingTerm> all;
    const Conjunction conjunction(p, enclosing);
    for (const IndexSpec& index : schema_.indexes) {
      if (!CanAnswer(index, conjunction, options_, Use::kFilter)) continue;
      auto term = RouteByIndex(index, conjunction);
      if (!term.has_value()) continue;
      all.push_back(std::move(*term));
      Note(p, index);
    }
    if (p.kind == Kind::kAnd) {
      for (const Predicate& child : p.children) {
        if (!IsLeaf(child)) all.push_back(Of(child, &conjunction));
      }
    }
    if (all.empty()) return RoutingTerm::All();
    return Combine(RoutingTerm::Kind::kAnd, std::move(all));
  }

  std::vector<std::string> terms() const { return {terms_.begin(), terms_.end()}; }

 private:
  // The leaves that the index has something to say about, as text.
  void Note(const Predicate& p, const IndexSpec& index) {
    const auto note = [&](const Predicate& leaf) {
      if (std::ranges::find(index.columns, leaf.column) == index.columns.end()) return;
      std::string text = leaf.ToString(schema_);
      if (text.size() > kMaxTermText) text = text.substr(0, kMaxTermText) + "...";
      terms_.insert(std::move(text));
    };
    ForEachLeaf(p, note);
  }

  const TableSchema& schema_;
  const PlanOptions& options_;
  std::set<std::string> terms_;
};

// ---- Order

// Whether the condition is true of no row with NULL in the column.
bool IsNeverNull(const Predicate& p, uint32_t column) {
  const auto excludes_null = [&](const Predicate& child) {
    return (IsLeaf(child) || child.kind == Kind::kNotNull) && child.kind != Kind::kIsNull &&
           child.column == column;
  };
  return excludes_null(p) ||
         (p.kind == Kind::kAnd && std::ranges::any_of(p.children, excludes_null));
}

// The least encoded value that is not NULL is not below this.
std::string BehindNull() {
  std::string null;
  AppendIndexed(Value(), &null);
  return PrefixEnd(null);
}

// By the leaves of a conjunction only. The conjunction and the predicate must outlive them.
ColumnFacts FactsOf(const Predicate& p, const Conjunction& conjunction) {
  const auto is_null = [&](uint32_t column) {
    const ColumnCondition* condition = conjunction.Of(column);
    return condition != nullptr && condition->null;
  };
  const auto is_held = [&](uint32_t column) {
    const ColumnCondition* condition = conjunction.Of(column);
    return condition != nullptr && !condition->null && condition->values.has_value() &&
           condition->values->size() == 1;
  };
  return {.is_held = is_held,
          .is_null = is_null,
          .is_not_null = [&](uint32_t column) { return IsNeverNull(p, column); },
          .has_rows = [&](const IndexSpec& index) { return HasRowsOf(index, conjunction); }};
}

std::optional<IndexOrder> OrderOf(const TableSchema& schema, const Predicate& p,
                                  const PlanOptions& options) {
  if (options.order.empty() || !options.use_indexes) return std::nullopt;
  const Conjunction conjunction(p);
  auto order = FindIndexOrder(schema, options.order, FactsOf(p, conjunction));
  if (!order.has_value()) return order;
  const ColumnCondition* first = conjunction.Of(order->index->columns[0]);
  if (first == nullptr) return order;
  if (first->bounds.has_value()) order->first_values = *first->bounds;
  if (first->values.has_value() && !first->values->empty()) {
    order->first_values = {first->values->front(), PrefixEnd(first->values->back())};
  }
  return order;
}

// ---- Branches

struct Way {
  pb::Branch branch;
  std::string index;
};

class WayFinder {
 public:
  WayFinder(const TableSchema& schema, const PlanOptions& options)
      : schema_(schema), options_(options) {}

  // Says why indexes with conditions that would have helped were not read; empty: there were none.
  std::string Unused() const {
    std::string text;
    for (const IndexSpec& index : schema_.indexes) {
      if (!without_rows_.contains(&index) || used_.contains(&index)) continue;
      text += "; index " + index.name + " is not used, since the condition does not imply " +
              index.where.ToString(schema_);
    }
    return text;
  }

  // Branches that together find every row that matches p; nothing when p has an alternative that no
  // index helps with. `enclosing` is true of the rows, too; nullptr: nothing is.
  std::optional<std::vector<Way>> Of(const Predicate& p,
                                     const Conjunction* enclosing = nullptr) const {
    if (p.kind == Kind::kOr) {
      std::vector<Way> ways;
      for (const Predicate& child : p.children) {
        auto more = Of(child, enclosing);
        if (!more.has_value() || ways.size() + more->size() > kMaxBranches) return std::nullopt;
        std::ranges::move(*more, std::back_inserter(ways));
      }
      return ways;
    }
    if (p.kind != Kind::kAnd && !IsLeaf(p)) return std::nullopt;
    if (auto way = OfConjunction(p, enclosing)) return std::vector<Way>{std::move(*way)};
    if (p.kind != Kind::kAnd) return std::nullopt;
    const Conjunction whole(p, enclosing);
    // No condition of the conjunction itself helps; an alternative inside of it may.
    for (size_t i = 0; i < p.children.size(); ++i) {
      // Its alternatives must be found by themselves, since nothing else here helps them.
      if (p.children[i].kind != Kind::kOr || !Of(p.children[i], &whole).has_value()) continue;
      std::vector<Predicate> alternatives;
      for (const Predicate& alternative : p.children[i].children) {
        std::vector<Predicate> all;
        for (size_t j = 0; j < p.children.size(); ++j) {
          all.push_back(j == i ? alternative : p.children[j]);
        }
        alternatives.push_back(Predicate::And(std::move(all)).Normalized());
      }
      if (auto ways = Of(Predicate::Or(std::move(alternatives)), enclosing)) return ways;
    }
    return std::nullopt;
  }

  // One branch that counts all rows by the entries of an index: the shortest one that has an entry
  // of every row and all columns that the search needs. nullopt: there is none.
  std::optional<Way> OfAllEntries(const Predicate& p) const {
    const IndexSpec* best = nullptr;
    for (const IndexSpec& index : schema_.indexes) {
      if (index.nulls != IndexNulls::kIndex || index.IsPartial() || !GivesColumns(index, p))
        continue;
      if (best == nullptr || Width(index) < Width(*best)) best = &index;
    }
    if (best == nullptr) return std::nullopt;
    Way way{.branch = {}, .index = best->name};
    pb::IndexStream* all = way.branch.add_streams();
    all->set_index_id(best->id);
    all->add_ranges();
    way.branch.set_predicate(SerializePredicate(p));
    return way;
  }

  // One branch that begins with the stream of the order's index.
  Way InOrder(const Predicate& p, const IndexSpec& index) const {
    const Conjunction conjunction(p);
    Way way{.branch = {}, .index = index.name};
    pb::IndexStream* walked = way.branch.add_streams();
    if (auto choice = OfIndex(index, conjunction)) {
      *walked = std::move(choice->stream);
    } else {
      walked->set_index_id(index.id);
      pb::IndexRange* all = walked->add_ranges();
      if (IsNeverNull(p, index.columns[0])) all->set_low(BehindNull());
    }
    walked->set_equality(false);
    const auto others = IsConjunction(p) ? OfConjunction(p) : std::nullopt;
    if (others.has_value()) {
      for (const pb::IndexStream& stream : others->branch.streams()) {
        if (stream.index_id() != index.id) *way.branch.add_streams() = stream;
      }
    }
    way.branch.set_predicate(SerializePredicate(p));
    return way;
  }

 private:
  static bool IsConjunction(const Predicate& p) { return p.kind == Kind::kAnd || IsLeaf(p); }

  struct Choice {
    const IndexSpec* index = nullptr;
    pb::IndexStream stream;
    std::set<uint32_t> columns;  // its entries satisfy the conditions of these
    bool gives_rows = false;     // its entries hold all columns that the search needs
  };

  std::optional<Way> OfConjunction(const Predicate& p,
                                   const Conjunction* enclosing = nullptr) const {
    const Conjunction conjunction(p, enclosing);
    std::vector<Choice> choices;
    for (const IndexSpec& index : schema_.indexes) {
      auto choice = OfIndex(index, conjunction);
      if (!choice.has_value() || (options_.key_order && !choice->stream.equality())) continue;
      if (!CanAnswer(index, conjunction, options_, Use::kStream)) {
        if (!HasRowsOf(index, conjunction)) without_rows_.insert(&index);
        continue;
      }
      used_.insert(&index);
      if (index.IsPartial()) AddColumnsOf(index.where, &choice->columns);
      choice->gives_rows = GivesRows(index, p);
      choices.push_back(std::move(*choice));
    }
    Way way;
    for (const Choice& choice : choices) {
      const bool covered = std::ranges::any_of(
          choices, [&](const Choice& other) { return &other != &choice && Covers(other, choice); });
      if (covered) continue;
      *way.branch.add_streams() = choice.stream;
      way.index += (way.index.empty() ? "" : "|") + choice.index->name;
    }
    if (way.index.empty()) return std::nullopt;
    way.branch.set_predicate(SerializePredicate(p));
    return way;
  }

  // True when all entries of a stand for rows that b has entries of, too: a is made of all of b's
  // conditions and more (or of the same, and is better to read, or comes first).
  static bool Covers(const Choice& a, const Choice& b) {
    if (!std::ranges::includes(a.columns, b.columns)) return false;
    if (a.columns.size() > b.columns.size()) return true;
    if (a.gives_rows != b.gives_rows) return a.gives_rows;
    if (a.stream.equality() != b.stream.equality()) return a.stream.equality();
    return a.index->id < b.index->id;
  }

  bool GivesRows(const IndexSpec& index, const Predicate& p) const {
    return GivesColumns(index, p, /*of_key=*/true);
  }

  // Whether each column that the search needs is one of the index, or, if they count, of the key.
  bool GivesColumns(const IndexSpec& index, const Predicate& p, bool of_key = false) const {
    std::vector<bool> needed(schema_.columns.size(), !options_.columns.has_value());
    for (const uint32_t column : options_.columns.value_or(std::vector<uint32_t>())) {
      needed[column] = true;
    }
    p.AddColumns(&needed);
    for (uint32_t column = 0; column < needed.size(); ++column) {
      if (needed[column] && !(of_key && schema_.IsKey(column)) &&
          std::ranges::find(index.columns, column) == index.columns.end() &&
          std::ranges::find(index.include, column) == index.include.end()) {
        return false;
      }
    }
    return true;
  }

  // A rough size of an encoded value of the index.
  size_t Width(const IndexSpec& index) const {
    constexpr size_t kText = 24;
    size_t width = 0;
    for (const uint32_t column : index.columns) {
      const Type type = schema_.columns[column].type;
      const bool is_long = type == Type::kText || type == Type::kBytes || type == Type::kDecimal;
      width += is_long ? kText : sizeof(int64_t);
    }
    return width;
  }

  static std::optional<Choice> OfIndex(const IndexSpec& index, const Conjunction& conjunction) {
    Choice choice{.index = &index, .stream = {}, .columns = {}};
    choice.stream.set_index_id(index.id);
    std::vector<std::string> prefixes = {""};
    bool equality = true;
    for (const uint32_t column : index.columns) {
      const ColumnCondition* condition = conjunction.Of(column);
      if (condition != nullptr && condition->values.has_value() &&
          prefixes.size() * condition->values->size() <= kMaxKeyRanges) {
        std::vector<std::string> longer;
        for (const std::string& prefix : prefixes) {
          for (const std::string& value : *condition->values) longer.push_back(prefix + value);
        }
        prefixes = std::move(longer);
        choice.columns.insert(column);
        continue;
      }
      equality = false;
      if (condition != nullptr && condition->bounds.has_value()) {
        choice.columns.insert(column);
        for (const std::string& prefix : prefixes) {
          const KeyRange range = RangeOf(prefix, *condition->bounds);
          if (!range.empty()) AddRange(range.start, range.end, &choice.stream);
        }
        return choice;
      }
      break;
    }
    if (choice.columns.empty()) return std::nullopt;
    choice.stream.set_equality(equality && prefixes.size() <= kMaxMergedValues);
    for (const std::string& prefix : prefixes) AddRange(prefix, PrefixEnd(prefix), &choice.stream);
    return choice;
  }

  static void AddColumnsOf(const Predicate& condition, std::set<uint32_t>* columns) {
    if (condition.kind >= Kind::kCompare) columns->insert(condition.column);
    for (const Predicate& child : condition.children) AddColumnsOf(child, columns);
  }

  static void AddRange(const std::string& low, const std::string& high, pb::IndexStream* stream) {
    pb::IndexRange* range = stream->add_ranges();
    range->set_low(low);
    range->set_high(high);
  }

  const TableSchema& schema_;
  const PlanOptions& options_;
  // Indexes with conditions that a conjunction does not imply, and indexes that one is read by.
  mutable std::set<const IndexSpec*> without_rows_;
  mutable std::set<const IndexSpec*> used_;
};

}  // namespace

Plan MakePlan(const TableSchema& schema, const Predicate& predicate, const PlanOptions& options) {
  const Predicate p = predicate.Normalized();
  Plan plan;
  plan.keys = KeysOf(schema, p);
  if (p.kind == Kind::kFalse || plan.keys.empty()) {
    plan.keys = KeyRanges();
    plan.routing.kind = RoutingTerm::Kind::kNone;
    plan.reason = "the condition is never true";
    return plan;
  }
  if (options.use_filters) {
    Router router(schema, options);
    plan.routing = router.Of(p);
    plan.terms = router.terms();
  }
  if (!ArePoints(schema, p)) plan.order = OrderOf(schema, p, options);
  if (plan.order.has_value()) {
    Way way = WayFinder(schema, options).InOrder(p, *plan.order->index);
    plan.branches.push_back(std::move(way.branch));
    plan.index = std::move(way.index);
    plan.reason = "rows come in the " +
                  std::string(plan.order->descending ? "reverse order" : "order") + " of index " +
                  plan.order->index->name;
    return plan;
  }
  std::optional<std::vector<Way>> ways;
  const WayFinder finder(schema, options);
  if (options.use_indexes && !ArePoints(schema, p)) ways = finder.Of(p);
  if (ways.has_value() && options.key_order && ways->size() > 1) ways.reset();
  if (ways.has_value()) {
    std::set<std::string> names;
    for (Way& way : *ways) {
      plan.branches.push_back(std::move(way.branch));
      if (names.insert(way.index).second)
        plan.index += (plan.index.empty() ? "" : ", ") + way.index;
    }
    plan.reason = plan.branches.size() > 1 ? "each alternative is looked up by index"
                  : plan.branches[0].streams_size() > 1
                      ? "looked up by the index with the fewest entries in each region"
                      : "looked up by index";
    plan.reason += finder.Unused();
    return plan;
  }
  if (options.groups && options.use_indexes && !options.key_order &&
      plan.keys == KeyRanges::All()) {
    if (auto way = WayFinder(schema, options).OfAllEntries(p)) {
      plan.branches.push_back(std::move(way->branch));
      plan.index = std::move(way->index);
      plan.reason = "rows are counted by their entries in index " + plan.index;
      return plan;
    }
  }
  pb::Branch scan;
  scan.set_predicate(SerializePredicate(p));
  plan.branches.push_back(std::move(scan));
  if (!options.order.empty() && !ArePoints(schema, p)) {
    plan.order = FindReverseKeyOrder(schema, options.order, FactsOf(p, Conjunction(p)));
  }
  if (plan.order.has_value()) {
    plan.reason = "rows are read in reverse key order";
  } else if (ArePoints(schema, p)) {
    plan.reason = "looked up by row key";
  } else if (plan.keys != KeyRanges::All()) {
    plan.reason = "rows of the key range are scanned";
  } else if (!options.use_indexes) {
    plan.reason = "all rows are scanned, as asked";
  } else if (options.key_order) {
    plan.reason = "rows are scanned in key order";
  } else {
    plan.reason = "no index helps: all rows are scanned";
  }
  plan.reason += finder.Unused();
  return plan;
}

}  // namespace tamis
