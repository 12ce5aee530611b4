#include "tamis/server/format_function.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "tamis/base/ascii.h"

namespace tamis::server {
namespace {

// SQLite's own function, in a database in which it is not replaced. It is opened by the first call:
// few statements call the function.
class BuiltIn {
 public:
  BuiltIn() = default;
  ~BuiltIn() {
    for (const auto& [count, statement] : statements_) sqlite3_finalize(statement);
    sqlite3_close(db_);
  }
  BuiltIn(const BuiltIn&) = delete;
  BuiltIn& operator=(const BuiltIn&) = delete;

  // The result is that of the context, or an error.
  void Call(sqlite3_context* context, int count, sqlite3_value** values) {
    int rc = db_ == nullptr ? sqlite3_open_v2(":memory:", &db_, kFlags, nullptr) : SQLITE_OK;
    if (rc != SQLITE_OK) {
      sqlite3_close(std::exchange(db_, nullptr));
      return sqlite3_result_error_code(context, rc);
    }
    sqlite3* caller = sqlite3_context_db_handle(context);
    sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, sqlite3_limit(caller, SQLITE_LIMIT_LENGTH, -1));
    sqlite3_stmt*& statement = statements_[count];
    if (statement == nullptr) {
      std::string sql = "SELECT format(?";
      for (int i = 1; i < count; ++i) sql += ", ?";
      rc = sqlite3_prepare_v2(db_, (sql + ")").c_str(), -1, &statement, nullptr);
    }
    for (int i = 0; i < count && rc == SQLITE_OK; ++i) {
      rc = sqlite3_bind_value(statement, i + 1, values[i]);
    }
    if (rc == SQLITE_OK) rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
      sqlite3_result_value(context, sqlite3_column_value(statement, 0));
    } else {
      sqlite3_result_error_code(context, rc);
    }
    if (statement != nullptr) {
      sqlite3_reset(statement);
      sqlite3_clear_bindings(statement);
    }
  }

 private:
  static constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;

  sqlite3* db_ = nullptr;
  std::map<int, sqlite3_stmt*> statements_;  // by the number of arguments
};

// Reads the conversions of a format, as SQLite does, for the bytes that they fill.
class Conversions {
 public:
  Conversions(std::string_view format, int count, sqlite3_value** values)
      : rest_(format), count_(count), values_(values) {}

  // The widths and precisions added up: the result is at least about as long.
  uint64_t Bytes() {
    uint64_t bytes = 0;
    for (size_t at = rest_.find('%'); at != rest_.npos; at = rest_.find('%')) {
      rest_.remove_prefix(at + 1);
      bytes += BytesOfOne();
    }
    return bytes;
  }

 private:
  uint64_t BytesOfOne() {
    uint64_t width = 0;
    uint64_t precision = 0;
    while (!rest_.empty() && std::string_view("-+ #!0,").find(rest_.front()) != rest_.npos) {
      rest_.remove_prefix(1);
    }
    width = Number();
    if (rest_.starts_with('.')) {
      rest_.remove_prefix(1);
      precision = Number();
    }
    for (int i = 0; i < 2 && rest_.starts_with('l'); ++i) rest_.remove_prefix(1);
    const char conversion = rest_.empty() ? '\0' : rest_.front();
    if (std::string_view("%diouxXeEfgGcsqQwzpnr").find(conversion) == std::string_view::npos) {
      rest_ = {};  // SQLite ends the result here
      return 0;
    }
    rest_.remove_prefix(1);
    if (conversion != '%' && conversion != 'n') ++next_;
    // The precision of a text is the most that is taken of it.
    const bool is_text = std::string_view("szqQw").find(conversion) != std::string_view::npos;
    return width + (is_text ? 0 : precision);
  }

  // Digits, or '*', which stands for the next argument. SQLite keeps 32 bits of either.
  uint64_t Number() {
    if (rest_.starts_with('*')) {
      rest_.remove_prefix(1);
      if (next_ >= count_) return 0;
      const auto value = static_cast<int32_t>(sqlite3_value_int64(values_[next_++]));
      return static_cast<uint64_t>(std::abs(int64_t{value}));
    }
    uint32_t number = 0;
    while (!rest_.empty() && IsDigit(rest_.front())) {
      number = number * 10 + static_cast<uint32_t>(rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return number & 0x7fffffff;
  }

  std::string_view rest_;
  int count_;
  sqlite3_value** values_;
  int next_ = 1;  // the argument that the next conversion takes
};

void Format(sqlite3_context* context, int count, sqlite3_value** values) noexcept {
  if (count == 0) return sqlite3_result_null(context);
  const auto* format = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
  if (format == nullptr) return sqlite3_result_null(context);
  const int most = sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1);
  if (Conversions(format, count, values).Bytes() > static_cast<uint64_t>(most)) {
    return sqlite3_result_error_toobig(context);
  }
  try {
    static_cast<BuiltIn*>(sqlite3_user_data(context))->Call(context, count, values);
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

}  // namespace

int RegisterFormatFunctions(sqlite3* db) {
  for (const char* name : {"format", "printf"}) {
    std::unique_ptr<BuiltIn> built_in(new (std::nothrow) BuiltIn());
    if (built_in == nullptr) return SQLITE_NOMEM;
    // SQLite destroys the user data also where it refuses the function.
    const int rc = sqlite3_create_function_v2(
        db, name, -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, built_in.release(),
        Format, nullptr, nullptr, [](void* data) { delete static_cast<BuiltIn*>(data); });
    if (rc != SQLITE_OK) return rc;
  }
  return SQLITE_OK;
}

}  // namespace tamis::server
