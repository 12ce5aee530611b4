// Sandbox: the bounds of SQL that a client sends over the network. It may read the tables of the
// store and, if the server permits it, change their rows. Everything else is refused when the
// statement is prepared: other databases and files, extensions, definitions of tables, triggers and
// views, settings, transactions (each request is one of its own), and functions that are not on a
// list.
//
// Sizes are bounded: text and rows of a statement, nesting, patterns. sqlite3_hard_heap_limit64
// bounds the memory of all connections of the process together; the server sets it.
#pragma once

#include <sqlite3.h>

#include <string>

namespace tamis::server {

class Sandbox {
 public:
  explicit Sandbox(bool may_write) : may_write_(may_write) {}
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  // Applies to all statements that are prepared from now on. This object must outlive the
  // connection.
  void Enclose(sqlite3* db);

  // Why the last statement was refused, with what to do; empty if it was not, or if SQLite says it
  // better. Forgotten by the call.
  std::string TakeRefusal();

 private:
  static int Authorize(void* sandbox, int action, const char* first, const char* second,
                       const char* database, const char* trigger) noexcept;
  int Decide(int action, const char* first, const char* second, const char* database);
  int Refuse(std::string why);

  const bool may_write_;
  std::string refusal_;
};

}  // namespace tamis::server
