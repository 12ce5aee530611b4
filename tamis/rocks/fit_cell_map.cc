#include "tamis/rocks/fit_cell_map.h"

#include <algorithm>
#include <string>

#include "tamis/base/random.h"
#include "tamis/rocks/entry_cursor.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/table/value_sample.h"

namespace tamis {
namespace {

constexpr size_t kSample = 200'000;  // values

// A sample of the values that were added, each with the same chance.
class Reservoir {
 public:
  void Add(std::string value) {
    ++seen_;
    if (values_.size() < kSample) {
      values_.push_back(std::move(value));
    } else if (const uint64_t place = random_.Uniform(seen_); place < kSample) {
      values_[place] = std::move(value);
    }
  }
  uint64_t seen() const { return seen_; }
  std::vector<std::string>& values() { return values_; }

 private:
  Random random_{1};
  uint64_t seen_ = 0;
  std::vector<std::string> values_;
};

}  // namespace

Result<CellMap> FitCellMap(const Store& store, const TableSchema& schema, const IndexSpec& index,
                           const std::vector<pb::RegionRecord>& regions, uint32_t cells_per_value) {
  Reservoir sample;
  rocksdb::ReadOptions read_options;
  read_options.fill_cache = false;
  for (const pb::RegionRecord& region : regions) {
    EntryCursor entries(store, IndexPrefix(region.id(), index.id), read_options);
    std::string before;  // the first value of the entry before
    for (entries.Seek(""); entries.Valid(); entries.Next()) {
      const auto split = SplitIndexEntry(schema, index, entries.entry());
      if (!split.ok()) continue;  // rebuilding the index mends it
      TAMIS_ASSIGN_OR_RETURN(IndexEntry entry, IndexEntry::OfValues(schema, index, split->first));
      std::string& first = entry.filter_key.first;
      if (first == before) continue;
      before = first;
      sample.Add(std::move(first));
    }
    TAMIS_RETURN_IF_ERROR(entries.status());
  }
  std::ranges::sort(sample.values());
  return FitCellMap({{.values = std::move(sample.values()), .distinct = sample.seen()}},
                    regions.size(), cells_per_value);
}

}  // namespace tamis
