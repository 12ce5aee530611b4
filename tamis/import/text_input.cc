#include "tamis/import/text_input.h"

#include <iconv.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

namespace tamis {

// Bytes, one piece after the other.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // At most `size` bytes; 0 at the end.
  virtual Result<size_t> Read(char* out, size_t size) = 0;
};

namespace {

using namespace std::string_view_literals;

constexpr size_t kPiece = size_t{1} << 16;
constexpr int kMostPackings = 4;  // one in the other

class StreamSource : public ByteSource {
 public:
  StreamSource(std::streambuf* stream, uint64_t* bytes) : stream_(stream), bytes_(bytes) {}

  // Waits for one byte, not for all.
  Result<size_t> Read(char* out, size_t size) override {
    if (stream_->sgetc() == std::char_traits<char>::eof()) return size_t{0};
    const std::streamsize there = std::max<std::streamsize>(1, stream_->in_avail());
    const auto wanted = std::min(static_cast<std::streamsize>(size), there);
    const auto read = static_cast<size_t>(stream_->sgetn(out, wanted));
    *bytes_ += read;
    return read;
  }

 private:
  std::streambuf* const stream_;
  uint64_t* const bytes_;
};

// Lets the first bytes be looked at before they are read.
class PeekedSource : public ByteSource {
 public:
  explicit PeekedSource(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  // The first bytes: fewer than `size` where the source ends.
  Result<std::string_view> Peek(size_t size) {
    while (first_.size() < size) {
      std::string more(size - first_.size(), '\0');
      TAMIS_ASSIGN_OR_RETURN(const size_t read, source_->Read(more.data(), more.size()));
      if (read == 0) break;
      first_.append(more, 0, read);
    }
    return std::string_view(first_);
  }

  void Drop(size_t size) { first_.erase(0, size); }

  Result<size_t> Read(char* out, size_t size) override {
    if (first_.empty()) return source_->Read(out, size);
    const size_t read = first_.copy(out, size);
    first_.erase(0, read);
    return read;
  }

 private:
  const std::unique_ptr<ByteSource> source_;
  std::string first_;
};

class GzipSource : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {
    constexpr int kGzip = 16;
    ready_ = inflateInit2(&stream_, MAX_WBITS + kGzip) == Z_OK;
  }
  ~GzipSource() override {
    if (ready_) inflateEnd(&stream_);
  }

  Result<size_t> Read(char* out, size_t size) override {
    if (!ready_) return ResourceExhausted("there is no memory to unpack gzip data");
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out == size) {
      if (stream_.avail_in == 0) {
        TAMIS_ASSIGN_OR_RETURN(const size_t read, source_->Read(packed_, sizeof packed_));
        if (read == 0) {
          if (inside_) return DataLoss("the gzip data is cut off");
          return size_t{0};
        }
        stream_.next_in = reinterpret_cast<Bytef*>(packed_);
        stream_.avail_in = static_cast<uInt>(read);
      }
      if (!inside_) {  // a file may be several, one after the other
        constexpr Bytef kFirstByte = 0x1f;
        if (members_ > 0 && SkipPadding()) continue;
        if (padded_ || *stream_.next_in != kFirstByte) {
          return DataLoss("the gzip data is followed by bytes that are no gzip data");
        }
        inflateReset(&stream_);
        inside_ = true;
      }
      const int done = inflate(&stream_, Z_NO_FLUSH);
      if (done == Z_STREAM_END) {
        inside_ = false;
        ++members_;
      } else if (done != Z_OK && done != Z_BUF_ERROR) {
        return DataLoss("the gzip data is damaged");
      }
    }
    return size - stream_.avail_out;
  }

 private:
  // Zero bytes may follow the last member: tapes and block devices fill their blocks with them.
  // True: nothing else is left of the piece.
  bool SkipPadding() {
    while (stream_.avail_in > 0 && *stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
      padded_ = true;
    }
    return stream_.avail_in == 0;
  }

  const std::unique_ptr<ByteSource> source_;
  z_stream stream_ = {};
  bool ready_ = false;
  bool inside_ = false;   // inside of a member
  uint64_t members_ = 0;  // that ended
  bool padded_ = false;   // zero bytes came after the last member
  char packed_[kPiece];
};

class ZstdSource : public ByteSource {
 public:
  explicit ZstdSource(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }

  Result<size_t> Read(char* out, size_t size) override {
    if (stream_ == nullptr) return ResourceExhausted("there is no memory to unpack zstd data");
    ZSTD_outBuffer unpacked = {out, size, 0};
    while (unpacked.pos == 0) {
      if (input_.pos == input_.size) {
        TAMIS_ASSIGN_OR_RETURN(const size_t read, source_->Read(packed_, sizeof packed_));
        if (read == 0) {
          if (inside_) return DataLoss("the zstd data is cut off");
          return size_t{0};
        }
        input_ = {packed_, read, 0};
      }
      const size_t left = ZSTD_decompressStream(stream_, &unpacked, &input_);
      if (ZSTD_getErrorCode(left) == ZSTD_error_prefix_unknown) {  // the first one was looked at
        return DataLoss("the zstd data is followed by bytes that are no zstd data");
      }
      if (ZSTD_isError(left) != 0) {
        return DataLoss(std::string("the zstd data is damaged: ") + ZSTD_getErrorName(left));
      }
      inside_ = left != 0;
    }
    return unpacked.pos;
  }

 private:
  const std::unique_ptr<ByteSource> source_;
  ZSTD_DStream* const stream_ = ZSTD_createDStream();
  ZSTD_inBuffer input_ = {packed_, 0, 0};
  bool inside_ = false;  // inside of a frame
  char packed_[kPiece];
};

class ConvertedSource : public ByteSource {
 public:
  ConvertedSource(std::unique_ptr<ByteSource> source, const char* encoding)
      : source_(std::move(source)), encoding_(encoding), iconv_(iconv_open("UTF-8", encoding)) {}
  ~ConvertedSource() override {
    if (iconv_ != kNone) iconv_close(iconv_);
  }

  Result<size_t> Read(char* out, size_t size) override {
    if (iconv_ == kNone) return InvalidArgument("this system cannot convert " + encoding_);
    size_t room = size;
    while (room == size) {
      char* in = bytes_.data();
      size_t left = bytes_.size();
      const bool bad = iconv(iconv_, &in, &left, &out, &room) == static_cast<size_t>(-1);
      const int error = bad ? errno : 0;
      bytes_.erase(0, bytes_.size() - left);
      if (error == EILSEQ) return DataLoss("the text is not " + encoding_);
      if (room < size) break;
      std::string more(kPiece, '\0');
      TAMIS_ASSIGN_OR_RETURN(const size_t read, source_->Read(more.data(), more.size()));
      if (read == 0 && !bytes_.empty()) return DataLoss("the " + encoding_ + " text is cut off");
      if (read == 0) return size_t{0};
      bytes_.append(more, 0, read);
    }
    return size - room;
  }

 private:
  static inline const auto kNone = reinterpret_cast<iconv_t>(-1);

  const std::unique_ptr<ByteSource> source_;
  const std::string encoding_;
  const iconv_t iconv_;
  std::string bytes_;  // not converted yet
};

// A zstd file begins with a frame, or with one that readers skip, which pzstd writes first.
bool IsZstd(std::string_view bytes) {
  constexpr char kSkippable = 0x50;
  return bytes.starts_with("\x28\xb5\x2f\xfd"sv) ||
         (bytes.size() >= 4 && (bytes[0] & 0xf0) == kSkippable &&
          bytes.substr(1).starts_with("\x2a\x4d\x18"sv));
}

// nullptr, or what packs such bytes, with the program that unpacks them.
const char* UnknownPacking(std::string_view bytes) {
  if (bytes.starts_with("BZh"sv)) return "bzip2 data; unpack it first: bzip2 -dc";
  if (bytes.starts_with("\xfd"
                        "7zXZ\0"sv)) {
    return "xz data; unpack it first: xz -dc";
  }
  if (bytes.starts_with("\x04\x22\x4d\x18"sv)) return "lz4 data; unpack it first: lz4 -dc";
  if (bytes.starts_with("PK\x03\x04"sv)) {
    return "a zip archive or a spreadsheet; unpack it, or export the sheet as CSV";
  }
  if (bytes.starts_with("PAR1"sv)) return "a Parquet file; export it as CSV";
  if (bytes.starts_with("SQLite"sv)) return "an SQLite database; export the table as CSV";
  return nullptr;
}

struct Encoding {
  const char* name = nullptr;  // the name that iconv has; nullptr = UTF-8
  size_t mark = 0;             // bytes of the byte order mark
};

Encoding EncodingOf(std::string_view bytes) {
  if (bytes.starts_with("\xef\xbb\xbf"sv)) return {nullptr, 3};
  if (bytes.starts_with("\xff\xfe\0\0"sv)) return {"UTF-32LE", 4};
  if (bytes.starts_with("\0\0\xfe\xff"sv)) return {"UTF-32BE", 4};
  if (bytes.starts_with("\xff\xfe"sv)) return {"UTF-16LE", 2};
  if (bytes.starts_with("\xfe\xff"sv)) return {"UTF-16BE", 2};
  if (bytes.size() < 4) return {};
  const bool zero[] = {bytes[0] == 0, bytes[1] == 0, bytes[2] == 0, bytes[3] == 0};
  if (!zero[0] && zero[1] && zero[2] && zero[3]) return {"UTF-32LE", 0};
  if (zero[0] && zero[1] && zero[2] && !zero[3]) return {"UTF-32BE", 0};
  if (!zero[0] && zero[1] && !zero[2] && zero[3]) return {"UTF-16LE", 0};
  if (zero[0] && !zero[1] && zero[2] && !zero[3]) return {"UTF-16BE", 0};
  return {};
}

}  // namespace

TextInput::TextInput(std::streambuf* source) : source_(source) {}
TextInput::~TextInput() = default;

Status TextInput::Open() {
  auto text =
      std::make_unique<PeekedSource>(std::make_unique<StreamSource>(source_, &source_bytes_));
  // Packed data may be packed again, such as a .gz file that a web server compressed.
  for (int unpacked = 0;; ++unpacked) {
    TAMIS_ASSIGN_OR_RETURN(const std::string_view magic, text->Peek(6));
    if (const char* what = UnknownPacking(magic)) {
      return InvalidArgument(std::string("the input is ") + what);
    }
    const bool gzip = magic.starts_with("\x1f\x8b"sv);
    if (!gzip && !IsZstd(magic)) break;
    if (unpacked == kMostPackings) {
      return InvalidArgument("the input is packed more than " + std::to_string(kMostPackings) +
                             " times");
    }
    std::unique_ptr<ByteSource> source;
    if (gzip) {
      source = std::make_unique<GzipSource>(std::move(text));
    } else {
      source = std::make_unique<ZstdSource>(std::move(text));
    }
    text = std::make_unique<PeekedSource>(std::move(source));
  }
  TAMIS_ASSIGN_OR_RETURN(const std::string_view first, text->Peek(4));
  const Encoding encoding = EncodingOf(first);
  text->Drop(encoding.mark);
  if (encoding.name == nullptr) {
    text_ = std::move(text);
  } else {
    text_ = std::make_unique<ConvertedSource>(std::move(text), encoding.name);
  }
  return Status::Ok();
}

TextInput::int_type TextInput::underflow() {
  if (text_ == nullptr && status_.ok()) status_ = Open();
  if (!status_.ok()) return traits_type::eof();
  const auto read = text_->Read(buffer_.data(), buffer_.size());
  if (!read.ok()) {
    status_ = read.status();
    return traits_type::eof();
  }
  if (*read == 0) return traits_type::eof();
  setg(buffer_.data(), buffer_.data(), buffer_.data() + *read);
  return traits_type::to_int_type(buffer_[0]);
}

}  // namespace tamis
