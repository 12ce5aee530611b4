#include "tamis/filter/any_filter.h"

#include <algorithm>
#include <bit>
#include <concepts>
#include <new>

namespace tamis {
namespace {

template <class F>
concept FixedFilter = !requires {
  &F::Create;
};

Result<const FilterType*> TypeNamed(std::string_view name) {
  const FilterType* type = AnyFilter::FindType(name);
  if (type != nullptr) return type;
  std::string names;
  for (const FilterType& known : AnyFilter::Types()) names += " " + std::string(known.name);
  return InvalidArgument("cannot make a filter of type \"" + std::string(name) +
                         "\"; there are:" + names);
}

template <class F>
concept InsertsSpans = requires(F filter, std::span<const uint64_t> hashes) {
  { filter.Insert(hashes) } -> std::same_as<Bitmap>;
};

template <class F>
concept ErasesSpans = requires(F filter, std::span<const uint64_t> hashes) {
  { filter.Erase(hashes) } -> std::same_as<Bitmap>;
};

template <class F>
concept ErasableFilter = requires(F filter) {
  filter.Erase(uint64_t{});
};

// A filter that may refuse a key, and whose counters stick: erasing does not take an insert back;
// or one whose spans take more copies of a key than it is to have.
template <class F>
constexpr bool kInsertsForGood =
    std::is_same_v<F, DLeftCountingBloomFilter> || std::is_same_v<F, CuckooFilter>;

// How many copies of a key a filter of fingerprints holds at most; 0 = it has counters. In a cuckoo
// filter a key has the eight slots of its two buckets and takes as many as one bucket has: then k
// such keys that share buckets, which nearly always are k + 1 buckets, leave room for others.
template <class F>
constexpr uint32_t kMostCopies = 0;
template <>
constexpr uint32_t kMostCopies<BlockedQuotientFilter> = BlockedQuotientFilter::kMaxCopies;
template <>
constexpr uint32_t kMostCopies<CuckooFilter> = CuckooTable::kSlots;
// At the end of a quotient filter there are 64 slots for what finds no room in front of it.
template <>
constexpr uint32_t kMostCopies<QuotientFilter> = 16;

// A key that has all its copies is as one whose counters stick: it was inserted, and it stays
// whatever is erased. Nothing else takes its copies away: keys that the filter cannot tell apart
// have them together.
template <class F>
bool Stays(const F& filter, uint64_t hash) {
  if constexpr (kMostCopies<F> == 0) {
    return false;
  } else if constexpr (std::is_same_v<F, QuotientFilter>) {
    return filter.Copies(hash) >= kMostCopies<F>;
  } else {
    return filter.CopiesOf(hash) >= kMostCopies<F>;
  }
}

template <class F>
bool InsertOne(F* filter, uint64_t hash) {
  if constexpr (std::is_same_v<F, ScalableSplitCountingBloomFilter>) {
    filter->Insert(hash);  // returns a layer's number
    return true;
  } else if constexpr (kMostCopies<F> != 0 && !std::is_same_v<F, BlockedQuotientFilter>) {
    return Stays(*filter, hash) || filter->Insert(hash);
  } else {
    return filter->Insert(hash) || Stays(*filter, hash);
  }
}

template <class F>
bool EraseOne(F* filter, uint64_t hash) {
  if constexpr (std::is_same_v<F, ScalableSplitCountingBloomFilter>) {
    return filter->Erase(hash) == EraseOutcome::kErased;
  } else {
    return Stays(*filter, hash) || filter->Erase(hash);
  }
}

// Brings what hashes[i] and the next ones touch into the cache, a group at a time.
template <class F>
void Prefetch(const F& filter, std::span<const uint64_t> hashes, size_t i) try {
  constexpr size_t kGroup = 256;
  if (i % kGroup != 0 || hashes.size() < 2) return;
  (void)filter.MayContain(hashes.subspan(i, std::min(kGroup, hashes.size() - i)));
} catch (const std::bad_alloc&) {  // it is only slower without
}

// The first of the n keys that was not inserted and does not stay, else n.
template <class F>
size_t FirstRefused(const F& filter, std::span<const uint64_t> hashes, const Bitmap& inserted) {
  for (size_t w = 0; 64 * w < hashes.size(); ++w) {
    uint64_t others = ~inserted[w];
    for (; others != 0; others &= others - 1) {
      const size_t i = 64 * w + static_cast<size_t>(std::countr_zero(others));
      if (i >= hashes.size()) break;
      if (!Stays(filter, hashes[i])) return i;
    }
  }
  return hashes.size();
}

// How many keys are inserted before it is known whether one was refused: enough to fetch ahead, and
// not too many to take back.
constexpr size_t kPiece = 4096;

// How many, from the front.
template <class F>
size_t InsertPiece(F* filter, std::span<const uint64_t> piece) {
  if constexpr (InsertsSpans<F> && !kInsertsForGood<F>) {
    const Bitmap inserted = filter->Insert(piece);
    const size_t refused = FirstRefused(*filter, piece, inserted);
    // Keys inserted after the refused one are taken back. For equal keys it does not matter which:
    // a filter cannot tell them apart, and holds each as often as before. A key that stays is not
    // among them: a filter that has refused a key has no room for its copies later on.
    if constexpr (ErasableFilter<F>) {
      for (size_t i = refused + 1; i < piece.size(); ++i) {
        if (TestBit(inserted, i)) filter->Erase(piece[i]);
      }
    }
    return refused;
  } else {
    for (size_t i = 0; i < piece.size(); ++i) {
      Prefetch(*filter, piece, i);
      if (!InsertOne(filter, piece[i])) return i;
    }
    return piece.size();
  }
}

template <class F>
Result<AnyFilter> Wrap(Result<F> filter, auto&& make) {
  if (!filter.ok()) return filter.status();
  return make(*std::move(filter));
}

}  // namespace

const std::vector<FilterType>& AnyFilter::Types() {
  static const std::vector<FilterType> types = {
      {"blocked", FilterKind::kBlockedBloom, false, 0, "fastest: one cache line a key"},
      {"bloom", FilterKind::kBloom, false, 0, "the textbook's: a tenth smaller, slower"},
      {"binary-fuse", FilterKind::kBinaryFuse, false, 0,
       "smallest; built of all keys at once, never changed", true},
      {"blocked-quotient", FilterKind::kBlockedQuotient, true,
       kMostCopies<BlockedQuotientFilter> - 1, "erases, counts, grows; one cache line a key"},
      {"scalable-bloom", FilterKind::kScalableBloom, false, 0,
       "as blocked, for a number of keys not known"},
      {"cuckoo", FilterKind::kCuckoo, true, kMostCopies<CuckooFilter> - 1,
       "small at low rates, erases"},
      {"quotient", FilterKind::kQuotient, true, kMostCopies<QuotientFilter> - 1,
       "erases, counts, grows, shrinks; can be listed"},
      {"d-left", FilterKind::kDLeftCountingBloom, true, 14,
       "erases, counts; half the memory of counters"},
      {"blocked-counting", FilterKind::kBlockedSplitCountingBloom, true, 14,
       "erases, counts; one cache line a key"},
      {"projected", FilterKind::kProjectedCountingBloom, true, 14,
       "erases, counts; lookups as fast as blocked"},
      {"counting", FilterKind::kCountingBloom, true, 14, "the textbook's with erase"},
      {"dynamic-count", FilterKind::kDynamicCount, true, UINT32_MAX,
       "erases, counts to 2^32; counters widen"},
      {"split-counting", FilterKind::kSplitCountingBloom, true, 14,
       "erases, counts; identical ones add up"},
      {"scalable", FilterKind::kScalableSplitCountingBloom, true, 14,
       "the same, for a number of keys not known"},
  };
  return types;
}

const FilterType* AnyFilter::FindType(std::string_view name) {
  for (const FilterType& type : Types()) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

// Calls f with a null pointer to the type of the kind, which must be one of FilterVariant.
template <size_t kIndex = 0, class Function>
static auto VisitKind(FilterKind kind, Function&& f) {
  using F = std::variant_alternative_t<kIndex, FilterVariant>;
  if constexpr (kIndex + 1 < std::variant_size_v<FilterVariant>) {
    if (kind != F::kKind) return VisitKind<kIndex + 1>(kind, f);
  }
  return f(static_cast<F*>(nullptr));
}

namespace {

constexpr size_t kLargeFilter = size_t{1} << 30;

}  // namespace

double AnyFilter::BitsPerKey(const FilterType& type, double fpr) {
  return VisitKind(type.kind, [&]<class F>(F*) {
    return 8.0 * kLargeFilter / static_cast<double>(F::CapacityFor(kLargeFilter, fpr));
  });
}

double AnyFilter::FprAtCapacity(const FilterType& type, double fpr) {
  return VisitKind(type.kind, [&]<class F>(F*) {
    return F::FprFor(kLargeFilter, F::CapacityFor(kLargeFilter, fpr));
  });
}

Result<AnyFilter> AnyFilter::Create(std::string_view type, const FilterOptions& options) {
  TAMIS_ASSIGN_OR_RETURN(const FilterType* found, TypeNamed(type));
  return VisitKind(found->kind, [&]<class F>(F*) -> Result<AnyFilter> {
    if constexpr (FixedFilter<F>) {
      return InvalidArgument("cannot make an empty filter of type \"" + std::string(type) +
                             "\": it is built of all its keys at once");
    } else {
      return Wrap(
          F::Create({.capacity = options.capacity, .fpr = options.fpr, .seed = options.seed}),
          [](F filter) { return AnyFilter(FilterVariant(std::move(filter))); });
    }
  });
}

Result<AnyFilter> AnyFilter::Build(std::string_view type, FilterOptions options,
                                   std::span<const uint64_t> hashes) {
  TAMIS_ASSIGN_OR_RETURN(const FilterType* found, TypeNamed(type));
  if (found->fixed) {
    return Wrap(BinaryFuseFilter::Build(hashes, options), [](BinaryFuseFilter filter) {
      return AnyFilter(FilterVariant(std::move(filter)));
    });
  }
  options.capacity = std::max({options.capacity, uint64_t{hashes.size()}, uint64_t{1}});
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(AnyFilter filter, Create(type, options));
    if (filter.Insert(hashes) == hashes.size()) return filter;
    // A small filter may refuse by a rare accident: one with more room will not.
    options.capacity += options.capacity / 16 + 1;
  }
}

Result<AnyFilter> AnyFilter::Deserialize(std::string_view bytes, OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(const FilterHeader header, ReadFilterHeader(bytes));
  for (const FilterType& type : Types()) {
    if (type.kind != header.kind) continue;
    return VisitKind(type.kind, [&]<class F>(F*) {
      return Wrap(F::Deserialize(bytes, mode),
                  [](F filter) { return AnyFilter(FilterVariant(std::move(filter))); });
    });
  }
  return FilterDataLoss(header.kind, "this program does not have it");
}

std::string AnyFilter::Serialize() const {
  return std::visit([](const auto& filter) { return filter.Serialize(); }, filter_);
}

const FilterType& AnyFilter::type() const {
  const FilterKind kind = std::visit([]<class F>(const F&) { return F::kKind; }, filter_);
  for (const FilterType& type : Types()) {
    if (type.kind == kind) return type;
  }
  assert(false);
  return Types().front();
}

size_t AnyFilter::Insert(std::span<const uint64_t> hashes) {
  return std::visit(
      [&]<class F>(F& filter) -> size_t {
        if constexpr (FixedFilter<F>) {
          return 0;
        } else {
          for (size_t begin = 0; begin < hashes.size(); begin += kPiece) {
            const auto piece = hashes.subspan(begin, std::min(kPiece, hashes.size() - begin));
            const size_t inserted = InsertPiece(&filter, piece);
            if (inserted < piece.size()) return begin + inserted;
          }
          return hashes.size();
        }
      },
      filter_);
}

Bitmap AnyFilter::Erase(std::span<const uint64_t> hashes) {
  return std::visit(
      [&]<class F>(F& filter) {
        if constexpr (ErasesSpans<F> && kMostCopies<F> == 0) {
          return filter.Erase(hashes);
        } else {
          Bitmap erased((hashes.size() + 63) / 64);
          if constexpr (ErasableFilter<F>) {
            for (size_t i = 0; i < hashes.size(); ++i) {
              Prefetch(filter, hashes, i);
              erased[i / 64] |= uint64_t{EraseOne(&filter, hashes[i])} << (i % 64);
            }
          }
          return erased;
        }
      },
      filter_);
}

bool AnyFilter::Insert(uint64_t hash) {
  return std::visit(
      [&]<class F>(F& filter) {
        if constexpr (FixedFilter<F>) {
          return false;
        } else {
          return InsertOne(&filter, hash);
        }
      },
      filter_);
}

bool AnyFilter::Erase(uint64_t hash) {
  return std::visit(
      [&]<class F>(F& filter) {
        if constexpr (ErasableFilter<F>) {
          return EraseOne(&filter, hash);
        } else {
          return false;
        }
      },
      filter_);
}

bool AnyFilter::MayContain(uint64_t hash) const {
  return std::visit([&](const auto& filter) { return filter.MayContain(hash); }, filter_);
}

Bitmap AnyFilter::MayContain(std::span<const uint64_t> hashes) const {
  return std::visit([&](const auto& filter) { return filter.MayContain(hashes); }, filter_);
}

Status AnyFilter::Merge(const AnyFilter& other) {
  return std::visit(
      [&]<class F>(F& filter) {
        const F* same = std::get_if<F>(&other.filter_);
        if (same == nullptr) {
          return InvalidArgument("cannot merge a " + std::string(FilterKindName(F::kKind)) +
                                 " with a " + std::string(FilterKindName(other.type().kind)));
        }
        if constexpr (FixedFilter<F>) {
          return FailedPrecondition("cannot merge into a " + std::string(FilterKindName(F::kKind)) +
                                    ": it is never changed; build one of the keys of both");
        } else if constexpr (kMostCopies<F> != 0) {
          return filter.Merge(*same, kMostCopies<F>);
        } else {
          return filter.Merge(*same);
        }
      },
      filter_);
}

void AnyFilter::Clear() {
  std::visit(
      []<class F>(F& filter) {
        if constexpr (FixedFilter<F>) {
          assert(false);
        } else {
          filter.Clear();
        }
      },
      filter_);
}

size_t AnyFilter::SizeBytes() const {
  return std::visit([](const auto& filter) { return filter.SizeBytes(); }, filter_);
}
uint64_t AnyFilter::Count() const {
  return std::visit([](const auto& filter) { return filter.Count(); }, filter_);
}
double AnyFilter::Fill() const {
  return std::visit([](const auto& filter) { return filter.Fill(); }, filter_);
}
double AnyFilter::ExpectedFpr() const {
  return std::visit([](const auto& filter) { return filter.ExpectedFpr(); }, filter_);
}
uint64_t AnyFilter::StuckErases() const {
  const auto* layers = std::get_if<ScalableSplitCountingBloomFilter>(&filter_);
  return layers != nullptr ? layers->stuck_count() : 0;
}
uint64_t AnyFilter::seed() const {
  return std::visit([](const auto& filter) { return filter.seed(); }, filter_);
}

}  // namespace tamis
