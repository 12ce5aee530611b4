// Faults: for tests only. Each switches one rule off, so that the tests can show that they would
// find the key that is missed without it.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

namespace tamis::lsm {

struct Faults {
  bool filter_before_memtables = false;  // readers ask in the other order
  bool forget_outputs = false;       // outputs of compactions are not reconciled with their inputs
  bool count_after_install = false;  // a flushed file is counted only at the next reconciliation
  bool ignore_ingestion = false;     // ingested files are not counted, nor passed through
  bool remove_beside_unknown = false;  // copies leave although a live file is not known
  bool forget_dropped = false;         // files of dropped families are not counted

  // Memtables that are batches do not make a family pass through. Since RocksDB 10, so not in
  // kFaults: read_paths_test.
  bool ignore_bypass = false;

  // Not a fault: called by readers between their two questions, so that a test can put an event
  // where threads would hardly ever meet.
  std::function<void()> between_questions;
};

inline constexpr std::pair<std::string_view, bool Faults::*> kFaults[] = {
    {"filter_before_memtables", &Faults::filter_before_memtables},
    {"forget_outputs", &Faults::forget_outputs},
    {"count_after_install", &Faults::count_after_install},
    {"ignore_ingestion", &Faults::ignore_ingestion},
    {"remove_beside_unknown", &Faults::remove_beside_unknown},
    {"forget_dropped", &Faults::forget_dropped},
};

}  // namespace tamis::lsm
