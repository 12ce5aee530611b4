#include "tamis/sql/session.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "tamis/cluster/await_index.h"
#include "tamis/cluster/await_job.h"
#include "tamis/query/define_table.h"
#include "tamis/sql/write_buffer.h"

namespace tamis {
namespace {

constexpr double kBytesPerRow = 150;
constexpr double kLeastRows = 100;
// Assumed for a region that does not know its size yet; a table of one region may be small.
constexpr double kRowsPerRegion = 20'000;
constexpr double kRowsOfOneRegion = 1000;
constexpr Duration kEstimateAge = std::chrono::seconds(5);
constexpr Duration kPatience = std::chrono::seconds(60);

}  // namespace

Status Session::CheckOpen() const {
  if (engine != nullptr) return Status::Ok();
  if (!open) return FailedPrecondition("there is no store yet; CREATE TABLE makes it");
  return FailedPrecondition("no store is open; run SELECT tamis_open('DIRECTORY') first");
}

bool Session::HasDroppedColumns() const {
  return std::ranges::any_of(declared, [this](const auto& table) {
    const TableSchema& then = *table.second;
    const auto now = engine->Table(table.first);
    return now.ok() && (*now)->id == then.id &&
           !std::ranges::equal(then.columns,
                               (*now)->columns | std::views::take(then.columns.size()), {},
                               &Column::name, &Column::name);
  });
}

bool Session::HasUnsentWrites() const {
  return std::ranges::any_of(write_buffers,
                             [](const WriteBuffer* writes) { return writes->size() > 0; });
}

void Session::Note(Explain search) {
  const std::string why = std::exchange(aggregated_by_sqlite, {});
  if (searches == nullptr) return;
  if (!why.empty()) {
    search.reason +=
        (search.reason.empty() ? "" : "; ") + ("SQLite computes the aggregates: " + why);
  }
  // Searches that ran at the same time may have noted more regions than are left.
  if (search.regions.size() > explained_regions) search.regions.clear();
  explained_regions -= search.regions.size();
  if (searches->size() < std::max<size_t>(1, most_searches)) {
    searches->push_back(std::move(search));
    return;
  }
  Explain numbers;  // without the texts, which would grow
  numbers.searches = search.searches;
  for (const Explain::Number& number : Explain::Numbers()) {
    numbers.*number.value = search.*number.value;
  }
  for (const Explain::Time& time : Explain::Times()) numbers.*time.value = search.*time.value;
  Explain& sum = searches->back();
  sum.searches = std::max<uint64_t>(1, sum.searches);
  sum.Add(numbers);
}

Status Session::CheckAdmin() const {
  if (engine != nullptr && admin != nullptr) return Status::Ok();
  TAMIS_RETURN_IF_ERROR(CheckOpen());
  return FailedPrecondition(
      "this connection may not create or change tables: its program opened the store without its "
      "administration; use `tamis sql`");
}

Wait Session::Patience() const {
  return {.deadline = engine->executor().Now() + kPatience, .cancelled = &cancelled};
}

Result<std::vector<TableSchema>> Session::Tables() {
  return Ask<std::vector<TableSchema>>(
      [](Cluster& cluster, auto done) { cluster.ListTables(std::move(done)); });
}

Result<SchemaPtr> Session::Define(const TableSchema& definition) {
  if (!engine->Table(definition.name).ok()) TAMIS_RETURN_IF_ERROR(CheckAdmin());
  return DefineTable(engine.get(), admin.get(), definition, Patience());
}

Result<JobInfo> Session::Run(JobSpec spec) {
  TAMIS_RETURN_IF_ERROR(CheckAdmin());
  return AwaitJob(admin.get(), &engine->executor(), {.cancelled = &cancelled}, std::move(spec));
}

Result<IndexProgress> Session::AwaitIndex(const std::string& table, const std::string& index,
                                          const std::function<void(const IndexProgress&)>& show) {
  TAMIS_RETURN_IF_ERROR(CheckAdmin());
  return tamis::AwaitIndex(admin.get(), &engine->executor(), {.cancelled = &cancelled}, table,
                           index, show);
}

double Session::EstimatedRows(const TableSchema& schema) {
  const Time now = engine->executor().Now();
  const auto known = estimates_.find(schema.id);
  if (known != estimates_.end() && now - known->second.taken < kEstimateAge) {
    return known->second.rows;
  }
  Estimate estimate{.rows = kRowsOfOneRegion, .taken = now};
  const auto regions = Ask<std::vector<RegionInfo>>(
      [&](Cluster& cluster, auto done) { cluster.ListRegions(schema.name, {}, std::move(done)); });
  if (regions.ok()) {
    double bytes = 0;
    for (const RegionInfo& region : *regions) bytes += static_cast<double>(region.size_bytes);
    const double unknown = regions->size() > 1
                               ? kRowsPerRegion * static_cast<double>(regions->size())
                               : kRowsOfOneRegion;
    estimate.rows = bytes > 0 ? std::max(kLeastRows, bytes / kBytesPerRow) : unknown;
  }
  estimates_[schema.id] = estimate;
  return estimate.rows;
}

}  // namespace tamis
