#include "tests/cluster/sql_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/cluster/sql_client.h"

namespace tamis {
namespace {

using Json = nlohmann::json;

Value ValueOf(const Json& json) {
  if (json.is_number_integer()) return Value::Int64(json.get<int64_t>());
  if (json.is_string()) return Value::Text(json.get<std::string>());
  return {};
}

}  // namespace

Result<std::unique_ptr<SqlProcess>> SqlProcess::Start(const std::vector<std::string>& command) {
  // Who writes to a process that has ended is told so.
  std::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> requests;
  std::array<int, 2> answers;
  if (pipe2(requests.data(), O_CLOEXEC) != 0 || pipe2(answers.data(), O_CLOEXEC) != 0) {
    return Internal("no pipes");
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t process = fork();
  if (process == 0) {
    dup2(requests[0], STDIN_FILENO);
    dup2(answers[1], STDOUT_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(requests[0]);
  close(answers[1]);
  if (process < 0) return Internal("no process");
  return std::unique_ptr<SqlProcess>(new SqlProcess(process, requests[1], answers[0]));
}

SqlProcess::~SqlProcess() {
  Kill();
  const std::lock_guard lock(searching_);
  close(requests_);
  close(answers_);
  waitpid(process_, nullptr, 0);
}

void SqlProcess::Pause() { kill(process_, SIGSTOP); }
void SqlProcess::Resume() { kill(process_, SIGCONT); }
void SqlProcess::Kill() { kill(process_, SIGKILL); }

bool SqlProcess::Send(const std::string& line) {
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t size = write(requests_, line.data() + sent, line.size() - sent);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    sent += static_cast<size_t>(size);
  }
  return true;
}

bool SqlProcess::Receive(std::string* line) {
  while (received_.find('\n') == std::string::npos) {
    std::array<char, 4096> buffer;
    const ssize_t size = read(answers_, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    received_.append(buffer.data(), static_cast<size_t>(size));
  }
  const size_t end = received_.find('\n');
  *line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return true;
}

Result<std::vector<Row>> SqlProcess::Search(const TableSchema& schema,
                                            const SearchOptions& options) {
  const std::unique_lock lock(searching_, std::try_to_lock);
  if (!lock.owns_lock()) return Busy("another search is under way");
  std::string line;
  if (!Send(Json(SqlOf(schema, options)).dump() + "\n") || !Receive(&line)) {
    return Unavailable("the coordinator's process has ended");
  }
  const Json answer = Json::parse(line);
  if (answer.contains("error")) {
    return ErrorOfSql(answer["code"].get<int>(), answer["error"].get<std::string>());
  }
  std::vector<Row> rows;
  for (const Json& values : answer["rows"]) {
    Row row;
    for (const Json& value : values) row.push_back(ValueOf(value));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tamis
