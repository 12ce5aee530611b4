#include "tamis/import/line_source.h"

namespace tamis {

Result<std::optional<std::string>> LineSource::Next() {
  std::streambuf* const buffer = in_->rdbuf();
  constexpr int kEnd = std::char_traits<char>::eof();
  std::string line;
  bool too_long = false;
  int c = buffer->sbumpc();
  if (c == kEnd) return std::optional<std::string>();
  ++line_;
  ending_.clear();
  for (; c != kEnd; c = buffer->sbumpc()) {
    if (c == '\n' || c == '\r') {
      ending_ += static_cast<char>(c);
      if (c == '\r' && buffer->sgetc() == '\n') {
        ending_ += static_cast<char>(buffer->sbumpc());
      }
      break;
    }
    if (line.size() < kMaxRecordBytes) {
      line.push_back(static_cast<char>(c));
    } else {
      too_long = true;
    }
  }
  if (too_long) {
    return InvalidArgument("the line is longer than " + std::to_string(kMaxRecordBytes) + " bytes");
  }
  return std::optional<std::string>(std::move(line));
}

}  // namespace tamis
