// Guarded<Function>: a callback of the extension as SQLite may call it. No exception leaves it:
// memory that is short is SQLITE_NOMEM, anything else an error with its text.
//
//   constexpr sqlite3_module kModule = {.xOpen = Guarded<Open>, ...};
//
// Callbacks that must not fail (xClose, xCommit, xRollback) are noexcept instead and make no
// allocation that they need.
#pragma once

#include <type_traits>

#include "tamis/sql/sqlite.h"

namespace tamis {
namespace internal {

// The result code of the exception that is being handled; its text is left in *error.
int ResultOfException(char** error) noexcept;
void ReportException(sqlite3_context* context) noexcept;

inline char** ErrorOf(sqlite3_vtab* table) { return &table->zErrMsg; }
inline char** ErrorOf(sqlite3_vtab_cursor* cursor) { return &cursor->pVtab->zErrMsg; }

template <auto kFunction>
struct Guard;

// xCreate and xConnect.
template <int (*kFunction)(sqlite3*, void*, int, const char* const*, sqlite3_vtab**, char**)>
struct Guard<kFunction> {
  static int Call(sqlite3* db, void* client, int argc, const char* const* argv, sqlite3_vtab** out,
                  char** error) noexcept {
    try {
      return kFunction(db, client, argc, argv, out, error);
    } catch (...) {
      return ResultOfException(error);
    }
  }
};

// Methods of a table or a cursor.
template <class Object, class... Arguments, int (*kFunction)(Object*, Arguments...)>
requires(!std::is_same_v<Object, sqlite3>) struct Guard<kFunction> {
  static int Call(Object* object, Arguments... arguments) noexcept {
    try {
      return kFunction(object, arguments...);
    } catch (...) {
      return ResultOfException(ErrorOf(object));
    }
  }
};

// SQL functions.
template <void (*kFunction)(sqlite3_context*, int, sqlite3_value**)>
struct Guard<kFunction> {
  static void Call(sqlite3_context* context, int argc, sqlite3_value** argv) noexcept {
    try {
      kFunction(context, argc, argv);
    } catch (...) {
      ReportException(context);
    }
  }
};

}  // namespace internal

template <auto kFunction>
inline constexpr auto Guarded = &internal::Guard<kFunction>::Call;

}  // namespace tamis
