#include "tamis/cli/line_editor.h"

#include <editline/readline.h>
#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <memory>
#include <utility>

#include "tamis/cli/interrupt.h"

namespace tamis {
namespace {

constexpr int kMaxWaitMs = 1000;

// The options of the one LineEditor; libedit calls plain functions.
const LineEditor::Options* editor_options = nullptr;
std::vector<std::string> candidates;

constexpr int kReplacement = 0xfffd;
constexpr const char* kReplacementText = "\xef\xbf\xbd";

// Set by ReadCharacter since the line began.
bool replaced_bytes = false;
bool read_interrupted = false;

bool UseUtf8() {
  std::setlocale(LC_CTYPE, "");
  const std::string_view encoding = nl_langinfo(CODESET);
  if (encoding == "UTF-8") return true;
  return encoding == "ANSI_X3.4-1968" && std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;
}

using SignalHandler = void (*)(int);

SignalHandler InterruptHandler() {
  struct sigaction action = {};
  sigaction(SIGINT, nullptr, &action);
  return action.sa_handler;
}

// While it lives, a new size of the window ends a read().
class ResizeScope {
 public:
  ResizeScope() {
    struct sigaction action = {};
    action.sa_handler = [](int) {};  // without SA_RESTART
    sigemptyset(&action.sa_mask);
    sigaction(SIGWINCH, &action, &former_);
  }
  ~ResizeScope() { sigaction(SIGWINCH, &former_, nullptr); }

  ResizeScope(const ResizeScope&) = delete;
  ResizeScope& operator=(const ResizeScope&) = delete;

 private:
  struct sigaction former_ = {};
};

// The next byte of the terminal, or -1 at its end and after an interrupt.
int ReadByte() {
  const SignalHandler former = InterruptHandler();
  const std::atomic<bool>* cancelled = InterruptFlag();
  while (true) {
    unsigned char byte = 0;
    const ssize_t size = read(STDIN_FILENO, &byte, 1);
    if (size == 1) return byte;
    if (size < 0 && errno == EAGAIN) {
      pollfd waiting = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      poll(&waiting, 1, -1);
      continue;
    }
    if (size == 0 || errno != EINTR) return -1;
    // libedit's handler of a signal puts the former one back and sends the signal again.
    read_interrupted = InterruptHandler() != former || (cancelled != nullptr && cancelled->load());
    if (read_interrupted) return -1;
    rl_resize_terminal();
  }
}

// Reads a character for libedit, whose own function drops bytes that are not UTF-8 without a sign
// of it, and takes a zero byte for a key. Both become U+FFFD here.
int ReadCharacter(std::FILE*) {
  static int pending = -1;  // the byte that ended an incomplete character
  std::mbstate_t state = {};
  bool begun = false;
  while (true) {
    const int byte = pending >= 0 ? std::exchange(pending, -1) : ReadByte();
    if (byte < 0) return -1;
    const char c = static_cast<char>(byte);
    wchar_t character = 0;
    const size_t size = std::mbrtowc(&character, &c, 1, &state);
    if (size == static_cast<size_t>(-2)) {
      begun = true;
      continue;
    }
    if (size == 1) return static_cast<int>(character);
    replaced_bytes = true;
    if (begun) pending = byte;
    return kReplacement;
  }
}

char* NextCandidate(const char* /*word*/, int state) {
  const auto at = static_cast<size_t>(state);
  return at < candidates.size() ? strdup(candidates[at].c_str()) : nullptr;
}

char** Complete(const char* word, int begin, int /*end*/) {
  rl_attempted_completion_over = 1;  // no file names
  candidates.clear();
  if (editor_options == nullptr || !editor_options->complete) return nullptr;
  const std::string_view line(rl_line_buffer, static_cast<size_t>(begin));
  candidates = editor_options->complete(line, word);
  return candidates.empty() ? nullptr : rl_completion_matches(word, NextCandidate);
}

// libedit's own append_history takes more entries than are asked for.
void AppendToFile(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const std::unique_ptr<std::FILE, decltype(&std::fclose)> file(fdopen(fd, "a"), &std::fclose);
  if (file == nullptr) {
    close(fd);
    return;
  }
  std::fseek(file.get(), 0, SEEK_END);  // a new file gets a first line of its own
  const std::unique_ptr<History, decltype(&history_end)> entry(history_init(), &history_end);
  HistEvent event;
  if (entry == nullptr || history(entry.get(), &event, H_SETSIZE, 1) < 0) return;
  if (history(entry.get(), &event, H_ENTER, text.c_str()) < 0) return;
  history(entry.get(), &event, H_SAVE_FP, file.get());
}

}  // namespace

LineEditor::LineEditor(Options options) : options_(std::move(options)), edits_(UseUtf8()) {
  if (!edits_) return;
  editor_options = &options_;
  rl_attempted_completion_function = Complete;
  rl_getc_function = ReadCharacter;
  using_history();
  if (!options_.history_file.empty()) read_history(options_.history_file.c_str());
}

LineEditor::~LineEditor() {
  editor_options = nullptr;
  rl_attempted_completion_function = nullptr;
}

LineEditor::Line LineEditor::Read(const char* prompt) {
  const PromptScope waiting;
  Line line;
  replaced_bytes = false;
  read_interrupted = false;
  errno = 0;
  if (edits_) {
    const ResizeScope resize;
    const std::unique_ptr<char, decltype(&std::free)> text(readline(prompt), &std::free);
    if (text != nullptr) line = {.kind = Line::Kind::kText, .text = text.get()};
    line.replaced = replaced_bytes && line.text.find(kReplacementText) != std::string::npos;
  } else {
    line = ReadPlain(prompt);
  }
  // An interrupt after the line is whole stops its statement instead.
  const bool interrupted = read_interrupted || errno == EINTR || waiting.interrupted();
  if (line.kind == Line::Kind::kText || !interrupted) return line;
  // libedit's handler sends the signal again, and another thread may take it late. It would then
  // stop the next statement.
  for (int i = 0; i < kMaxWaitMs && !waiting.interrupted(); ++i) usleep(1000);
  std::fputs("^C\n", stdout);
  return {.kind = Line::Kind::kInterrupted, .text = {}};
}

LineEditor::Line LineEditor::ReadPlain(const char* prompt) {
  std::fputs(prompt, stdout);
  std::fflush(stdout);
  char* buffer = nullptr;
  size_t room = 0;
  const ssize_t size = getline(&buffer, &room, stdin);
  const std::unique_ptr<char, decltype(&std::free)> owned(buffer, &std::free);
  if (size < 0) {
    std::clearerr(stdin);
    return {};
  }
  Line line{.kind = Line::Kind::kText, .text = std::string(buffer, static_cast<size_t>(size))};
  if (line.text.ends_with('\n')) line.text.pop_back();
  return line;
}

void LineEditor::Remember(const std::string& text) {
  if (!edits_) return;
  add_history(text.c_str());
  if (!options_.history_file.empty()) AppendToFile(options_.history_file, text);
}

}  // namespace tamis
