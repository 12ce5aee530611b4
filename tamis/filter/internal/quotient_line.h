// Quotient lines: a sorted multiset of fingerprints in one cache line.
//
// A fingerprint is a group (its high bits) and a tag (its low 8, 16 or 32). The line has the tags
// one behind the other in the order of their fingerprints, and a map that tells the groups: read
// from its lowest bit, a 1 for every tag and a 0 behind the last tag of every group. So the tag in
// slot i belongs to group g exactly when bit i + g is a 1 and there are i ones below it: a lookup
// compares the tag with all slots at once and checks the few that are equal, without a branch on
// where its group lies. At the map's end stands the limit: 0, or 1 + the group of the line's
// greatest fingerprint when greater or equal ones were spilled elsewhere.
//
//   tags  slots  groups  fingerprint   words of tags   words, bits of map   spare   bits of limit
//    8      48     64      14 bits         0-5            6-7, 112            8           8
//   16      26     32      21 bits         0-6              7, 58             0           6
//   32      14     16      36 bits         0-6              7, 30            28           6
//
// A line of zeros is empty. Equal multisets are equal bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tamis {

struct QuotientLineShape {
  uint32_t tag_bits;
  uint32_t slots;
  uint32_t group_bits;

  constexpr uint32_t fingerprint_bits() const { return tag_bits + group_bits; }
  constexpr uint32_t groups() const { return 1u << group_bits; }
  friend bool operator==(const QuotientLineShape&, const QuotientLineShape&) = default;
};

inline constexpr uint32_t kQuotientLineWords = 8;
inline constexpr QuotientLineShape kQuotientLineShapes[] = {{8, 48, 6}, {16, 26, 5}, {32, 14, 4}};

// Where a hash lies among n lines, and what is kept of it there: the two halves of hash * n. With
// 2 n lines it is the same, one bit further on.
struct QuotientPlace {
  uint64_t line;
  uint64_t fingerprint;
};

struct QuotientLineSet {
  const uint64_t* words;
  uint64_t lines;
  uint32_t fingerprint_bits;
  uint64_t fingerprint_mask;  // the bits that are known: without the lowest ones of a grown filter

  QuotientPlace Find(uint64_t hash) const {
    const auto product = static_cast<unsigned __int128>(hash) * lines;
    return {static_cast<uint64_t>(product >> 64),
            static_cast<uint64_t>(product) >> (64 - fingerprint_bits) & fingerprint_mask};
  }
  const uint64_t* Line(uint64_t line) const { return words + line * kQuotientLineWords; }
};

struct QuotientLineFunctions {
  enum class Found { kAbsent, kHere, kPerhapsSpilled };
  enum class Placed { kDone, kFull, kTooManyCopies };

  Found (*find)(const uint64_t* line, uint64_t fingerprint);
  // kTooManyCopies: the line has `copies` already. Nothing is changed unless kDone.
  Placed (*insert)(uint64_t* line, uint64_t fingerprint, uint32_t copies);
  // Takes one copy away; false when there is none.
  bool (*erase)(uint64_t* line, uint64_t fingerprint);
  // How many copies the line has.
  uint32_t (*copies)(const uint64_t* line, uint64_t fingerprint);
  // The same for many hashes, whose lines are fetched ahead: bit i of `answers` (zeros before) says
  // that hashes[i] was found, inserted or erased. Appended are the numbers of those that may have
  // been spilled, whose line is full, or whose line has spilled some, be they erased here or not.
  void (*find_many)(const QuotientLineSet& lines, std::span<const uint64_t> hashes,
                    uint64_t* answers, std::vector<uint32_t>* perhaps_spilled);
  void (*insert_many)(const QuotientLineSet& lines, uint64_t* words,
                      std::span<const uint64_t> hashes, uint32_t copies, uint64_t* answers,
                      std::vector<uint32_t>* full);
  void (*erase_many)(const QuotientLineSet& lines, uint64_t* words,
                     std::span<const uint64_t> hashes, uint64_t* answers,
                     std::vector<uint32_t>* spilled);

  // Chosen for this processor.
  static QuotientLineFunctions For(const QuotientLineShape& shape);
};

// Rare operations, one bit after the other; it doubles as the test of the above.
class QuotientLineView {
 public:
  // `line` has kQuotientLineWords words.
  QuotientLineView(const QuotientLineShape& shape, const uint64_t* line)
      : shape_(shape), line_(line) {}

  // At most the shape's slots, in ascending order.
  std::vector<uint64_t> Fingerprints() const;
  uint32_t Count() const;
  bool IsFull() const { return Count() >= shape_.slots; }
  bool HasSpilled() const { return Limit() != 0; }
  // The greatest fingerprint. REQUIRES: IsFull().
  uint64_t Last() const;
  uint32_t CopiesOfLast() const;  // the same

  // Says that fingerprints from Last() on were spilled, or that none are.
  static void SetSpilled(const QuotientLineShape& shape, uint64_t* line, bool spilled);

 private:
  using Map = unsigned __int128;
  Map Bits() const;
  uint64_t Limit() const { return line_[7] >> (shape_.tag_bits == 8 ? 56 : 58); }
  uint64_t Tag(uint32_t slot) const;

  QuotientLineShape shape_;
  const uint64_t* line_;
};

}  // namespace tamis
