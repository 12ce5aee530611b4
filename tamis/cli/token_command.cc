// tamis token.
#include <fmt/format.h>

#include "tamis/cli/command.h"
#include "tamis/store/hbase_token.h"
#include "tamis/table/timestamp.h"

namespace tamis {
namespace {

std::string TimeOf(int64_t ms) { return FormatSqlTimestamp(ms * 1000) + " UTC"; }

void Print(const HBaseToken& token) {
  fmt::print("user {}, cluster {}, issued {}, expires {}\n", token.user, token.cluster_id,
             TimeOf(token.issued_ms), TimeOf(token.expires_ms));
}

int GetToken(const std::string& store, const std::string& file) {
  const auto token = GetHBaseToken(store, file);
  if (!token.ok()) return Report(token.status());
  Print(*token);
  return kExitOk;
}

int ShowTokens(const std::string& file) {
  const auto tokens = ListHBaseTokens(file);
  if (!tokens.ok()) return Report(tokens.status());
  if (tokens->empty()) return Report(NotFound("\"" + file + "\" has no token of an HBase"));
  for (const HBaseToken& token : *tokens) Print(token);
  return kExitOk;
}

}  // namespace

void AddTokenCommand(Command app, Invocation* invocation) {
  Command token = app.AddCommand("token",
                                 "Delegation tokens of an HBase with Kerberos, for jobs without a "
                                 "ticket");
  token.RequireCommand();

  auto file = std::make_shared<std::string>();
  Command get =
      token.AddCommand("get",
                       "Get a token with your ticket and write it to a file; a job uses it by "
                       "HADOOP_TOKEN_FILE_LOCATION=FILE. Every user that can read the file can act "
                       "as you until the token expires");
  get.AddOption("--out", *file, "The file, in Hadoop's format; it is replaced").Required();
  get.OnParsed([=] { invocation->run = [=] { return GetToken(invocation->store, *file); }; });

  Command show = token.AddCommand("show", "List the HBase tokens in a file, and when they expire");
  show.AddOption("FILE", *file, "A file of Hadoop's tokens").Required();
  show.OnParsed([=] { invocation->run = [=] { return ShowTokens(*file); }; });
}

}  // namespace tamis
