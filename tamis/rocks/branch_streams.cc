#include "tamis/rocks/branch_streams.h"

#include <algorithm>
#include <vector>

namespace tamis {
namespace {

constexpr size_t kStep = 4;              // entries read ahead of each stream in turn
constexpr int kMaxEstimatedRanges = 64;  // of one stream; more are taken to be like these
constexpr uint64_t kEntryBytes = 24;     // where nothing is known

}  // namespace

rocksdb::Status BranchStreams::Stream::status() const {
  if (by_key.has_value()) return by_key->status();
  return by_entry.has_value() ? by_entry->status() : rocksdb::Status::OK();
}

void BranchStreams::Add(const pb::IndexStream& stream, const IndexSpec& index,
                        std::shared_ptr<IndexFilter> filter, bool may_lead, KeyRange keys,
                        std::string last) {
  Stream& added = streams_.emplace_back();
  added.plan = &stream;
  added.index = &index;
  added.filter = std::move(filter);
  added.may_lead = may_lead;
  added.keys = std::move(keys);
  added.last = std::move(last);
}

void BranchStreams::Open(Stream* stream) {
  if (stream->by_key.has_value() || stream->by_entry.has_value()) return;
  Store* store = context_.store;
  std::string prefix = IndexPrefix(region_id_, stream->index->id);
  if (stream->equality()) {
    stream->by_key.emplace(store->db(), store->index(), read_options_, prefix, *stream->plan,
                           stream->keys, &stream->read);
  } else {
    stream->by_entry.emplace(store->db(), store->index(), read_options_, std::move(prefix),
                             *stream->plan, stream->last, &stream->read);
  }
}

bool BranchStreams::ReadAhead(Stream* stream, size_t n) {
  Open(stream);
  return stream->equality() ? stream->by_key->ReadAhead(n) : stream->by_entry->ReadAhead(n);
}

size_t BranchStreams::Ahead(const Stream& stream) {
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

// By what RocksDB says that the ranges take of the whole index, in files and in memory.
uint64_t BranchStreams::Estimate(const Stream& stream) const {
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
    add(prefix + std::max(range.low(), stream.last),
        range.high().empty() ? end : prefix + range.high());
  }
  std::vector<rocksdb::Range> asked;
  for (size_t i = 0; i < bounds.size(); i += 2) {
    asked.emplace_back(bounds[i], std::max(bounds[i], bounds[i + 1]));
  }
  std::vector<uint64_t> sizes(asked.size());
  rocksdb::SizeApproximationOptions options;
  options.include_memtables = true;
  const auto status = context_.store->db()->GetApproximateSizes(
      options, context_.store->index(), asked.data(), static_cast<int>(asked.size()), sizes.data());
  if (!status.ok()) return ~uint64_t{0};
  double bytes = 0;
  for (size_t i = 1; i < sizes.size(); ++i) bytes += static_cast<double>(sizes[i]);
  bytes *= static_cast<double>(stream.plan->ranges_size()) / std::max(1, ranges);
  const uint64_t entries = stream.filter == nullptr ? 0 : stream.filter->entries();
  const double of_one = entries > 0 && sizes[0] > 0
                            ? static_cast<double>(sizes[0]) / static_cast<double>(entries)
                            : kEntryBytes;
  return static_cast<uint64_t>(bytes / of_one);
}

uint64_t BranchStreams::SizeOf(Stream* stream) {
  if (stream->size.has_value()) return *stream->size;
  stream->size = Bound(*stream);
  if (stream->size.has_value()) return *stream->size;
  const bool all = ReadAhead(stream, context_.options.probe_entries);
  const size_t ahead = Ahead(*stream);
  stream->size = all ? ahead : std::max<uint64_t>(ahead + 1, Estimate(*stream));
  return *stream->size;
}

BranchStreams::Stream* BranchStreams::Lead(uint32_t prefer) {
  Stream* leader = nullptr;
  size_t choices = 0;
  for (Stream& stream : streams_) {
    if (!stream.may_lead) continue;
    ++choices;
    if (leader == nullptr || stream.plan->index_id() == prefer) leader = &stream;
  }
  const bool preferred = leader != nullptr && leader->plan->index_id() == prefer;
  if (choices > 1 && !preferred && context_.options.streams_by_cost) leader = Smallest();
  if (leader == nullptr) return nullptr;
  if (!preferred && !leader->size.has_value()) leader->size = Bound(*leader);
  Open(leader);
  return leader;
}

BranchStreams::Stream* BranchStreams::Smallest() {
  Stream* least = nullptr;  // of those whose size is known
  const auto note = [&](Stream* stream, uint64_t size) {
    stream->size = size;
    if (least == nullptr || size < *least->size) least = stream;
  };
  std::vector<Stream*> open;
  for (Stream& stream : streams_) {
    if (!stream.may_lead) continue;
    if (const auto bound = Bound(stream)) {
      note(&stream, *bound);
    } else {
      open.push_back(&stream);
    }
  }
  for (size_t n = kStep; !open.empty(); n += kStep) {
    if (least != nullptr && *least->size < n) return least;
    n = std::min<size_t>(n, context_.options.probe_entries);
    std::erase_if(open, [&](Stream* stream) {
      const bool all = ReadAhead(stream, n);
      if (all) note(stream, Ahead(*stream));
      return all;
    });
    if (least != nullptr && *least->size <= n) return least;
    if (n == context_.options.probe_entries) break;
  }
  for (Stream* stream : open) note(stream, SizeOf(stream));
  return least;
}

}  // namespace tamis
