#include "tests/cluster/line_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace tamis {

Result<std::unique_ptr<LineProcess>> LineProcess::Start(const std::vector<std::string>& command) {
  // A write to a process that has ended is an error.
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
  return std::unique_ptr<LineProcess>(new LineProcess(process, requests[1], answers[0]));
}

LineProcess::~LineProcess() {
  Kill();
  const std::lock_guard lock(speaking_);
  close(requests_);
  close(answers_);
  waitpid(process_, nullptr, 0);
}

void LineProcess::Pause() { kill(process_, SIGSTOP); }
void LineProcess::Resume() { kill(process_, SIGCONT); }
void LineProcess::Kill() { kill(process_, SIGKILL); }

bool LineProcess::Send(const std::string& text) {
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t size = write(requests_, text.data() + sent, text.size() - sent);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    sent += static_cast<size_t>(size);
  }
  return true;
}

bool LineProcess::Receive(std::string* line) {
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

Result<std::string> LineProcess::Converse(const std::string& said) {
  const std::unique_lock lock(speaking_, std::try_to_lock);
  if (!lock.owns_lock()) return Busy("another line is under way");
  std::string line;
  if (!Send(said) || !Receive(&line)) return Unavailable("the process has ended");
  return line;
}

Result<std::string> LineProcess::Ask(const std::string& line) { return Converse(line + "\n"); }
Result<std::string> LineProcess::Hear() { return Converse(""); }

}  // namespace tamis
