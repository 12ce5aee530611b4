#include "tests/hbase/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace tamis {
namespace {

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word + " ";
  return text;
}

[[noreturn]] void Become(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

std::vector<std::string> Program::Words(const std::vector<std::string>& words) const {
  std::vector<std::string> all = {program_, "--store", store_};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

Ended Program::Run(const std::vector<std::string>& words) const {
  const std::vector<std::string> all = Words(words);
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    Become(all);
  }
  close(ends[1]);
  Ended ended;
  std::array<char, 4096> buffer;
  ssize_t size = 0;
  while ((size = read(ends[0], buffer.data(), buffer.size())) > 0) {
    ended.output.append(buffer.data(), static_cast<size_t>(size));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

std::string Program::Do(const std::vector<std::string>& words) const {
  const Ended ended = Run(words);
  EXPECT_EQ(ended.code, 0) << Joined(words) << "\n" << ended.output;
  return ended.output;
}

std::string Program::Fail(const std::vector<std::string>& words, int code) const {
  const Ended ended = Run(words);
  EXPECT_EQ(ended.code, code) << Joined(words) << "\n" << ended.output;
  return ended.output;
}

int Program::Start(const std::vector<std::string>& words) const {
  const std::vector<std::string> all = Words(words);
  const pid_t child = fork();
  if (child == 0) {
    const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    Become(all);
  }
  return child;
}

}  // namespace tamis
