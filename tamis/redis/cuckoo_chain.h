// CuckooChain: the growing cuckoo filter that CF.* commands, their dumps and their RDB values speak
// of. Where an item lies shows in dumps and refusals, so the order of places is part of the
// interface.
//
//   Layout      tables of buckets of one-byte tags, the newest one last (CuckooTables)
//   Memory      8 bits / load an item
//   FP rate     about tables * 2 * bucket_size / 255
//   MayContain  O(tables)      Insert  <= max_iterations moves in the newest table
//   Erase       O(tables). REQUIRES: the item was inserted and not yet erased; another one with its
//               tag and bucket is lost otherwise
//   Threads     const members may run concurrently; others need exclusive access
//   Source      Fan et al., CoNEXT 2014      Differs: tables are chained, the tag is not 0 to 255
//
// A chain that is read in chunks is *partial* until the last one is there: it may contain
// everything, and neither takes nor gives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/redis/byte_array.h"
#include "tamis/redis/cuckoo_compaction.h"
#include "tamis/redis/cuckoo_tables.h"

namespace tamis::redis {

class CuckooChain {
 public:
  static constexpr size_t kGreatestChunk = size_t{16} << 20;
  static constexpr size_t kHeaderSize = 38;
  static constexpr uint64_t kGreatestTables = 65536;

  struct Options {
    uint64_t capacity = 1024;  // >= 2 * bucket_size
    uint16_t bucket_size = 2;  // 1 to 255
    uint16_t max_iterations = 20;
    uint16_t expansion = 1;  // rounded up to a power of two; 0 = does not grow; <= 32768
  };

  struct Parts {
    uint64_t items = 0;
    uint64_t buckets = 0;  // buckets of the first table
    uint64_t deletes = 0;
    uint64_t bucket_size = 0;
    uint64_t max_iterations = 0;
    uint64_t expansion = 0;
    std::vector<ByteArray> tables;  // oldest first
  };

  // Bounds of growth. Commands that are replicated or loaded have no limits.
  struct Limits {
    uint64_t tables = 32;
    uint64_t bytes = ~uint64_t{0};
  };
  enum class Inserted { kYes, kThere, kFull, kTooManyTables, kNoMemory, kTooLarge, kPartial };

  // REQUIRES (both): options are in range.
  static uint64_t FirstTableBytes(const Options& options);
  static Result<CuckooChain> Create(const Options& options);

  // Validates all input from outside. Tables have their bytes; in a partial chain all bytes from
  // some position on are missing, and chunks bring them. Everything is checked before anything is
  // allocated; `greatest_bytes` bounds a partial chain.
  static Result<CuckooChain> FromParts(Parts parts, uint64_t greatest_bytes);
  // The header that SCANDUMP gives; all bytes are missing.
  static Result<CuckooChain> FromHeader(std::string_view header, uint64_t greatest_bytes);
  std::string Header() const;

  // Like those of BloomChain.
  std::string_view Chunk(uint64_t position) const;
  bool LoadChunk(uint64_t position, std::string_view chunk);
  bool partial() const { return present_ < tables_.data_bytes(); }
  uint64_t present() const { return present_; }

  // To be called when an item that another server has could not be added. From now on the chain is
  // like a partial one: it may contain everything, also after it was saved and loaded.
  void Spoil() { present_ = std::min(present_, tables_.data_bytes() - 1); }

  // Adds a copy of the item, even if it is contained already; kFull and kTooManyTables leave the
  // chain unchanged.
  Inserted Insert(std::string_view item, const Limits& limits);
  // Adds the item unless its tag is contained already: then kThere.
  Inserted InsertNew(std::string_view item, const Limits& limits);
  // Inserts the items one after the other, also behind one that is refused; out[i] is the result of
  // items[i].
  void Insert(std::span<const std::string_view> items, bool only_new, const Limits& limits,
              Inserted* out);
  // False when the chain does not contain the item.
  bool Erase(std::string_view item);
  bool MayContain(std::string_view item) const;
  void MayContain(std::span<const std::string_view> items, bool* out) const;
  uint64_t Count(std::string_view item) const;

  // One piece of a compaction (CompactPiece). A partial chain is not compacted. `changed`: anything
  // that is saved.
  CompactedPiece Compact(uint64_t position, uint64_t slots, bool go_on_after_stuck_tag,
                         std::vector<ByteArray>* dropped = nullptr);
  // The end of the last piece. It is not saved: elsewhere a compaction begins again.
  uint64_t next_piece() const { return next_piece_; }

  uint64_t items() const { return items_; }
  uint64_t deletes() const { return deletes_; }
  uint64_t buckets() const { return tables_.buckets(); }  // buckets of the first table
  uint16_t bucket_size() const { return tables_.bucket_size(); }
  uint16_t max_iterations() const { return max_iterations_; }
  uint16_t expansion() const { return tables_.expansion(); }
  uint64_t SizeBytes() const { return 40 + 16 * tables_.size() + tables_.data_bytes(); }
  std::span<const ByteArray> tables() const { return tables_.tables(); }
  std::span<ByteArray> mutable_tables() { return tables_.mutable_tables(); }
  // How many buckets table i has.
  uint64_t Buckets(size_t table) const { return tables_.Buckets(table); }

  std::optional<CuckooChain> Copy() const;

 private:
  using Place = CuckooTables::Place;

  CuckooChain() = default;
  // Calls visit(i, place) for each item in turn, having called fetch(place) for those behind it.
  template <class Prefetch, class Visit>
  static void ForPlaces(std::span<const std::string_view> items, Prefetch&& fetch, Visit&& visit);
  Inserted InsertPlace(const Place& place, const Limits& limits);

  uint64_t items_ = 0;
  uint64_t deletes_ = 0;
  uint16_t max_iterations_ = 0;
  uint64_t present_ = 0;
  CuckooTables tables_;
  uint64_t next_piece_ = 0;
};

}  // namespace tamis::redis
