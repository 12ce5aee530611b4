#include "tamis/guard/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tamis {
namespace {

// How the child is started: with an empty standard input, and its standard output in a pipe.
class SpawnSettings {
 public:
  explicit SpawnSettings(int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, 1);
    posix_spawnattr_init(&attributes_);
    // The child does not inherit signals that this program ignores.
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Result<ChildProcess> ChildProcess::Start(const std::vector<std::string>& arguments) {
  const std::string& name = arguments[0];
  const auto failed = [&](int error) {
    return Unavailable("cannot run \"" + name + "\": " + std::strerror(error));
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed(errno);
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  pid_t pid = 0;
  const SpawnSettings settings(ends[1]);
  const int error = posix_spawnp(&pid, name.c_str(), settings.actions(), settings.attributes(),
                                 words.data(), environ);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return failed(error);
  }
  return ChildProcess(name, pid, ends[0]);
}

Result<ChildProcess> ChildProcess::StartShell(const std::string& line) {
  TAMIS_ASSIGN_OR_RETURN(ChildProcess child, Start({"bash", "-o", "pipefail", "-c", line}));
  child.name_ = line;
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : name_(std::move(other.name_)), pid_(other.pid_), output_(other.output_) {
  other.pid_ = 0;
  other.output_ = -1;
}

ChildProcess::~ChildProcess() {
  if (pid_ != 0) kill(pid_, SIGTERM);
  (void)Wait().ok();
}

Status ChildProcess::Wait() {
  if (output_ >= 0) close(output_);
  output_ = -1;
  if (pid_ == 0) return Status::Ok();
  int state = 0;
  while (waitpid(pid_, &state, 0) < 0) {
    if (errno != EINTR) {
      return Internal("cannot wait for the end of \"" + name_ + "\": " + std::strerror(errno));
    }
  }
  pid_ = 0;
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return Status::Ok();
  return Unavailable("\"" + name_ + "\" failed: " +
                     (WIFEXITED(state) ? "exit status " + std::to_string(WEXITSTATUS(state))
                                       : "ended by signal " + std::to_string(WTERMSIG(state))));
}

Result<std::string> OutputOf(const std::vector<std::string>& arguments) {
  TAMIS_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(arguments));
  std::string output;
  char buffer[4096];
  while (true) {
    const ssize_t size = read(child.output(), buffer, sizeof(buffer));
    if (size == 0) break;
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      return Unavailable("cannot read the output of \"" + arguments[0] +
                         "\": " + std::strerror(errno));
    }
    output.append(buffer, static_cast<size_t>(size));
  }
  TAMIS_RETURN_IF_ERROR(child.Wait());
  return output;
}

}  // namespace tamis
