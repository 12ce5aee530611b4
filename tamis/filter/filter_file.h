// Files that hold filters: read where they are mapped, replaced as a whole. No filter needs this;
// it is for those who keep them in files.
#pragma once

#include <string>
#include <string_view>

#include "tamis/base/status.h"

namespace tamis {

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
// ones. The mode stays that of the file that is replaced.
Status ReplaceFile(const std::string& path, std::string_view bytes);

}  // namespace tamis
