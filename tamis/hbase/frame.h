// The frames in which calls and answers travel over one connection.
//
//   call    = int32 size | header (length-delimited) | parameter (length-delimited) | cell block
//   answer  = int32 size | header (length-delimited) [| message (length-delimited) | cell block]
//
// If the header of an answer holds an exception, nothing follows it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"

namespace google::protobuf {
class MessageLite;
}

namespace tamis::hbase {

namespace pb {
class RequestHeader;
class ResponseHeader;
}  // namespace pb

// Appends a message preceded by its length as a varint.
void AppendDelimited(const google::protobuf::MessageLite& message, std::string* out);

// Takes a message's bytes off the front without parsing them; returns nothing if they are
// incomplete.
std::optional<std::string_view> TakeDelimited(std::string_view* bytes);

// Appends a whole call.
void AppendCall(const pb::RequestHeader& header, const google::protobuf::MessageLite& parameter,
                std::string_view cells, std::string* out);

// Splits the bytes of a connection into frames, using memory proportional to the bytes received,
// not to the announced frame size.
class FrameReader {
 public:
  explicit FrameReader(size_t max_frame_bytes) : max_frame_bytes_(max_frame_bytes) {}

  // Returns the buffer for the next bytes; call Commit() with the number of bytes written to it.
  std::span<char> Space();
  void Commit(size_t size);

  struct Frame {
    std::string_view bytes;
    size_t size = 0;
    // The frame was too large: `bytes` is its header alone, and the rest is skipped.
    bool is_cut() const { return bytes.size() < size; }
  };
  // Returns the next frame, without its size; valid until Space() is called again. Returns nothing
  // if the frame is incomplete. Returns an error if it is too large and does not start like an
  // answer; the stream cannot be read any further then.
  Result<std::optional<Frame>> Next();

  size_t buffered() const { return end_ - begin_; }
  size_t capacity() const { return buffer_.size(); }

 private:
  bool LacksMemoryFor(uint32_t size) const;
  Result<std::optional<Frame>> Cut(uint32_t size, std::string_view bytes);
  void PassOver();

  const size_t max_frame_bytes_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t to_pass_over_ = 0;
};

// Takes the header off the front of a frame; kDataLoss if there is no valid one.
Status TakeHeader(std::string_view* frame, pb::ResponseHeader* header);
// The parts of an answer, as views of the frame.
struct AnswerParts {
  std::string_view message;
  std::string_view cells;
};
// Parses the header into `header` and finds the other parts; kDataLoss if the bytes are not an
// answer.
Result<AnswerParts> ParseAnswer(std::string_view frame, pb::ResponseHeader* header);

}  // namespace tamis::hbase
