#include "tamis/hbase/frame.h"

#include <google/protobuf/message_lite.h>

#include <algorithm>
#include <cstring>

#include "tamis/base/coding.h"
#include "tamis/base/waits_for_memory.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

constexpr size_t kFirstBufferBytes = 64 << 10;
// A larger buffer is released after the answer that needed it.
constexpr size_t kKeptBufferBytes = 4 << 20;
// The header limit of an answer that is too large. The header includes an exception with its stack
// trace.
constexpr size_t kMostHeaderBytes = 64 << 10;
// A header begins with its call_id.
constexpr char kHeaderBegin = 0x08;
constexpr size_t kMostVarintBytes = 10;

}  // namespace

void AppendDelimited(const google::protobuf::MessageLite& message, std::string* out) {
  PutVarint(out, message.ByteSizeLong());
  message.AppendPartialToString(out);
}

std::optional<std::string_view> TakeDelimited(std::string_view* bytes) {
  Reader reader(*bytes);
  const uint64_t size = reader.Varint();
  if (!reader.ok() || size > reader.rest().size()) return {};
  const std::string_view message = reader.Bytes(size);
  *bytes = reader.rest();
  return message;
}

void AppendCall(const pb::RequestHeader& header, const google::protobuf::MessageLite& parameter,
                std::string_view cells, std::string* out) {
  const size_t begin = out->size();
  out->append(4, '\0');
  AppendDelimited(header, out);
  AppendDelimited(parameter, out);
  out->append(cells);
  std::string size;
  PutBig32(&size, static_cast<uint32_t>(out->size() - begin - 4));
  out->replace(begin, 4, size);
}

std::span<char> FrameReader::Space() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
    if (buffer_.size() > kKeptBufferBytes) std::vector<char>().swap(buffer_);
  }
  if (buffer_.empty()) buffer_.resize(kFirstBufferBytes);
  if (end_ == buffer_.size()) {
    if (begin_ >= buffer_.size() / 2) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    } else {
      buffer_.resize(2 * buffer_.size());
    }
  }
  return std::span(buffer_).subspan(end_);
}

void FrameReader::Commit(size_t size) {
  end_ += size;
  PassOver();
}

void FrameReader::PassOver() {
  const size_t size = std::min(to_pass_over_, end_ - begin_);
  begin_ += size;
  to_pass_over_ -= size;
}

Result<std::optional<FrameReader::Frame>> FrameReader::Next() {
  const std::string_view bytes(buffer_.data() + begin_, end_ - begin_);
  Reader reader(bytes);
  const uint32_t size = reader.Big32();
  if (!reader.ok()) return std::optional<Frame>();
  if (size > max_frame_bytes_) return Cut(size, reader.rest());
  if (reader.rest().size() < size) {
    return LacksMemoryFor(size) ? Cut(size, reader.rest()) : std::optional<Frame>();
  }
  begin_ += 4 + size;
  return std::optional(Frame{.bytes = reader.Bytes(size), .size = size});
}

// A buffer grows by doubling, and the answer is copied out of it. Small answers wait for memory.
bool FrameReader::LacksMemoryFor(uint32_t size) const {
  return size > kKeptBufferBytes && buffer_.size() < size && !HasMemoryFor(size_t{4} * size);
}

// Bytes that cannot be an answer are an error at once: a foreign server may send nothing more.
Result<std::optional<FrameReader::Frame>> FrameReader::Cut(uint32_t size, std::string_view bytes) {
  const auto fault = [&] {
    return DataLoss("an answer of " + std::to_string(size) + " bytes, where " +
                    std::to_string(max_frame_bytes_) + " are allowed");
  };
  Reader reader(bytes);
  const uint64_t header_size = reader.Varint();
  if (!reader.ok()) {
    if (bytes.size() >= kMostVarintBytes) return fault();
    return std::optional<Frame>();
  }
  const size_t cut = bytes.size() - reader.rest().size() + header_size;
  if (header_size > kMostHeaderBytes || cut > size) return fault();
  if (!reader.rest().empty() && reader.rest().front() != kHeaderBegin) return fault();
  if (bytes.size() < cut) return std::optional<Frame>();
  begin_ += 4 + cut;
  to_pass_over_ = size - cut;
  PassOver();
  return std::optional(Frame{.bytes = bytes.substr(0, cut), .size = size});
}

Status TakeHeader(std::string_view* frame, pb::ResponseHeader* header) {
  const auto bytes = TakeDelimited(frame);
  if (bytes && header->ParseFromArray(bytes->data(), static_cast<int>(bytes->size()))) return {};
  return DataLoss("an answer whose header cannot be read");
}

Result<AnswerParts> ParseAnswer(std::string_view frame, pb::ResponseHeader* header) {
  TAMIS_RETURN_IF_ERROR(TakeHeader(&frame, header));
  if (header->has_exception()) return AnswerParts{};
  const auto message = TakeDelimited(&frame);
  if (!message || frame.size() != header->cell_block_meta().length()) {
    return DataLoss("an answer whose parts do not fit together");
  }
  return AnswerParts{.message = *message, .cells = frame};
}

}  // namespace tamis::hbase
