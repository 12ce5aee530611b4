// KeyFileDirectory: the key files of one tree, "<number of the SST file>.keys", and those of them
// that were there before, until something uses them.
//
// It fails nothing: where the directory cannot be made or read, there are no key files. It is made
// with the first file, so that nothing is left of a database that could not be opened.
//
// Threads: safe. No two calls about one number at a time, unless both read.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "tamis/base/status.h"
#include "tamis/lsm/key_file.h"

namespace tamis::lsm {

class KeyFileDirectory {
 public:
  // `writes`: what was left of files that were being written is deleted; else files are only read.
  static std::unique_ptr<KeyFileDirectory> Open(std::shared_ptr<rocksdb::FileSystem> system,
                                                std::string path, bool writes);

  // kDataLoss too when the file has another header than this one.
  Result<KeyFile> Read(uint64_t number, const KeyFileHeader& header) const;
  // False when there is no key file now. REQUIRES: as KeyFile::Encode.
  bool Write(uint64_t number, const KeyFileHeader& header, std::span<const uint64_t> hashes);
  // False when it failed, and the file has its old number still.
  bool Rename(uint64_t number, uint64_t to);
  void Delete(uint64_t number) const;

  // The file with this number is no leftover any more.
  void Use(uint64_t number);
  // Deletes the files of earlier openings that nothing has used since. May run beside Write and
  // Use.
  void DeleteLeftovers();

  // From now on there are no key files: nothing is written, and nothing that is there is read.
  void Abandon() { is_abandoned_.store(true, std::memory_order_relaxed); }

  // The seed of the files that were there before; nothing when there are none that can be read.
  std::optional<uint64_t> FindSeed() const;

  uint64_t written() const;    // files
  uint64_t unwritten() const;  // files, though they were to be

 private:
  KeyFileDirectory(std::shared_ptr<rocksdb::FileSystem> system, std::string path, bool writes)
      : system_(std::move(system)), path_(std::move(path)), writes_(writes) {}
  std::string PathOf(uint64_t number) const;

  const std::shared_ptr<rocksdb::FileSystem> system_;
  const std::string path_;
  const bool writes_;
  std::atomic<bool> is_abandoned_{false};
  mutable std::mutex mutex_;  // guards the following
  std::set<uint64_t> leftovers_;
  uint64_t written_ = 0;
  uint64_t unwritten_ = 0;
};

}  // namespace tamis::lsm
