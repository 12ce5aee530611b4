// Files that hold filters: read into memory, or mapped; replaced as a whole. The filters do not
// need it; it is for programs that keep filters in files.
#pragma once

#include <string>
#include <string_view>

#include "tamis/base/status.h"

namespace tamis {

// The bytes of a regular file. If another process changes the file meanwhile, the result may be a
// mixture of old and new bytes, or too short.
Result<std::string> ReadFile(const std::string& path);

// A regular file, mapped into memory. REQUIRES: no process makes the file shorter while it is
// mapped, or else reading the bytes that are gone ends this process. ReplaceFile never does that.
class MappedFile {
 public:
  static Result<MappedFile> Open(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  std::string_view bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::string_view bytes) : bytes_(bytes) {}

  std::string_view bytes_;
};

// Writes beside the file, syncs, renames: whatever happens, the path holds the old bytes or the new
// ones. The mode stays that of the file that is replaced. Where the path is a symbolic link, that
// stays too, and the file that it leads to is replaced. kFailedPrecondition when there is something
// else than a regular file.
Status ReplaceFile(const std::string& path, std::string_view bytes);

}  // namespace tamis
