// LineEditor: reads lines from the terminal, with editing, completion and a history. A thin layer
// over libedit, whose state is global: one LineEditor at a time.
//
// Text is UTF-8 in every locale: C.UTF-8 is used where no locale is set. Bytes that are not UTF-8,
// and zero bytes, show as U+FFFD. Where the locale has another encoding, lines are read without
// editing, and their bytes are as they came.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tamis {

class LineEditor {
 public:
  struct Options {
    std::string history_file;  // empty: the history ends with the program
    // Gives the words that may replace `word`, the last one before the cursor; `line` is the text
    // before it.
    std::function<std::vector<std::string>(std::string_view line, std::string_view word)> complete;
  };
  struct Line {
    enum class Kind { kText, kInterrupted, kEnd } kind = Kind::kEnd;
    std::string text;
    bool replaced = false;  // U+FFFD in the text stands for bytes that are not UTF-8, or are zero
  };

  explicit LineEditor(Options options);
  ~LineEditor();

  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Waits for a line. Ctrl-C drops what was typed of it: kInterrupted.
  // REQUIRES: an InterruptScope
  Line Read(const char* prompt);

  // Adds a text of one or more lines to the history, and at once to its file. A file that cannot be
  // written is ignored.
  void Remember(const std::string& text);

 private:
  Line ReadPlain(const char* prompt);

  const Options options_;
  bool edits_ = false;
};

}  // namespace tamis
