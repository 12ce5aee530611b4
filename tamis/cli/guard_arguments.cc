#include "tamis/cli/guard_arguments.h"

#include <fmt/core.h>

#include <cstdio>

#include "tamis/base/terminal_text.h"

namespace tamis {

void GuardArguments::Say(const std::string& text) const {
  if (!quiet) fmt::print(stderr, "{}\n", TerminalText(text));
}

Result<RedisConnection> GuardArguments::Open() const {
  TAMIS_ASSIGN_OR_RETURN(const RedisAddress address, RedisAddress::Parse(redis));
  return RedisConnection::Open(address, static_cast<int>(timeout_s * 1000));
}

Result<KeyReader::Format> GuardArguments::Format() const {
  if (format == "plain") return KeyReader::Format::kPlain;
  if (format == "lines") return KeyReader::Format::kLines;
  if (format == "null") return KeyReader::Format::kNull;
  if (format == "copy") return KeyReader::Format::kCopy;
  return InvalidArgument("there is no format \"" + format + "\"");
}

Result<KeySource::Options> GuardArguments::Source() const {
  TAMIS_ASSIGN_OR_RETURN(const KeyReader::Format read_as, Format());
  if (!query.empty() && database.empty()) {
    return InvalidArgument("--query needs --database, the PostgreSQL that it is sent to");
  }
  KeySource::Options options;
  options.command = command;
  options.query = query;
  options.database = database;
  options.format = read_as;
  options.as_is = as_is;
  return options;
}

}  // namespace tamis
