#include "tamis/redis/cuckoo_tables.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace tamis::redis {
namespace {

// In blocks whose counts fit into a byte, which the compiler makes vectors of.
uint64_t CountTags(const uint8_t* bytes, uint64_t size) {
  constexpr uint64_t kBlock = 128;
  uint64_t count = 0;
  for (; size >= kBlock; size -= kBlock, bytes += kBlock) {
    uint8_t in_block = 0;
    for (uint64_t i = 0; i < kBlock; ++i) in_block += bytes[i] != 0 ? 1 : 0;
    count += in_block;
  }
  for (uint64_t i = 0; i < size; ++i) count += bytes[i] != 0;
  return count;
}

}  // namespace

// Buckets are small: a call costs more than a look.
uint8_t* CuckooTables::Find(uint8_t* bucket, uint8_t tag, uint32_t size) {
  if (size > 8) return static_cast<uint8_t*>(std::memchr(bucket, tag, size));
  for (uint32_t i = 0; i < size; ++i) {
    if (bucket[i] == tag) return bucket + i;
  }
  return nullptr;
}

void CuckooTables::Add(ByteArray table) {
  tags_.push_back(CountTags(table.data(), table.size()));
  data_bytes_ += table.size();
  tables_.push_back(std::move(table));
}

bool CuckooTables::AddEmpty(uint64_t bytes) try {
  tables_.reserve(tables_.size() + 1);
  tags_.reserve(tags_.size() + 1);
  ByteArray table = ByteArray::Zeroed(bytes);
  if (table.data() == nullptr) return false;
  data_bytes_ += bytes;
  tables_.push_back(std::move(table));
  tags_.push_back(0);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

bool CuckooTables::DropEmpty(std::vector<ByteArray>* dropped) {
  const size_t before = tables_.size();
  while (tables_.size() > 1 && tags_.back() == 0) {
    data_bytes_ -= tables_.back().size();
    if (dropped != nullptr) dropped->push_back(std::move(tables_.back()));
    tables_.pop_back();
    tags_.pop_back();
  }
  return tables_.size() < before;
}

std::optional<CuckooTables> CuckooTables::Copy() const {
  CuckooTables copy(buckets_, bucket_size_, expansion_);
  copy.data_bytes_ = data_bytes_;
  copy.tags_ = tags_;
  for (const ByteArray& table : tables_) {
    ByteArray bytes = ByteArray::Zeroed(table.size());
    if (bytes.data() == nullptr) return std::nullopt;
    std::memcpy(bytes.data(), table.data(), table.size());
    copy.tables_.push_back(std::move(bytes));
  }
  return copy;
}

std::string_view CuckooTables::Bytes(uint64_t position, uint64_t greatest) const {
  for (const ByteArray& table : tables_) {
    if (position < table.size()) {
      return {reinterpret_cast<const char*>(table.data()) + position,
              std::min<uint64_t>(table.size() - position, greatest)};
    }
    position -= table.size();
  }
  return {};
}

bool CuckooTables::SetBytes(uint64_t position, std::string_view bytes) {
  for (size_t i = 0; i < tables_.size(); ++i) {
    ByteArray& table = tables_[i];
    if (position < table.size()) {
      if (bytes.size() > table.size() - position) return false;
      tags_[i] -= CountTags(table.data() + position, bytes.size());
      std::copy(bytes.begin(), bytes.end(), table.data() + position);
      tags_[i] += CountTags(table.data() + position, bytes.size());
      return true;
    }
    position -= table.size();
  }
  return false;
}

uint64_t CuckooTables::Count(const Place& place) const {
  uint64_t count = 0;
  for (size_t i = 0; i < tables_.size(); ++i) {
    const uint8_t* first = Bucket(i, place.hash);
    const uint8_t* second = Bucket(i, place.other);
    count += std::count(first, first + bucket_size_, place.tag);
    if (second != first) count += std::count(second, second + bucket_size_, place.tag);
  }
  return count;
}

bool CuckooTables::TakeFreeSlot(size_t table, uint64_t hash, uint8_t tag) {
  uint8_t* slot = Find(Bucket(table, hash), 0, bucket_size_);
  if (slot == nullptr) return false;
  *slot = tag;
  ++tags_[table];
  return true;
}

bool CuckooTables::TakeFreeSlot(const Place& place) {
  for (size_t i = tables_.size(); i-- > 0;) {
    for (const uint64_t hash : {place.hash, place.other}) {
      if (TakeFreeSlot(i, hash, place.tag)) return true;
    }
  }
  return false;
}

bool CuckooTables::Kick(const Place& place, uint32_t max_moves) {
  const size_t newest = tables_.size() - 1;
  uint64_t bucket = place.hash;
  uint8_t tag = place.tag;
  uint32_t slot = 0;
  for (uint32_t i = 0; i < max_moves; ++i) {
    std::swap(Bucket(newest, bucket)[slot], tag);
    bucket = Alternate(bucket, tag);
    if (TakeFreeSlot(newest, bucket, tag)) return true;
    slot = (slot + 1) % bucket_size_;
  }
  for (uint32_t i = 0; i < max_moves; ++i) {
    slot = (slot + bucket_size_ - 1) % bucket_size_;
    bucket = Alternate(bucket, tag);
    std::swap(Bucket(newest, bucket)[slot], tag);
  }
  return false;
}

void CuckooTables::EraseSlot(size_t table, uint64_t slot) {
  tables_[table].data()[slot] = 0;
  --tags_[table];
}

}  // namespace tamis::redis
