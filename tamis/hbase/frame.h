// The frames in which calls and answers travel over one connection.
//
//   call    = int32 size | header (length-delimited) | parameter (length-delimited) | cell block
//   answer  = int32 size | header (length-delimited) [| message (length-delimited) | cell block]
//
// An answer whose header holds an exception ends with it.
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

// Appends one message behind its length as a varint.
void AppendDelimited(const google::protobuf::MessageLite& message, std::string* out);

// Takes a message's bytes off the front, without parsing them; nothing when they are not all there.
std::optional<std::string_view> TakeDelimited(std::string_view* bytes);

// Appends a whole call.
void AppendCall(const pb::RequestHeader& header, const google::protobuf::MessageLite& parameter,
                std::string_view cells, std::string* out);

// Cuts what a connection brings into frames. Memory follows the bytes that came, not those that a
// frame says will come.
class FrameReader {
 public:
  explicit FrameReader(size_t max_frame_bytes) : max_frame_bytes_(max_frame_bytes) {}

  // Where the next bytes are to be put; then say how many there are.
  std::span<char> Space();
  void Commit(size_t size);

  struct Frame {
    std::string_view bytes;
    size_t size = 0;
    // `bytes` are the header alone: the rest was too large, or there is no memory for it, and is
    // passed over.
    bool is_cut() const { return bytes.size() < size; }
  };
  // The next frame, without its size; valid until Space() is called again. Nothing when it has not
  // all come; an error when it is larger than a frame may be and does not begin as an answer, and
  // then there is no way on.
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

// Takes the header off the front of a frame; kDataLoss when there is none.
Status TakeHeader(std::string_view* frame, pb::ResponseHeader* header);
// An answer: views of the frame.
struct AnswerParts {
  std::string_view message;
  std::string_view cells;
};
// Reads the header into `header` and finds the rest; kDataLoss when the bytes are no answer.
Result<AnswerParts> ParseAnswer(std::string_view frame, pb::ResponseHeader* header);

}  // namespace tamis::hbase
