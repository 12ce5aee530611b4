// TextInput: the text of a stream as UTF-8, whatever the stream is packed and written in.
//
//   gzip, zstd   are unpacked (zlib, libzstd), also one in the other; zero bytes behind gzip data
//                are padding; bzip2, xz, lz4 and zip are refused by name
//   UTF-16, -32  are converted (iconv), with a byte order mark; also without one where the first
//   two
//                characters, in UTF-32 the first one, are ASCII
//   UTF-8        the byte order mark is left out
//
// Input that is refused, damaged or cut off ends the text; status() says why.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <streambuf>

#include "tamis/base/status.h"

namespace tamis {

class ByteSource;

class TextInput : public std::streambuf {
 public:
  // The source must outlive this.
  explicit TextInput(std::streambuf* source);
  ~TextInput() override;

  TextInput(const TextInput&) = delete;
  TextInput& operator=(const TextInput&) = delete;

  uint64_t source_bytes() const { return source_bytes_; }  // taken from the source so far
  const Status& status() const { return status_; }

 protected:
  int_type underflow() override;

 private:
  Status Open();

  std::streambuf* const source_;
  uint64_t source_bytes_ = 0;
  std::unique_ptr<ByteSource> text_;  // after the first read
  Status status_;
  std::array<char, 1 << 16> buffer_;
};

}  // namespace tamis
