// JsonArray: the elements of a JSON array that may take many lines, one at a time, each as text.
// Only brackets, strings and commas are looked at: whether an element is JSON is for its parser to
// say, so that one that is not does not hide those behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tamis/base/status.h"
#include "tamis/import/line_source.h"

namespace tamis {

class JsonArray {
 public:
  // Whether an array begins in this line.
  static bool BeginsIn(const std::string& line);

  // `first` is the last line that the source gave. REQUIRES: BeginsIn(first). The source must
  // outlive the array.
  JsonArray(std::string first, LineSource* lines);

  // Returns the text of the next element; nullopt when the array and the input have ended.
  // kInvalidArgument: the array does not end, or is followed by other text; no more can be read.
  Result<std::optional<std::string>> Next();

  // The line in which the last element begins.
  uint64_t line() const { return element_line_; }

 private:
  // Moves to the next character that is no blank. Returns false at the end of the input.
  Result<bool> SkipBlanks();
  // Reads the next line. Returns false at the end of the input.
  Result<bool> NextLine();
  // The text up to the comma or bracket that ends the element.
  Result<std::string> Element();
  Status DoesNotEnd() const;

  LineSource* lines_;
  std::string line_;
  size_t at_ = 0;  // in line_
  bool first_ = true;
  uint64_t begin_line_;
  uint64_t element_line_ = 0;
};

}  // namespace tamis
