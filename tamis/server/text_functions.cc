#include "tamis/server/text_functions.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <set>
#include <string>
#include <string_view>

namespace tamis::server {
namespace {

constexpr size_t kNowhere = std::string_view::npos;

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }
bool IsLead(char c) { return static_cast<unsigned char>(c) >= 0xc0; }

// The argument as text, or as bytes. No memory: std::bad_alloc.
std::string_view TextOf(sqlite3_value* value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  if (text == nullptr && sqlite3_value_type(value) != SQLITE_NULL) throw std::bad_alloc();
  return {text, static_cast<size_t>(sqlite3_value_bytes(value))};
}
std::string_view BytesOf(sqlite3_value* value) {
  const auto* bytes = static_cast<const char*>(sqlite3_value_blob(value));
  const auto size = static_cast<size_t>(sqlite3_value_bytes(value));
  if (bytes == nullptr && size > 0) throw std::bad_alloc();
  return {bytes == nullptr ? "" : bytes, size};
}

void ReturnText(sqlite3_context* context, std::string_view text) {
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

// std::string_view::find compares each place; memmem is linear.
size_t Find(std::string_view text, std::string_view part, size_t from = 0) {
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? kNowhere
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

bool AnyIsNull(int count, sqlite3_value** values) {
  for (int i = 0; i < count; ++i) {
    if (sqlite3_value_type(values[i]) == SQLITE_NULL) return true;
  }
  return false;
}

// instr(X, Y): counts bytes if both are bytes, else characters.
void Instr(sqlite3_context* context, int, sqlite3_value** values) {
  const bool is_text =
      sqlite3_value_type(values[0]) != SQLITE_BLOB || sqlite3_value_type(values[1]) != SQLITE_BLOB;
  const std::string_view whole = is_text ? TextOf(values[0]) : BytesOf(values[0]);
  const std::string_view part = is_text ? TextOf(values[1]) : BytesOf(values[1]);
  size_t at = 0;
  if (is_text && !part.empty() && IsContinuation(part[0])) {
    // A character does not begin so, except the first one of a text that is not UTF-8.
    at = whole.starts_with(part) ? 0 : kNowhere;
  } else if (!part.empty()) {
    at = Find(whole, part);
  }
  if (at == kNowhere) return sqlite3_result_int(context, 0);
  int64_t position = 1;
  for (size_t i = 1; i <= at; ++i) {
    if (!is_text || i == whole.size() || !IsContinuation(whole[i])) ++position;
  }
  sqlite3_result_int64(context, position);
}

// replace(X, Y, Z)
void Replace(sqlite3_context* context, int, sqlite3_value** values) {
  const std::string_view whole = TextOf(values[0]);
  const std::string_view part = TextOf(values[1]);
  if (part.empty() || part[0] == '\0') return sqlite3_result_value(context, values[0]);
  if (AnyIsNull(1, values + 2)) return sqlite3_result_null(context);
  const std::string_view other = TextOf(values[2]);
  const auto most = static_cast<size_t>(
      sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1));
  std::string out;
  size_t from = 0;
  for (size_t at = Find(whole, part); at != kNowhere; at = Find(whole, part, from)) {
    out.append(whole.substr(from, at - from)).append(other);
    if (out.size() > most) return sqlite3_result_error_toobig(context);
    from = at + part.size();
  }
  out += whole.substr(from);
  ReturnText(context, out);
}

// A lead byte and the continuation bytes after it, or one byte.
size_t FirstCharacter(std::string_view text) {
  size_t size = 1;
  if (IsLead(text[0])) {
    while (size < text.size() && IsContinuation(text[size])) ++size;
  }
  return size;
}

size_t LastCharacter(std::string_view text) {
  size_t size = 1;
  while (size < text.size() && size <= kMostTrimmedBytes &&
         IsContinuation(text[text.size() - size])) {
    ++size;
  }
  return IsLead(text[text.size() - size]) ? size : 1;
}

// trim(X), trim(X, Y) and its like. The user data is not null where that end is trimmed.
struct Ends {
  bool left;
  bool right;
};
constexpr Ends kBoth = {true, true};
constexpr Ends kLeft = {true, false};
constexpr Ends kRight = {false, true};

void Trim(sqlite3_context* context, int count, sqlite3_value** values) {
  const auto ends = *static_cast<const Ends*>(sqlite3_user_data(context));
  std::string_view text = TextOf(values[0]);
  std::string_view rest = count == 1 ? std::string_view(" ") : TextOf(values[1]);
  if (rest.size() > kMostTrimmedBytes) {
    return sqlite3_result_error(context, "trim: the characters to trim are too long", -1);
  }
  std::set<std::string_view> characters;
  while (!rest.empty()) {
    const size_t size = FirstCharacter(rest);
    characters.insert(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  while (ends.left && !text.empty()) {
    const size_t size = FirstCharacter(text);
    if (!characters.contains(text.substr(0, size))) break;
    text.remove_prefix(size);
  }
  while (ends.right && !text.empty()) {
    const size_t size = LastCharacter(text);
    if (!characters.contains(text.substr(text.size() - size))) break;
    text.remove_suffix(size);
  }
  ReturnText(context, text);
}

template <void (*kFunction)(sqlite3_context*, int, sqlite3_value**)>
void Guarded(sqlite3_context* context, int count, sqlite3_value** values) noexcept {
  if (AnyIsNull(std::min(count, 2), values)) return sqlite3_result_null(context);
  try {
    kFunction(context, count, values);
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

}  // namespace

int RegisterTextFunctions(sqlite3* db) {
  int rc = SQLITE_OK;
  const auto add = [&](const char* name, int arguments, const Ends* ends, auto function) {
    if (rc != SQLITE_OK) return;
    rc = sqlite3_create_function_v2(db, name, arguments,
                                    SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                    const_cast<Ends*>(ends), function, nullptr, nullptr, nullptr);
  };
  add("instr", 2, nullptr, Guarded<Instr>);
  add("replace", 3, nullptr, Guarded<Replace>);
  for (const int arguments : {1, 2}) {
    add("trim", arguments, &kBoth, Guarded<Trim>);
    add("ltrim", arguments, &kLeft, Guarded<Trim>);
    add("rtrim", arguments, &kRight, Guarded<Trim>);
  }
  return rc;
}

}  // namespace tamis::server
