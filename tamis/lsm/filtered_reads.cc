#include "tamis/lsm/filtered_reads.h"

#include "tamis/lsm/tree_filter.h"

namespace tamis::lsm {

void FilteredReads::Note(rocksdb::ColumnFamilyHandle* family, const rocksdb::Status& status) const {
  if (status.IsNotFound()) filter_.tree().NoteFalsePasses(family->GetID(), 1);
}

}  // namespace tamis::lsm
