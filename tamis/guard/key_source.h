// KeySource: the keys of a table, from a program, a query of PostgreSQL or standard input.
//
// The keys count as complete only if the program ended with exit status 0 and no frame stands
// around the keys (KeyShape). A query is read by COPY, whose format says where each key begins and
// ends.
//
// Threads: exclusive access.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/guard/child_process.h"
#include "tamis/guard/key_reader.h"
#include "tamis/guard/key_shape.h"

namespace tamis {

class KeySource {
 public:
  struct Options {
    // One source: the command; else the query; if both are empty, standard input.
    std::string command;   // a line for bash that prints the keys
    std::string query;     // a SELECT of one column
    std::string database;  // for the query: a name, a connection string or a URL, as psql takes it
    KeyReader::Format format = KeyReader::Format::kPlain;
    bool marked_end = false;  // standard input ends with "\."
    bool as_is = false;       // a frame belongs to the keys
    bool proved = false;      // see KeyShape
  };

  // `while_waiting`: see KeyReader.
  static Result<KeySource> Open(const Options& options, const std::atomic<bool>* cancelled,
                                std::function<Status()> while_waiting = nullptr);
  // At most `count` of the query's keys, drawn at random, to check a filter with. psql prints them
  // in another form than for Open (hexadecimal digits of their UTF-8 bytes), so that the check also
  // finds keys that Open reads wrongly.
  static Result<KeySource> OpenSample(const std::string& query, const std::string& database,
                                      size_t count, const std::atomic<bool>* cancelled,
                                      std::function<Status()> while_waiting = nullptr);

  // Takes the first line of the input, for an input whose first line is no key.
  Result<std::optional<std::string_view>> TakeFirstLine() { return reader_.Next(); }
  // The next key, valid until the next call; nullopt behind the last one, if the keys are complete.
  Result<std::optional<std::string_view>> Next();

  uint64_t nulls() const { return reader_.nulls(); }  // left out

 private:
  KeySource(std::optional<ChildProcess> child, KeyReader reader, std::optional<KeyShape> shape)
      : child_(std::move(child)), reader_(std::move(reader)), shape_(shape) {}
  static Result<KeySource> OpenPsql(const std::string& database, const std::string& copied,
                                    KeyReader::Format format, const std::atomic<bool>* cancelled,
                                    std::function<Status()> while_waiting);

  std::optional<ChildProcess> child_;
  KeyReader reader_;
  std::optional<KeyShape> shape_;
};

}  // namespace tamis
