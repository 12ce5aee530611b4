// A blocked quotient filter: an approximate multiset of 64-bit hashes that supports erasure, in one
// cache line for nearly every operation. The deletable filter to begin with.
//
// Choose it when keys leave the set and a rate of 0.3 % is low enough, or 0.00105 %; at others
// CuckooFilter is smaller (docs/FILTERS.md#choosing).
//
//   Layout      any number of lines of 64 bytes, each a sorted multiset of 48 fingerprints of
//               14 bits (26 of 21 bits, 14 of 36 bits for lower rates), and one ordered table of
//               what found no room in its line                (docs/FORMATS.md#blocked-quotient)
//   Memory      p = 0.27 %: 12.8 bits/key   0.00105 %: 25.6   1e-9: 48.7
//   FP rate     keys per line / 2^14, 2^21 or 2^36
//   MayContain  one line; at capacity 3 % of hits and of misses look into the table too
//   Insert      one line, at capacity a third looks into the table; false = full, unchanged
//   Erase       likewise. Exact. REQUIRES: the hash was inserted more often than erased
//   Duplicates  a key may be in it kMaxCopies times; further inserts are refused
//   Refusal     from a load of 0.94 of the lines' slots on; capacity is at 0.92
//   Grow        twice the lines, without the keys; a fingerprint has one bit less each time, so
//               that a filter filled up again has twice the rate
//   Threads     const members may run concurrently; others need exclusive access, except that
//               MayContainWhileWritten may run while one thread changes it with LineVersions
//   Source      quotienting: Knuth, TAOCP 3, 6.4; lines as the pocket dictionaries of Even, Even
//               and Morrison, VLDB 2022, who spill the greatest fingerprints of a full line too
//               Differs: what is spilled is kept exactly, which is what makes erase possible
//
// Why erase is exact: hash * lines is a line and a fingerprint, and the filter is exactly the
// multiset of these pairs: of a line's fingerprints the 48 least lie in the line and all others in
// the table, under the line's number. Keys with equal pairs are interchangeable, and no operation
// on one pair touches another. So a key is found exactly while its pair was inserted more often
// than erased, and an erase of a key removes one copy of the key's own pair.
//
// Why it does not age: an erase that makes room in a line takes the line's least fingerprint back
// from the table. The layout follows from the multiset alone: however many keys came and went, the
// bytes are those of a filter that only ever saw the keys that stayed.
#pragma once

#include <string>
#include <string_view>

#include "tamis/filter/filter_bytes.h"
#include "tamis/filter/filter_options.h"
#include "tamis/filter/internal/line_versions.h"
#include "tamis/filter/internal/quotient_line.h"
#include "tamis/filter/internal/spill_table.h"

#if defined(__SANITIZE_THREAD__)
#define TAMIS_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TAMIS_THREAD_SANITIZER
#endif
#endif

namespace tamis {

class BlockedQuotientFilter {
  using Found = QuotientLineFunctions::Found;

 public:
  using Options = FilterOptions;
  static constexpr FilterKind kKind = FilterKind::kBlockedQuotient;
  static constexpr uint32_t kMaxCopies = 16;

  static Result<BlockedQuotientFilter> Create(const Options& options);

  [[nodiscard]] bool Insert(uint64_t hash) { return Add(lines().Find(hash)); }
  // False, and nothing is changed, when the filter does not contain the hash.
  bool Erase(uint64_t hash);
  bool MayContain(uint64_t hash) const {
    const QuotientLineSet lines = this->lines();
    const QuotientPlace place = lines.Find(hash);
    const auto found = functions_.find(lines.Line(place.line), place.fingerprint);
    return found == Found::kHere ||
           (found == Found::kPerhapsSpilled && spill_.Contains(place.line, place.fingerprint));
  }
  // Bit i answers for hashes[i]: inserted, erased, perhaps contained.
  Bitmap Insert(std::span<const uint64_t> hashes);
  Bitmap Erase(std::span<const uint64_t> hashes);
  Bitmap MayContain(std::span<const uint64_t> hashes) const;

  void Prefetch(uint64_t hash) const {
    const QuotientLineSet lines = this->lines();
    __builtin_prefetch(lines.Line(lines.Find(hash).line));
  }

  // The part of a hash that the filter keeps: hashes of one place are one key to it.
  QuotientPlace PlaceOf(uint64_t hash) const { return lines().Find(hash); }
  // Where Grow puts what is at a place.
  QuotientPlace GrownPlace(const QuotientPlace& place) const {
    const uint32_t bits = shape_.fingerprint_bits();
    return {2 * place.line + (place.fingerprint >> (bits - 1)),
            place.fingerprint << 1 & ((uint64_t{1} << bits) - 1)};
  }
  uint32_t CopiesOf(uint64_t hash) const;  // kMaxCopies tell why an insert was refused

  // One writer beside any number of readers, which neither lock nor wait: all of them use one
  // LineVersions(LineCount()). Insert and erase as above. A reader finds every key that is in the
  // filter from before its question to after it; kDisturbed is no answer, the reader may ask again.
  // REQUIRES: the filter was not read with OpenMode::kBorrow; nothing else is called that changes.
  enum class Answer { kNo, kPerhaps, kDisturbed };
  [[nodiscard]] bool InsertWhileRead(uint64_t hash, LineVersions* versions);
  bool EraseWhileRead(uint64_t hash, LineVersions* versions);
  Answer MayContainWhileWritten(uint64_t hash, const LineVersions& versions) const {
    return Reader(*this, versions).MayContain(hash);
  }
  // The same for a reader that asks often: the data to find a line lies together. REQUIRES: the
  // filter and the versions stay where they are, and the writer changes them only by the two
  // functions above.
  class Reader {
   public:
    Reader(const BlockedQuotientFilter& filter, const LineVersions& versions)
        : lines_(filter.lines()),
          find_(filter.functions_.find),
          spill_(&filter.spill_),
          versions_(versions) {}

    void Prefetch(uint64_t hash) const { __builtin_prefetch(lines_.Line(lines_.Find(hash).line)); }
    Answer MayContain(uint64_t hash) const;

   private:
    Found Find(const uint64_t* line, uint64_t fingerprint) const;

    QuotientLineSet lines_;
    Found (*find_)(const uint64_t* line, uint64_t fingerprint);
    const SpillTable* spill_;
    LineVersions::View versions_;
  };

  // Afterwards this holds the keys of both; one that is in it `most_copies` times gets no more, and
  // may be erased no more. kInvalidArgument unless both have the same size and seed;
  // kResourceExhausted, and nothing is changed, when they do not fit.
  Status Merge(const BlockedQuotientFilter& other, uint32_t most_copies = kMaxCopies + 1);
  // Twice as many lines. kFailedPrecondition, and nothing is changed, when fingerprints have no bit
  // left to give.
  Status Grow();
  void Clear();

  size_t SizeBytes() const { return words_.size_bytes() + spill_.words().size_bytes(); }
  uint64_t Count() const { return count_; }      // inserted and not erased
  uint64_t Spilled() const { return spilled_; }  // how many of these are not in their line
  double Fill() const;                           // keys over slots of the lines
  uint64_t LineCount() const { return words_.size() / kQuotientLineWords; }
  double ExpectedFpr() const;  // from the fill as it is
  uint64_t seed() const { return seed_; }
  uint32_t fingerprint_bits() const { return shape_.fingerprint_bits() - lost_bits_; }

  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<BlockedQuotientFilter> Deserialize(std::string_view bytes,
                                                   OpenMode mode = OpenMode::kCopy);

 private:
  using Placed = QuotientLineFunctions::Placed;

  BlockedQuotientFilter(uint64_t seed, const QuotientLineShape& shape, uint32_t lost_bits,
                        uint64_t lines);
  BlockedQuotientFilter(uint64_t seed, const QuotientLineShape& shape, uint32_t lost_bits,
                        WordArray words, WordArray spill);

  QuotientLineSet lines() const {
    return {words_.data(), LineCount(), shape_.fingerprint_bits(), fingerprint_mask_};
  }
  uint64_t* OwnedWords();  // allocates, before anything is changed
  uint64_t* OwnedLine(const QuotientPlace& place) {
    return OwnedWords() + place.line * kQuotientLineWords;
  }
  bool Add(const QuotientPlace& place) { return AddTo(place, OwnedLine(place)); }
  uint32_t CopiesAt(const QuotientPlace& place) const;
  // `line` is the place's, or a copy of it that is going to be put there.
  bool AddTo(const QuotientPlace& place, uint64_t* line);
  bool AddToFull(const QuotientPlace& place, uint64_t* line);
  bool EraseFrom(const QuotientPlace& place, uint64_t* line);
  // Takes the least of the line's fingerprints back from the table, when there is one.
  void Refill(uint64_t number, uint64_t* line);
  class SharedLine;  // a line as it is going to be, beside readers
  template <class Many, class Other>
  Bitmap AnswerPieces(std::span<const uint64_t> hashes, Many&& many, Other&& other) const;
  // visit(place) -> bool for each key, in ascending order, until one says false.
  template <class Visit>
  bool ForEach(Visit&& visit) const;

  uint64_t seed_;
  QuotientLineShape shape_;
  uint32_t lost_bits_;  // bits of the fingerprints, lost by growing
  uint64_t fingerprint_mask_;
  uint64_t count_ = 0;
  uint64_t spilled_ = 0;
  WordArray words_;
  SpillTable spill_;
  QuotientLineFunctions functions_;
};

inline BlockedQuotientFilter::Found BlockedQuotientFilter::Reader::Find(
    const uint64_t* line, uint64_t fingerprint) const {
#ifdef TAMIS_THREAD_SANITIZER
  alignas(WordArray::kAlignment) uint64_t words[kQuotientLineWords];
  for (uint32_t i = 0; i < kQuotientLineWords; ++i) {
    words[i] = __atomic_load_n(line + i, __ATOMIC_RELAXED);
  }
  return find_(words, fingerprint);
#else
  // Read where it lies, by vectors, of which the language has no atomic ones: words that are copied
  // one by one cannot be loaded as vectors before they have left the store buffer. Nothing but the
  // line is read, whatever is in it, and what was found in it counts if its version has not moved.
  return find_(line, fingerprint);
#endif
}

inline BlockedQuotientFilter::Answer BlockedQuotientFilter::Reader::MayContain(
    uint64_t hash) const {
  const QuotientPlace place = lines_.Find(hash);
  const LineVersions::Version& line_version = versions_.OfLine(place.line);
  const uint64_t line_begun = LineVersions::Begin(line_version);
  const Found found = Find(lines_.Line(place.line), place.fingerprint);
  // A key found in a half-written line may not be in the filter: a false positive, no harm.
  if (found == Found::kHere) return Answer::kPerhaps;
  if (line_begun % 2 != 0) return Answer::kDisturbed;
  if (found == Found::kPerhapsSpilled) {
    const LineVersions::Version& table_version = versions_.OfTable();
    const uint64_t table_begun = LineVersions::Begin(table_version);
    if (spill_->Contains(place.line, place.fingerprint)) return Answer::kPerhaps;
    if (table_begun % 2 != 0 || !LineVersions::StillIs(table_version, table_begun)) {
      return Answer::kDisturbed;
    }
  }
  return LineVersions::StillIs(line_version, line_begun) ? Answer::kNo : Answer::kDisturbed;
}

}  // namespace tamis
