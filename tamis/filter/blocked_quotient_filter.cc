#include "tamis/filter/blocked_quotient_filter.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <iterator>

#include "tamis/filter/fpr.h"

namespace tamis {
namespace {

// How full the lines are at capacity and when the spilled fingerprints have no room any more, in
// keys over slots. The fewer slots the more the lines differ.
struct Loads {
  double capacity;
  double limit;
};
Loads LoadsOf(const QuotientLineShape& shape) {
  return shape.tag_bits == 8    ? Loads{0.92, 0.945}
         : shape.tag_bits == 16 ? Loads{0.845, 0.875}
                                : Loads{0.81, 0.845};
}

// The share of its slots that the table of spilled tags can use before it runs over its end.
constexpr double kSpillLoad = 0.93;

double KeysPerLine(const QuotientLineShape& shape) { return LoadsOf(shape).capacity * shape.slots; }

double FprOf(const QuotientLineShape& shape) {
  return fpr::Fingerprints(KeysPerLine(shape), 1, shape.fingerprint_bits());
}

// Remembered: to compute it takes longer than to fill a small filter.
double SpillSlotsPerLine(const QuotientLineShape& shape) {
  static std::array<std::atomic<double>, std::size(kQuotientLineShapes)> known{};
  const auto* const at = std::ranges::find(kQuotientLineShapes, shape);
  std::atomic<double>& slots = known[static_cast<size_t>(at - kQuotientLineShapes)];
  if (slots.load(std::memory_order_relaxed) == 0) {
    slots.store(fpr::Excess(LoadsOf(shape).limit * shape.slots, shape.slots) / kSpillLoad,
                std::memory_order_relaxed);
  }
  return slots.load(std::memory_order_relaxed);
}

uint64_t SpillWords(const QuotientLineShape& shape, uint64_t lines) {
  const auto n = static_cast<double>(lines);
  // Among few lines the number of the spilled ones differs more from filter to filter.
  const double slots = n * SpillSlotsPerLine(shape) + 2 * std::sqrt(n * shape.slots);
  return SpillTable::kMinWords +
         SpillTable::WordsFor(static_cast<uint64_t>(slots), shape.fingerprint_bits());
}

double BitsPerKey(const QuotientLineShape& shape) {
  const double entry = shape.fingerprint_bits() <= SpillTable::kNarrowFingerprintBits ? 32 : 64;
  return (kQuotientLineWords * 64 + entry * SpillSlotsPerLine(shape)) / KeysPerLine(shape);
}

const QuotientLineShape& ShapeFor(double fpr) {
  for (const QuotientLineShape& shape : kQuotientLineShapes) {
    if (FprOf(shape) <= fpr) return shape;
  }
  return std::end(kQuotientLineShapes)[-1];
}

}  // namespace

BlockedQuotientFilter::BlockedQuotientFilter(uint64_t seed, const QuotientLineShape& shape,
                                             uint32_t lost_bits, uint64_t lines)
    : BlockedQuotientFilter(seed, shape, lost_bits, WordArray(lines * kQuotientLineWords),
                            WordArray(SpillWords(shape, lines))) {}

BlockedQuotientFilter::BlockedQuotientFilter(uint64_t seed, const QuotientLineShape& shape,
                                             uint32_t lost_bits, WordArray words, WordArray spill)
    : seed_(seed),
      shape_(shape),
      lost_bits_(lost_bits),
      fingerprint_mask_((uint64_t{1} << shape.fingerprint_bits()) - (uint64_t{1} << lost_bits)),
      words_(std::move(words)),
      spill_(LineCount(), shape.fingerprint_bits(), std::move(spill)),
      functions_(QuotientLineFunctions::For(shape)) {}

Result<BlockedQuotientFilter> BlockedQuotientFilter::Create(const Options& options) {
  TAMIS_RETURN_IF_ERROR(options.Validate());
  const QuotientLineShape& shape = ShapeFor(options.fpr);
  const auto lines =
      static_cast<uint64_t>(std::ceil(static_cast<double>(options.capacity) / KeysPerLine(shape)));
  return BlockedQuotientFilter(options.seed, shape, 0, lines);
}

uint64_t* BlockedQuotientFilter::OwnedWords() {
  spill_.Own();
  return words_.MutableData();
}

bool BlockedQuotientFilter::AddTo(const QuotientPlace& place, uint64_t* line) {
  const Placed placed = functions_.insert(line, place.fingerprint, kMaxCopies);
  if (placed == Placed::kTooManyCopies) return false;
  if (placed == Placed::kFull && !AddToFull(place, line)) return false;
  ++count_;
  return true;
}

// The greatest of the line's fingerprints and the new one goes into the table.
bool BlockedQuotientFilter::AddToFull(const QuotientPlace& place, uint64_t* line) {
  const QuotientLineView view(shape_, line);
  const uint64_t last = view.Last();
  if (place.fingerprint >= last) {
    const uint32_t copies = place.fingerprint == last ? view.CopiesOfLast() : 0;
    if (copies >= kMaxCopies ||
        !spill_.Insert(place.line, place.fingerprint, kMaxCopies - copies)) {
      return false;
    }
  } else {
    // Copies of less than the greatest one are all in the line.
    if (!spill_.Insert(place.line, last, UINT32_MAX)) return false;
    functions_.erase(line, last);
    if (functions_.insert(line, place.fingerprint, kMaxCopies) == Placed::kTooManyCopies) {
      functions_.insert(line, last, UINT32_MAX);
      spill_.Erase(place.line, last);
      return false;
    }
  }
  QuotientLineView::SetSpilled(shape_, line, true);
  ++spilled_;
  return true;
}

bool BlockedQuotientFilter::Erase(uint64_t hash) {
  const QuotientPlace place = lines().Find(hash);
  return EraseFrom(place, OwnedLine(place));
}

bool BlockedQuotientFilter::EraseFrom(const QuotientPlace& place, uint64_t* line) {
  const bool has_spilled = QuotientLineView(shape_, line).HasSpilled();
  if (functions_.erase(line, place.fingerprint)) {
    if (has_spilled) Refill(place.line, line);
  } else {
    if (!has_spilled || !spill_.Erase(place.line, place.fingerprint)) return false;
    spilled_ -= spilled_ > 0;
    QuotientLineView::SetSpilled(shape_, line, spill_.ContainsLine(place.line));
  }
  count_ -= count_ > 0;
  return true;
}

void BlockedQuotientFilter::Refill(uint64_t number, uint64_t* line) {
  bool has_more = false;
  if (const auto first = spill_.TakeFirst(number, &has_more)) {
    functions_.insert(line, *first, UINT32_MAX);
    spilled_ -= spilled_ > 0;
  }
  QuotientLineView::SetSpilled(shape_, line, has_more);
}

uint32_t BlockedQuotientFilter::CopiesOf(uint64_t hash) const {
  return CopiesAt(lines().Find(hash));
}

uint32_t BlockedQuotientFilter::CopiesAt(const QuotientPlace& place) const {
  const uint64_t* line = lines().Line(place.line);
  const uint32_t copies = functions_.copies(line, place.fingerprint);
  if (!QuotientLineView(shape_, line).HasSpilled()) return copies;
  return copies + spill_.Copies(place.line, place.fingerprint);
}

// A line is changed in a copy, which is then stored word by word. If the table of spilled keys is
// changed, too, both versions are odd from before that change on: a reader that read the line
// before it and the table after it sees that the line's version has moved on. In all other cases
// the line's version is odd only for eight stores, so that a reader that is disturbed has its
// answer soon.
class BlockedQuotientFilter::SharedLine {
 public:
  SharedLine(uint64_t* line, LineVersions::Version& version) : line_(line), version_(version) {
    std::copy_n(line, kQuotientLineWords, changed);
  }
  void Publish() {
    const LineVersions::Change change(version_);
    Store();
  }
  template <class Change>
  bool PublishWithTable(LineVersions::Version& table, Change&& change) {
    const LineVersions::Change line_change(version_);
    const LineVersions::Change table_change(table);
    if (!change()) return false;
    Store();
    return true;
  }

  alignas(WordArray::kAlignment) uint64_t changed[kQuotientLineWords];

 private:
  void Store() {
    for (uint32_t i = 0; i < kQuotientLineWords; ++i) {
      __atomic_store_n(line_ + i, changed[i], __ATOMIC_RELAXED);
    }
  }

  uint64_t* const line_;
  LineVersions::Version& version_;
};

bool BlockedQuotientFilter::InsertWhileRead(uint64_t hash, LineVersions* versions) {
  const QuotientPlace place = lines().Find(hash);
  SharedLine line(OwnedLine(place), versions->OfLine(place.line));
  spill_.Share();
  switch (functions_.insert(line.changed, place.fingerprint, kMaxCopies)) {
    case Placed::kTooManyCopies:
      return false;
    case Placed::kDone:
      line.Publish();
      break;
    case Placed::kFull:
      if (!line.PublishWithTable(versions->OfTable(),
                                 [&] { return AddToFull(place, line.changed); })) {
        return false;
      }
  }
  ++count_;
  return true;
}

bool BlockedQuotientFilter::EraseWhileRead(uint64_t hash, LineVersions* versions) {
  const QuotientPlace place = lines().Find(hash);
  SharedLine line(OwnedLine(place), versions->OfLine(place.line));
  spill_.Share();
  if (QuotientLineView(shape_, line.changed).HasSpilled()) {
    return line.PublishWithTable(versions->OfTable(),
                                 [&] { return EraseFrom(place, line.changed); });
  }
  if (!EraseFrom(place, line.changed)) return false;
  line.Publish();
  return true;
}

// many(piece, answers, others) does what can be done in the lines and lists the others, for which
// other(hash, answer) -> answer looks into the table, when the places there have been fetched.
template <class Many, class Other>
Bitmap BlockedQuotientFilter::AnswerPieces(std::span<const uint64_t> hashes, Many&& many,
                                           Other&& other) const {
  Bitmap answers((hashes.size() + 63) / 64);
  constexpr size_t kPiece = 4096;  // a multiple of 64, so that the places in the table stay fetched
  std::vector<uint32_t> others;
  others.reserve(std::min(kPiece, hashes.size()));  // nothing is allocated once keys are changed
  const QuotientLineSet lines = this->lines();
  for (size_t begin = 0; begin < hashes.size(); begin += kPiece) {
    const auto piece = hashes.subspan(begin, std::min(kPiece, hashes.size() - begin));
    uint64_t* piece_answers = answers.data() + begin / 64;
    others.clear();
    many(piece, piece_answers, &others);
    for (const uint32_t i : others) spill_.Prefetch(lines.Find(piece[i]).line);
    for (const uint32_t i : others) {
      const uint64_t bit = uint64_t{1} << i % 64;
      const bool answer = other(piece[i], (piece_answers[i / 64] & bit) != 0);
      piece_answers[i / 64] = (piece_answers[i / 64] & ~bit) | (answer ? bit : 0);
    }
  }
  return answers;
}

Bitmap BlockedQuotientFilter::MayContain(std::span<const uint64_t> hashes) const {
  const QuotientLineSet lines = this->lines();
  return AnswerPieces(
      hashes,
      [&](std::span<const uint64_t> piece, uint64_t* answers, std::vector<uint32_t>* others) {
        functions_.find_many(lines, piece, answers, others);
      },
      [&](uint64_t hash, bool) {
        const QuotientPlace place = lines.Find(hash);
        return spill_.Contains(place.line, place.fingerprint);
      });
}

// A line that is full stays full while keys are inserted, so that the order is kept where it
// matters.
Bitmap BlockedQuotientFilter::Insert(std::span<const uint64_t> hashes) {
  uint64_t* const words = OwnedWords();
  return AnswerPieces(
      hashes,
      [&](std::span<const uint64_t> piece, uint64_t* answers, std::vector<uint32_t>* others) {
        functions_.insert_many(lines(), words, piece, kMaxCopies, answers, others);
        for (size_t w = 0; w < (piece.size() + 63) / 64; ++w) count_ += std::popcount(answers[w]);
      },
      [&](uint64_t hash, bool) { return Insert(hash); });
}

// Until its last key of the piece is done, a line may have room and spilled keys at once: the keys
// of the line are still less than all of those, and each that was erased takes one of them back.
Bitmap BlockedQuotientFilter::Erase(std::span<const uint64_t> hashes) {
  uint64_t* const words = OwnedWords();
  return AnswerPieces(
      hashes,
      [&](std::span<const uint64_t> piece, uint64_t* answers, std::vector<uint32_t>* others) {
        functions_.erase_many(lines(), words, piece, answers, others);
        uint64_t erased = 0;
        for (size_t w = 0; w < (piece.size() + 63) / 64; ++w) erased += std::popcount(answers[w]);
        count_ -= std::min(count_, erased);
      },
      [&](uint64_t hash, bool erased) {
        if (!erased) return Erase(hash);
        const QuotientPlace place = lines().Find(hash);
        Refill(place.line, OwnedLine(place));
        return true;
      });
}

template <class Visit>
bool BlockedQuotientFilter::ForEach(Visit&& visit) const {
  for (uint64_t number = 0; number < LineCount(); ++number) {
    const QuotientLineView line(shape_, lines().Line(number));
    std::vector<uint64_t> fingerprints = line.Fingerprints();
    if (line.HasSpilled()) {
      spill_.ForEach(number, [&](uint64_t spilled) { fingerprints.push_back(spilled); });
    }
    for (const uint64_t fingerprint : fingerprints) {
      if (!visit(QuotientPlace{number, fingerprint & fingerprint_mask_})) return false;
    }
  }
  return true;
}

Status BlockedQuotientFilter::Merge(const BlockedQuotientFilter& other, uint32_t most_copies) {
  if (LineCount() != other.LineCount() || shape_ != other.shape_ ||
      lost_bits_ != other.lost_bits_ || seed_ != other.seed_) {
    return InvalidArgument("cannot merge blocked quotient filters of different size or seed");
  }
  BlockedQuotientFilter merged = *this;
  if (!other.ForEach([&](const QuotientPlace& place) {
        return merged.CopiesAt(place) >= most_copies || merged.Add(place);
      })) {
    return ResourceExhausted("cannot merge blocked quotient filters: " + std::to_string(Count()) +
                             " and " + std::to_string(other.Count()) +
                             " keys do not fit; let both grow before, or build a larger filter "
                             "from the keys");
  }
  *this = std::move(merged);
  return Status::Ok();
}

Status BlockedQuotientFilter::Grow() {
  if (fingerprint_bits() <= shape_.group_bits + 1) {
    return FailedPrecondition(
        "cannot let a blocked quotient filter grow: its fingerprints have only " +
        std::to_string(fingerprint_bits()) + " bits left; build a larger filter from the keys");
  }
  BlockedQuotientFilter grown(seed_, shape_, lost_bits_ + 1, 2 * LineCount());
  const bool fits =
      ForEach([&](const QuotientPlace& place) { return grown.Add(GrownPlace(place)); });
  if (!fits) {
    return ResourceExhausted(
        "cannot let a blocked quotient filter grow: its keys are too unevenly "
        "spread; build a larger filter from the keys");
  }
  *this = std::move(grown);
  return Status::Ok();
}

void BlockedQuotientFilter::Clear() {
  *this = BlockedQuotientFilter(seed_, shape_, lost_bits_, WordArray(words_.size()),
                                WordArray(spill_.words().size()));
}

double BlockedQuotientFilter::Fill() const {
  return static_cast<double>(count_) / static_cast<double>(LineCount() * shape_.slots);
}

double BlockedQuotientFilter::ExpectedFpr() const {
  return fpr::Fingerprints(static_cast<double>(count_), static_cast<double>(LineCount()),
                           fingerprint_bits());
}

uint64_t BlockedQuotientFilter::CapacityFor(size_t size_bytes, double fpr) {
  return static_cast<uint64_t>(static_cast<double>(size_bytes) * 8 / BitsPerKey(ShapeFor(fpr)));
}

double BlockedQuotientFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  const double bits = static_cast<double>(size_bytes) * 8 / static_cast<double>(capacity);
  double best = 1;
  for (const QuotientLineShape& shape : kQuotientLineShapes) {
    if (BitsPerKey(shape) <= bits) best = FprOf(shape);
  }
  return best;
}

std::string BlockedQuotientFilter::Serialize() const {
  const std::array<std::span<const uint64_t>, 2> parts = {words_.words(), spill_.words().words()};
  return SealFilter({.kind = kKind,
                     .seed = seed_,
                     .parameters = {LineCount(), shape_.tag_bits, lost_bits_, count_, spilled_}},
                    parts);
}

Result<BlockedQuotientFilter> BlockedQuotientFilter::Deserialize(std::string_view bytes,
                                                                 OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(OpenedFilter opened, OpenFilter(bytes, kKind, 5, mode));
  const auto& p = opened.header.parameters;
  const auto shape = std::find_if(std::begin(kQuotientLineShapes), std::end(kQuotientLineShapes),
                                  [&](const auto& known) { return known.tag_bits == p[1]; });
  if (shape == std::end(kQuotientLineShapes) ||
      p[2] > shape->fingerprint_bits() - shape->group_bits - 1) {
    return FilterDataLoss(kKind, "impossible fingerprints");
  }
  const uint64_t words = opened.payload.size();
  if (p[0] < 1 || p[0] > words / kQuotientLineWords ||
      words - p[0] * kQuotientLineWords < SpillTable::kMinWords) {
    return FilterDataLoss(kKind, "its lines do not fit the payload");
  }
  const uint64_t line_words = p[0] * kQuotientLineWords;
  const auto lost_bits = static_cast<uint32_t>(p[2]);
  BlockedQuotientFilter filter(opened.header.seed, *shape, lost_bits, opened.Take(0, line_words),
                               opened.Take(line_words, words - line_words));
  filter.count_ = p[3];
  filter.spilled_ = p[4];
  if (mode == OpenMode::kCopy) {
    // Equal multisets are equal bytes: what was read must be what its own keys make.
    BlockedQuotientFilter made = filter;
    made.Clear();
    const bool fits = filter.ForEach([&](const QuotientPlace& place) { return made.Add(place); });
    if (!fits || made.count_ != p[3] || made.spilled_ != p[4] ||
        !std::ranges::equal(made.words_.words(), filter.words_.words()) ||
        !std::ranges::equal(made.spill_.words().words(), filter.spill_.words().words())) {
      return FilterDataLoss(kKind, "its lines do not add up");
    }
  }
  return filter;
}

}  // namespace tamis
