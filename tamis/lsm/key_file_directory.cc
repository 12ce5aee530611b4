#include "tamis/lsm/key_file_directory.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace tamis::lsm {
namespace {

constexpr std::string_view kSuffix = ".keys";

}  // namespace

Result<std::unique_ptr<KeyFileDirectory>> KeyFileDirectory::Open(std::string path, bool writes) {
  std::unique_ptr<KeyFileDirectory> directory(new KeyFileDirectory(std::move(path), writes));
  std::error_code error;
  if (writes) std::filesystem::create_directories(directory->path_, error);
  std::filesystem::directory_iterator files(directory->path_, error);
  if (error && writes) {
    return Unavailable("cannot keep key files in \"" + directory->path_ + "\": " + error.message() +
                       "; name a directory that can be written");
  }
  for (const auto& entry : files) {
    const std::string name = entry.path().filename().string();
    uint64_t number = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (code != std::errc()) continue;
    if (std::string_view(end) == kSuffix) {
      directory->leftovers_.insert(number);
    } else if (writes && name.ends_with(std::string(kSuffix) + ".tmp")) {
      unlink(entry.path().c_str());
    }
  }
  return directory;
}

std::string KeyFileDirectory::PathOf(uint64_t number) const {
  return path_ + "/" + std::to_string(number) + std::string(kSuffix);
}

Result<KeyFile> KeyFileDirectory::Read(uint64_t number, const KeyFileHeader& header) const {
  TAMIS_ASSIGN_OR_RETURN(KeyFile keys, KeyFile::Open(PathOf(number)));
  if (keys.header() != header) {
    return DataLoss("cannot use key file \"" + PathOf(number) +
                    "\": it belongs to another SST file; it can be deleted");
  }
  return keys;
}

bool KeyFileDirectory::Write(uint64_t number, const KeyFileHeader& header,
                             std::span<const uint64_t> hashes) {
  Use(number);
  if (!writes_ || !KeyFile::Write(PathOf(number), header, hashes).ok()) return false;
  const std::lock_guard lock(mutex_);
  ++written_;
  return true;
}

bool KeyFileDirectory::Rename(uint64_t number, uint64_t to) {
  return std::rename(PathOf(number).c_str(), PathOf(to).c_str()) == 0;
}

void KeyFileDirectory::Delete(uint64_t number) const {
  if (writes_) unlink(PathOf(number).c_str());
}

void KeyFileDirectory::Use(uint64_t number) {
  const std::lock_guard lock(mutex_);
  leftovers_.erase(number);
}

void KeyFileDirectory::DeleteLeftovers() {
  while (true) {
    // Held while one is deleted, so that none is that comes into use meanwhile.
    const std::lock_guard lock(mutex_);
    if (leftovers_.empty()) return;
    Delete(*leftovers_.begin());
    leftovers_.erase(leftovers_.begin());
  }
}

uint64_t KeyFileDirectory::written() const {
  const std::lock_guard lock(mutex_);
  return written_;
}

}  // namespace tamis::lsm
