// KeyFileDirectory: the key files of one tree, "<number of the SST file>.keys", and those of them
// that were there before, until somebody uses them.
//
// Threads: safe. No two calls about one number at a time, unless both read.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "tamis/base/status.h"
#include "tamis/lsm/key_file.h"

namespace tamis::lsm {

class KeyFileDirectory {
 public:
  // `writes`: it is made when it is not there, and what was left of files that were being written
  // is deleted; else files are only read.
  static Result<std::unique_ptr<KeyFileDirectory>> Open(std::string path, bool writes);

  // kDataLoss too when the file has another header than this one.
  Result<KeyFile> Read(uint64_t number, const KeyFileHeader& header) const;
  // False when there is no key file now. REQUIRES: as KeyFile::Encode.
  bool Write(uint64_t number, const KeyFileHeader& header, std::span<const uint64_t> hashes);
  // False when it failed, and the file has its old number still.
  bool Rename(uint64_t number, uint64_t to);
  void Delete(uint64_t number) const;

  // The file with this number is no leftover any more.
  void Use(uint64_t number);
  // Of those that were there before: the ones that nothing has used since. May run beside Write and
  // Use.
  void DeleteLeftovers();

  uint64_t written() const;  // files

 private:
  KeyFileDirectory(std::string path, bool writes) : path_(std::move(path)), writes_(writes) {}
  std::string PathOf(uint64_t number) const;

  const std::string path_;
  const bool writes_;
  mutable std::mutex mutex_;  // of the following
  std::set<uint64_t> leftovers_;
  uint64_t written_ = 0;
};

}  // namespace tamis::lsm
