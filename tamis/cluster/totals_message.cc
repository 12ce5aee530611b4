#include "tamis/cluster/totals_message.h"

#include "tamis/table/codec.h"

namespace tamis {
namespace {

std::string Encoded(const Value& value) {
  std::string bytes;
  if (!value.is_null()) AppendOrdered(value, &bytes);
  return bytes;
}

Result<Value> Decoded(Type type, std::string_view bytes) {
  if (bytes.empty()) return Value();
  TAMIS_ASSIGN_OR_RETURN(Value value, ReadOrdered(type, &bytes));
  if (!bytes.empty()) return DataLoss("totals of a column hold a damaged value");
  return value;
}

ColumnTotals::Number NumberOf(const pb::Totals::Part& part) {
  const auto high = static_cast<unsigned __int128>(static_cast<uint64_t>(part.high()));
  return static_cast<ColumnTotals::Number>(high << 64 | part.low());
}

}  // namespace

void SetTotals(const ColumnTotals& totals, pb::Totals* message) {
  const ColumnTotals::State& state = totals.state();
  message->set_values(state.values);
  for (const auto& [position, number] : state.parts) {
    pb::Totals::Part* part = message->add_parts();
    part->set_position(position);
    part->set_high(static_cast<int64_t>(number >> 64));
    part->set_low(static_cast<uint64_t>(number));
  }
  message->set_real(state.real);
  message->set_least(Encoded(state.least));
  message->set_greatest(Encoded(state.greatest));
}

Result<ColumnTotals> ToTotals(Type type, const pb::Totals& message) {
  ColumnTotals::State state;
  state.values = message.values();
  // The sum of 2^50 rows. With more, a few thousand of them might not fit in a number.
  constexpr int64_t kMostHigh = int64_t{1} << 50;
  for (const pb::Totals::Part& part : message.parts()) {
    const bool is_new = state.parts.try_emplace(part.position(), NumberOf(part)).second;
    if (!is_new || part.high() >= kMostHigh || part.high() < -kMostHigh) {
      return DataLoss("totals of a column hold a damaged sum");
    }
  }
  state.real = message.real();
  TAMIS_ASSIGN_OR_RETURN(state.least, Decoded(type, message.least()));
  TAMIS_ASSIGN_OR_RETURN(state.greatest, Decoded(type, message.greatest()));
  return ColumnTotals(type, std::move(state));
}

}  // namespace tamis
