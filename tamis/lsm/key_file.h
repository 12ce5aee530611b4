// A key file: the sorted hashes of the keys of one SST file, so that they need not be read from it
// (docs/FORMATS.md#key-files). Bound to the SST by an identity, since file numbers come again.
//
// It may be lost, old or damaged: then the reader says so, and its SST is read, or its keys stay in
// the filter until that is made again. So it is not synced.
//
// It goes through a file system of RocksDB's, so that it lies where the database lies, encrypted
// and with permissions as its files are.
#pragma once

#include <rocksdb/file_system.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"

namespace tamis::lsm {

using FileIdentity = std::array<char, 16>;

struct KeyFileHeader {
  uint32_t family = 0;  // its id
  FileIdentity identity{};
  uint64_t seed = 0;  // the seed of the hashes

  friend bool operator==(const KeyFileHeader&, const KeyFileHeader&) = default;
};

class KeyFile {
 public:
  static constexpr uint32_t kSections = 256;  // by a hash's first byte

  // The whole file. REQUIRES: ascending, distinct, 48 bits kept; fewer than 2^32 a section.
  static std::string Encode(const KeyFileHeader& header, std::span<const uint64_t> hashes);
  // Replaces what is there. Beside the hashes it takes some 5 bytes of memory for each of them.
  static Status Write(rocksdb::FileSystem* system, const std::string& path,
                      const KeyFileHeader& header, std::span<const uint64_t> hashes);

  // Reads the header and the table of sections. kNotFound, kDataLoss.
  static Result<KeyFile> Open(rocksdb::FileSystem* system, const std::string& path);
  // Reads bytes that must outlive it.
  static Result<KeyFile> Borrow(std::string_view bytes);
  KeyFile(KeyFile&& other) = default;
  KeyFile& operator=(KeyFile&&) = delete;

  const KeyFileHeader& header() const { return header_; }
  uint64_t count() const { return count_; }
  uint64_t CountIn(uint32_t section) const { return sections_[section].count; }
  uint64_t size_bytes() const { return size_bytes_; }
  // Appends the hashes of the sections [first, last). kDataLoss: nothing is appended.
  Status Append(uint32_t first, uint32_t last, std::vector<uint64_t>* hashes) const;

 private:
  struct Section {
    uint64_t offset;
    uint32_t size;
    uint32_t count;
    uint32_t checksum;
  };

  KeyFile() = default;
  Status ReadHead(std::string_view head);
  Status DataLossIn(std::string_view what) const;

  std::string name_;
  std::unique_ptr<rocksdb::FSRandomAccessFile> file_;  // or else bytes_
  std::string_view bytes_;
  KeyFileHeader header_;
  uint64_t count_ = 0;
  uint64_t size_bytes_ = 0;
  std::array<Section, kSections> sections_{};
};

}  // namespace tamis::lsm
