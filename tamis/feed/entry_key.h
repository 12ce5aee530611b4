// EntryKey: the part of an index entry that a filter uses. MakeEntryKey makes it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tamis/base/hash.h"
#include "tamis/table/schema.h"

namespace tamis {

struct EntryKey {
  std::vector<uint64_t> hashes;  // the hash of every leading prefix of the encoded values
  std::string first;             // the first encoded value, for the range
};

// Makes the key from the encoded values up to each column of the index. REQUIRES: prefixes is not
// empty.
inline EntryKey MakeEntryKey(const IndexSpec& index, std::span<const std::string> prefixes) {
  EntryKey key{.hashes = {}, .first = prefixes.front()};
  key.hashes.reserve(prefixes.size());
  for (const std::string& prefix : prefixes) key.hashes.push_back(Hash(prefix, index.seed));
  return key;
}

}  // namespace tamis
