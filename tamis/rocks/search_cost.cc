#include "tamis/rocks/search_cost.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tamis {

uint64_t SearchCost::Probe(bool may_scan, uint64_t entry_cost) const {
  const RegionServerOptions& options = context_.options;
  const uint64_t most =
      std::max(options.probe_entries, std::min(options.page_candidates, kRow * max_rows_));
  const auto rows =
      may_scan && snapshot_.IsWhole() ? snapshot_.RowsOfRegion(schema_) : std::nullopt;
  return rows.has_value() ? std::min(most, *rows * kScannedRow / entry_cost + 1) : most;
}

bool SearchCost::IsScanCheaper(BranchStreams* streams, BranchStreams::Stream* driving) const {
  const auto rows = snapshot_.RowsOfRegion(schema_);
  if (!rows.has_value()) return false;
  const uint64_t entry_cost = EntryCost(*driving);
  const uint64_t entries = streams->SizeOf(driving, Probe(true, entry_cost));
  // The number of rows that cost as much when they are read in order.
  const uint64_t most = (entries * entry_cost + BranchStreams::OpeningCost(*driving)) / kScannedRow;
  if (snapshot_.IsWhole()) return *rows <= most;
  if (entries <= kFew) return false;
  // So few rows that they can be counted?
  if (entries <= context_.options.probe_entries) {
    return snapshot_.CountRows(2 * entries) < 2 * entries;
  }
  const auto share = snapshot_.ShareOfRegion();
  return share.has_value() && static_cast<double>(*rows) * *share <= static_cast<double>(most);
}

uint64_t SearchCost::MostToJoin(BranchStreams* streams, BranchStreams::Stream* stream, double share,
                                double left) const {
  // Half of what it spares, so that little is lost where the first rows are not like the rest.
  const auto spared = static_cast<uint64_t>(left * (1 - share) * kRow / 2);
  const auto most = std::min<uint64_t>(context_.options.page_candidates, spared);
  const uint64_t opening = BranchStreams::OpeningCost(*stream);
  if (most < kSample + opening) return 0;
  return streams->SizeOf(stream, most) > most - opening ? 0
                                                        : most;  // reads so many only if in doubt
}

// At most n of the walked entries are of rows that match, where another stream has n: a wanted row
// needs all / n entries and their rows, while the other way reads n rows.
uint64_t SearchCost::MostToSort(BranchStreams* streams, BranchStreams::Stream* walked) const {
  if (!context_.options.streams_by_cost) return 0;
  if (walked->filter == nullptr || !walked->filter->published()) return 0;
  const pb::IndexStream& plan = *walked->plan;
  const bool whole =
      plan.ranges_size() == 1 && plan.ranges(0).low().empty() && plan.ranges(0).high().empty();
  uint64_t all = walked->filter->entries();
  if (!whole) all = std::min(all, streams->SizeOf(walked, context_.options.probe_entries));
  const auto most = static_cast<uint64_t>(std::sqrt(static_cast<double>(max_rows_ * all)));
  return std::min(most, context_.options.page_candidates);
}

BranchStreams::Stream* SearchCost::StreamToSort(BranchStreams* streams,
                                                BranchStreams::Stream* walked) const {
  if (streams->all().size() < 2) return nullptr;
  const uint64_t most = MostToSort(streams, walked);
  BranchStreams::Stream* least = nullptr;
  for (BranchStreams::Stream& stream : streams->all()) {
    if (&stream == walked || most == 0) continue;
    const uint64_t size = streams->SizeOf(&stream, most);
    if (!stream.is_exact || size >= most) continue;
    if (least == nullptr || size < *least->size) least = &stream;
  }
  return least;
}

bool SearchCost::IsSortOfRowsCheaper(BranchStreams* streams, BranchStreams::Stream* walked) const {
  if (snapshot_.IsWhole()) return false;
  const uint64_t most = MostToSort(streams, walked);
  return most > 0 && snapshot_.CountRows(most) < most;
}

}  // namespace tamis
