// Tables that another program wrote, in every format: rows are put into the store as raw keys and
// cells, some of which do not decode; then the same statements are run through SQL here and on a
// table of SQLite's own, the model, which holds the decoded rows.
//
//   TAMIS_SEED=n foreign_tables_test      runs a seed again
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <utility>

#include "tamis/base/random.h"
#include "tamis/base/thread_executor.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/sql/extension.h"
#include "tamis/table/definition.h"
#include "tamis/table/key_format.h"
#include "tamis/table/stored_row.h"
#include "tamis/table/timestamp.h"

namespace tamis {
namespace {

// ---- Databases

thread_local std::shared_ptr<Session> opening;
thread_local Status opened;

// SQLite hands its own functions only to an extension's entry point.
int Entry(sqlite3* db, const char**, const sqlite3_api_routines* api) {
  if (opening == nullptr) return SQLITE_OK;
  opened = Extend(db, api, std::exchange(opening, nullptr));
  return opened.ok() ? SQLITE_OK : SQLITE_ERROR;
}

struct Answer {
  std::string error;
  std::vector<std::string> rows;
};

class Database {
 public:
  // Over the engine's tables, or of SQLite's own.
  explicit Database(Engine* engine) {
    if (engine != nullptr) {
      session_ = std::make_shared<Session>();
      session_->engine = std::shared_ptr<Engine>(std::shared_ptr<void>(), engine);
      session_->searches = &searches_;
      sqlite3_auto_extension(reinterpret_cast<void (*)()>(Entry));
      opening = session_;
    }
    EXPECT_EQ(sqlite3_open(":memory:", &db_), SQLITE_OK);
    EXPECT_TRUE(opened.ok()) << opened;
  }
  ~Database() { sqlite3_close(db_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  Answer Run(const std::string& sql, const std::vector<Value>& values = {}) {
    searches_.clear();
    Answer answer;
    sqlite3_stmt* statement = nullptr;
    int rc = sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr);
    for (size_t i = 0; rc == SQLITE_OK && i < values.size(); ++i) {
      Bind(statement, static_cast<int>(i + 1), values[i]);
    }
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
      rc = sqlite3_step(statement);
      if (rc == SQLITE_ROW) answer.rows.push_back(RowText(statement));
    }
    if (rc != SQLITE_DONE) answer.error = sqlite3_errmsg(db_);
    sqlite3_finalize(statement);
    return answer;
  }
  const std::vector<Explain>& searches() const { return searches_; }

 private:
  static void Bind(sqlite3_stmt* statement, int i, const Value& value) {
    if (value.is_null()) {
      sqlite3_bind_null(statement, i);
      return;
    }
    std::string text;
    switch (value.type()) {
      case Type::kInt64:
      case Type::kBool:
        sqlite3_bind_int64(statement, i, value.int64());
        return;
      case Type::kDouble:
        sqlite3_bind_double(statement, i, value.dbl());
        return;
      case Type::kDecimal:
        sqlite3_bind_double(statement, i, std::strtod(value.str().c_str(), nullptr));
        return;
      case Type::kBytes:
        sqlite3_bind_blob64(statement, i, value.str().data(), value.str().size(), SQLITE_TRANSIENT);
        return;
      case Type::kTimestamp:
        text = FormatSqlTimestamp(value.int64());
        break;
      case Type::kText:
        text = value.str();
    }
    sqlite3_bind_text64(statement, i, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }

  static std::string RowText(sqlite3_stmt* statement) {
    std::string out;
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      if (i > 0) out += ", ";
      const int type = sqlite3_column_type(statement, i);
      if (type == SQLITE_NULL) {
        out += "NULL";
      } else if (type == SQLITE_FLOAT) {
        char buffer[40];
        std::snprintf(buffer, sizeof buffer, "%.17g", sqlite3_column_double(statement, i));
        out += buffer;
      } else {
        const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, i));
        const std::string text(bytes == nullptr ? "" : bytes,
                               static_cast<size_t>(sqlite3_column_bytes(statement, i)));
        out += (type == SQLITE_INTEGER ? ""
                : type == SQLITE_TEXT  ? "t"
                                       : "x") +
               (type == SQLITE_INTEGER ? text : Value::Bytes(text).ToString());
      }
    }
    return out;
  }

  std::shared_ptr<Session> session_;
  sqlite3* db_ = nullptr;
  std::vector<Explain> searches_;
};

// ---- Values

// A cell's bytes that are not what we would write, and what they mean.
struct Oddity {
  CellEncoding encoding;
  std::string bytes;
  Value value;  // NULL: nothing
};

std::string Hex(const std::string& digits) {
  return Value::Parse(Type::kBytes, "0x" + digits)->str();
}

std::vector<Oddity> Oddities(Type type, CellEncoding encoding) {
  using E = CellEncoding;
  const auto time = [](const char* text) { return *Value::Parse(Type::kTimestamp, text); };
  const Oddity all[] = {
      {E::kLong, Hex("00000000000001"), {}},
      {E::kLong, "", {}},
      {E::kInt, Hex("0000000000000001"), {}},
      {E::kShort, "x", {}},
      {E::kPhoenixLong, "123", {}},
      {E::kPhoenixInt, "", {}},
      {E::kDouble, Hex("7ff8000000000000"), {}},
      {E::kDouble, Hex("8000000000000000"), *Value::Double(0)},
      {E::kFloat, Hex("ffc00000"), {}},
      {E::kFloat, Hex("80000000"), *Value::Double(0)},
      {E::kPhoenixDouble, Hex("0000000000000000"), {}},
      {E::kPhoenixFloat, Hex("00000000"), {}},
      {E::kPhoenix, Hex("02"), {}},
      {E::kMillis, Hex("7fffffffffffffff"), {}},
      {E::kSeconds, "soon", {}},
      {E::kMicros, "", {}},
      {E::kPhoenixDate, Hex("ffffffffffffffff"), {}},
      {E::kBigDecimal, Hex("00000001fff6"), *Value::Decimal("-1")},
      {E::kBigDecimal, Hex("00000001"), {}},
  };
  std::vector<Oddity> out;
  for (const Oddity& oddity : all) {
    if (oddity.encoding == encoding) out.push_back(oddity);
  }
  if (encoding == E::kByte && type == Type::kBool) {
    out.push_back({encoding, Hex("05"), Value::Bool(true)});
    out.push_back({encoding, Hex("0001"), {}});
  } else if (encoding == E::kByte) {
    out.push_back({encoding, "12", {}});
  } else if (encoding == E::kText) {
    out.push_back({encoding, "nonsense", {}});
    if (type == Type::kInt64) out.push_back({encoding, "-007", Value::Int64(-7)});
    if (type == Type::kDouble) out.push_back({encoding, "NaN", {}});
    if (type == Type::kDouble) out.push_back({encoding, "15e-1", *Value::Double(1.5)});
    if (type == Type::kBool) out.push_back({encoding, "TRUE", Value::Bool(true)});
    if (type == Type::kTimestamp) out.push_back({encoding, "2026-01-02", time("2026-01-02")});
    if (type == Type::kDecimal) out.push_back({encoding, "1.50", *Value::Decimal("1.5")});
  }
  return out;
}

// Few different values, at the edges of what there is.
Value AnyValue(Type type, Random& random) {
  switch (type) {
    case Type::kText:
    case Type::kBytes: {
      std::string text;
      for (uint64_t n = random.Uniform(4); n > 0; --n) text += "\0ab|"[random.Uniform(4)];
      return type == Type::kText ? Value::Text(text) : Value::Bytes(text);
    }
    case Type::kInt64: {
      const int64_t edges[] = {-32769, -32768, -300,      -129,      -128,      -2,       -1,
                               0,      1,      2,         5,         127,       128,      300,
                               32767,  65536,  INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX};
      return Value::Int64(edges[random.Uniform(std::size(edges))]);
    }
    case Type::kDouble: {
      const double edges[] = {-1e300, -2.5, -1, -0.1, 0, 0.1, 0.5, 1.5, 2, 1e10, 1e300};
      return *Value::Double(edges[random.Uniform(std::size(edges))]);
    }
    case Type::kBool:
      return Value::Bool(random.OneIn(2));
    case Type::kTimestamp:
      return Value::Timestamp((static_cast<int64_t>(random.Uniform(9)) - 4) * 500'000 +
                              (random.OneIn(10) ? 1 : 0));
    case Type::kDecimal: {
      const char* edges[] = {"-12.25", "-1", "-0.5", "0", "0.25", "1.5", "2", "100"};
      return *Value::Decimal(edges[random.Uniform(std::size(edges))]);
    }
  }
  return {};
}

// ---- The test

struct Case {
  const char* name;
  std::vector<std::string> definition;

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

// Each key format, and each encoding of a column in some table.
const Case kCases[] = {
    {"ordered",
     {"k int64", "l text", "a text cell 'd:a'", "b bytes cell 'd:b'", "c int64 cell 'd:c'",
      "key (k, l)"}},
    {"rest",
     {"k text", "a int64 cell 'd:a:int'", "b int64 cell 'm:b:short'", "c int64 cell 'd:c:byte'",
      "key (k rest)"}},
    {"zero_until",
     {"k text", "l int64", "a int64 cell 'd:a:text'", "b int64 cell 'd:b:phoenix_long'",
      "c int64 cell 'd:c:phoenix_int'", "key (k 'until=\\x00', l long)"}},
    {"bar_until",
     {"k text", "l text", "a double cell 'd:a'", "b double cell 'd:b:float'",
      "c double cell 'd:c:text'", "key (k 'until=|', l rest)"}},
    {"long",
     {"k int64", "l text", "a double cell 'd:a:phoenix_double'",
      "b double cell 'd:b:phoenix_float'", "c bool cell 'd:c'", "key (k long, l rest)",
      "marker 'none'"}},
    {"byte",
     {"k int64", "l int64", "a bool cell 'd:a:phoenix'", "b bool cell 'd:b:text'",
      "c timestamp cell 'd:c'", "key (k byte, l short)"}},
    {"phoenix",
     {"k int64", "l timestamp", "a timestamp cell 'd:a:seconds'", "b timestamp cell 'd:b:micros'",
      "c timestamp cell 'd:c:text'", "key (k phoenix_int, l phoenix_date)"}},
    {"double",
     {"k double", "l bool", "a timestamp cell 'd:a:phoenix_date'", "b decimal cell 'd:b'",
      "c decimal cell 'd:c:bigdecimal'", "key (k double, l byte)"}},
    {"float",
     {"k double", "l double", "a int64", "b text", "c decimal", "key (k phoenix_float, l float)"}},
    {"digits",
     {"k int64", "l text", "a int64", "b text", "c bool", "key (k 'text:until=-', l rest)"}},
    {"decimal",
     {"k decimal", "a int64 cell 'd:a'", "b text cell 'd:b'", "c bool cell 'd:c'",
      "key (k 'text:rest')"}},
    {"salted",
     {"s bytes", "k text", "t timestamp", "a int64 cell 'd:a'", "b text cell 'd:b'",
      "c bool cell 'd:c'", "key (s 'width=1', k 'width=2', t millis)", "marker 'x:mark'"}},
};

class ForeignTablesTest : public ::testing::TestWithParam<Case> {
 protected:
  ForeignTablesTest() {
    const char* given = std::getenv("TAMIS_SEED");
    seed_ = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
    random_.emplace(seed_);
    directory_ = std::filesystem::temp_directory_path() /
                 ("tamis_foreign_tables_test." + std::to_string(::getpid()));
    std::filesystem::remove_all(directory_);
    executor_ = std::make_unique<ThreadExecutor>(4);
    RocksCluster::Options options;
    options.store.directory = directory_;
    options.servers = 3;
    options.server.page_candidates = 7;
    options.server.page_rows = 5;
    auto cluster = RocksCluster::Open(options, executor_.get());
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = std::move(*cluster);
    engine_ = std::make_unique<Engine>(cluster_.get(), executor_.get(), Engine::Options{});
  }
  ~ForeignTablesTest() override {
    ours_.reset();
    executor_->Stop();
    engine_.reset();
    cluster_.reset();
    executor_.reset();
    std::filesystem::remove_all(directory_);
  }

  template <class T, class Call>
  T Wait(Call call) {
    return Await<T>(executor_.get(), call);
  }

  void MakeTables(const std::vector<std::string>& definition) {
    auto wanted = ParseDefinition("t", definition);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    const auto made =
        Wait<Result<TableSchema>>([&](auto done) { cluster_->CreateTable(*wanted, done); });
    ASSERT_TRUE(made.ok()) << made.status();
    schema_ = *made;
    std::string columns;
    for (const Column& column : schema_.columns) {
      columns += column.name + " " +
                 (column.type == Type::kText || column.type == Type::kTimestamp ? "TEXT"
                  : column.type == Type::kBytes                                 ? "BLOB"
                  : column.type == Type::kDouble                                ? "REAL"
                  : column.type == Type::kDecimal                               ? "NUMERIC"
                                                                                : "INTEGER") +
                 ", ";
    }
    ASSERT_EQ(
        model_.Run("CREATE TABLE t (" + columns + "PRIMARY KEY (" + KeyNames() + ")) WITHOUT ROWID")
            .error,
        "");
    ours_.emplace(engine_.get());
  }

  std::string KeyNames() const {
    std::string names;
    for (const uint32_t column : schema_.key) {
      names += (names.empty() ? "" : ", ") + schema_.columns[column].name;
    }
    return names;
  }

  Row AnyRow() {
    Row row;
    for (uint32_t i = 0; i < schema_.columns.size(); ++i) {
      const Type type = schema_.columns[i].type;
      row.push_back(!schema_.IsKey(i) && random_->OneIn(4) ? Value() : AnyValue(type, *random_));
    }
    return row;
  }

  // Straight into the store: keys and cells as others may have written them.
  void PutRaw(const std::string& key, const std::string& bytes) {
    Store& store = cluster_->store();
    const auto status =
        store.db()->Put(rocksdb::WriteOptions(), store.rows(), RowStoreKey(schema_.id, key), bytes);
    ASSERT_TRUE(status.ok());
  }

  void PutRawRow() {
    Row row = AnyRow();
    const auto key = KeyFormat(schema_).Encode(row);
    if (!key.ok() || !raw_keys_.insert(*key).second) return;
    std::map<CellName, std::string> cells;
    for (uint32_t i = 0; i < schema_.columns.size(); ++i) {
      const Column& column = schema_.columns[i];
      if (column.encoding == CellEncoding::kNone) continue;
      const auto odd = Oddities(column.type, column.encoding);
      if (!odd.empty() && random_->OneIn(4)) {
        const Oddity& oddity = odd[random_->Uniform(odd.size())];
        row[i] = oddity.value;
        cells[column.cell] = oddity.bytes;
        undecodable_ += oddity.value.is_null() ? 1 : 0;
      } else if (!row[i].is_null()) {
        const auto bytes = EncodeCell(column.encoding, row[i]);
        if (bytes.ok()) cells[column.cell] = *bytes;
        if (!bytes.ok()) row[i] = Value();
      }
    }
    if (random_->OneIn(8)) cells[{"d", "unknown"}] = "?";
    if (random_->OneIn(8)) cells[{"strange", "unknown"}] = "?";
    const bool there = std::ranges::any_of(
        cells, [&](const auto& cell) { return schema_.HasFamily(cell.first.family); });
    std::vector<Cell> list;
    for (auto& [name, value] : cells) list.push_back({name, value});
    if (schema_.cells) {
      PutRaw(*key, EncodeCells(list));
      if (there) Insert(&model_, row);
    } else {
      PutRaw(*key, *WriteStoredRow(schema_, row, std::nullopt, std::nullopt));
      Insert(&model_, row);
    }
  }

  void PutForeignKey() {
    std::string key;  // the first one is empty
    for (uint64_t n = unparsed_ == 0 ? 0 : 1 + random_->Uniform(12); n > 0; --n) {
      key += random_->OneIn(2) ? static_cast<char>(random_->Uniform(256))
                               : "\0ab|-"[random_->Uniform(5)];
    }
    Row row;
    if (KeyFormat(schema_).Decode(key, &row).ok() || !raw_keys_.insert(key).second) return;
    PutRaw(key, schema_.cells ? EncodeCells({{{"d", "a"}, "1"}}) : "");
    ++unparsed_;
  }

  Answer Insert(Database* database, const Row& row, const std::string& how = "INSERT") {
    std::string marks;
    for (size_t i = 0; i < row.size(); ++i) marks += i == 0 ? "?" : ", ?";
    return database->Run(how + " INTO t VALUES (" + marks + ")", row);
  }

  void MakeIndexes() {
    const uint32_t a = *schema_.FindColumn("a");
    const IndexSpec specs[] = {
        {.name = "a", .columns = {a}, .nulls = IndexNulls::kSkip, .expected_values = 100},
        {.name = "b", .columns = {a + 1}, .expected_values = 100},
        {.name = "b_c",
         .columns = {a + 1, a + 2},
         .nulls = IndexNulls::kSkip,
         .expected_values = 100},
        {.name = "k_a", .columns = {schema_.key[0], a}, .expected_values = 100}};
    for (const IndexSpec& spec : specs) {
      const auto made =
          Wait<Result<TableSchema>>([&](auto done) { cluster_->CreateIndex("t", spec, done); });
      ASSERT_TRUE(made.ok()) << made.status();
      schema_ = *made;
    }
    engine_->ForgetTable("t");
  }

  void Split() {
    const auto regions = Wait<Result<std::vector<RegionInfo>>>(
        [&](auto done) { cluster_->ListRegions(schema_.name, {}, done); });
    ASSERT_TRUE(regions.ok());
    const auto key =
        std::next(raw_keys_.begin(), static_cast<long>(random_->Uniform(raw_keys_.size())));
    for (const RegionInfo& region : *regions) {
      if (!region.Contains(*key) || region.start == *key) continue;
      const Status status =
          Wait<Status>([&](auto done) { cluster_->SplitRegion(region.id, *key, done); });
      EXPECT_TRUE(status.ok()) << status;
    }
    const auto moved = Wait<Result<uint64_t>>([&](auto done) { cluster_->Balance(done); });
    EXPECT_TRUE(moved.ok()) << moved.status();
  }

  // ---- Statements

  struct Condition {
    std::string sql;
    std::vector<Value> values;
  };

  Condition Leaf() {
    const auto i = static_cast<uint32_t>(random_->Uniform(schema_.columns.size()));
    const Column& column = schema_.columns[i];
    const auto value = [&] { return AnyValue(column.type, *random_); };
    switch (random_->Uniform(9)) {
      case 0:
        return {column.name + " IS NULL", {}};
      case 1:
        return {column.name + " IS NOT NULL", {}};
      case 2:
        return {column.name + " BETWEEN ? AND ?", {value(), value()}};
      case 3:
        return {column.name + " IN (?, ?, ?)", {value(), value(), Value()}};
      case 4:
        if (column.type == Type::kText) {
          return {column.name + " GLOB ?", {Value::Text(random_->OneIn(2) ? "a*" : "b|*")}};
        }
        [[fallthrough]];
      case 5:
      case 6:
        return {column.name + " = ?", {value()}};
      default: {
        const char* ops[] = {"<", "<=", ">", ">=", "<>"};
        return {column.name + " " + ops[random_->Uniform(5)] + " ?", {value()}};
      }
    }
  }

  Condition AnyCondition(int depth) {
    if (depth == 0 || random_->OneIn(3)) return Leaf();
    Condition left = AnyCondition(depth - 1);
    if (random_->OneIn(6)) return {"NOT (" + left.sql + ")", std::move(left.values)};
    Condition right = AnyCondition(depth - 1);
    left.sql = "(" + left.sql + (random_->OneIn(3) ? " OR " : " AND ") + right.sql + ")";
    left.values.insert(left.values.end(), right.values.begin(), right.values.end());
    return left;
  }

  static std::string Text(const Condition& condition) {
    std::string text = condition.sql + " with";
    for (const Value& value : condition.values) text += " " + value.ToString();
    return text;
  }

  void Compare(const Condition& condition) {
    std::string sql = "SELECT * FROM t WHERE " + condition.sql + " ORDER BY " + KeyNames();
    if (random_->OneIn(4)) sql += " LIMIT 3";
    const Answer model = model_.Run(sql, condition.values);
    const Answer ours = ours_->Run(sql, condition.values);
    ASSERT_EQ(model.error, "") << Text(condition);
    ASSERT_EQ(ours.error, "") << Text(condition);
    ASSERT_EQ(ours.rows, model.rows) << Text(condition);
    for (const Explain& e : ours_->searches()) {
      excluded_ += e.regions_excluded_by_filter + e.regions_excluded_by_range;
      by_key_ += e.regions_excluded_by_key;
    }
  }

  // Whether the row may be refused, and why: a value has no place in its cell or key.
  bool HasNoPlace(const Row& row) const {
    if (!KeyFormat(schema_).Encode(row).ok()) return true;
    for (uint32_t i = 0; i < row.size(); ++i) {
      const Column& column = schema_.columns[i];
      if (column.encoding == CellEncoding::kNone || row[i].is_null()) continue;
      if (!EncodeCell(column.encoding, row[i]).ok()) return true;
    }
    return false;
  }

  void AnyWrite() {
    Row row = AnyRow();
    const bool refused = HasNoPlace(row);
    const bool nothing = schema_.cells && !schema_.marker && row.back().is_null() &&
                         row[row.size() - 2].is_null() && row[row.size() - 3].is_null();
    if (random_->OneIn(3)) {
      const Condition condition = AnyCondition(2);
      const Answer ours = ours_->Run("DELETE FROM t WHERE " + condition.sql + " AND k = ?", [&] {
        auto values = condition.values;
        values.push_back(row[*schema_.FindColumn("k")]);
        return values;
      }());
      ASSERT_EQ(ours.error, "") << Text(condition);
      model_.Run("DELETE FROM t WHERE " + condition.sql + " AND k = ?", [&] {
        auto values = condition.values;
        values.push_back(row[*schema_.FindColumn("k")]);
        return values;
      }());
      return;
    }
    if (random_->OneIn(2)) {
      const Answer ours = Insert(&*ours_, row, "INSERT OR REPLACE");
      if (!ours.error.empty()) {
        ++refused_;
        ASSERT_TRUE(refused || (nothing && ours.error.find("marker") != std::string::npos))
            << ours.error;
        return;
      }
      ASSERT_FALSE(refused);
      Insert(&model_, row, "INSERT OR REPLACE");
      return;
    }
    // One column of one row that is there, maybe.
    const uint32_t set = *schema_.FindColumn("a") + static_cast<uint32_t>(random_->Uniform(3));
    std::string sql = "UPDATE t SET " + schema_.columns[set].name + " = ? WHERE true";
    std::vector<Value> values = {row[set]};
    for (const uint32_t column : schema_.key) {
      sql += " AND " + schema_.columns[column].name + " = ?";
      values.push_back(row[column]);
    }
    const Answer ours = ours_->Run(sql, values);
    if (!ours.error.empty()) {
      ++refused_;
      ASSERT_TRUE(refused || (schema_.cells && !schema_.marker && row[set].is_null()))
          << ours.error;
      return;
    }
    model_.Run(sql, values);
  }

  uint64_t seed_ = 1;
  std::optional<Random> random_;
  std::filesystem::path directory_;
  std::unique_ptr<ThreadExecutor> executor_;
  std::unique_ptr<RocksCluster> cluster_;
  std::unique_ptr<Engine> engine_;
  TableSchema schema_;
  Database model_{nullptr};
  std::optional<Database> ours_;
  std::set<std::string> raw_keys_;
  uint64_t undecodable_ = 0;
  uint64_t unparsed_ = 0;
  uint64_t excluded_ = 0;
  uint64_t by_key_ = 0;
  uint64_t refused_ = 0;
};

TEST_P(ForeignTablesTest, AnswersAsSqliteDoesOverWhatTheRowsMean) {
  SCOPED_TRACE("TAMIS_SEED=" + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(MakeTables(GetParam().definition));
  for (int i = 0; i < 150; ++i) ASSERT_NO_FATAL_FAILURE(PutRawRow());
  const bool foreign = !schema_.key_parts.empty();
  for (int i = 0; foreign && i < 20; ++i) ASSERT_NO_FATAL_FAILURE(PutForeignKey());

  // Counted, by a search that reads everything, and by the check.
  SearchOptions all;
  all.use_indexes = false;
  RowStream rows = engine_->Search(std::make_shared<TableSchema>(schema_), all);
  while (true) {
    auto row = rows.Next();
    ASSERT_TRUE(row.ok()) << row.status();
    if (!row->has_value()) break;
  }
  EXPECT_EQ(rows.explain().cells_undecodable, undecodable_);
  EXPECT_EQ(rows.explain().rows_unparsed, unparsed_);

  ASSERT_NO_FATAL_FAILURE(MakeIndexes());
  for (int i = 0; i < 4; ++i) ASSERT_NO_FATAL_FAILURE(Split());
  // Done when the entries of all regions stand.
  const Status rebuilt = Wait<Status>([&](auto done) { cluster_->RebuildIndex("t", "", done); });
  ASSERT_TRUE(rebuilt.ok()) << rebuilt;
  ASSERT_TRUE(engine_->WaitUntilRouted(schema_, std::chrono::seconds(60)));
  const auto report = Wait<Result<CheckReport>>([&](auto done) { cluster_->Check("t", done); });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->ok()) << report->ToString();
  EXPECT_EQ(report->undecodable_cells, undecodable_);
  EXPECT_EQ(report->unparsed_rows, unparsed_);
  EXPECT_EQ(report->incomplete, 0u);

  for (int i = 0; i < 400; ++i) {
    if (i % 4 == 0) {
      ASSERT_NO_FATAL_FAILURE(AnyWrite());
    }
    if (i == 200) {
      ASSERT_NO_FATAL_FAILURE(Split());
    }
    ASSERT_NO_FATAL_FAILURE(Compare(AnyCondition(3)));
  }
  const auto after = Wait<Result<CheckReport>>([&](auto done) { cluster_->Check("t", done); });
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_TRUE(after->ok()) << after->ToString();
  EXPECT_GT(excluded_, 0u);
  EXPECT_GT(by_key_, 0u);
}

INSTANTIATE_TEST_SUITE_P(Formats, ForeignTablesTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

class SparseIndexTest : public ForeignTablesTest {};

// Regions that hold nothing but NULL: a sparse index has no entry there, and its filters say no to
// everything.
TEST_F(SparseIndexTest, RegionsOfNullsAreFoundThoughASparseIndexHasNothingThere) {
  ASSERT_NO_FATAL_FAILURE(MakeTables(
      {"k int64", "a int64", "b int64", "key (k)", "index a (a) nulls skip", "index b (b)"}));
  for (int64_t k = 0; k < 40; ++k) {
    const Row row = {Value::Int64(k), k < 20 ? Value() : Value::Int64(k % 5),
                     k % 3 == 0 ? Value() : Value::Int64(k % 7)};
    ASSERT_EQ(Insert(&*ours_, row).error, "");
    ASSERT_EQ(Insert(&model_, row).error, "");
    raw_keys_.insert(*KeyFormat(schema_).Encode(row));
  }
  for (int i = 0; i < 8; ++i) ASSERT_NO_FATAL_FAILURE(Split());
  ASSERT_TRUE(engine_->WaitUntilRouted(schema_, std::chrono::seconds(60)));
  const Value five = Value::Int64(4);
  for (const Condition& condition : std::vector<Condition>{
           {"a IS NULL", {}},
           {"a IS NULL OR a = ?", {five}},
           {"a IS NULL AND b = ?", {five}},
           {"(a IS NULL OR a = ?) AND b = ?", {five, five}},
           {"a IS NULL AND (b = ? OR b IS NULL)", {five}},
           {"NOT (a IS NOT NULL)", {}},
           {"a IS NOT ?", {five}},
           {"a IS NULL AND k < ?", {Value::Int64(10)}},
           {"a = ?", {five}},
           {"a < ?", {five}},
           {"a IN (?, ?)", {five, Value()}},
       }) {
    ASSERT_NO_FATAL_FAILURE(Compare(condition));
  }
  EXPECT_GT(excluded_, 0u);  // a = ? is not asked of the regions of NULLs
}

}  // namespace
}  // namespace tamis
