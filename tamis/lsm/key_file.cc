#include "tamis/lsm/key_file.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "tamis/base/coding.h"
#include "tamis/base/hash.h"
#include "tamis/lsm/sorted_hashes.h"

namespace tamis::lsm {
namespace {

constexpr std::string_view kMagic = "TAMISKEY";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeadSize = 8 + 4 + 4 + 16 + 8 + 8 + KeyFile::kSections * 12 + 8;
constexpr uint32_t kSectionShift = 56 - kDroppedBits;  // for a hash without its dropped bits

uint32_t Checksum(std::string_view bytes, uint32_t section) {
  return static_cast<uint32_t>(Hash(bytes, section));
}

// The varint at `at`, which is moved after it; UINT64_MAX when there is none, or it has more bytes
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

Status WriteError(const std::string& path, const rocksdb::IOStatus& status) {
  return {status.IsNoSpace() ? StatusCode::kResourceExhausted : StatusCode::kUnavailable,
          "cannot write key file \"" + path + "\": " + status.ToString()};
}

rocksdb::IOStatus WriteAll(rocksdb::FileSystem* system, const std::string& path,
                           std::initializer_list<std::string_view> pieces) {
  const rocksdb::FileOptions options;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  rocksdb::IOStatus status = system->NewWritableFile(path, options, &file, nullptr);
  if (!status.ok()) return status;
  for (const std::string_view piece : pieces) {
    if (status.ok()) {
      status = file->Append({piece.data(), piece.size()}, options.io_options, nullptr);
    }
  }
  const rocksdb::IOStatus closed = file->Close(options.io_options, nullptr);
  return status.ok() ? closed : status;
}

// False when there is less, or it cannot be read.
bool ReadAll(const rocksdb::FSRandomAccessFile& file, uint64_t offset, char* bytes, size_t size) {
  while (size > 0) {
    rocksdb::Slice got;
    const auto status = file.Read(offset, size, rocksdb::IOOptions(), &got, bytes, nullptr);
    if (!status.ok() || got.empty() || got.size() > size) return false;
    // Some file systems answer with bytes of their own.
    if (got.data() != bytes) std::memmove(bytes, got.data(), got.size());
    offset += got.size();
    bytes += got.size();
    size -= got.size();
  }
  return true;
}

// The header with the table of the sections, and the sections.
struct Encoded {
  std::string head;
  std::string body;
};

Encoded EncodeParts(const KeyFileHeader& header, std::span<const uint64_t> hashes) {
  assert(std::ranges::is_sorted(hashes));
  std::string body;
  body.reserve(hashes.size() * 5);
  std::string table;
  size_t next = 0;
  for (uint32_t section = 0; section < KeyFile::kSections; ++section) {
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
  return {std::move(bytes), std::move(body)};
}

}  // namespace

std::string KeyFile::Encode(const KeyFileHeader& header, std::span<const uint64_t> hashes) {
  const Encoded encoded = EncodeParts(header, hashes);
  return encoded.head + encoded.body;
}

Status KeyFile::Write(rocksdb::FileSystem* system, const std::string& path,
                      const KeyFileHeader& header, std::span<const uint64_t> hashes) {
  const Encoded encoded = EncodeParts(header, hashes);
  const std::string unfinished = path + ".tmp";
  const rocksdb::IOOptions options;
  rocksdb::IOStatus status = WriteAll(system, unfinished, {encoded.head, encoded.body});
  if (status.ok()) status = system->RenameFile(unfinished, path, options, nullptr);
  if (status.ok()) return Status::Ok();
  (void)system->DeleteFile(unfinished, options, nullptr);
  return WriteError(path, status);
}

Status KeyFile::DataLossIn(std::string_view what) const {
  return DataLoss("cannot read key file" + (name_.empty() ? "" : " \"" + name_ + "\"") + ": " +
                  std::string(what) + "; it can be deleted, the keys are in its SST file");
}

Result<KeyFile> KeyFile::Open(rocksdb::FileSystem* system, const std::string& path) {
  KeyFile file;
  file.name_ = path;
  const rocksdb::FileOptions options;
  const auto status = system->NewRandomAccessFile(path, options, &file.file_, nullptr);
  if (!status.ok()) {
    const std::string message = "cannot open key file \"" + path + "\": " + status.ToString();
    return status.IsNotFound() || status.IsPathNotFound() ? NotFound(message)
                                                          : Unavailable(message);
  }
  if (!system->GetFileSize(path, options.io_options, &file.size_bytes_, nullptr).ok()) {
    return file.DataLossIn("its size cannot be told");
  }
  std::string head(std::min<uint64_t>(file.size_bytes_, kHeadSize), '\0');
  if (!ReadAll(*file.file_, 0, head.data(), head.size())) {
    return file.DataLossIn("it cannot be read");
  }
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

Status KeyFile::Append(uint32_t first, uint32_t last, std::vector<uint64_t>* hashes) const {
  if (first >= last) return Status::Ok();
  const uint64_t begin = sections_[first].offset;
  const uint64_t size = sections_[last - 1].offset + sections_[last - 1].size - begin;
  std::string read;
  std::string_view bytes;
  if (file_ != nullptr) {
    read.resize(size);
    if (!ReadAll(*file_, begin, read.data(), size)) return DataLossIn("it cannot be read");
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
