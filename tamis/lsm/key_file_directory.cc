#include "tamis/lsm/key_file_directory.h"

#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

namespace tamis::lsm {
namespace {

constexpr std::string_view kSuffix = ".keys";

const rocksdb::IOOptions kPlain;

// With the directories above it.
bool MakeDirectory(rocksdb::FileSystem* system, const std::string& path) {
  if (system->CreateDirIfMissing(path, kPlain, nullptr).ok()) return true;
  const size_t slash = path.find_last_of('/');
  return slash != path.npos && slash > 0 && MakeDirectory(system, path.substr(0, slash)) &&
         system->CreateDirIfMissing(path, kPlain, nullptr).ok();
}

}  // namespace

std::unique_ptr<KeyFileDirectory> KeyFileDirectory::Open(
    std::shared_ptr<rocksdb::FileSystem> system, std::string path, bool writes) {
  std::unique_ptr<KeyFileDirectory> directory(
      new KeyFileDirectory(std::move(system), std::move(path), writes));
  std::vector<std::string> names;
  (void)directory->system_->GetChildren(directory->path_, kPlain, &names, nullptr);
  for (const std::string& name : names) {
    uint64_t number = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (code != std::errc()) continue;
    if (std::string_view(end) == kSuffix) {
      directory->leftovers_.insert(number);
    } else if (writes && name.ends_with(std::string(kSuffix) + ".tmp")) {
      (void)directory->system_->DeleteFile(directory->path_ + "/" + name, kPlain, nullptr);
    }
  }
  return directory;
}

std::string KeyFileDirectory::PathOf(uint64_t number) const {
  return path_ + "/" + std::to_string(number) + std::string(kSuffix);
}

Result<KeyFile> KeyFileDirectory::Read(uint64_t number, const KeyFileHeader& header) const {
  if (is_abandoned_) return NotFound("there are no key files in \"" + path_ + "\"");
  TAMIS_ASSIGN_OR_RETURN(KeyFile keys, KeyFile::Open(system_.get(), PathOf(number)));
  if (keys.header() != header) {
    return DataLoss("cannot use key file \"" + PathOf(number) +
                    "\": it belongs to another SST file; it can be deleted");
  }
  return keys;
}

bool KeyFileDirectory::Write(uint64_t number, const KeyFileHeader& header,
                             std::span<const uint64_t> hashes) {
  Use(number);
  if (!writes_ || is_abandoned_) return false;
  const auto write = [&] {
    return KeyFile::Write(system_.get(), PathOf(number), header, hashes).ok();
  };
  // Made for the first file, or again if it was deleted.
  const bool written = write() || (!system_->FileExists(path_, kPlain, nullptr).ok() &&
                                   MakeDirectory(system_.get(), path_) && write());
  const std::lock_guard lock(mutex_);
  ++(written ? written_ : unwritten_);
  return written;
}

bool KeyFileDirectory::Rename(uint64_t number, uint64_t to) {
  return system_->RenameFile(PathOf(number), PathOf(to), kPlain, nullptr).ok();
}

void KeyFileDirectory::Delete(uint64_t number) const {
  if (writes_ && !is_abandoned_) (void)system_->DeleteFile(PathOf(number), kPlain, nullptr);
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

std::optional<uint64_t> KeyFileDirectory::FindSeed() const {
  const std::lock_guard lock(mutex_);
  for (const uint64_t number : leftovers_) {
    if (const auto file = KeyFile::Open(system_.get(), PathOf(number)); file.ok()) {
      return file->header().seed;
    }
  }
  return std::nullopt;
}

uint64_t KeyFileDirectory::written() const {
  const std::lock_guard lock(mutex_);
  return written_;
}

uint64_t KeyFileDirectory::unwritten() const {
  const std::lock_guard lock(mutex_);
  return unwritten_;
}

}  // namespace tamis::lsm
