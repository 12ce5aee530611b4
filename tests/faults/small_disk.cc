// A disk that becomes full, for programs that know nothing of it: preloaded (LD_PRELOAD), it lets
// writes to files below $SMALL_DISK fail with ENOSPC once as many bytes have been written there as
// the file $SMALL_DISK_ROOM says. While that file is not there, there is room for everything.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::atomic<long> used = 0;

bool IsOnDisk(int fd) {
  const char* disk = std::getenv("SMALL_DISK");
  if (disk == nullptr) return false;
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = readlink(link.c_str(), path, sizeof(path));
  const size_t length = std::strlen(disk);
  return size > static_cast<ssize_t>(length) && std::memcmp(path, disk, length) == 0;
}

// Bytes that still go onto the disk.
size_t Room(int fd) {
  if (!IsOnDisk(fd)) return SIZE_MAX;
  const char* file = std::getenv("SMALL_DISK_ROOM");
  FILE* room = file == nullptr ? nullptr : std::fopen(file, "r");
  if (room == nullptr) return SIZE_MAX;
  long total = 0;
  const bool read = std::fscanf(room, "%ld", &total) == 1;
  std::fclose(room);
  if (!read) return SIZE_MAX;
  return static_cast<size_t>(std::max(0L, total - used));
}

template <class Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

template <class Write>
ssize_t WriteWithin(int fd, size_t size, const Write& write) {
  const size_t room = Room(fd);
  if (room == 0 && size > 0) {
    errno = ENOSPC;
    return -1;
  }
  const ssize_t written = write(std::min(size, room));
  if (written > 0 && IsOnDisk(fd)) used += written;
  return written;
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* data, size_t size) {
  static const auto next = Next<ssize_t (*)(int, const void*, size_t)>("write");
  return WriteWithin(fd, size, [&](size_t part) { return next(fd, data, part); });
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  static const auto next = Next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return WriteWithin(fd, size, [&](size_t part) { return next(fd, data, part, at); });
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  static const auto next = Next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return WriteWithin(fd, size, [&](size_t part) { return next(fd, data, part, at); });
}

}  // extern "C"
