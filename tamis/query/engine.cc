#include "tamis/query/engine.h"

#include "tamis/base/exception_status.h"
#include "tamis/query/coordinator.h"
#include "tamis/query/local_coordinator.h"

namespace tamis {

Engine::Engine(Cluster* cluster, Executor* executor, Options options)
    : Engine(std::make_unique<LocalCoordinator>(cluster, executor, options)) {}
Engine::Engine(std::unique_ptr<Coordinator> coordinator) : coordinator_(std::move(coordinator)) {}
Engine::~Engine() = default;

Cluster& Engine::cluster() { return coordinator_->cluster(); }
Executor& Engine::executor() { return coordinator_->executor(); }

Result<SchemaPtr> Engine::Table(const std::string& name) {
  return WithoutExceptions([&] { return coordinator_->tables().Table(name); });
}
void Engine::ForgetTable(const std::string& name) { coordinator_->tables().Forget(name); }

RowStream Engine::Search(SchemaPtr schema, SearchOptions options) {
  return RowStream(coordinator_->Search(std::move(schema), std::move(options)));
}

Result<std::optional<Row>> Engine::Get(SchemaPtr schema, const Row& key_row) {
  return WithoutExceptions([&] {
    std::vector<Predicate> equal;
    for (const uint32_t column : schema->key) {
      equal.push_back(Predicate::Compare(column, Predicate::Op::kEq, key_row[column]));
    }
    SearchOptions options;
    options.predicate = Predicate::And(std::move(equal));
    RowStream rows = Search(schema, std::move(options));
    return rows.Next();
  });
}

std::vector<Status> Engine::Apply(SchemaPtr schema, std::vector<Write> writes,
                                  const std::atomic<bool>* cancelled) {
  return coordinator_->Apply(std::move(schema), writes, cancelled);
}

void Engine::Leave(Duration patience) { coordinator_->Leave(patience); }

bool Engine::WaitUntilRouted(const TableSchema& schema, Duration timeout) {
  return coordinator_->WaitUntilRouted(schema, timeout);
}
Engine::Knowledge Engine::knowledge() const { return coordinator_->knowledge(); }
Engine::Totals Engine::totals() const { return coordinator_->totals(); }
std::vector<uint64_t> Engine::RoutedRegions(const TableSchema& schema) const {
  return coordinator_->RoutedRegions(schema);
}
bool Engine::LeavesOut(uint32_t table_id, const RoutingTerm& asked, const std::string& key) const {
  return coordinator_->LeavesOut(table_id, asked, key);
}

// ---- RowStream

RowStream::RowStream(std::unique_ptr<FoundRows> rows) : rows_(std::move(rows)) {}
RowStream::RowStream(RowStream&&) noexcept = default;
RowStream& RowStream::operator=(RowStream&&) noexcept = default;
RowStream::~RowStream() = default;

Result<std::optional<Row>> RowStream::Next() {
  TAMIS_ASSIGN_OR_RETURN(auto group, rows_->Next());
  if (!group.has_value()) return std::optional<Row>();
  return std::optional<Row>(std::move(group->row));
}
Result<std::optional<RowGroup>> RowStream::NextGroup() { return rows_->Next(); }
void RowStream::StopGrouping() { rows_->StopGrouping(); }
const Explain& RowStream::explain() const { return rows_->explain(); }

}  // namespace tamis
