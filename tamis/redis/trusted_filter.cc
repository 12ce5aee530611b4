#include "tamis/redis/trusted_filter.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>
#include <vector>

#include "tamis/base/coding.h"
#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/redis/faults.h"

namespace tamis::redis {
namespace {

constexpr uint32_t kMagic = 0x46534d54;  // "TMSF"
constexpr uint64_t kGuard = 1;
constexpr uint64_t kIncomplete = 2;
constexpr uint64_t kTrusted = 4;
constexpr uint64_t kRebuild = 8;
constexpr uint64_t kRebuildIncomplete = 16;
constexpr uint64_t kRebuildSound = 32;
constexpr uint64_t kInLog = 64;
constexpr uint64_t kWindow = 128;
constexpr uint64_t kAllFlags = 255;
constexpr size_t kGreatestMark = 1024;

// Lack of memory is treated as a full filter.
bool InsertInto(AnyFilter& filter, uint64_t hash) try {
  return filter.Insert(hash);
} catch (const std::bad_alloc&) {
  return false;
}

Status BadBytes(std::string why) { return {StatusCode::kDataLoss, "filter: " + why}; }

// Whether an item leaves one fingerprint in a filter of this kind, under a place that follows from
// the item alone. Items that such a filter cannot tell apart are equal for every filter of its size
// and seed, so each may take the other's copy.
bool HasFingerprints(FilterKind kind) {
  return kind == FilterKind::kBlockedQuotient || kind == FilterKind::kCuckoo ||
         kind == FilterKind::kQuotient || kind == FilterKind::kDLeftCountingBloom;
}

bool RateCanBe(double rate) { return rate > 0 && rate < 1; }

struct Sizes {
  uint64_t filter;
  uint64_t rebuild;
};

std::string HeaderOf(const TrustedFilter::Metadata& metadata, bool window,
                     const TrustedFilter::Rebuild* rebuild, const Sizes& sizes, bool trusted,
                     bool sound, uint64_t rebuilt_time, bool in_log) {
  std::string header;
  PutFixed32(&header, kMagic);
  uint64_t flags = (metadata.guard ? kGuard : 0) | (metadata.incomplete ? kIncomplete : 0) |
                   (trusted ? kTrusted : 0) | (in_log ? kInLog : 0) | (window ? kWindow : 0);
  if (rebuild != nullptr) {
    flags |=
        kRebuild | (rebuild->incomplete ? kRebuildIncomplete : 0) | (sound ? kRebuildSound : 0);
  }
  PutFixed64(&header, flags);
  PutFixed64(&header, std::bit_cast<uint64_t>(metadata.wanted_rate));
  PutFixed64(&header, metadata.capacity);
  PutFixed64(&header, sizes.filter);
  PutFixed64(&header, rebuilt_time);
  PutLengthPrefixed(&header, metadata.mark);
  if (rebuild != nullptr) {
    PutFixed64(&header, rebuild->id);
    PutFixed64(&header, std::bit_cast<uint64_t>(rebuild->wanted_rate));
    PutFixed64(&header, rebuild->capacity);
    PutFixed64(&header, sizes.rebuild);
  }
  return header;
}

}  // namespace

TrustedFilter::Saved TrustedFilter::Save(uint64_t trust_epoch, bool in_log, Moment now) const {
  Saved saved;
  Sizes sizes = {metadata_.bytes, rebuild_ ? rebuild_->bytes : 0};
  std::string window;  // the header's bytes about it
  if (partial_) {
    saved.bytes = received_;
    if (window_) window_->EncodeTo(&window, now, window_->LoadedSizes());
  } else {
    if (filter_) saved.bytes = filter_->Serialize();
    sizes.filter = saved.bytes.size();
    if (window_) {
      std::vector<uint64_t> older;
      for (const Window::Slice& slice : window_->older()) {
        const std::string bytes = slice.filter->Serialize();
        saved.bytes += bytes;
        older.push_back(bytes.size());
      }
      window_->EncodeTo(&window, now, older);
    }
    if (rebuild_) {
      const std::string bytes = rebuild_->filter->Serialize();
      saved.bytes += bytes;
      sizes.rebuild = bytes.size();
    }
  }
  saved.header =
      HeaderOf(metadata_, window_.has_value(), rebuild(), sizes, IsTrustedIn(trust_epoch),
               rebuild_ && rebuild_->sound_epoch == trust_epoch, metadata_.rebuilt_time,
               in_log && !partial_);  // the time of a partial one is that of another server
  saved.header += window;
  return saved;
}

std::string TrustedFilter::HeaderToCompare() const {
  std::string header =
      HeaderOf(metadata_, window_.has_value(), rebuild(), {}, false, false, 0, false);
  if (window_) window_->EncodeToCompare(&header);
  return header;
}

std::string TrustedFilter::WithoutRecord(std::string_view header) {
  std::string without(header);
  constexpr size_t kFlagsAt = 4;
  static_assert((kTrusted | kRebuildSound | kInLog) < 256, "they are in the first byte");
  if (without.size() > kFlagsAt) {
    without[kFlagsAt] = static_cast<char>(static_cast<uint8_t>(without[kFlagsAt]) &
                                          ~(kTrusted | kRebuildSound | kInLog));
  }
  return without;
}

Result<TrustedFilter> TrustedFilter::FromHeader(std::string_view header, uint64_t greatest_bytes) {
  Reader reader(header);
  if (reader.Fixed32() != kMagic) return BadBytes("these are not its bytes");
  const uint64_t flags = reader.Fixed64();
  Metadata metadata;
  metadata.guard = (flags & kGuard) != 0;
  metadata.incomplete = (flags & kIncomplete) != 0;
  metadata.was_trusted = (flags & kTrusted) != 0;
  metadata.was_in_log = (flags & kInLog) != 0;
  metadata.wanted_rate = std::bit_cast<double>(reader.Fixed64());
  metadata.capacity = reader.Fixed64();
  metadata.bytes = reader.Fixed64();
  metadata.rebuilt_time = reader.Fixed64();
  metadata.mark = reader.LengthPrefixed();
  std::optional<Rebuild> rebuild;
  if ((flags & kRebuild) != 0) {
    rebuild = Rebuild{};
    rebuild->incomplete = (flags & kRebuildIncomplete) != 0;
    rebuild->was_sound = (flags & kRebuildSound) != 0;
    rebuild->id = reader.Fixed64();
    rebuild->wanted_rate = std::bit_cast<double>(reader.Fixed64());
    rebuild->capacity = reader.Fixed64();
    rebuild->bytes = reader.Fixed64();
  }
  std::optional<Window> window;
  if ((flags & kWindow) != 0) {
    window = Window::Decode(&reader);
    if (!window || rebuild) return BadBytes("bad window");
  }
  if (!reader.AtEnd() || (flags & ~kAllFlags) != 0 ||
      (!rebuild && (flags & (kRebuildIncomplete | kRebuildSound)) != 0)) {
    return BadBytes("bad header");
  }
  if (!RateCanBe(metadata.wanted_rate) || (rebuild && !RateCanBe(rebuild->wanted_rate))) {
    return BadBytes("rate not in (0, 1)");
  }
  if (metadata.mark.size() > kGreatestMark) return BadBytes("the mark is too long");
  constexpr uint64_t kLimit = uint64_t{1} << 61;
  if (metadata.bytes >= kLimit ||
      (rebuild ? rebuild->bytes == 0 || rebuild->bytes >= kLimit : metadata.bytes == 0)) {
    return BadBytes("no size that can be");
  }
  TrustedFilter filter;
  filter.metadata_ = std::move(metadata);
  filter.window_ = std::move(window);
  filter.rebuild_ = std::move(rebuild);
  filter.partial_ = true;
  if (filter.window_) {
    const FilterOptions options = filter.OptionsOfWindow();
    for (const FilterOptions& made :
         {options, Window::SliceOptions(options, filter.window_->slices())}) {
      if (const Status status = made.Validate(); !status.ok()) return BadBytes(status.message());
    }
  }
  if (filter.promised() > greatest_bytes) {
    return BadBytes("greater than a key may be; see tamis-max-bytes");
  }
  return filter;
}

Status TrustedFilter::AppendChunk(std::string_view chunk, uint64_t greatest_bytes) {
  const uint64_t missing = partial_ ? promised() - received_.size() : 0;
  if (!partial_ || chunk.size() > missing) {
    return InvalidArgument("more bytes than are missing");
  }
  if (chunk.size() < missing) {
    received_ += chunk;
    return Status::Ok();
  }
  std::string all = received_;
  all += chunk;
  TAMIS_RETURN_IF_ERROR(DecodeAll(all, greatest_bytes));
  partial_ = false;
  received_ = std::string();
  return Status::Ok();
}

// Changes nothing unless all filters decode.
Status TrustedFilter::DecodeAll(std::string_view bytes, uint64_t greatest_bytes) {
  const auto take = [&](uint64_t size) {
    const std::string_view taken = bytes.substr(0, size);
    bytes.remove_prefix(size);
    return taken;
  };
  std::optional<AnyFilter> filter;
  if (metadata_.bytes != 0) {
    auto read = AnyFilter::Deserialize(take(metadata_.bytes));
    if (!read.ok()) return read.status();
    filter = std::move(*read);
  }
  std::vector<AnyFilter> older;
  for (const Window::Slice& slice : window_ ? window_->older() : std::span<Window::Slice>()) {
    auto read = AnyFilter::Deserialize(take(slice.bytes));
    if (!read.ok()) return read.status();
    older.push_back(std::move(*read));
  }
  // A new slice is made like the newest one, and an item is hashed once for all of them.
  for (const AnyFilter& slice : older) {
    if (slice.seed() != filter->seed() || slice.type().kind != filter->type().kind) {
      return BadBytes("slices that are not alike");
    }
  }
  if (window_ && filter->type().fixed) return BadBytes("a window of a type that takes no adds");
  if (window_ && Window::BytesOfSlices(filter->type(), OptionsOfWindow(), window_->slices()) >
                     static_cast<double>(greatest_bytes)) {
    return BadBytes("its slices are greater than a key may be; see tamis-max-bytes");
  }
  if (rebuild_) {
    auto read = AnyFilter::Deserialize(bytes);
    if (!read.ok()) return read.status();
    if (read->type().fixed) return BadBytes("nothing can be added to a rebuild of this type");
    rebuild_->filter = std::move(*read);
  }
  filter_ = std::move(filter);
  for (size_t i = 0; i < older.size(); ++i) window_->older()[i].filter = std::move(older[i]);
  return Status::Ok();
}

size_t TrustedFilter::SizeBytes(size_t (*allocated)(size_t size)) const {
  return sizeof(*this) + metadata_.mark.size() + allocated(received_.capacity()) +
         (dump_ ? allocated(dump_->bytes.capacity()) : 0) +
         (filter_ ? allocated(filter_->SizeBytes()) : 0) +
         (window_ ? window_->SizeBytes(allocated) : 0) +
         (rebuild_ && rebuild_->filter ? allocated(rebuild_->filter->SizeBytes()) : 0);
}

TrustedFilter::Added TrustedFilter::Add(std::string_view item) {
  // An item that the filter has no place for is not acknowledged: the rebuild need not have it.
  Added added = Added::kNew;
  if (filter_) {
    const uint64_t hash = Hash(item, filter_->seed());
    if (filter_->MayContain(hash) || (window_ && window_->OlderMayContain(hash))) {
      added = Added::kPerhaps;
    }
    if (!InsertInto(*filter_, hash)) return Added::kFull;
  }
  if (!rebuild_ || (faults.adds_to_old_alone && filter_)) return added;
  const uint64_t hash = Hash(item, rebuild_->filter->seed());
  const bool there = !filter_ && rebuild_->filter->MayContain(hash);
  const bool inserted = InsertIntoRebuild(hash);
  if (filter_) return added;
  return !inserted ? Added::kFull : there ? Added::kPerhaps : Added::kNew;
}

bool TrustedFilter::MayContain(uint64_t hash, Moment now) const {
  if (!window_) return filter_->MayContain(hash);
  return (window_->Lives(window_->newest(), now) && filter_->MayContain(hash)) ||
         window_->OlderMayContain(hash, now);
}

Bitmap TrustedFilter::MayContain(std::span<const uint64_t> hashes, Moment now) const {
  if (!window_) return filter_->MayContain(hashes);
  Bitmap answers((hashes.size() + 63) / 64);
  const auto ask = [&](const AnyFilter& filter) {
    const Bitmap more = filter.MayContain(hashes);
    for (size_t i = 0; i < answers.size(); ++i) answers[i] |= more[i];
  };
  if (window_->Lives(window_->newest(), now)) ask(*filter_);
  for (const Window::Slice& slice : window_->older()) {
    if (window_->Lives(slice.number, now)) ask(*slice.filter);
  }
  return answers;
}

uint64_t TrustedFilter::Count(Moment now) const {
  if (!window_) return filter_->Count();
  uint64_t count = window_->Lives(window_->newest(), now) ? filter_->Count() : 0;
  for (const Window::Slice& slice : window_->older()) {
    if (window_->Lives(slice.number, now)) count += slice.filter->Count();
  }
  return count;
}

// The slice from number `since` on that an erase may change; nullptr when it is not known which one
// has the item. Where no slice matches, it is the newest one.
AnyFilter* TrustedFilter::SliceToEraseFrom(uint64_t hash, uint64_t since) {
  if (faults.erases_newest_copy && filter_->MayContain(hash)) return &*filter_;
  const bool oldest = HasFingerprints(filter_->type().kind) || faults.erases_first_match;
  AnyFilter* matching = nullptr;
  for (Window::Slice& slice : window_->older()) {
    if (slice.number < since || !slice.filter->MayContain(hash)) continue;
    if (matching != nullptr) return nullptr;
    matching = &*slice.filter;
    if (oldest) return matching;
  }
  if (matching == nullptr) return &*filter_;
  return filter_->MayContain(hash) ? nullptr : matching;
}

TrustedFilter::Erased TrustedFilter::Erase(std::string_view item, uint64_t since) {
  if (rebuild_) {
    AnyFilter& filter = *rebuild_->filter;
    const uint64_t hash = Hash(item, filter.seed());
    if (filter.MayContain(hash)) ++rebuild_->skipped;
    if (faults.erases_from_both) filter.Erase(hash);
  }
  if (!filter_) return Erased::kAbsent;
  const uint64_t hash = Hash(item, filter_->seed());
  AnyFilter* const from = window_ ? SliceToEraseFrom(hash, since) : &*filter_;
  if (from == nullptr) return Erased::kKept;
  if (from->Erase(hash)) return Erased::kErased;
  // A filter of layers leaves an item that more than one layer may contain.
  return from->MayContain(hash) ? Erased::kKept : Erased::kAbsent;
}

FilterOptions TrustedFilter::OptionsOfWindow() const {
  return {.capacity = metadata_.capacity,
          .fpr = metadata_.wanted_rate,
          .seed = filter_ ? filter_->seed() : 0};
}

std::vector<Window::Slice> TrustedFilter::BeginSlice(uint64_t number, uint64_t elapsed_ms,
                                                     Moment now, AnyFilter filter) {
  auto over = window_->Begin(number, elapsed_ms, now, generation_, &*filter_, std::move(filter));
  generation_ = NewGeneration();
  return over;
}

std::optional<uint64_t> TrustedFilter::SliceOf(uint64_t generation, Moment now) const {
  const auto if_alive = [&](uint64_t number) {
    return window_->Lives(number, now) ? std::optional(number) : std::nullopt;
  };
  if (generation == generation_) return if_alive(window_->newest());
  for (const Window::Slice& slice : window_->older()) {
    if (slice.generation == generation && generation != 0) return if_alive(slice.number);
  }
  return std::nullopt;
}

bool TrustedFilter::HasGeneration(uint64_t generation) const {
  if (generation == generation_ || !window_) return generation == generation_;
  return std::ranges::any_of(window_->older(), [generation](const Window::Slice& slice) {
    return slice.generation == generation && generation != 0;
  });
}

bool TrustedFilter::InsertIntoRebuild(uint64_t hash) {
  const bool inserted = InsertInto(*rebuild_->filter, hash);
  if (!inserted) rebuild_->incomplete = true;
  return inserted;
}

size_t TrustedFilter::AddToRebuild(std::span<const std::string_view> items) try {
  std::vector<uint64_t> hashes(items.size());
  for (size_t i = 0; i < items.size(); ++i) hashes[i] = Hash(items[i], rebuild_->filter->seed());
  size_t added = rebuild_->filter->Insert(hashes);
  for (size_t i = added; i < hashes.size(); ++i) added += InsertIntoRebuild(hashes[i]) ? 1 : 0;
  return added;
} catch (const std::bad_alloc&) {
  rebuild_->incomplete = true;  // it is unknown which of the items were added
  return 0;
}

bool TrustedFilter::RebuildMayContain(std::string_view item) const {
  return rebuild_->filter->MayContain(Hash(item, rebuild_->filter->seed()));
}

void TrustedFilter::Prefetch(std::span<const std::string_view> items) const try {
  if (items.size() < 2) return;
  std::vector<uint64_t> hashes(items.size());
  for (const AnyFilter* filter :
       {filter_ ? &*filter_ : nullptr, rebuild_ ? &*rebuild_->filter : nullptr}) {
    if (filter == nullptr) continue;
    for (size_t i = 0; i < items.size(); ++i) hashes[i] = Hash(items[i], filter->seed());
    (void)filter->MayContain(hashes);
    if (!window_) continue;
    for (const Window::Slice& slice : window_->older()) (void)slice.filter->MayContain(hashes);
  }
} catch (const std::bad_alloc&) {  // it was a wish
}

// One that every language can hold.
uint64_t TrustedFilter::NewGeneration() { return (SeedFromSystem() >> 11) + 1; }

void TrustedFilter::Trust(uint64_t trust_epoch) {
  if (trust_epoch_ != trust_epoch || trust_epoch == 0) {
    generation_ = NewGeneration();
    if (window_) window_->ForgetGenerations();
  }
  trust_epoch_ = trust_epoch;
}

std::optional<AnyFilter> TrustedFilter::Commit(uint64_t trust_epoch, Moment now, std::string mark) {
  std::optional<AnyFilter> before = std::exchange(filter_, std::move(rebuild_->filter));
  metadata_.incomplete = rebuild_->incomplete && !faults.commit_what_was_full;
  metadata_.wanted_rate = rebuild_->wanted_rate;
  metadata_.capacity = rebuild_->capacity;
  metadata_.rebuilt_time = static_cast<uint64_t>(now.wall_ms);
  metadata_.rebuilt_running_ms = now.running_ms;
  counters_ = {};
  counters_.skipped = rebuild_->skipped;
  trust_epoch_ = trust_epoch;
  generation_ = NewGeneration();
  metadata_.mark = std::move(mark);
  rebuild_.reset();
  return before;
}

std::optional<AnyFilter> TrustedFilter::Abort() {
  std::optional<AnyFilter> filter = std::move(rebuild_->filter);
  rebuild_.reset();
  return filter;
}

}  // namespace tamis::redis
