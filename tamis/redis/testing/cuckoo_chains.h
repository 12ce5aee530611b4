// Chains for tests: made, read and loaded in chunks, and taken apart.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tamis/redis/cuckoo_chain.h"

namespace tamis::redis {

using Inserted = CuckooChain::Inserted;

inline constexpr uint64_t kNoLimit = ~uint64_t{0};
inline constexpr CuckooChain::Limits kDefault = {};

// Behind the words that all refusals begin with.
inline bool SaysWhy(const Status& status) {
  return status.message().size() > std::string_view("Cuckoo filter: ").size();
}

inline CuckooChain Make(CuckooChain::Options options) {
  return std::move(*CuckooChain::Create(options));
}

inline std::string AllBytes(const CuckooChain& chain) {
  std::string all;
  for (;;) {
    const std::string_view chunk = chain.Chunk(all.size());
    if (chunk.empty()) return all;
    all += chunk;
  }
}

inline CuckooChain Load(const CuckooChain& chain) {
  auto copy = CuckooChain::FromHeader(chain.Header(), kNoLimit);
  EXPECT_TRUE(copy.ok()) << copy.status();
  for (uint64_t at = 0; !chain.Chunk(at).empty(); at += chain.Chunk(at).size()) {
    EXPECT_TRUE(copy->LoadChunk(at, chain.Chunk(at)));
  }
  return std::move(*copy);
}

inline ByteArray TableOf(std::string_view bytes) {
  if (bytes.empty()) return {};
  ByteArray array = ByteArray::Zeroed(bytes.size());
  std::copy(bytes.begin(), bytes.end(), array.data());
  return array;
}

// The parts of an RDB value, of which so many bytes are there.
inline CuckooChain::Parts PartsOf(const CuckooChain& chain, uint64_t there = kNoLimit) {
  CuckooChain::Parts parts = {.items = chain.items(),
                              .buckets = chain.buckets(),
                              .deletes = chain.deletes(),
                              .bucket_size = chain.bucket_size(),
                              .max_iterations = chain.max_iterations(),
                              .expansion = chain.expansion(),
                              .tables = {}};
  for (const ByteArray& table : chain.tables()) {
    const uint64_t size = std::min<uint64_t>(there, table.size());
    there -= size;
    parts.tables.push_back(TableOf({reinterpret_cast<const char*>(table.data()), size}));
  }
  return parts;
}

inline CuckooChain ThreeTables() {
  CuckooChain chain = Make({.capacity = 16, .expansion = 2});
  for (int i = 0; chain.tables().size() < 3; ++i) chain.Insert(std::to_string(i), kDefault);
  return chain;
}

}  // namespace tamis::redis
