// ColumnTotals on the wire. Threads: values, no shared state.
#pragma once

#include "tamis/cluster/cluster.pb.h"
#include "tamis/table/column_totals.h"

namespace tamis {

void SetTotals(const ColumnTotals& totals, pb::Totals* message);

// kDataLoss: a value is not one of the type.
Result<ColumnTotals> ToTotals(Type type, const pb::Totals& message);

}  // namespace tamis
