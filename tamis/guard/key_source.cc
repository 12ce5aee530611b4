#include "tamis/guard/key_source.h"

#include <unistd.h>

namespace tamis {
namespace {

// Without the semicolon at its end. A comment may stand there, so a line's end follows.
std::string Bare(std::string query) {
  const size_t end = query.find_last_not_of("; \t\r\n");
  query.resize(end == query.npos ? 0 : end + 1);
  return "\n" + query + "\n";
}

// A policy that hides rows from this user is an error: the filter would lack the keys of these
// rows.
constexpr char kSession[] = "SET client_encoding TO 'UTF8'; SET row_security TO off; ";

}  // namespace

Result<KeySource> KeySource::OpenPsql(const std::string& database, const std::string& copied,
                                      KeyReader::Format format, const std::atomic<bool>* cancelled,
                                      std::function<Status()> while_waiting) {
  TAMIS_ASSIGN_OR_RETURN(
      ChildProcess child,
      ChildProcess::Start({"psql", "--no-psqlrc", "--no-password", "--quiet",
                           "--set=ON_ERROR_STOP=1", "--dbname=" + database, "--command",
                           kSession + ("COPY (" + copied) + ") TO STDOUT"}));
  const int output = child.output();
  return KeySource(std::move(child),
                   KeyReader(output, format, false, cancelled, std::move(while_waiting)),
                   std::nullopt);
}

Result<KeySource> KeySource::Open(const Options& options, const std::atomic<bool>* cancelled,
                                  std::function<Status()> while_waiting) {
  if (options.command.empty() && !options.query.empty()) {
    return OpenPsql(options.database, Bare(options.query), KeyReader::Format::kCopy, cancelled,
                    std::move(while_waiting));
  }
  std::optional<KeyShape> shape;
  if (!options.as_is) shape.emplace(options.format, options.proved);
  std::optional<ChildProcess> child;
  if (!options.command.empty()) {
    TAMIS_ASSIGN_OR_RETURN(ChildProcess started, ChildProcess::StartShell(options.command));
    child.emplace(std::move(started));
  }
  const int file = child ? child->output() : STDIN_FILENO;
  return KeySource(std::move(child),
                   KeyReader(file, options.format, options.marked_end, cancelled,
                             std::move(while_waiting), options.as_is),
                   std::move(shape));
}

Result<KeySource> KeySource::OpenSample(const std::string& query, const std::string& database,
                                        size_t count, const std::atomic<bool>* cancelled,
                                        std::function<Status()> while_waiting) {
  const std::string sample =
      "SELECT encode(convert_to(key::text, 'UTF8'), 'hex') FROM (" + Bare(query) +
      ") AS keys(key) WHERE key IS NOT NULL ORDER BY random() LIMIT " + std::to_string(count);
  return OpenPsql(database, sample, KeyReader::Format::kHex, cancelled, std::move(while_waiting));
}

Result<std::optional<std::string_view>> KeySource::Next() {
  TAMIS_ASSIGN_OR_RETURN(const std::optional<std::string_view> key, reader_.Next());
  if (key) {
    if (shape_) TAMIS_RETURN_IF_ERROR(shape_->Add(*key));
    return key;
  }
  if (child_) TAMIS_RETURN_IF_ERROR(child_->Wait());
  if (shape_) TAMIS_RETURN_IF_ERROR(shape_->Finish());
  return key;
}

}  // namespace tamis
