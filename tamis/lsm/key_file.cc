#include "tamis/lsm/key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tamis/base/coding.h"
#include "tamis/base/hash.h"
#include "tamis/lsm/sorted_hashes.h"

namespace tamis::lsm {
namespace {

constexpr std::string_view kMagic = "TAMISKEY";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeadSize = 8 + 4 + 4 + 16 + 8 + 8 + KeyFile::kSections * 12 + 8;
constexpr uint32_t kSectionShift = 56 - kDroppedBits;  // of a hash without its dropped bits

uint32_t Checksum(std::string_view bytes, uint32_t section) {
  return static_cast<uint32_t>(Hash(bytes, section));
}

// The varint at `at`, which is moved behind it; UINT64_MAX when there is none, or it has more bytes
// than a step of 48 bits can have. Without a branch on how long it is, where eight bytes are left.
uint64_t TakeStep(const char** at, const char* end) {
  constexpr uint64_t kTop = 0x8080808080808080;
  uint64_t step = 0;
  if (std::endian::native == std::endian::little && end - *at >= 8) {
    std::memcpy(&step, *at, 8);
    const uint64_t ends = ~step & kTop;
    if (ends == 0) return UINT64_MAX;
    step &= ends ^ (ends - 1);
    *at += std::countr_zero(ends) / 8 + 1;
    step = (step & 0x007f007f007f007f) | (step & 0x7f007f007f007f00) >> 1;
    step = (step & 0x00003fff00003fff) | (step & 0x3fff00003fff0000) >> 2;
    return (step & 0x0fffffff) | (step & 0x0fffffff00000000) >> 4;
  }
  for (int shift = 0; *at != end && shift < 56; shift += 7) {
    const auto byte = static_cast<uint8_t>(*(*at)++);
    step |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return step;
  }
  return UINT64_MAX;
}

Status WriteError(const std::string& path, int error) {
  return {error == ENOSPC || error == EDQUOT ? StatusCode::kResourceExhausted
                                             : StatusCode::kUnavailable,
          "cannot write key file \"" + path + "\": " + std::strerror(error)};
}

bool WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// False when there is less, or it cannot be read.
bool ReadAll(int file, uint64_t offset, char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t got = pread(file, bytes, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    offset += static_cast<uint64_t>(got);
    bytes += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

std::string KeyFile::Encode(const KeyFileHeader& header, std::span<const uint64_t> hashes) {
  assert(std::ranges::is_sorted(hashes));
  std::string body;
  body.reserve(hashes.size() * 5);
  std::string table;
  size_t next = 0;
  for (uint32_t section = 0; section < kSections; ++section) {
    const size_t begin = body.size();
    const size_t first = next;
    uint64_t last = uint64_t{section} << kSectionShift;
    for (; next < hashes.size() && hashes[next] >> 56 == section; ++next) {
      const uint64_t kept = hashes[next] >> kDroppedBits;
      PutVarint(&body, kept - last);
      last = kept;
    }
    PutFixed32(&table, static_cast<uint32_t>(body.size() - begin));
    PutFixed32(&table, static_cast<uint32_t>(next - first));
    PutFixed32(&table, Checksum(std::string_view(body).substr(begin), section));
  }
  std::string bytes(kMagic);
  PutFixed32(&bytes, kVersion);
  PutFixed32(&bytes, header.family);
  bytes.append(header.identity.data(), header.identity.size());
  PutFixed64(&bytes, header.seed);
  PutFixed64(&bytes, hashes.size());
  bytes += table;
  PutFixed64(&bytes, Hash(bytes, 0));
  assert(bytes.size() == kHeadSize);
  return bytes + body;
}

Status KeyFile::Write(const std::string& path, const KeyFileHeader& header,
                      std::span<const uint64_t> hashes) {
  const std::string bytes = Encode(header, hashes);
  const std::string unfinished = path + ".tmp";
  const int file = open(unfinished.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (file < 0) return WriteError(unfinished, errno);
  const bool written = WriteAll(file, bytes);
  const int error = errno;
  // What close has to say of bytes that are not synced would not be believed anyway.
  close(file);
  if (!written) {
    unlink(unfinished.c_str());
    return WriteError(unfinished, error);
  }
  if (rename(unfinished.c_str(), path.c_str()) != 0) {
    const int refusal = errno;
    unlink(unfinished.c_str());
    return WriteError(path, refusal);
  }
  return Status::Ok();
}

Status KeyFile::DataLossIn(std::string_view what) const {
  return DataLoss("cannot read key file" + (name_.empty() ? "" : " \"" + name_ + "\"") + ": " +
                  std::string(what) + "; it can be deleted, the keys are in its SST file");
}

Result<KeyFile> KeyFile::Open(const std::string& path) {
  KeyFile file;
  file.name_ = path;
  file.file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file.file_ < 0) {
    const std::string message = "cannot open key file \"" + path + "\": " + std::strerror(errno);
    return errno == ENOENT ? NotFound(message) : Unavailable(message);
  }
  struct stat status;
  if (fstat(file.file_, &status) != 0) return file.DataLossIn("its size cannot be told");
  file.size_bytes_ = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
  std::string head(std::min<uint64_t>(file.size_bytes_, kHeadSize), '\0');
  if (!ReadAll(file.file_, 0, head.data(), head.size()))
    return file.DataLossIn("it cannot be read");
  TAMIS_RETURN_IF_ERROR(file.ReadHead(head));
  return file;
}

Result<KeyFile> KeyFile::Borrow(std::string_view bytes) {
  KeyFile file;
  file.bytes_ = bytes;
  file.size_bytes_ = bytes.size();
  TAMIS_RETURN_IF_ERROR(file.ReadHead(bytes.substr(0, kHeadSize)));
  return file;
}

Status KeyFile::ReadHead(std::string_view head) {
  if (head.size() < kHeadSize) return DataLossIn("it is too short");
  if (head.substr(0, kMagic.size()) != kMagic) return DataLossIn("it is no key file");
  Reader reader(head.substr(kMagic.size()));
  const uint32_t version = reader.Fixed32();
  if (version != kVersion) return DataLossIn("it has version " + std::to_string(version));
  header_.family = reader.Fixed32();
  const std::string_view identity = reader.Bytes(header_.identity.size());
  std::ranges::copy(identity, header_.identity.begin());
  header_.seed = reader.Fixed64();
  count_ = reader.Fixed64();
  uint64_t offset = kHeadSize;
  uint64_t counted = 0;
  for (Section& section : sections_) {
    section.offset = offset;
    section.size = reader.Fixed32();
    section.count = reader.Fixed32();
    section.checksum = reader.Fixed32();
    offset += section.size;
    counted += section.count;
    // A hash takes a byte or more, so that what is announced is never more than what is there.
    if (section.count > section.size) return DataLossIn("a section is too short for its hashes");
  }
  const size_t checked = kHeadSize - 8;
  if (Hash(head.substr(0, checked), 0) != reader.Fixed64()) {
    return DataLossIn("its header is damaged");
  }
  if (offset != size_bytes_ || counted != count_) return DataLossIn("its sections do not add up");
  return Status::Ok();
}

KeyFile::KeyFile(KeyFile&& other) noexcept
    : name_(std::move(other.name_)),
      file_(std::exchange(other.file_, -1)),
      bytes_(other.bytes_),
      header_(other.header_),
      count_(other.count_),
      size_bytes_(other.size_bytes_),
      sections_(other.sections_) {}

KeyFile::~KeyFile() {
  if (file_ >= 0) close(file_);
}

Status KeyFile::Append(uint32_t first, uint32_t last, std::vector<uint64_t>* hashes) const {
  if (first >= last) return Status::Ok();
  const uint64_t begin = sections_[first].offset;
  const uint64_t size = sections_[last - 1].offset + sections_[last - 1].size - begin;
  std::string read;
  std::string_view bytes;
  if (file_ >= 0) {
    read.resize(size);
    if (!ReadAll(file_, begin, read.data(), size)) return DataLossIn("it cannot be read");
    bytes = read;
  } else {
    bytes = bytes_.substr(begin, size);
  }
  const size_t before = hashes->size();
  size_t coming = 0;
  for (uint32_t number = first; number < last; ++number) coming += sections_[number].count;
  hashes->resize(before + coming);
  uint64_t* next = hashes->data() + before;
  for (uint32_t number = first; number < last; ++number) {
    const Section& section = sections_[number];
    const std::string_view body = bytes.substr(section.offset - begin, section.size);
    const char* at = body.data();
    const char* const body_end = at + body.size();
    uint64_t value = uint64_t{number} << kSectionShift;
    const uint64_t end = value + (uint64_t{1} << kSectionShift);
    bool good = Checksum(body, number) == section.checksum;
    for (uint32_t i = 0; good && i < section.count; ++i) {
      const uint64_t step = TakeStep(&at, body_end);
      good = step < end - value && (step > 0 || i == 0);
      value += step;
      *next++ = value << kDroppedBits;
    }
    if (!good || at != body_end) {
      hashes->resize(before);
      return DataLossIn("section " + std::to_string(number) + " is damaged");
    }
  }
  return Status::Ok();
}

}  // namespace tamis::lsm
