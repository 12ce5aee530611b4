#include "tamis/hbase/messages.h"

namespace tamis::hbase {
namespace {

template <class Message>
void SetColumns(const std::vector<Column>& columns, Message* out) {
  for (const Column& column : columns) {
    // A server expects the columns of one family in one message.
    pb::Column* same = nullptr;
    for (pb::Column& known : *out->mutable_column()) {
      if (known.family() == column.family) same = &known;
    }
    if (same == nullptr) {
      same = out->add_column();
      same->set_family(column.family);
      if (column.qualifier) same->add_qualifier(*column.qualifier);
    } else if (!column.qualifier) {
      same->clear_qualifier();  // the whole family
    } else if (same->qualifier_size() > 0) {
      same->add_qualifier(*column.qualifier);
    }
  }
}

template <class Message>
void SetAttributes(const Attributes& attributes, Message* out) {
  for (const auto& [name, value] : attributes) {
    pb::NameBytesPair& pair = *out->add_attribute();
    pair.set_name(name);
    pair.set_value(value);
  }
}

void ToProto(const TimeRange& range, pb::TimeRange* out) {
  out->set_from(static_cast<uint64_t>(range.from));
  out->set_to(static_cast<uint64_t>(range.to));
}

}  // namespace

pb::CompareType ToProto(Compare compare) {
  switch (compare) {
    case Compare::kLess:
      return pb::LESS;
    case Compare::kLessOrEqual:
      return pb::LESS_OR_EQUAL;
    case Compare::kNotEqual:
      return pb::NOT_EQUAL;
    case Compare::kGreaterOrEqual:
      return pb::GREATER_OR_EQUAL;
    case Compare::kGreater:
      return pb::GREATER;
    case Compare::kEqual:
      break;
  }
  return pb::EQUAL;
}

void ToProto(const Filter& filter, pb::Filter* out) {
  out->set_name(filter.name);
  out->set_serialized_filter(filter.bytes);
}

void BinaryComparatorOf(std::string_view value, pb::Comparator* out) {
  pb::BinaryComparator comparator;
  comparator.mutable_comparable()->set_value(std::string(value));
  out->set_name("org.apache.hadoop.hbase.filter.BinaryComparator");
  out->set_serialized_comparator(comparator.SerializeAsString());
}

void ToProto(const Get& get, pb::Get* out) {
  out->set_row(get.row);
  SetColumns(get.columns, out);
  SetAttributes(get.attributes, out);
  if (get.filter) ToProto(*get.filter, out->mutable_filter());
  if (get.time_range) ToProto(*get.time_range, out->mutable_time_range());
  out->set_max_versions(get.max_versions);
  if (!get.cache_blocks) out->set_cache_blocks(false);
}

void ToProto(const Mutation& mutation, uint64_t nonce, pb::MutationProto* out, std::string* cells) {
  out->set_row(mutation.row());
  out->set_mutate_type(static_cast<pb::MutationProto::MutationType>(mutation.kind()));
  out->set_durability(static_cast<pb::MutationProto::Durability>(mutation.durability()));
  out->set_associated_cell_count(static_cast<int32_t>(mutation.cell_count()));
  if (mutation.cell_count() == 0) out->set_timestamp(static_cast<uint64_t>(kLatest));
  if (nonce != 0) out->set_nonce(nonce);
  SetAttributes(mutation.attributes(), out);
  cells->append(mutation.cells());
}

void ToProto(const Condition& condition, std::string_view row, pb::Condition* out) {
  out->set_row(std::string(row));
  if (condition.filter) {
    ToProto(*condition.filter, out->mutable_filter());
    return;
  }
  out->set_family(condition.family);
  out->set_qualifier(condition.qualifier);
  out->set_compare_type(ToProto(condition.compare));
  BinaryComparatorOf(condition.value, out->mutable_comparator());
}

void ToProto(const Scan& scan, pb::Scan* out) {
  out->set_start_row(scan.start_row);
  out->set_stop_row(scan.stop_row);
  out->set_include_start_row(scan.include_start);
  out->set_include_stop_row(scan.include_stop);
  out->set_reversed(scan.reversed);
  SetColumns(scan.columns, out);
  SetAttributes(scan.attributes, out);
  if (scan.filter) ToProto(*scan.filter, out->mutable_filter());
  if (scan.time_range) ToProto(*scan.time_range, out->mutable_time_range());
  out->set_max_versions(scan.max_versions);
  out->set_max_result_size(scan.bytes_per_call);
  if (!scan.cache_blocks) out->set_cache_blocks(false);
}

}  // namespace tamis::hbase
