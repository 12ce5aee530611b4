#include "bench/simulated_cluster.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "tamis/base/hash.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

TableSchema Definition(size_t regions) {
  TableSchema schema;
  schema.id = 1;
  schema.name = "scale";
  schema.columns = {{.id = 1, .name = "id", .type = Type::kInt64, .nullable = false},
                    {.id = 2, .name = "wide", .type = Type::kInt64},
                    {.id = 3, .name = "narrow", .type = Type::kInt64},
                    {.id = 4, .name = "third", .type = Type::kInt64}};
  schema.key = {0};
  // Where there are most regions the second index is a small one.
  schema.indexes = {
      {.id = 1, .name = "wide", .columns = {1}, .fpr = SimulatedCluster::kFpr, .seed = 1},
      {.id = 2,
       .name = "narrow",
       .columns = {2},
       .fpr = SimulatedCluster::kFpr,
       .expected_values = regions > 10'000 ? 1000u : 10'000u,
       .seed = 2},
  };
  if (regions <= 1000) {
    schema.indexes.push_back(
        {.id = 3, .name = "third", .columns = {3}, .fpr = SimulatedCluster::kFpr, .seed = 3});
  }
  return schema;
}

void Shuffle(std::vector<size_t>* order, Random* random) {
  for (size_t i = order->size(); i > 1; --i) {
    std::swap((*order)[i - 1], (*order)[random->Uniform(i)]);
  }
}

}  // namespace

SimulatedCluster::SimulatedCluster(size_t count)
    : schema_(std::make_shared<TableSchema>(Definition(count))) {
  for (const IndexSpec& index : schema_->indexes) {
    geometries_.push_back(SplitGeometry::For(index.fpr, index.expected_values));
  }
  Random random(count);
  servers.resize(count / kRegionsPerServer);
  for (size_t s = 0; s < servers.size(); ++s) {
    servers[s].name = "rs" + std::to_string(s);
    servers[s].start_code = 1 + random.Uniform(1'000'000);
  }
  std::vector<size_t> where(count), narrow(count);
  for (size_t i = 0; i < count; ++i) {
    where[i] = i % servers.size();
    narrow[i] = i;
  }
  Shuffle(&where, &random);
  Shuffle(&narrow, &random);
  for (size_t i = 0; i < count; ++i) {
    SimulatedRegion region{.id = i + 1, .server = where[i], .bits = Mix(i + 1)};
    region.range = {i == 0 ? "" : KeyAt(i), i + 1 == count ? "" : KeyAt(i + 1)};
    region.narrow = static_cast<int64_t>(narrow[i]) * kNarrow;
    regions.push_back(region);
    servers[where[i]].regions.push_back(i);
    cluster.regions.push_back({.id = RegionId(region.id),
                               .epoch = region.epoch,
                               .table_id = schema_->id,
                               .start = region.range.start,
                               .end = region.range.end,
                               .server = servers[where[i]].name});
  }
}

std::string SimulatedCluster::KeyAt(size_t i) const {
  Row row(schema_->columns.size());
  row[0] = Value::Int64(static_cast<int64_t>(i) * 1000);
  return EncodeKey(*schema_, row);
}

// Half of the bits, and those of the region's own value, which is its number.
uint64_t SimulatedCluster::Word(const SimulatedRegion& region, size_t index, uint64_t word) const {
  return Mix(region.bits + (index << 40) + word);
}

RoutingTerm SimulatedCluster::TermOf(size_t index, int64_t value) const {
  RoutingTerm term = MakePlan(*schema_,
                              Predicate::Compare(static_cast<uint32_t>(index + 1),
                                                 Predicate::Op::kEq, Value::Int64(value)),
                              {})
                         .routing;
  if (term.kind != RoutingTerm::Kind::kValue) {
    std::fputs("an equality is not routed as one value\n", stderr);
    std::exit(1);
  }
  return term;
}

std::pair<int64_t, int64_t> SimulatedCluster::RangeOf(const SimulatedRegion& region, size_t index) {
  if (index == 1) return {region.narrow, region.narrow + kNarrow - 1};
  return {0, std::numeric_limits<int64_t>::max()};
}

pb::Event SimulatedCluster::EventOf(pb::Event::Kind kind, SimulatedServer* server,
                                    const SimulatedRegion& region) const {
  pb::Event event;
  event.set_kind(kind);
  event.set_sequence(++server->last);
  event.set_region_id(region.id);
  event.set_epoch(region.epoch);
  if (kind == pb::Event::REGION_OPENED) {
    event.set_table_id(schema_->id);
    event.set_start(region.range.start);
    event.set_end(region.range.end);
  }
  return event;
}

pb::Event SimulatedCluster::CompleteOf(SimulatedServer* server, const SimulatedRegion& region,
                                       size_t index) const {
  pb::Event event = EventOf(pb::Event::INDEX_COMPLETE, server, region);
  event.set_index_id(schema_->indexes[index].id);
  event.set_generation(1);
  event.mutable_geometry()->set_slices(geometries_[index].slices);
  event.mutable_geometry()->set_slice_positions(geometries_[index].slice_positions);
  event.set_layers(1);
  const auto [min, max] = RangeOf(region, index);
  event.set_has_range(true);
  event.set_min(Encoded(index, min));
  event.set_max(Encoded(index, max));
  return event;
}

void SimulatedCluster::AddProjection(const SimulatedServer& server, const SimulatedRegion& region,
                                     size_t index, pb::PollReply* reply) const {
  const SplitGeometry& geometry = geometries_[index];
  std::string bytes((geometry.positions() + 63) / 64 * 8, '\0');
  for (uint64_t word = 0; word < bytes.size() / 8; ++word) {
    const uint64_t bits = Word(region, index, word);
    std::memcpy(&bytes[word * 8], &bits, 8);
  }
  const uint64_t hash = HashOf(index, OwnValue(region, index));
  for (uint32_t slice = 0; slice < geometry.slices; ++slice) {
    const uint64_t position = geometry.Position(hash, slice);
    bytes[position / 8] = static_cast<char>(bytes[position / 8] | 1 << (position % 8));
  }
  pb::Projection* projection = reply->add_projections();
  projection->set_region_id(region.id);
  projection->set_epoch(region.epoch);
  projection->set_index_id(schema_->indexes[index].id);
  projection->set_generation(1);
  projection->set_as_of(server.last);
  projection->mutable_geometry()->set_slices(geometry.slices);
  projection->mutable_geometry()->set_slice_positions(geometry.slice_positions);
  projection->add_layers(std::move(bytes));
  const auto [min, max] = RangeOf(region, index);
  projection->set_has_range(true);
  projection->set_min(Encoded(index, min));
  projection->set_max(Encoded(index, max));
}

pb::PollReply SimulatedCluster::ReplyOf(const SimulatedServer& server, uint64_t from) {
  pb::PollReply reply;
  reply.set_start_code(server.start_code);
  reply.set_from(from);
  reply.set_to(server.last);
  reply.set_lease_ns(static_cast<uint64_t>(Duration(std::chrono::hours(1)).count()));
  return reply;
}

bool SimulatedCluster::MayHold(const SimulatedRegion& region, const RoutingTerm& term) const {
  switch (term.kind) {
    case RoutingTerm::Kind::kAnd:
      return std::ranges::all_of(term.children, [&](const auto& t) { return MayHold(region, t); });
    case RoutingTerm::Kind::kOr:
      return std::ranges::any_of(term.children, [&](const auto& t) { return MayHold(region, t); });
    default:
      break;
  }
  const size_t index = term.index_id - 1;
  const auto [least, most] = RangeOf(region, index);
  if (term.kind == RoutingTerm::Kind::kRange) {
    return Encoded(index, most) >= term.low &&
           (term.high.empty() || Encoded(index, least) < term.high);
  }
  const SplitGeometry& geometry = geometries_[index];
  std::optional<uint64_t> own;
  for (uint32_t slice = 0; slice < geometry.slices; ++slice) {
    const uint64_t position = geometry.Position(term.hash, slice);
    if (Word(region, index, position / 64) >> (position % 64) & 1) continue;
    if (!own) own = HashOf(index, OwnValue(region, index));
    bool set = false;
    for (uint32_t s = 0; s < geometry.slices; ++s) set |= geometry.Position(*own, s) == position;
    if (!set) return false;
  }
  return Encoded(index, least) <= term.first && term.first <= Encoded(index, most);
}

}  // namespace tamis
