#include "tamis/remote/messages.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <utility>

#include "tamis/cluster/error.h"
#include "tamis/cluster/totals_message.h"
#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

Status DoesNotFit(const TableSchema& schema, const std::string& what) {
  return InvalidArgument("cannot read the request for table \"" + schema.name + "\": " + what);
}

Status CheckColumn(const TableSchema& schema, uint32_t column) {
  if (column < schema.columns.size()) return Status::Ok();
  return DoesNotFit(schema, "it has no column " + std::to_string(column));
}

// Columns of the schema, and no more than it has: a request's cost grows with its lists.
Result<std::vector<uint32_t>> Positions(const TableSchema& schema,
                                        const google::protobuf::RepeatedField<uint32_t>& field) {
  if (static_cast<size_t>(field.size()) > schema.columns.size()) {
    return DoesNotFit(schema, "it names " + std::to_string(field.size()) +
                                  " columns, and the table has " +
                                  std::to_string(schema.columns.size()));
  }
  for (const uint32_t column : field) TAMIS_RETURN_IF_ERROR(CheckColumn(schema, column));
  return std::vector<uint32_t>(field.begin(), field.end());
}

Result<Predicate> PredicateOf(const TableSchema& schema, const std::string& bytes) {
  if (bytes.empty()) return Predicate();
  TAMIS_ASSIGN_OR_RETURN(Predicate predicate, ParsePredicate(bytes));
  TAMIS_RETURN_IF_ERROR(predicate.Validate(schema));
  return predicate;
}

uint64_t Nanoseconds(Duration duration) {
  return static_cast<uint64_t>(std::max<int64_t>(0, duration.count()));
}

std::string Ordered(const Value& value) {
  std::string bytes;
  if (!value.is_null()) AppendOrdered(value, &bytes);
  return bytes;
}

Result<Value> ValueOf(Type type, std::string_view bytes) {
  if (bytes.empty()) return Value();
  TAMIS_ASSIGN_OR_RETURN(Value value, ReadOrdered(type, &bytes));
  if (!bytes.empty()) return DataLoss("a value of a group has bytes behind it");
  return value;
}

Type SumType(Type type) { return type == Type::kBool ? Type::kInt64 : type; }

constexpr uint64_t kMostExplainedRegions = 100'000;

constexpr std::array<std::pair<Write::Kind, pb::Mutation::Kind>, 4> kWriteKinds = {
    {{Write::Kind::kPut, pb::Mutation::PUT},
     {Write::Kind::kInsert, pb::Mutation::INSERT_IF_ABSENT},
     {Write::Kind::kUpdate, pb::Mutation::UPDATE},
     {Write::Kind::kDelete, pb::Mutation::DELETE}}};

}  // namespace

void ToMessage(const Status& status, pb::Outcome* message) {
  message->set_code(static_cast<pb::Error::Code>(status.code()));
  message->set_message(status.message());
}

Status FromMessage(const pb::Outcome& message) {
  pb::Error error;
  error.set_code(message.code());
  error.set_message(message.message());
  return ToStatus(error);
}

pb::TableSearch ToMessage(const TableSchema& schema, const SearchOptions& options) {
  pb::TableSearch message;
  message.set_table_id(schema.id);
  message.set_schema_version(schema.version);
  message.set_predicate(SerializePredicate(options.predicate));
  message.set_all_columns(!options.columns.has_value());
  if (options.columns)
    message.mutable_columns()->Assign(options.columns->begin(), options.columns->end());
  message.set_limit(options.limit);
  message.set_first_rows(options.first_rows);
  message.set_groups(static_cast<pb::TableSearch::Groups>(options.groups));
  message.mutable_totals()->Assign(options.totals.begin(), options.totals.end());
  message.set_key_order(options.key_order);
  for (const OrderTerm& term : options.order) {
    pb::TableSearch::OrderTerm* out = message.add_order();
    out->set_column(term.column);
    out->set_descending(term.descending);
  }
  message.set_remark(options.remark);
  message.set_without_filters(!options.use_filters);
  message.set_without_indexes(!options.use_indexes);
  message.set_timeout_ns(Nanoseconds(options.timeout));
  message.set_explained_regions(options.explained_regions);
  return message;
}

Result<SearchOptions> FromMessage(const TableSchema& schema, const pb::TableSearch& message) {
  SearchOptions options;
  TAMIS_ASSIGN_OR_RETURN(options.predicate, PredicateOf(schema, message.predicate()));
  if (!message.all_columns()) {
    TAMIS_ASSIGN_OR_RETURN(options.columns, Positions(schema, message.columns()));
  }
  options.limit = message.limit();
  options.first_rows = message.first_rows();
  if (!pb::TableSearch::Groups_IsValid(message.groups())) {
    return DoesNotFit(schema, "it asks for groups of an unknown kind");
  }
  options.groups = static_cast<SearchOptions::Groups>(message.groups());
  TAMIS_ASSIGN_OR_RETURN(options.totals, Positions(schema, message.totals()));
  for (const uint32_t column : options.totals) {
    const bool wanted = options.columns && std::ranges::count(*options.columns, column) > 0;
    if (!wanted || options.groups == SearchOptions::Groups::kNone) {
      return DoesNotFit(schema, "totals need groups, and are of columns that are wanted");
    }
  }
  options.key_order = message.key_order();
  std::vector<bool> ordered(schema.columns.size());
  for (const pb::TableSearch::OrderTerm& term : message.order()) {
    TAMIS_RETURN_IF_ERROR(CheckColumn(schema, term.column()));
    // A later term on the same column changes nothing.
    if (ordered[term.column()]) continue;
    ordered[term.column()] = true;
    options.order.push_back({.column = term.column(), .descending = term.descending()});
  }
  if (options.key_order && !options.order.empty()) {
    return DoesNotFit(schema, "there are two orders");
  }
  options.remark = message.remark();
  options.explained_regions =
      std::min<uint64_t>(message.explained_regions(), kMostExplainedRegions);
  options.use_filters = !message.without_filters();
  options.use_indexes = !message.without_indexes();
  options.timeout = SentDuration(message.timeout_ns() == 0 ? UINT64_MAX : message.timeout_ns());
  return options;
}

pb::TableAggregate ToMessage(const TableSchema& schema, const AggregateOptions& options) {
  pb::TableAggregate message;
  message.set_table_id(schema.id);
  message.set_schema_version(schema.version);
  message.set_predicate(SerializePredicate(options.predicate));
  message.mutable_by()->Assign(options.by.begin(), options.by.end());
  message.mutable_totals()->Assign(options.totals.begin(), options.totals.end());
  message.set_max_groups(options.max_groups);
  message.set_without_filters(!options.use_filters);
  message.set_without_indexes(!options.use_indexes);
  message.set_timeout_ns(Nanoseconds(options.timeout));
  return message;
}

Result<AggregateOptions> FromMessage(const TableSchema& schema, const pb::TableAggregate& message) {
  AggregateOptions options;
  TAMIS_ASSIGN_OR_RETURN(options.predicate, PredicateOf(schema, message.predicate()));
  TAMIS_ASSIGN_OR_RETURN(options.by, Positions(schema, message.by()));
  TAMIS_ASSIGN_OR_RETURN(options.totals, Positions(schema, message.totals()));
  options.max_groups = std::min<uint64_t>(options.max_groups, message.max_groups());
  options.use_filters = !message.without_filters();
  options.use_indexes = !message.without_indexes();
  options.timeout = SentDuration(message.timeout_ns() == 0 ? UINT64_MAX : message.timeout_ns());
  return options;
}

void ToMessage(const Explain& explain, pb::SearchExplain* message) {
  message->set_table(explain.table);
  message->set_predicate(explain.predicate);
  message->set_index(explain.index);
  for (const std::string& term : explain.terms) message->add_terms(term);
  message->set_reason(explain.reason);
  for (const Explain::Number& number : Explain::Numbers()) {
    if (explain.*number.value > 0) {
      (*message->mutable_numbers())[std::string(number.name)] = explain.*number.value;
    }
  }
  for (const Explain::Time& time : Explain::Times()) {
    (*message->mutable_times_ns())[std::string(time.name)] = Nanoseconds(explain.*time.value);
  }
  for (const Explain::IndexUse& use : explain.uses) {
    pb::SearchExplain::Use* out = message->add_uses();
    out->set_index(use.index);
    out->set_led(use.led);
    out->set_joined(use.joined);
    out->set_entries_expected(use.entries_expected);
    out->set_entries_read(use.entries_read);
  }
  message->set_searches(explain.searches);
  for (const Explain::Region& region : explain.regions) {
    pb::SearchExplain::Region* out = message->add_regions();
    out->set_id(region.id);
    out->set_outcome(static_cast<uint32_t>(region.outcome));
  }
}

Explain FromMessage(const pb::SearchExplain& message) {
  Explain explain{.table = message.table(),
                  .predicate = message.predicate(),
                  .index = message.index(),
                  .terms = {message.terms().begin(), message.terms().end()},
                  .reason = message.reason()};
  for (const Explain::Number& number : Explain::Numbers()) {
    const auto found = message.numbers().find(std::string(number.name));
    if (found != message.numbers().end()) explain.*number.value = found->second;
  }
  for (const Explain::Time& time : Explain::Times()) {
    const auto found = message.times_ns().find(std::string(time.name));
    if (found != message.times_ns().end()) explain.*time.value = SentDuration(found->second);
  }
  for (const pb::SearchExplain::Use& use : message.uses()) {
    explain.uses.push_back({.index = use.index(),
                            .led = use.led(),
                            .joined = use.joined(),
                            .entries_expected = use.entries_expected(),
                            .entries_read = use.entries_read()});
  }
  explain.searches = message.searches();
  for (const pb::SearchExplain::Region& region : message.regions()) {
    explain.regions.push_back({.id = region.id(),
                               .outcome = region.outcome() < Explain::kOutcomes
                                              ? static_cast<Explain::Outcome>(region.outcome())
                                              : Explain::Outcome::kNotAsked});
  }
  return explain;
}

Status ToMessage(const TableSchema& schema, const RowGroup& group, pb::FoundRow* message) {
  if (group.has_key) {
    TAMIS_ASSIGN_OR_RETURN(*message->mutable_key(), KeyFormat(schema).Encode(group.row));
  } else {
    message->set_count(group.count);
  }
  message->set_row(EncodeRow(schema, group.row));
  for (const ColumnTotals& totals : group.totals) SetTotals(totals, message->add_totals());
  return Status::Ok();
}

Result<RowGroup> FromMessage(const TableSchema& schema, const std::vector<uint32_t>& totals,
                             const pb::FoundRow& message) {
  RowGroup group{.row = Row(schema.columns.size()), .has_key = message.count() == 0};
  if (group.has_key) {
    TAMIS_RETURN_IF_ERROR(KeyFormat(schema).Decode(message.key(), &group.row));
  } else {
    group.count = message.count();
  }
  TAMIS_RETURN_IF_ERROR(DecodeRow(schema, message.row(), &group.row));
  const auto sent = static_cast<size_t>(message.totals_size());
  if (sent != 0 && sent != totals.size()) return DataLoss("totals do not fit the columns");
  for (size_t i = 0; i < sent; ++i) {
    TAMIS_ASSIGN_OR_RETURN(ColumnTotals one, ToTotals(schema.columns[totals[i]].type,
                                                      message.totals(static_cast<int>(i))));
    group.totals.push_back(std::move(one));
  }
  return group;
}

void ToMessage(const AggregateGroup& group, pb::FoundGroup* message) {
  for (const Value& value : group.by) message->add_by(Ordered(value));
  message->set_count(group.count);
  for (const ColumnAggregate& totals : group.totals) {
    pb::FoundGroup::Column* out = message->add_totals();
    out->set_values(totals.values);
    out->set_sum(Ordered(totals.sum));
    out->set_least(Ordered(totals.least));
    out->set_greatest(Ordered(totals.greatest));
  }
}

Result<AggregateGroup> FromMessage(const TableSchema& schema, const AggregateOptions& options,
                                   const pb::FoundGroup& message) {
  if (static_cast<size_t>(message.by_size()) != options.by.size() ||
      static_cast<size_t>(message.totals_size()) != options.totals.size()) {
    return DataLoss("a group does not have the columns that were asked for");
  }
  AggregateGroup group{.by = {}, .count = message.count(), .totals = {}};
  for (size_t i = 0; i < options.by.size(); ++i) {
    TAMIS_ASSIGN_OR_RETURN(
        Value value, ValueOf(schema.columns[options.by[i]].type, message.by(static_cast<int>(i))));
    group.by.push_back(std::move(value));
  }
  for (size_t i = 0; i < options.totals.size(); ++i) {
    const Type type = schema.columns[options.totals[i]].type;
    const pb::FoundGroup::Column& sent = message.totals(static_cast<int>(i));
    ColumnAggregate totals{.values = sent.values()};
    TAMIS_ASSIGN_OR_RETURN(totals.sum, ValueOf(SumType(type), sent.sum()));
    TAMIS_ASSIGN_OR_RETURN(totals.least, ValueOf(type, sent.least()));
    TAMIS_ASSIGN_OR_RETURN(totals.greatest, ValueOf(type, sent.greatest()));
    group.totals.push_back(std::move(totals));
  }
  return group;
}

Status ToMessage(const TableSchema& schema, const Write& write, pb::Mutation* message) {
  const auto kind =
      std::ranges::find(kWriteKinds, write.kind, &decltype(kWriteKinds)::value_type::first);
  message->set_kind(kind->second);
  TAMIS_ASSIGN_OR_RETURN(*message->mutable_key(), KeyFormat(schema).Encode(write.row));
  if (write.kind != Write::Kind::kDelete) message->set_row(EncodeRow(schema, write.row));
  for (const uint32_t column : write.columns) message->add_columns(schema.columns[column].id);
  if (write.condition) message->set_condition(SerializePredicate(*write.condition));
  return Status::Ok();
}

Result<Write> FromMessage(const TableSchema& schema, const pb::Mutation& message) {
  const auto kind =
      std::ranges::find(kWriteKinds, message.kind(), &decltype(kWriteKinds)::value_type::second);
  if (kind == kWriteKinds.end()) return DoesNotFit(schema, "a write is of an unknown kind");
  Write write{.kind = kind->first, .row = Row(schema.columns.size())};
  Status decoded = KeyFormat(schema).Decode(message.key(), &write.row);
  if (decoded.ok()) decoded = DecodeRow(schema, message.row(), &write.row);
  // These bytes are the client's, not the store's.
  if (!decoded.ok()) return DoesNotFit(schema, decoded.message());
  if (static_cast<size_t>(message.columns_size()) > schema.columns.size()) {
    return DoesNotFit(schema, "an update names more columns than it has");
  }
  for (const uint32_t id : message.columns()) {
    const auto column = std::ranges::find(schema.columns, id, &Column::id);
    if (column == schema.columns.end()) {
      return DoesNotFit(schema, "it has no column with id " + std::to_string(id));
    }
    write.columns.push_back(static_cast<uint32_t>(column - schema.columns.begin()));
  }
  if (!message.condition().empty()) {
    TAMIS_ASSIGN_OR_RETURN(write.condition, PredicateOf(schema, message.condition()));
  }
  return write;
}

void ToMessage(const RegionInfo& region, pb::RegionState* message) {
  message->set_id(region.id.number());
  message->set_name(region.name);
  message->set_epoch(region.epoch);
  message->set_table_id(region.table_id);
  message->set_start(region.start);
  message->set_end(region.end);
  message->set_server(region.server);
  message->set_size_bytes(region.size_bytes);
  if (!region.unserved.ok()) SetError(region.unserved, message->mutable_unserved());
}

Result<RegionInfo> FromMessage(const pb::RegionState& message) {
  TAMIS_ASSIGN_OR_RETURN(const RegionId id, RegionId::Of(message.id()));
  return RegionInfo{.id = id,
                    .name = message.name(),
                    .epoch = message.epoch(),
                    .table_id = message.table_id(),
                    .start = message.start(),
                    .end = message.end(),
                    .server = message.server(),
                    .size_bytes = message.size_bytes(),
                    .unserved = message.has_unserved() ? FailureOf(message.unserved()) : Status()};
}

void ToMessage(const IndexProgress& progress, pb::ClusterAnswer::Progress* message) {
  message->set_regions(progress.regions);
  message->set_complete(progress.complete);
  message->set_entries(progress.entries);
  if (!progress.failure.has_value()) return;
  message->set_failing(progress.failing);
  const IndexFailure& failure = *progress.failure;
  pb::RegionIndexFailure* out = message->mutable_failure();
  out->set_region(failure.region.number());
  out->set_server(failure.server);
  out->set_attempts(failure.attempts);
  out->set_given_up(failure.given_up);
  SetError(failure.reason, out->mutable_reason());
}

Result<IndexProgress> FromMessage(const pb::ClusterAnswer::Progress& message) {
  IndexProgress progress{
      .regions = message.regions(), .complete = message.complete(), .entries = message.entries()};
  if (!message.has_failure()) return progress;
  const pb::RegionIndexFailure& failure = message.failure();
  TAMIS_ASSIGN_OR_RETURN(const RegionId region, RegionId::Of(failure.region()));
  progress.failing = std::max<uint64_t>(1, message.failing());
  progress.failure = IndexFailure{.region = region,
                                  .server = failure.server(),
                                  .attempts = failure.attempts(),
                                  .given_up = failure.given_up(),
                                  .reason = FailureOf(failure.reason())};
  return progress;
}

void ToMessage(const ServerStatus& server, pb::ServerState* message) {
  message->set_name(server.info.name);
  message->set_state(static_cast<uint32_t>(server.info.state));
  message->set_regions(server.info.regions);
  message->set_filter_bytes(server.filter_bytes);
  message->set_max_filter_bytes(server.max_filter_bytes);
  message->set_filters_of_bits(server.filters_of_bits);
  message->set_feed_events(server.feed_events);
  message->set_feed_bytes(server.feed_bytes);
  message->set_searches(server.searches);
  message->set_regions_searched(server.regions_searched);
  message->set_file_filters_asked(server.file_filters_asked);
  message->set_file_filters_said_no(server.file_filters_said_no);
  message->set_file_filters_missing(server.file_filters_missing);
  for (const CoordinatorStatus& coordinator : server.coordinators) {
    pb::CoordinatorStatus* out = message->add_coordinators();
    out->set_coordinator(coordinator.coordinator);
    out->set_events_behind(coordinator.events_behind);
    out->set_lease_left_ns(Nanoseconds(coordinator.lease_left));
    out->set_user(coordinator.user);
    out->set_host(coordinator.host);
  }
}

ServerStatus FromMessage(const pb::ServerState& message) {
  using State = ServerInfo::State;
  ServerStatus server{.info = {.name = message.name(),
                               .state = message.state() <= static_cast<uint32_t>(State::kDead)
                                            ? static_cast<State>(message.state())
                                            : State::kDead,
                               .regions = message.regions()},
                      .filter_bytes = message.filter_bytes(),
                      .max_filter_bytes = message.max_filter_bytes(),
                      .filters_of_bits = message.filters_of_bits(),
                      .feed_events = message.feed_events(),
                      .feed_bytes = message.feed_bytes(),
                      .searches = message.searches(),
                      .regions_searched = message.regions_searched(),
                      .file_filters_asked = message.file_filters_asked(),
                      .file_filters_said_no = message.file_filters_said_no(),
                      .file_filters_missing = message.file_filters_missing(),
                      .coordinators = {}};
  for (const pb::CoordinatorStatus& coordinator : message.coordinators()) {
    server.coordinators.push_back({.coordinator = coordinator.coordinator(),
                                   .events_behind = coordinator.events_behind(),
                                   .lease_left = SentDuration(coordinator.lease_left_ns()),
                                   .user = coordinator.user(),
                                   .host = coordinator.host()});
  }
  return server;
}

void ToMessage(const JobSpec& job, pb::Job* message) {
  message->set_kind(static_cast<uint32_t>(job.kind));
  message->set_table(job.table);
  message->set_index(job.index);
  message->set_cells_per_value(job.cells_per_value);
}

Result<JobSpec> FromMessage(const pb::Job& message) {
  if (message.kind() > static_cast<uint32_t>(JobSpec::Kind::kCompact)) {
    return InvalidArgument("cannot run a job of kind " + std::to_string(message.kind()) +
                           ": this version does not know it");
  }
  return JobSpec{.kind = static_cast<JobSpec::Kind>(message.kind()),
                 .table = message.table(),
                 .index = message.index(),
                 .cells_per_value = message.cells_per_value()};
}

void ToMessage(const JobInfo& job, pb::JobState* message) {
  ToMessage(job.spec, message->mutable_job());
  message->set_ended(job.ended);
  ToMessage(job.status, message->mutable_status());
  message->set_done(job.done);
  message->set_total(job.total);
  pb::RegionCheck* check = message->mutable_check();
  check->set_rows(job.check.rows);
  check->set_entries(job.check.entries);
  check->set_filter_lookups(job.check.filter_lookups);
  check->set_garbage(job.check.garbage);
  check->set_incomplete(job.check.incomplete);
  check->set_missing_entries(job.check.missing_entries);
  check->set_foreign_entries(job.check.foreign_entries);
  check->set_missing_in_filter(job.check.missing_in_filter);
  check->set_undecodable_cells(job.check.undecodable_cells);
  check->set_unparsed_rows(job.check.unparsed_rows);
  for (const std::string& problem : job.check.problems) check->add_problems(problem);
  message->set_checked_regions(job.check.regions);
  message->set_damaged_keys(job.check.damaged_keys);
  message->set_moved(job.moved);
}

Result<JobInfo> FromMessage(const pb::JobState& message) {
  JobInfo job;
  TAMIS_ASSIGN_OR_RETURN(job.spec, FromMessage(message.job()));
  job.ended = message.ended();
  job.status = FromMessage(message.status());
  job.done = message.done();
  job.total = message.total();
  const pb::RegionCheck& check = message.check();
  job.check = {.regions = message.checked_regions(),
               .rows = check.rows(),
               .entries = check.entries(),
               .filter_lookups = check.filter_lookups(),
               .garbage = check.garbage(),
               .incomplete = check.incomplete(),
               .missing_entries = check.missing_entries(),
               .foreign_entries = check.foreign_entries(),
               .missing_in_filter = check.missing_in_filter(),
               .undecodable_cells = check.undecodable_cells(),
               .unparsed_rows = check.unparsed_rows(),
               .damaged_keys = message.damaged_keys(),
               .problems = {check.problems().begin(), check.problems().end()}};
  job.moved = message.moved();
  return job;
}

void AppendPart(const google::protobuf::MessageLite& message, std::string* stream) {
  uint64_t size = message.ByteSizeLong();
  for (; size >= 0x80; size >>= 7) stream->push_back(static_cast<char>(size | 0x80));
  stream->push_back(static_cast<char>(size));
  message.AppendToString(stream);
}

void StreamParts::Append(std::string_view bytes) {
  bytes_.erase(0, std::exchange(taken_, 0));
  bytes_ += bytes;
}

Result<bool> StreamParts::Next(google::protobuf::MessageLite* message) {
  const std::string_view rest = std::string_view(bytes_).substr(taken_);
  uint64_t size = 0;
  size_t at = 0;
  for (;; ++at) {
    if (at == rest.size()) return false;
    if (at > 4) return DataLoss("the answer of the server is no stream of messages");
    const auto byte = static_cast<unsigned char>(rest[at]);
    size |= uint64_t{byte & 0x7fu} << (7 * at);
    if (byte < 0x80) break;
  }
  ++at;
  if (size > kMaxPartBytes) return DataLoss("a part of the server's answer is too long");
  if (rest.size() - at < size) return false;
  if (!message->ParseFromArray(rest.data() + at, static_cast<int>(size))) {
    return DataLoss("a part of the server's answer is no message");
  }
  taken_ += at + size;
  return true;
}

}  // namespace tamis
