#include "tamis/hbase/filter.h"

#include <google/protobuf/message_lite.h>

#include "tamis/hbase/messages.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

Filter Named(std::string_view class_name, const google::protobuf::MessageLite& message) {
  return {.name = "org.apache.hadoop.hbase.filter." + std::string(class_name),
          .bytes = message.SerializeAsString()};
}

Filter List(pb::FilterList::Operator combination, const std::vector<Filter>& filters) {
  pb::FilterList list;
  list.set_operator_(combination);
  for (const Filter& filter : filters) ToProto(filter, list.add_filters());
  return Named("FilterList", list);
}

}  // namespace

Filter Filter::Value(const Column& column, Compare compare, std::string_view value) {
  pb::SingleColumnValueFilter filter;
  filter.set_column_family(column.family);
  filter.set_column_qualifier(column.qualifier);
  filter.set_compare_op(ToProto(compare));
  BinaryComparatorOf(value, filter.mutable_comparator());
  filter.set_filter_if_missing(!column.rows_without_it);
  filter.set_latest_version_only(true);
  return Named("SingleColumnValueFilter", filter);
}

Filter Filter::RowKey(Compare compare, std::string_view key) {
  pb::RowFilter filter;
  filter.mutable_compare_filter()->set_compare_op(ToProto(compare));
  BinaryComparatorOf(key, filter.mutable_compare_filter()->mutable_comparator());
  return Named("RowFilter", filter);
}

Filter Filter::RowPrefix(std::string_view prefix) {
  pb::PrefixFilter filter;
  filter.set_prefix(std::string(prefix));
  return Named("PrefixFilter", filter);
}

Filter Filter::RowRanges(const std::vector<Range>& ranges) {
  pb::MultiRowRangeFilter filter;
  for (const Range& range : ranges) {
    pb::RowRange& out = *filter.add_row_range_list();
    out.set_start_row(range.begin);
    out.set_start_row_inclusive(true);
    out.set_stop_row(range.end);
    out.set_stop_row_inclusive(false);
  }
  return Named("MultiRowRangeFilter", filter);
}

Filter Filter::Qualifiers(std::string_view begin, std::string_view end) {
  pb::ColumnRangeFilter filter;
  filter.set_min_column(std::string(begin));
  filter.set_min_column_inclusive(true);
  if (!end.empty()) filter.set_max_column(std::string(end));
  filter.set_max_column_inclusive(false);
  return Named("ColumnRangeFilter", filter);
}

Filter Filter::KeysOnly(bool lengths) {
  pb::KeyOnlyFilter filter;
  filter.set_len_as_val(lengths);
  return Named("KeyOnlyFilter", filter);
}

Filter Filter::FirstKeyOnly() { return Named("FirstKeyOnlyFilter", pb::FirstKeyOnlyFilter()); }

Filter Filter::Page(int64_t rows) {
  pb::PageFilter filter;
  filter.set_page_size(rows);
  return Named("PageFilter", filter);
}

Filter Filter::All(const std::vector<Filter>& filters) {
  return List(pb::FilterList::MUST_PASS_ALL, filters);
}
Filter Filter::Any(const std::vector<Filter>& filters) {
  return List(pb::FilterList::MUST_PASS_ONE, filters);
}

}  // namespace tamis::hbase
