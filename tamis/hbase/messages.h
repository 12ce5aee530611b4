// Conversion of requests to HBase's messages.
#pragma once

#include <string>
#include <string_view>

#include "tamis/hbase/operations.h"
#include "tamis/hbase/region.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {

pb::CompareType ToProto(Compare compare);
void ToProto(const Filter& filter, pb::Filter* out);
void BinaryComparatorOf(std::string_view value, pb::Comparator* out);
void ToProto(const Get& get, pb::Get* out);
// Appends the mutation's cells to the cell block `cells`.
void ToProto(const Mutation& mutation, uint64_t nonce, pb::MutationProto* out, std::string* cells);
void ToProto(const Condition& condition, std::string_view row, pb::Condition* out);
void ToProto(const Scan& scan, pb::Scan* out);

}  // namespace tamis::hbase
