// CuckooModel: a CuckooChain in vectors of vectors. Places are tried in the documented order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tamis/redis/cuckoo_chain.h"
#include "tamis/redis/murmur_hash.h"

namespace tamis::redis {

class CuckooModel {
 public:
  CuckooModel(uint64_t capacity, uint64_t bucket_size, uint64_t iterations, uint64_t expansion)
      : bucket_size_(bucket_size), iterations_(iterations), expansion_(expansion) {
    uint64_t buckets = 1;
    while (buckets < capacity / bucket_size) buckets *= 2;
    tables_.push_back(Table(buckets, Bucket(bucket_size)));
  }

  CuckooChain::Inserted Insert(const std::string& item, uint64_t limit) {
    const uint64_t hash = MurmurHash64A(item, 0);
    const auto tag = static_cast<uint8_t>(hash % 255 + 1);
    if (!Place(hash, tag) && !Kick(hash, tag)) {
      if (expansion_ == 0) return CuckooChain::Inserted::kFull;
      if (tables_.size() == limit) return CuckooChain::Inserted::kTooManyTables;
      tables_.push_back(Table(tables_.back().size() * expansion_, Bucket(bucket_size_)));
      Place(hash, tag);
    }
    ++items_;
    return CuckooChain::Inserted::kYes;
  }

  bool Erase(const std::string& item) {
    const uint64_t hash = MurmurHash64A(item, 0);
    const auto tag = static_cast<uint8_t>(hash % 255 + 1);
    for (size_t i = tables_.size(); i-- > 0;) {
      for (const uint64_t h : {hash, Other(hash, tag)}) {
        for (uint8_t& slot : tables_[i][h % tables_[i].size()]) {
          if (slot != tag) continue;
          slot = 0;
          --items_;
          ++deletes_;
          if (tables_.size() > 1 && deletes_ * 10 > items_) Compact(false);
          return true;
        }
      }
    }
    return false;
  }

  uint64_t Count(const std::string& item) const {
    const uint64_t hash = MurmurHash64A(item, 0);
    const auto tag = static_cast<uint8_t>(hash % 255 + 1);
    uint64_t count = 0;
    for (const Table& table : tables_) {
      const uint64_t first = hash % table.size();
      const uint64_t second = Other(hash, tag) % table.size();
      count += std::count(table[first].begin(), table[first].end(), tag);
      if (first != second) count += std::count(table[second].begin(), table[second].end(), tag);
    }
    return count;
  }

  std::string AllBytes() const {
    std::string all;
    for (const Table& table : tables_) {
      for (const Bucket& bucket : table) all.append(bucket.begin(), bucket.end());
    }
    return all;
  }
  // Moves tags of newer tables down and drops the newest ones that are empty.
  void Compact(bool go_on) {
    for (size_t i = tables_.size(); i-- > 1;) {
      bool empty = true;
      for (uint64_t b = 0; b < tables_[i].size(); ++b) {
        for (uint8_t& slot : tables_[i][b]) {
          if (slot == 0) continue;
          bool moved = false;
          for (size_t j = 0; j < i && !moved; ++j) {
            for (const uint64_t h : {b, Other(b, slot)}) {
              if (TakeFree(tables_[j][h % tables_[j].size()], slot)) {
                moved = true;
                break;
              }
            }
          }
          if (moved) slot = 0;
          empty = empty && moved;
        }
      }
      if (empty && i + 1 == tables_.size()) tables_.pop_back();
      if (!empty && !go_on) break;
    }
    deletes_ = 0;
  }

  size_t tables() const { return tables_.size(); }
  uint64_t items() const { return items_; }
  uint64_t deletes() const { return deletes_; }

 private:
  static uint64_t Other(uint64_t hash, uint8_t tag) { return hash ^ (tag * uint64_t{0x5bd1e995}); }
  using Bucket = std::vector<uint8_t>;
  using Table = std::vector<Bucket>;

  bool TakeFree(Bucket& bucket, uint8_t tag) {
    const auto slot = std::find(bucket.begin(), bucket.end(), 0);
    if (slot == bucket.end()) return false;
    *slot = tag;
    return true;
  }

  bool Place(uint64_t hash, uint8_t tag) {
    for (size_t i = tables_.size(); i-- > 0;) {
      for (const uint64_t h : {hash, Other(hash, tag)}) {
        if (TakeFree(tables_[i][h % tables_[i].size()], tag)) return true;
      }
    }
    return false;
  }

  bool Kick(uint64_t hash, uint8_t tag) {
    const Table before = tables_.back();
    Table& table = tables_.back();
    uint64_t bucket = hash % table.size();
    uint64_t slot = 0;
    for (uint64_t i = 0; i < iterations_; ++i) {
      std::swap(table[bucket][slot], tag);
      bucket = Other(bucket, tag) % table.size();
      if (TakeFree(table[bucket], tag)) return true;
      slot = (slot + 1) % bucket_size_;
    }
    table = before;
    return false;
  }

  uint64_t bucket_size_;
  uint64_t iterations_;
  uint64_t expansion_;
  uint64_t items_ = 0;
  uint64_t deletes_ = 0;
  std::vector<Table> tables_;
};

}  // namespace tamis::redis
