#include "tamis/rocks/branch_streams.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tamis {
namespace {

constexpr size_t kStep = 4;              // entries read ahead of each stream in turn
constexpr int kMaxEstimatedRanges = 64;  // ranges of one stream; more are taken to be like these
constexpr uint64_t kEntryBytes = 24;     // where nothing is known
constexpr double kEndBytes = 8192;       // the error of RocksDB's estimate at each end of a range

}  // namespace

bool IsInRanges(const pb::IndexStream& stream, std::string_view entry) {
  return std::ranges::any_of(stream.ranges(), [&](const pb::IndexRange& range) {
    return entry >= range.low() && (range.high().empty() || entry < range.high());
  });
}

Status BranchStreams::Stream::status() const {
  if (by_key.has_value()) return by_key->status();
  return by_entry.has_value() ? by_entry->status() : Status::Ok();
}

BranchStreams::Stream* BranchStreams::Add(const pb::IndexStream& stream, const IndexSpec& index,
                                          std::shared_ptr<IndexFilter> filter, bool may_lead,
                                          KeyRange keys, std::string last, bool descending) {
  Stream& added = streams_.emplace_back();
  added.plan = &stream;
  added.index = &index;
  added.filter = std::move(filter);
  added.may_lead = may_lead;
  added.keys = std::move(keys);
  added.last = std::move(last);
  added.descending = descending;
  return &added;
}

void BranchStreams::Open(Stream* stream) {
  if (stream->by_key.has_value() || stream->by_entry.has_value()) return;
  const Store& store = *context_.store;
  std::string prefix = IndexPrefix(region_id_, stream->index->id);
  if (stream->equality()) {
    stream->by_key.emplace(store, read_options_, prefix, *stream->plan, stream->keys,
                           &stream->read);
  } else {
    stream->by_entry.emplace(store, read_options_, std::move(prefix), *stream->plan, stream->last,
                             stream->descending, &stream->read);
  }
}

bool BranchStreams::ReadAhead(Stream* stream, size_t n) {
  Open(stream);
  return stream->equality() ? stream->by_key->ReadAhead(n) : stream->by_entry->ReadAhead(n);
}

size_t BranchStreams::Ahead(const Stream& stream) {
  if (!stream.by_key.has_value() && !stream.by_entry.has_value()) return 0;
  return stream.equality() ? stream.by_key->ahead() : stream.by_entry->ahead().size();
}

// From the counters alone.
std::optional<uint64_t> BranchStreams::Bound(const Stream& stream) const {
  if (!stream.equality() || stream.filter == nullptr) return std::nullopt;
  uint64_t sum = 0;
  for (const pb::IndexRange& range : stream.plan->ranges()) {
    const auto bound = stream.filter->CountBound(range.low());
    if (!bound.has_value()) return std::nullopt;
    sum += *bound;
  }
  return sum;
}

void BranchStreams::NoteBound(Stream* stream) const {
  stream->size = Bound(*stream);
  stream->is_exact = stream->size.has_value();
}

// Estimates the entries from the share of the index's bytes that, by RocksDB, lies in the ranges.
// For files that is known up to the blocks at both ends; of a memtable any share may lie there.
BranchStreams::Estimate BranchStreams::EstimateOf(const Stream& stream) const {
  const std::string prefix = IndexPrefix(region_id_, stream.index->id);
  std::vector<std::string> bounds;
  const auto add = [&](std::string low, const std::string& high) {
    bounds.push_back(std::move(low));
    bounds.push_back(high);
  };
  const std::string end = IndexPrefix(region_id_, stream.index->id + 1);
  add(prefix, end);
  const int ranges = std::min(stream.plan->ranges_size(), kMaxEstimatedRanges);
  for (int i = 0; i < ranges; ++i) {
    const pb::IndexRange& range = stream.plan->ranges(i);
    std::string low = prefix + range.low();
    std::string high = range.high().empty() ? end : prefix + range.high();
    if (!stream.last.empty()) {
      std::string& passed = stream.descending ? high : low;
      const std::string last = prefix + stream.last;
      passed = stream.descending ? std::min(high, last) : std::max(low, last);
    }
    add(std::move(low), high);
  }
  std::vector<rocksdb::Range> asked;
  for (size_t i = 0; i < bounds.size(); i += 2) {
    asked.emplace_back(bounds[i], std::max(bounds[i], bounds[i + 1]));
  }
  const auto bytes_of = [&](bool files) -> std::optional<std::pair<double, double>> {
    std::vector<uint64_t> sizes(asked.size());
    rocksdb::SizeApproximationOptions options;
    options.include_files = files;
    options.include_memtables = !files;
    const auto status =
        context_.store->db()->GetApproximateSizes(options, context_.store->index(), asked.data(),
                                                  static_cast<int>(asked.size()), sizes.data());
    if (!status.ok()) return std::nullopt;
    double bytes = 0;
    for (size_t i = 1; i < sizes.size(); ++i) bytes += static_cast<double>(sizes[i]);
    bytes *= static_cast<double>(stream.plan->ranges_size()) / std::max(1, ranges);
    return std::pair(bytes, static_cast<double>(sizes[0]));
  };
  const auto files = bytes_of(true), memory = bytes_of(false);
  if (!files.has_value() || !memory.has_value()) return {};
  const uint64_t entries = stream.filter == nullptr ? 0 : stream.filter->entries();
  const double all = files->second + memory->second;
  const double of_one = entries > 0 && all > 0 ? all / static_cast<double>(entries) : kEntryBytes;
  const auto count = [&](double bytes) {
    return static_cast<uint64_t>(std::max(0.0, bytes) / of_one);
  };
  const double ends = kEndBytes * stream.plan->ranges_size();
  return {.likely = count(files->first + memory->first),
          .least = count(files->first - ends),
          .most = count(files->first + ends + memory->second)};
}

uint64_t BranchStreams::SizeOf(Stream* stream, uint64_t probe) {
  if (!stream->size.has_value()) NoteBound(stream);
  if (stream->is_exact || (stream->size.has_value() && probe <= stream->probed)) {
    return *stream->size;
  }
  const auto read = [&](uint64_t n) {
    stream->probed = std::max(stream->probed, n);
    stream->is_exact = ReadAhead(stream, stream->probed);
  };
  read(std::min(probe, context_.options.probe_entries));
  Estimate estimate;
  if (!stream->is_exact) {
    estimate = EstimateOf(*stream);
    if (estimate.least <= probe && probe <= estimate.most) read(probe);
  }
  const size_t ahead = Ahead(*stream);
  stream->size = stream->is_exact ? ahead : std::max<uint64_t>(ahead + 1, estimate.likely);
  return *stream->size;
}

BranchStreams::Stream* BranchStreams::Lead(uint32_t prefer, uint64_t probe) {
  Stream* leader = nullptr;
  size_t choices = 0;
  for (Stream& stream : streams_) {
    if (!stream.may_lead) continue;
    ++choices;
    if (leader == nullptr || stream.plan->index_id() == prefer) leader = &stream;
  }
  const bool preferred = leader != nullptr && leader->plan->index_id() == prefer;
  if (choices > 1 && !preferred && context_.options.streams_by_cost) leader = Smallest(probe);
  if (leader == nullptr) return nullptr;
  if (!preferred && !leader->size.has_value()) NoteBound(leader);
  Open(leader);
  return leader;
}

// Removes from `streams` each stream that has, by RocksDB's estimates, at least more entries than
// another stream has at most, or than `probe`.
void BranchStreams::LeaveOutLarger(uint64_t probe, std::vector<Stream*>* streams) const {
  uint64_t most = probe;
  std::vector<Estimate> estimates;
  for (Stream* stream : *streams) {
    estimates.push_back(EstimateOf(*stream));
    most = std::min(most, estimates.back().most);
    stream->size = std::max<uint64_t>(Ahead(*stream) + 1, estimates.back().likely);
  }
  size_t i = 0;
  std::erase_if(*streams, [&](const Stream*) { return estimates[i++].least > most; });
}

// How many entries of the other streams are read before this stream is opened: as many as, with
// their rows, cost twice as much as opening it. So little is lost if it is not the shortest one.
uint64_t BranchStreams::Handicap(const Stream& stream) { return OpeningCost(stream) / 4; }

BranchStreams::Stream* BranchStreams::Smallest(uint64_t probe) {
  Stream* least = nullptr;  // the least stream whose size is known
  const auto cost = [](const Stream& stream) { return *stream.size + Handicap(stream); };
  const auto note = [&](Stream* stream) {
    if (least == nullptr || cost(*stream) < cost(*least)) least = stream;
  };
  std::vector<Stream*> open;
  for (Stream& stream : streams_) {
    if (!stream.may_lead) continue;
    NoteBound(&stream);
    if (stream.is_exact) {
      note(&stream);
    } else {
      open.push_back(&stream);
    }
  }
  bool estimated = false;
  for (uint64_t n = kStep; !open.empty() && n < probe; n += std::max<uint64_t>(kStep, n / 8)) {
    if (least != nullptr && cost(*least) < n) return least;
    if (n > context_.options.probe_entries && !std::exchange(estimated, true)) {
      const std::vector<Stream*> all = open;
      LeaveOutLarger(probe, &open);
      if (open.empty() && least == nullptr) {
        return *std::ranges::min_element(all, {}, [&](const Stream* s) { return cost(*s); });
      }
      if (open.size() == 1 && least == nullptr) break;
    }
    std::erase_if(open, [&](Stream* stream) {
      if (n <= Handicap(*stream)) return false;
      stream->probed = n - Handicap(*stream);
      stream->is_exact = ReadAhead(stream, stream->probed);
      if (!stream->is_exact) return false;
      stream->size = Ahead(*stream);
      note(stream);
      return true;
    });
    // Every stream that is already open costs more than n.
    if (least != nullptr && cost(*least) <= n) return least;
  }
  if (open.size() == 1 && least == nullptr) return open.front();
  for (Stream* stream : open) {
    const uint64_t handicap = Handicap(*stream);
    SizeOf(stream, std::max(stream->probed, probe > handicap ? probe - handicap : 0));
    note(stream);
  }
  return least;
}

}  // namespace tamis
