#include "tamis/rocks/fit_cell_map.h"

#include <string>
#include <utility>

#include "tamis/rocks/entry_cursor.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/table/value_sample.h"

namespace tamis {
namespace {

constexpr size_t kSample = 200'000;  // values

}  // namespace

Result<CellMap> FitCellMap(const Store& store, const TableSchema& schema, const IndexSpec& index,
                           const std::vector<pb::RegionRecord>& regions, uint32_t cells_per_value) {
  ValueSampler sampler(kSample);
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
      sampler.Add(std::move(first));
    }
    TAMIS_RETURN_IF_ERROR(entries.status());
  }
  return FitCellMap({std::move(sampler).Take()}, regions.size(), cells_per_value);
}

}  // namespace tamis
