// The hooks through which a stock RocksDB tells a TreeFilter what happens: a collector of the keys
// of each SST file that is written (key_collectors.h), a listener, and a factory of memtables
// (watched_memtables.h).
//
// They keep the names of what they wrap, so that the OPTIONS file stays readable without us. None
// of them makes a call of RocksDB fail, or throws: after an error, a lack of memory included, the
// column family passes through.
#pragma once

#include <rocksdb/options.h>

#include <memory>

#include "tamis/lsm/hook_state.h"

namespace tamis::lsm {

void AttachTo(const std::shared_ptr<HookState>& state, rocksdb::DBOptions* options);
void AttachTo(const std::shared_ptr<HookState>& state, rocksdb::ColumnFamilyOptions* options);

// Which of the hooks the options have; a program may have replaced them since AttachTo, or have
// attached them to some of its options alone.
bool HasListener(const HookState* state, const rocksdb::DBOptions& options);
bool HasCollector(const HookState* state, const rocksdb::ColumnFamilyOptions& options);
bool HasWatchedMemtables(const HookState* state, const rocksdb::ColumnFamilyOptions& options);

}  // namespace tamis::lsm
